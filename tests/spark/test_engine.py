from __future__ import annotations

import inspect
import json
import os
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import quadweir.syntax.read
from quadweir import Engine, rows
from quadweir.algebra.work import VARIABLE, most_work
from quadweir.errors import UsageError
from quadweir.runtime.spark.session import LOCAL_CHECKPOINTS, adopt
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.syntax import parse
from spark_queries import lines_of

pytestmark = pytest.mark.spark

STREAM = "http://example.org/stream"


def _declare(folder: Path, source: str) -> Path:
    toml = folder / "streams.toml"
    toml.write_text(f'[streams."{STREAM}"]\nformat = "timed-lines"\n{source}\n')
    return toml


def test_adopting_sets_what_was_left_open_and_says_so(spark: SparkSession) -> None:
    key = "spark.sql.session.timeZone"
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    other = spark.newSession()
    # A session made by somebody else has neither in its SparkConf; this one has both.
    other.conf.set(key, "Europe/Madrid")
    report = adopt(other)
    assert other.conf.get(manager) == LOCAL_CHECKPOINTS
    assert any(key in note for note in report.notes)
    assert other.conf.get(key) == "Europe/Madrid"
    assert "kept your" in str(report)


def test_code_stays_in_methods_that_java_compiles(spark: SparkSession) -> None:
    key = "spark.sql.codegen.hugeMethodLimit"
    session = spark.newSession()
    assert session.conf.get(key) == "8000"
    session.conf.set(key, "65535")
    report = adopt(session)
    assert any(key in note for note in report.notes)
    assert session.conf.get(key) == "65535"


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators have no such settings")
def test_what_frees_memory_keeps_it_but_for_this_process(spark: SparkSession) -> None:
    # In Python workers, which have them of Java.
    names = ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "ARROW_DEFAULT_MEMORY_POOL"]
    found = spark.range(1).rdd.map(lambda _: [os.environ.get(name) for name in names]).collect()
    assert found == [[str(128 << 20), str(32 << 20), "system"]]
    assert not {*names} & {*os.environ}


