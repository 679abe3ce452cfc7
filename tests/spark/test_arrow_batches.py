"""Rows on their way to Python: long rows count as many, and nothing is lost or changed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quadweir import Engine, rows
from quadweir.plan.query import QueryPlan
from quadweir.runtime.host import executors
from quadweir.runtime.match.bits import MatchBits
from quadweir.runtime.match.matched import TERM_BITS, NarrowPacker, matched_rows, padded
from quadweir.runtime.match.matching import match_statements
from quadweir.runtime.match.rowform import stream_numbers
from quadweir.runtime.spark.arrowbatches import counting_rows, stages_in_python
from quadweir.runtime.wire.pack import BLOB, BLOB_SCHEMA, SHARD_KEY, Packer
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, Literal, Quad
from query_hosts import spec_of
from spark_queries import LAST, engine_over, lines_of, statements, write_batches

pytestmark = pytest.mark.spark

PAIRS = """SELECT ?x ?y ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y }
  STREAM <urn:t> [RANGE 20ms] { ?x <urn:q> ?z } }"""
# More tests than go with a time into one integer.
MANY = (
    "SELECT ?x ?y { STREAM <urn:s> [RANGE 15ms] { "
    + " UNION ".join(f"{{ ?x <urn:p{number}> ?y }}" for number in range(20))
    + " ?x <urn:p> ?y } }"
)
ROWS, BYTES = (f"spark.sql.execution.arrow.{name}PerBatch" for name in ("maxRecords", "maxBytes"))


def long_and_short() -> list[Element]:
    def element(number: int) -> Element:
        stream, predicate = ("urn:s", "p") if number % 2 else ("urn:t", "q")
        text = "x" * (70_000 if number % 7 == 0 else number)
        said = Quad(IRI(f"urn:a{number % 3}"), IRI(f"urn:{predicate}"), Literal(f"{number}{text}"))
        return Element(stream, 1000 + number, number, (said,))

    return [*(element(number) for number in range(60)), LAST]


def matches(blobs: DataFrame, plan: QueryPlan) -> Counter[tuple[object, ...]]:
    """All that was packed, with the shard that it is for."""
    found: Counter[tuple[object, ...]] = Counter()
    for key, blob in blobs.where(F.col(BLOB).isNotNull()).select(SHARD_KEY, BLOB).collect():
        table = pa.ipc.open_stream(blob).read_all()
        for row in table.to_pylist():
            found[(key, *sorted(row.items()))] += 1
    assert found
    assert plan.wanted
    return found


@pytest.mark.parametrize("text", [PAIRS, MANY], ids=["few tests", "many tests"])
@pytest.mark.parametrize("keys", [(0,), (0, 1, 2)], ids=["one shard", "three"])
def test_the_same_is_packed_as_from_all_columns(
    spark: SparkSession, text: str, keys: tuple[int, ...]
) -> None:
    plan = spec_of(text).plan
    frame = statements(spark, long_and_short()).coalesce(1)
    wide = match_statements(frame, plan.matching, len(keys)).mapInArrow(
        Packer.of(plan.matching, keys), BLOB_SCHEMA
    )
    with counting_rows(spark):
        narrow = matched_rows(frame, plan.matching, len(keys))
        packed = narrow.mapInArrow(NarrowPacker(Packer.of(plan.matching, keys)), BLOB_SCHEMA)
        assert matches(packed, plan) == matches(wide, plan)


def test_a_row_counts_by_the_length_of_its_terms(spark: SparkSession) -> None:
    plan = spec_of(PAIRS).plan
    elements = long_and_short()
    matched = match_statements(statements(spark, elements).coalesce(1), plan.matching, 2)
    bits = MatchBits.of(plan.wanted, streams=len(stream_numbers(plan.matching)), shards=2)
    tests = bits.masks(True for _ in plan.wanted)
    found = padded(matched, tests).toArrow()
    terms = [f"{part}" for each in elements for quad in each.quads for part in (quad.object,)]
    more = sum((len(term) + len("<urn:a1>")) >> TERM_BITS for term in terms)
    assert more > 60
    assert found.num_rows == matched.count() + more
    # The rows that only count say nothing but their time.
    empty = [row for row in found.to_pylist() if row["value2"] is None]
    assert len(empty) >= more
    assert not any(row["passed0"] & tests["passed0"] for row in empty)


def test_settings_are_put_back_and_those_of_the_user_kept(spark: SparkSession) -> None:
    def now() -> tuple[str | None, str | None]:
        return spark.conf.get(ROWS, None), spark.conf.get(BYTES, None)

    before, chosen = now(), spark.conf.getAll
    with counting_rows(spark):
        assert now() == ("65536", str(2**31 - 1))
    with counting_rows(spark, when=False):
        assert now() == before
    assert now() == before
    assert spark.conf.getAll == chosen
    spark.conf.set(BYTES, "1000000")
    try:
        with counting_rows(spark):
            assert now() == (before[0], "1000000")
    finally:
        spark.conf.unset(BYTES)


def test_what_goes_to_python_is_counted(spark: SparkSession) -> None:
    def same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    frame = spark.range(3)
    assert stages_in_python(frame) == 0
    once = frame.mapInArrow(same, "id bigint")
    assert stages_in_python(once.union(once.mapInArrow(same, "id bigint"))) == 3
    plus = F.udf(lambda x: x, "bigint")
    assert stages_in_python(frame.select(plus("id"))) is None


@pytest.mark.parametrize("shards_in", ["executors", "driver"])
def test_a_running_query_answers_with_long_literals_and_counts_rows_if_they_go_to_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards_in: str
) -> None:
    asked = []
    monkeypatch.setattr(
        executors, "counting_rows", lambda spark, when: asked.append(when) or counting_rows(spark)
    )
    elements = long_and_short()
    write_batches(tmp_path / "in", elements, 31)
    query = engine_over(spark, tmp_path / "in").query(PAIRS)
    sink = FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL)
    query.start(sink, checkpoint=tmp_path / "checkpoint", available_now=True, shards_in=shards_in)
    query.awaitTermination()
    plain = Engine(spark)
    for iri in ("urn:s", "urn:t"):
        frame = statements(spark, elements)
        plain.provide(iri, frame.where(F.col(rows.STREAM) == iri), canonical=True)
    expected = Counter(
        (row.t, *row.bindings) for row in plain.query(PAIRS).spelled_answers().collect()
    )
    found = lines_of(tmp_path / "out")
    assert asked == [True] * (shards_in == "executors")
    assert len(found) == expected.total() > 100
    assert max(len(json.dumps(each)) for each in found) > 70_000


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "bounded"])
def test_times_thousands_of_years_away_are_dead_letters(
    spark: SparkSession, tmp_path: Path, is_live: bool
) -> None:
    """Most likely nanoseconds; one of them taken for milliseconds would end all windows."""
    near = long_and_short()[:20]
    far = [
        Element("urn:s", time, 100 + place, (Quad(IRI("urn:a"), IRI("urn:p"), Literal("far")),))
        for place, time in enumerate((1_700_000_000_000_000_000, 1 << 48, -(1 << 48), 1 << 61))
    ]
    elements = [*near[:10], *far, *near[10:]]
    if is_live:
        write_batches(tmp_path / "in", [*elements, LAST], 8)
        query = engine_over(spark, tmp_path / "in").query(PAIRS)
        letters = FileSink(tmp_path / "letters", LineFormat.JSONL)
        query.start(
            FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL),
            checkpoint=tmp_path / "checkpoint",
            available_now=True,
            dead_letters=letters,
        )
        query.awaitTermination()
        count = len(lines_of(tmp_path / "out"))
        reasons = [each["reason"] for each in lines_of(tmp_path / "letters")]
    else:
        engine = Engine(spark)
        for iri in ("urn:s", "urn:t"):
            frame = statements(spark, elements)
            engine.provide(iri, frame.where(F.col(rows.STREAM) == iri), canonical=True)
        query = engine.query(PAIRS)
        count = query.spelled_answers().count()
        reasons = [row.reason for row in query.dead_letters().collect()]
    without = Engine(spark)
    for iri in ("urn:s", "urn:t"):
        frame = statements(spark, near)
        without.provide(iri, frame.where(F.col(rows.STREAM) == iri), canonical=True)
    assert count == without.query(PAIRS).spelled_answers().count() > 0
    assert len(reasons) == len(far)
    assert all("thousands of years away" in reason for reason in reasons)
