"""Queries over streams that go on: stopped and started again, they give the oracle's answers."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir.errors import StateError, UsageError
from quadweir.runtime.fingerprint import NAME
from quadweir.sinks.files import FileSink
from quadweir.sinks.lines import LineFormat
from quadweir.sinks.memory import MemorySink
from quadweir.sources.streamfiles import Element
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, engine_over, lines_of, statements, write_batches, written
from streaming import quads

pytestmark = pytest.mark.spark

EAGER_JOIN = """SELECT ?x ?y ?z {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
TWO_STAGES = """SELECT ?z (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }
GROUP BY ?z"""
STEPPED_GRAPH = """SELECT ?x ?y
FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.02S STEP PT0.01S]
{ WINDOW <urn:w> { ?x <urn:p> ?y } }"""


def make_feed(count: int = 48) -> list[Element]:
    dice = random.Random(7)
    found, time = [], 1000
    for position in range(count):
        time += dice.randrange(4)
        if dice.random() < 0.6:
            text, name = f"a{dice.randrange(4)} p b{dice.randrange(3)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, time, position, quads(text)))
    return found


def run(spark: SparkSession, folder: Path, text: str, *, letters: bool = False, **options):
    """Answer what is in the folder now, and end."""
    registered = engine_over(spark, folder / "in").query(text, **options)
    sink = FileSink(folder / "out", LineFormat.ANSWERS_JSONL)
    registered.start(
        sink,
        checkpoint=folder / "checkpoint",
        available_now=True,
        dead_letters=FileSink(folder / "dead", LineFormat.JSONL) if letters else None,
    )
    registered.awaitTermination()
    return registered


@pytest.mark.parametrize("text", [EAGER_JOIN, TWO_STAGES, STEPPED_GRAPH])
def test_stopped_and_started_again_it_gives_the_answers_of_the_oracle(spark, tmp_path, text):
    feed = make_feed()
    following = write_batches(tmp_path / "in", feed[:20], 10)
    first = run(spark, tmp_path, text)
    assert not first.isActive
    if text == EAGER_JOIN:
        # As if it had been killed after the sink had all of a batch, and before Spark knew.
        for name in ("1", ".1.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    write_batches(tmp_path / "in", [*feed[20:], LAST], 15, first=following)
    second = run(spark, tmp_path, text)
    assert second.id == first.id
    expected = Oracle(text).answers(feed)
    assert expected
    assert diff_answers(expected, written(tmp_path / "out")) == ""
    metrics = second.metrics()
    assert metrics["batches"] == (3 if text == EAGER_JOIN else 2)
    assert metrics["statements"] >= len([each for each in feed[20:] if each.stream == "urn:s"])
    assert metrics["state_rows"] > 0
    assert metrics["late"] == 0


def test_a_query_reads_the_answers_of_another_in_one_run(spark, tmp_path):
    """Time goes on in the second also where the first has no answers (A5, P1)."""
    feed = make_feed(60)
    following = write_batches(tmp_path / "in", feed[:30], 10)
    make = """CONSTRUCT { ?x <urn:r> ?z } {
      STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""
    count = """SELECT ?x (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:made> [RANGE PT0.02S STEP PT0.01S]
      { WINDOW <urn:w> { ?x <urn:r> ?z } } GROUP BY ?x"""

    def chained(made: str = make):
        engine = engine_over(spark, tmp_path / "in")
        engine.provide("urn:made", engine.query(made))
        return engine.query(count)

    def started():
        registered = chained()
        sink = FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL)
        registered.start(sink, checkpoint=tmp_path / "checkpoint", available_now=True)
        registered.awaitTermination()
        return registered

    started()
    write_batches(tmp_path / "in", [*feed[30:], LAST], 15, first=following)
    assert started().metrics()["late"] == 0
    between = [
        Element("urn:made", each.t, number, each.graph)
        for number, each in enumerate(Oracle(make).answers(feed))
    ]
    expected = Oracle(count).answers(between)
    assert expected
    assert diff_answers(expected, written(tmp_path / "out")) == ""
    with pytest.raises(StateError) as error:
        chained(make.replace("20ms", "21ms")).start(
            MemorySink(), checkpoint=tmp_path / "checkpoint"
        )
    assert "a query that feeds it" in f"{error.value.detail}"


def test_a_late_element_is_counted_and_kept_and_changes_nothing(spark, tmp_path):
    feed = make_feed(24)
    following = write_batches(tmp_path / "in", feed, len(feed))
    late = Element("urn:s", 1, 100, quads("a0 p b0"))
    write_batches(tmp_path / "in", [late, LAST], 1, first=following)
    registered = run(spark, tmp_path, TWO_STAGES, letters=True)
    assert registered.metrics()["late"] == 1
    expected = Oracle(TWO_STAGES).answers(feed)
    assert diff_answers(expected, written(tmp_path / "out")) == ""
    (letter,) = lines_of(tmp_path / "dead")
    assert (letter["source"], letter["place"]) == ("urn:s", "position 100")
    assert letter["record"] == "<urn:a0> <urn:p> <urn:b0>"
    assert letter["reason"].startswith("late: it is of 1, and time had come to 10")


def test_a_checkpoint_serves_its_own_query_only(spark, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    (tmp_path / "in").mkdir()
    engine = engine_over(spark, tmp_path / "in")
    made = engine.query(EAGER_JOIN, shards=1)
    made.fingerprint.guard(checkpoint)
    assert json.loads((checkpoint / NAME).read_text())["digest"] == made.fingerprint.digest
    renamed = engine.query("# the same but for its layout\n" + EAGER_JOIN, shards=1)
    renamed.fingerprint.guard(checkpoint)

    def refused(query) -> str:
        with pytest.raises(StateError) as error:
            query.start(MemorySink(), checkpoint=checkpoint)
        return f"{error.value.detail}"

    longer = refused(engine.query(EAGER_JOIN.replace("20ms", "21ms"), shards=1))
    assert "the query is another one" in longer
    assert "21" in longer
    assert "cut into 1 shards" in refused(engine.query(EAGER_JOIN, shards=2))
    # Of static data counts what the query finds in it.
    joined = EAGER_JOIN.removesuffix("}") + "?z <urn:r> ?w }"
    checkpoint = tmp_path / "joined"
    engine.query(joined, static=quads("c0 r d"), shards=1).fingerprint.guard(checkpoint)
    same = engine.query(joined, static=quads("c0 r d . c0 other e"), shards=1)
    same.fingerprint.guard(checkpoint)
    assert "static data" in refused(engine.query(joined, static=quads("c0 r e"), shards=1))


def test_streams_have_to_be_known_and_to_go_together(spark, tmp_path):
    (tmp_path / "in").mkdir()
    engine = engine_over(spark, tmp_path / "in")
    with pytest.raises(UsageError, match="urn:unknown"):
        engine.query(STEPPED_GRAPH.replace("urn:s>", "urn:unknown>")).to_dataframe()
    engine.provide("urn:t", statements(spark, make_feed(4)))
    with pytest.raises(UsageError, match="urn:t"):
        engine.query(EAGER_JOIN).to_dataframe()
    with pytest.raises(UsageError, match="not started"):
        _ = engine.query(EAGER_JOIN).lastProgress