def test_python_workers_have_the_limit_on_work(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though Java, and so what it starts, was started without it."""
    monkeypatch.setenv(VARIABLE, "12345")
    monkeypatch.setitem(spark.sparkContext.environment, VARIABLE, "")
    adopt(spark)
    limit = F.udf(lambda _: most_work(), "long")
    assert spark.range(1).select(limit("id")).first() == (12345,)


def test_adopting_twice_changes_nothing_more(spark: SparkSession) -> None:
    session = spark.newSession()
    adopt(session)
    assert str(adopt(session)) == "nothing to change"


def test_a_session_cannot_be_adopted_onto_another_master(spark: SparkSession) -> None:
    with pytest.raises(UsageError):
        Engine(spark, shards=3)


def test_files_come_back_as_statements(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.stream").write_text(
        "1000 <urn:s> <urn:p> <urn:o> .\n2026-01-01T00:00:00Z <urn:s> <urn:p> <urn:o2> .\nwrong\n"
    )
    engine = Engine(spark)
    assert engine.load_streams(
        _declare(tmp_path, 'source = { kind = "file", path = "a.stream" }')
    ) == (STREAM,)
    found = engine.statements(STREAM).collect()
    assert [
        (row.stream, row.event_time, row.object)
        for row in sorted(found, key=lambda r: r.event_time)
    ] == [
        (STREAM, 1000, "<urn:o>"),
        (STREAM, 1767225600000, "<urn:o2>"),
    ]
    with pytest.raises(UsageError, match="has an end"):
        engine.write(STREAM, FileSink(tmp_path / "out"), checkpoint=tmp_path / "checkpoint")


def test_a_watched_folder_goes_to_files_with_its_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.stream").write_text("1000 <urn:s> <urn:p> <urn:o> .\nwrong\n")
    engine = Engine(spark)
    engine.load_streams(
        _declare(tmp_path, 'source = { kind = "folder", path = "in", watch = true }')
    )
    for _ in range(2):
        query = engine.write(
            STREAM,
            FileSink(tmp_path / "out", LineFormat.TIMED_LINES),
            checkpoint=tmp_path / "checkpoint",
            dead_letters=tmp_path / "letters",
            available_now=True,
        )
        assert query.awaitTermination(120)
        (folder / "b.stream").write_text("2000 <urn:s> <urn:p> <urn:o2> .\n")
    lines = sorted(
        line
        for path in (tmp_path / "out").glob("*.stream")
        for line in path.read_text().splitlines()
    )
    assert lines == ["1000 <urn:s> <urn:p> <urn:o> .", "2000 <urn:s> <urn:p> <urn:o2> ."]
    (letter,) = [
        json.loads(line)
        for path in (tmp_path / "letters").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert letter["place"].startswith("line 2")
    engine.stop()
    assert spark.range(1).count() == 1


def test_a_query_may_be_parsed_already(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT ?x { STREAM <urn:s> [RANGE 1m] { ?x <urn:p> ?y } }"
    parsed = parse(text)
    engine = Engine(spark)
    assert engine.query(text).query == parsed
    monkeypatch.setattr(quadweir.syntax.read, "parse", None)
    assert engine.query(parsed).query == parsed


def test_an_unknown_stream_is_named(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="no stream is declared as <urn:none>"):
        Engine(spark).statements("urn:none")


# Each says what it means in another way than our own sources would.
SPELLED = [
    (1000, 0, "<urn:a>", "<urn:p>", '"x"^^<http://www.w3.org/2001/XMLSchema#string>', None),
    (2000, 1, "<urn:\\u0061>", "<urn:p>", '"\\u0078"', None),
    (3000, 2, "<urn:a>", "<urn:p>", '"x"@EN', "<urn:g>"),
    (4000, 3, "urn:a", "<urn:p>", '"x"', None),
    (5000, 4, None, "<urn:p>", '"x"', None),
    (6000, 5, "<urn:a>", None, '"x"', None),
    (None, 6, "<urn:a>", "<urn:p>", '"x"', None),
    (8000, None, "<urn:a>", "<urn:p>", '"x"', "<urn:g>"),
]
LETTERS = {
    "position 3": ("the subject is not an IRI or a blank node", 'urn:a <urn:p> "x"'),
    "position 4": ("the subject is not an IRI or a blank node", 'NULL <urn:p> "x"'),
    "position 5": ("the predicate is not an IRI", '<urn:a> NULL "x"'),
    "position 6": ("no event time", '<urn:a> <urn:p> "x"'),
    "position ?": ("no position", '<urn:a> <urn:p> "x" <urn:g>'),
}
SPELLED_QUERY = """SELECT ?y FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.5S STEP PT0.5S]
{ WINDOW <urn:w> { <urn:a> <urn:p> ?y } }"""
NAMES = (
    "event_time long, position int, subject string, predicate string, object string, graph string"
)


def test_a_frame_is_checked_and_made_canonical(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("urn:any", *each) for each in SPELLED], f"stream string, {NAMES}"
    )
    engine = Engine(spark)
    engine.provide("urn:s", frame)
    query = engine.query(SPELLED_QUERY)
    found = query.spelled_answers().collect()
    assert sorted((row.t, row.bindings.y) for row in found) == [
        (1000, '"x"'),
        (2000, '"x"'),
        (3000, '"x"@en'),
    ]
    assert query.input_counts() == {"statements": 3, "dead_letters": 5, "earliest": 1000}
    letters = query.dead_letters().collect()
    assert {row.place: (row.reason, row.record) for row in letters} == LETTERS
    assert {row.source for row in letters} == {"urn:s"}


def test_a_frame_that_goes_on_is_checked_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    names = [field.split()[0] for field in NAMES.split(", ")]
    (tmp_path / "in" / "1.json").write_text(
        "".join(json.dumps(dict(zip(names, each, strict=True))) + "\n" for each in SPELLED)
    )
    frame = spark.readStream.schema(f"stream string, {NAMES}").json(str(tmp_path / "in"))
    engine = Engine(spark)
    engine.provide("urn:s", frame)
    query = engine.query(SPELLED_QUERY)
    query.start(
        FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL),
        checkpoint=tmp_path / "checkpoint",
        available_now=True,
        dead_letters=FileSink(tmp_path / "dead", LineFormat.JSONL),
    )
    assert query.awaitTermination(120)
    # The newest instant is not over.
    found = {(line["t"], line["bindings"]["y"]["value"]) for line in lines_of(tmp_path / "out")}
    assert found == {(1000, "x"), (2000, "x")}
    metrics = query.metrics()
    assert (metrics["statements"], metrics["dead_letters"]) == (3, 5)
    letters = {
        each["place"]: (each["reason"], each["record"]) for each in lines_of(tmp_path / "dead")
    }
    assert letters == LETTERS


def test_a_frame_that_is_said_to_be_canonical_is_taken_as_it_is(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("urn:s", *each) for each in SPELLED[:1]], f"stream string, {NAMES}"
    )
    engine = Engine(spark)
    engine.provide("urn:s", frame, canonical=True)
    (row,) = engine.query(SPELLED_QUERY).spelled_answers().collect()
    assert row.bindings.y == SPELLED[0][4]


def test_a_frame_without_the_columns_of_a_statement_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("urn:s", *SPELLED[0])], f"stream string, {NAMES}")
    engine = Engine(spark)
    with pytest.raises(UsageError, match='no column "object"'):
        engine.provide("urn:s", frame.drop("object"))
    timed = frame.withColumn("event_time", frame["event_time"].cast("timestamp"))
    with pytest.raises(UsageError, match='"event_time" in the frame for <urn:s> is timestamp'):
        engine.provide("urn:s", timed, canonical=True)


def test_the_example_of_provide_runs(spark: SparkSession) -> None:
    text = (inspect.getdoc(Engine.provide) or "").split("on it:\n")[1].split("\nArgs:")[0]
    names = {"spark": spark, "engine": Engine(spark), "rows": rows}
    exec(textwrap.dedent(text), names)
    ((answer,), (letter,)) = names["found"], names["dead"]
    assert answer.who == "urn:ann"
    assert letter.record.startswith("urn:bob")
