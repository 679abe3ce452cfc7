"""Queries over streams that go on: stopped and started again, they give the oracle's answers."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from brokers import until
from quadweir import Engine, register, rows
from quadweir.errors import StateError, UsageError
from quadweir.functions import REGISTERED
from quadweir.runtime.checkpoint import Fingerprint
from quadweir.runtime.host import answerwriter, processes, workergroup
from quadweir.runtime.host.messages import Keep, Request, Take
from quadweir.runtime.host.pool import WorkerProcess
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import Call
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


BOTH = pytest.mark.parametrize("shards_in", ["driver", "executors"])


def run(spark: SparkSession, folder: Path, text: str, shards_in: str, *, letters: bool = False):
    """Answer what is in the folder now, and end."""
    registered = engine_over(spark, folder / "in").query(text)
    sink = FileSink(folder / "out", LineFormat.ANSWERS_JSONL)
    registered.start(
        sink,
        checkpoint=folder / "checkpoint",
        available_now=True,
        dead_letters=FileSink(folder / "dead", LineFormat.JSONL) if letters else None,
        shards_in=shards_in,
    )
    registered.awaitTermination()
    return registered


@BOTH
@pytest.mark.parametrize("text", [EAGER_JOIN, TWO_STAGES, STEPPED_GRAPH])
def test_stopped_and_started_again_it_gives_the_answers_of_the_oracle(
    spark, tmp_path, text, shards_in
):
    feed = make_feed()
    following = write_batches(tmp_path / "in", feed[:20], 10)
    first = run(spark, tmp_path, text, shards_in)
    assert not first.isActive
    if text == EAGER_JOIN:
        # As if it had been killed after the sink had all of a batch, and before Spark knew.
        for name in ("1", ".1.crc"):
            (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    write_batches(tmp_path / "in", [*feed[20:], LAST], 15, first=following)
    second = run(spark, tmp_path, text, shards_in)
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


@BOTH
def test_a_late_element_is_counted_and_kept_and_changes_nothing(spark, tmp_path, shards_in):
    feed = make_feed(24)
    following = write_batches(tmp_path / "in", feed, len(feed))
    late = Element("urn:s", 1, 100, quads("a0 p b0"))
    write_batches(tmp_path / "in", [late, LAST], 1, first=following)
    registered = run(spark, tmp_path, TWO_STAGES, shards_in, letters=True)
    assert registered.metrics()["late"] == 1
    expected = Oracle(TWO_STAGES).answers(feed)
    assert diff_answers(expected, written(tmp_path / "out")) == ""
    (letter,) = lines_of(tmp_path / "dead")
    assert (letter["source"], letter["place"]) == ("urn:s", "position 100")
    assert letter["record"] == "<urn:a0> <urn:p> <urn:b0>"
    assert letter["reason"].startswith("late: its time is 1, and the watermark was 10")


def test_a_checkpoint_serves_its_own_query_only(spark, tmp_path):
    checkpoint = tmp_path / "checkpoint"
    (tmp_path / "in").mkdir()
    engine = engine_over(spark, tmp_path / "in")
    made = engine.query(EAGER_JOIN, shards=1)
    made.fingerprint.guard(checkpoint)
    assert Fingerprint.left_in(checkpoint) == made.fingerprint
    renamed = engine.query("# the same but for its layout\n" + EAGER_JOIN, shards=1)
    renamed.fingerprint.guard(checkpoint)

    def refused(query) -> str:
        with pytest.raises(StateError) as error:
            query.start(MemorySink(), checkpoint=checkpoint)
        return f"{error.value.detail}"

    longer = refused(engine.query(EAGER_JOIN.replace("20ms", "21ms"), shards=1))
    assert "the query differs" in longer
    assert "21" in longer
    assert "it has 1 shards" in refused(engine.query(EAGER_JOIN, shards=2))
    made.start(MemorySink(), checkpoint=checkpoint).stop()
    with pytest.raises(StateError) as elsewhere:
        engine.query(EAGER_JOIN, shards=1).start(
            MemorySink(), checkpoint=checkpoint, shards_in="executors"
        )
    assert (
        "its shards were in local worker processes, and now they would be in Spark's executors"
        in f"{elsewhere.value}"
    )
    assert "--shards-in driver" in f"{elsewhere.value.hint}"
    with pytest.raises(UsageError, match="shards cannot be in 'space'"):
        made.start(MemorySink(), checkpoint=checkpoint, shards_in="space")
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
        engine.query(STEPPED_GRAPH.replace("urn:s>", "urn:unknown>")).spelled_answers()
    engine.provide("urn:t", statements(spark, make_feed(4)))
    with pytest.raises(UsageError, match="urn:t"):
        engine.query(EAGER_JOIN).spelled_answers()
    with pytest.raises(UsageError, match="not started"):
        _ = engine.query(EAGER_JOIN).lastProgress


def test_what_is_too_large_to_be_collected_is_handed_over_in_files(spark, tmp_path, monkeypatch):
    """As where a topic has grown for days before a query is started."""
    monkeypatch.setattr(processes, "_LARGE", 0)
    frames, tried = type(spark.range(1)), []

    def refuse(frame: DataFrame) -> pa.Table:
        tried.append(frame)
        raise RuntimeError("larger than spark.driver.maxResultSize (1024.0 MiB)")

    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 10)
    (tmp_path / "checkpoint" / "shards" / "scratch-of-one-that-was-killed").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(frames, "toArrow", refuse)
        run(spark, tmp_path, TWO_STAGES, "driver", letters=True)
    # Once it was large, the next is not tried.
    assert len(tried) == 1
    assert diff_answers(Oracle(TWO_STAGES).answers(feed), written(tmp_path / "out")) == ""
    # What is left, and what others left, is gone.
    left = [each.name for each in (tmp_path / "checkpoint" / "shards").glob("*-*")]
    assert sorted(left) == ["0-0", "0-1", "1-0", "1-1"]


@pytest.mark.parametrize("text", [EAGER_JOIN, TWO_STAGES])
def test_processes_that_are_killed_are_replaced(spark, tmp_path, monkeypatch, text):
    asked = WorkerProcess.ask
    dice = random.Random(11)

    def kill(process: WorkerProcess, request: Request) -> None:
        asked(process, request)
        if isinstance(request, Take | Keep) and dice.random() < 0.2:
            os.kill(process.number, signal.SIGKILL)
            killed.append(type(request))

    killed: list[type[Request]] = []
    monkeypatch.setattr(WorkerProcess, "ask", kill)
    monkeypatch.setattr(workergroup, "_TRIES", 20)
    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 6)
    run(spark, tmp_path, text, "driver")
    assert {*killed} >= {Take, Keep}
    assert diff_answers(Oracle(text).answers(feed), written(tmp_path / "out")) == ""


def test_a_process_that_ends_time_and_again_ends_the_query(spark, tmp_path, monkeypatch):
    asked = WorkerProcess.ask

    def kill(process: WorkerProcess, request: Request) -> None:
        if isinstance(request, Take):
            os.kill(process.number, signal.SIGKILL)
        asked(process, request)

    with monkeypatch.context() as patch:
        patch.setattr(WorkerProcess, "ask", kill)
        write_batches(tmp_path / "in", make_feed(10), 10)
        with pytest.raises(StreamingQueryException, match="ended 3 times in one batch"):
            run(spark, tmp_path, EAGER_JOIN, "driver")
    # What is left is as before the batch.
    write_batches(tmp_path / "in", [LAST], 1, first=2)
    run(spark, tmp_path, EAGER_JOIN, "driver")
    expected = Oracle(EAGER_JOIN).answers(make_feed(10))
    assert diff_answers(expected, written(tmp_path / "out")) == ""


def test_a_query_that_is_stopped_in_the_middle_of_a_batch_lets_go_of_its_state(spark, tmp_path):
    """What the batch writes later would get in the way of whoever goes on."""
    begun, go_on, wrote = threading.Event(), threading.Event(), []

    def write(frame: DataFrame, number: int) -> None:
        begun.set()
        go_on.wait(60)
        wrote.append((number, frame.count()))

    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 20)
    query = engine_over(spark, tmp_path / "in").query(EAGER_JOIN)
    query.start(Call(write), checkpoint=tmp_path / "checkpoint")
    assert begun.wait(60)
    threading.Timer(0.2, go_on.set).start()
    query.stop()
    run(spark, tmp_path, EAGER_JOIN, "driver")
    assert diff_answers(Oracle(EAGER_JOIN).answers(feed), written(tmp_path / "out")) == ""


def test_many_answers_of_one_batch_are_written_by_spark(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(answerwriter, "_FEW", 3)
    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 20)
    run(spark, tmp_path, EAGER_JOIN, "driver")
    monkeypatch.setattr(answerwriter, "_FEW", 10_000)
    monkeypatch.setattr(answerwriter, "_VERY_FEW", 0)
    (tmp_path / "other").mkdir()
    (tmp_path / "in").rename(tmp_path / "other" / "in")
    run(spark, tmp_path / "other", EAGER_JOIN, "driver")
    expected = Oracle(EAGER_JOIN).answers(feed)
    for folder in (tmp_path, tmp_path / "other"):
        assert diff_answers(expected, written(folder / "out")) == ""


def test_a_batch_that_is_repeated_is_of_the_time_when_it_was_first_begun(
    spark, tmp_path, monkeypatch
):
    """A stream that is idle only the second time would have answers lost that files do not take (P2)."""
    feed = [
        Element("urn:s", 1000, 0, quads("a p b")),
        Element("urn:t", 1000, 1, quads("b q c")),
        Element("urn:t", 5000, 2, quads("b q d")),
    ]
    following = write_batches(tmp_path / "in", feed, 2)
    text = STEPPED_GRAPH.replace("ON <urn:s>", "ON <urn:t>").replace("urn:p", "urn:q")
    text = text.replace("SELECT ?x ?y", "SELECT ?x ?y ?z").replace(
        "{ WINDOW", "FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE PT0.02S] { WINDOW", 1
    )
    text = text.replace("} }", "} OPTIONAL { WINDOW <urn:v> { ?z <urn:p> ?x } } }")
    read, began = processes.batch_began, []

    def noting(folder: str, batch: int) -> int:
        began.append((batch, read(folder, batch)))
        return began[-1][1]

    monkeypatch.setattr(processes, "batch_began", noting)

    def once():
        engine = Engine(spark)
        frame = spark.readStream.schema(rows.STATEMENT_SCHEMA).option("maxFilesPerTrigger", 1)
        for iri in ("urn:s", "urn:t"):
            own = frame.json(str(tmp_path / "in"))
            own = own.where(own[rows.STREAM].isin(iri, LAST.stream))
            engine.provide(iri, own, canonical=True, idle=timedelta(seconds=10))
        query = engine.query(text)
        sink = FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL)
        query.start(sink, checkpoint=tmp_path / "checkpoint", available_now=True)
        query.awaitTermination()

    once()
    reported = len(written(tmp_path / "out"))
    # As if it had been killed before Spark knew of the last batch.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink(missing_ok=True)
    once()
    assert len(written(tmp_path / "out")) == reported
    assert began[1] == began[2]
    assert began[0][1] < began[1][1] < time.time() * 1000
    write_batches(tmp_path / "in", [LAST], 1, first=following)
    once()
    assert diff_answers(Oracle(text).answers(feed), written(tmp_path / "out")) == ""


def test_a_frame_that_a_function_has_spark_keep_is_of_its_batch(spark, tmp_path):
    seen, kept = [], []

    def write(frame: DataFrame, number: int) -> None:
        kept.append(frame.persist())
        seen.append(frame.count())

    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 10)
    query = engine_over(spark, tmp_path / "in").query(EAGER_JOIN)
    query.start(Call(write), checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    assert sum(seen) == len(Oracle(EAGER_JOIN).answers(feed))
    assert [frame.count() for frame in kept] == seen
    for frame in kept:
        frame.unpersist()


def test_more_shards_than_cores_share_processes(spark, tmp_path):
    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], 12)
    query = engine_over(spark, tmp_path / "in").query(TWO_STAGES, shards=5)
    sink = FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL)
    query.start(sink, checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    assert len(list((tmp_path / "checkpoint" / "shards").glob("0-*"))) == 5
    assert diff_answers(Oracle(TWO_STAGES).answers(feed), written(tmp_path / "out")) == ""


def test_a_second_run_of_a_checkpoint_takes_it_over(spark, tmp_path):
    """As where a cell of a notebook is run again."""
    feed = make_feed()
    following = write_batches(tmp_path / "in", feed[:24], 4)

    def begin():
        query = engine_over(spark, tmp_path / "in").query(EAGER_JOIN)
        sink = FileSink(tmp_path / "out", LineFormat.ANSWERS_JSONL)
        return query.start(sink, checkpoint=tmp_path / "checkpoint")

    first = begin()
    until(lambda: first.lastProgress is not None, "a batch")
    second = begin()
    until(lambda: not first.isActive, "the end of the first")
    write_batches(tmp_path / "in", [*feed[24:], LAST], 4, first=following)
    second.processAllAvailable()
    second.stop()
    assert diff_answers(Oracle(EAGER_JOIN).answers(feed), written(tmp_path / "out")) == ""


@BOTH
def test_registered_functions_reach_every_host(spark, tmp_path, shards_in):
    """The code is a closure of this process, and the workers are others."""
    known = {"urn:a1", "urn:a2", "urn:nowhere-but-in-the-code"}
    register("urn:f:known", lambda name: name in known)
    text = EAGER_JOIN.replace("?y } STREAM", "?y } FILTER(<urn:f:known>(?x)) STREAM")
    try:
        feed = make_feed()
        write_batches(tmp_path / "in", [*feed, LAST], 20)
        run(spark, tmp_path, text, shards_in)
        expected = Oracle(text).answers(feed)
        assert expected
        assert len(expected) < len(Oracle(EAGER_JOIN).answers(feed))
        assert diff_answers(expected, written(tmp_path / "out")) == ""
    finally:
        REGISTERED.remove("urn:f:known")
    # Whoever can write to a checkpoint must not be able to bring code in.
    kept = [each for each in (tmp_path / "checkpoint").rglob("*") if each.is_file()]
    assert kept
    assert not [each for each in kept if b"nowhere-but-in-the-code" in each.read_bytes()]
