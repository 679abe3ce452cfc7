"""Networks on Spark, end to end: queries come and go, the run starts again, the driver is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from brokers import until
from killed_network import CALLS, IN_CALL, STREAMS, TEXT, make_feed, open_network, text_of
from network_hosts import alone, joined_at
from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.errors import DataError, StateError, UsageError
from quadweir.runtime.network.delivery import NetworkAnswer
from quadweir.runtime.network.network import Network
from quadweir.runtime.network.querytext import QueryText
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI
from quadweir.testing import diff_answers
from quadweir.testing.answers import answers_from_json
from spark_queries import LAST, engine_over, lines_of, write_batches
from streaming import quads

pytestmark = pytest.mark.spark

REPO = Path(__file__).parents[2]
JSON = LineFormat.ANSWERS_JSONL
PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
QUERIES = {
    "pairs": PAIRS,
    "join": """SELECT ?x ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y }
      STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }""",
    "named": "SELECT ?x { STREAM <urn:s> [RANGE 8ms] { ?x <urn:p> <urn:b1> } }",
    "static": """SELECT ?z (COUNT(*) AS ?n)
      FROM NAMED WINDOW <urn:w> ON STREAM <urn:t> [RANGE 12ms STEP 4ms]
      WHERE { WINDOW <urn:w> { ?y <urn:q> ?z } ?y <urn:in> <urn:room> } GROUP BY ?z""",
    "csparql": "SELECT ?x ?z FROM STREAM <urn:t> [RANGE 9ms STEP 3ms] WHERE { ?x <urn:q> ?z }",
    "schema": "SELECT ?x { STREAM <urn:s> [RANGE 10ms] { ?x a <urn:Thing> } }",
    "made": """CONSTRUCT { _:it <urn:is> ?x . GRAPH ?y { _:it <urn:has> ?x } }
      { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }""",
}
STATIC = quads("b0 in room . b2 in room . b1 in hall")
SCHEMA = Schema((Axiom(AxiomKind.SUBCLASS, IRI("urn:Lamp"), IRI("urn:Thing")),))


def batches_of(count: int, size: int = 8) -> list[list[Element]]:
    """Batches of the feed of the killed network, with some elements of a class."""
    feed = make_feed(count * size)
    found = [feed[at : at + size] for at in range(0, len(feed), size)]
    lamp = replace(feed[0], quads=quads("lamp type Lamp"))
    lamp = replace(lamp, quads=tuple(replace(each, predicate=TYPE) for each in lamp.quads))
    for place, batch in enumerate(found):
        own = [replace(lamp, event_time=batch[-1].event_time, position=10_000 + place)]
        found[place] = batch + own
    return found


def network_over(spark: SparkSession, folder: Path, **options: Any) -> Network:
    engine = engine_over(spark, folder)
    engine.schema(SCHEMA)
    return engine.network(**{"static": STATIC, "shards": 2, **options})


def answers_alone(spark: SparkSession, tmp_path: Path, name: str) -> Iterator[str]:
    """The lines of a query that runs alone over all files, in one run."""
    engine = engine_over(spark, tmp_path / "in")
    engine.schema(SCHEMA)
    out = tmp_path / f"alone-{name}"
    query = engine.query(QUERIES[name], static=STATIC, shards=2)
    query.start(FileSink(out, JSON), checkpoint=tmp_path / f"{name}.alone", available_now=True)
    try:
        query.awaitTermination()
        assert query.exception() is None
    finally:
        query.stop()
    for file in sorted(out.glob("*.jsonl")):
        yield from file.read_text().splitlines()


def without_labels(lines: list[str]) -> Counter[str]:
    """Lines of graphs, whose blank nodes have other names in each run."""
    found: Counter[str] = Counter()
    for line in lines:
        row = json.loads(line)
        graph = [
            " ".join("_:" if word.startswith("_:") else word for word in each.split(" "))
            for each in row["graph"]
        ]
        labels = {
            word for each in row["graph"] for word in each.split(" ") if word.startswith("_:c")
        }
        assert len(labels) == 1
        found[json.dumps([row["t"], row["sign"], sorted(graph)])] += 1
    return found


def test_queries_of_a_network_that_starts_again_answer_once_and_as_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In three dialects, with static data and a schema; others come and go while it runs."""
    batches = batches_of(4, 12)
    own = {name: tmp_path / f"own-{name}" for name in ("join", "made", "late")}
    shared, letters = tmp_path / "shared", tmp_path / "letters"
    taken: list[NetworkAnswer] = []

    def give(place: int) -> None:
        write_batches(tmp_path / "in", batches[place], 1_000, first=place + 1)

    def start(network: Network, **options: Any) -> Network:
        return network.start(
            FileSink(shared, JSON),
            checkpoint=tmp_path / "checkpoint",
            dead_letters=FileSink(letters, LineFormat.JSONL),
            **options,
        )

    (tmp_path / "in").mkdir()
    try:
        for place in range(len(batches)):
            network = network_over(spark, tmp_path / "in")
            found = network.register_all(
                QUERIES,
                send_to={
                    "join": FileSink(own["join"], LineFormat.ANSWERS_CSV),
                    "made": FileSink(own["made"], JSON),
                    "pairs": taken.extend,
                },
            )
            assert found.refused == {}
            start(network)
            if place == 2:
                network.register("late", QUERIES["join"], send_to=FileSink(own["late"], JSON))
                network.replace("named", QUERIES["named"].replace("b1", "b2"))
                network.pause("csparql")
            if place == 3:
                # The text in this program is the old one, so it was replaced again.
                network.send("late", FileSink(own["late"], JSON))
                network.resume("csparql")
                network.unregister("late")
            give(place)
            network.processAllAvailable()
            assert {each.state for each in network.status()} <= {"running", "paused"}
            if place == 0:
                assert network.metrics()["queries"] == len(QUERIES)
            network.stop()
        # Stopped in the middle of nothing, it ends with what is there now.
        batches.append([LAST])
        network = start(network_over(spark, tmp_path / "in"))
        assert {*network.queries()} == {*QUERIES}
        give(len(batches) - 1)
        network.processAllAvailable()
    finally:
        network.stop()

    lines: dict[str, list[str]] = {}
    for row in (
        line for file in sorted(shared.glob("0*")) for line in file.read_text().splitlines()
    ):
        head, rest = row.split(",", 1)
        lines.setdefault(json.loads(head + "}")["query"], []).append("{" + rest)
    # Byte for byte what the same queries write that run alone, with Spark.
    for name in ("static", "schema"):
        assert Counter(lines[name]) == Counter(answers_alone(spark, tmp_path, name)), name
        assert len(lines[name]) > 3
    expected = list(answers_alone(spark, tmp_path, "made"))
    assert without_labels(lines["made"]) == without_labels(expected)
    written = [
        line for file in sorted(own["made"].glob("0*")) for line in file.read_text().splitlines()
    ]
    assert Counter(written) == Counter(lines["made"])

    # What Spark does alone is what a shard does; so the others are compared with one.
    def check(name: str, text: str, first: int, last: int) -> None:
        found = answers_from_json(lines.get(name, []))
        missing = alone(QueryText(text), batches, first, last, streams=STREAMS, static=STATIC)
        assert diff_answers(missing, found) == "", name

    check("pairs", PAIRS, 0, 5)
    check("join", QUERIES["join"], 0, 5)
    check("late", QUERIES["join"], 2, 3)
    csv = [
        line for file in sorted(own["join"].glob("0*")) for line in file.read_text().splitlines()
    ]
    assert len(csv) == len(lines["join"])
    assert Counter(map(json.dumps, lines_of(own["late"]))) == Counter(
        json.dumps(json.loads(line)) for line in lines["late"]
    )
    # One is new in batch 2, and the old one again in batch 3: each sees only what is later.
    parts = [
        (QUERIES["named"], 0, 2),
        (QUERIES["named"].replace("b1", "b2"), 2, 3),
        (QUERIES["named"], 3, 5),
    ]
    named = [
        answer
        for text, first, last in parts
        for answer in alone(QueryText(text), batches, first, last, streams=STREAMS, static=STATIC)
    ]
    assert diff_answers(named, answers_from_json(lines["named"])) == ""
    unpaused = []

    def unless_paused(batch: int, found: list[Any]) -> None:
        if batch != 2:
            unpaused.extend(found)

    alone(QueryText(QUERIES["csparql"]), batches, 0, 5, streams=STREAMS, on_batch=unless_paused)
    assert diff_answers(unpaused, answers_from_json(lines["csparql"])) == ""
    # A function gets the answers of the runs of its own process only, which are all here.
    assert Counter(each.t for each in taken) == Counter(
        json.loads(line)["t"] for line in lines["pairs"]
    )
    assert lines_of(letters) == []


def test_late_and_failing_in_a_network(spark: SparkSession, tmp_path: Path) -> None:
    """A late statement is a dead letter, once, and a sink that fails stops its query alone."""
    late = Element("urn:s", 5, 999, quads("x p late"))
    batches = [*batches_of(2), [late], [LAST]]
    (tmp_path / "in").mkdir()
    letters, shared = tmp_path / "letters", tmp_path / "shared"

    def fail(answers: list[NetworkAnswer]) -> None:
        raise OSError("no room")

    network = network_over(spark, tmp_path / "in", most_held=1_000)
    with pytest.raises(UsageError, match="not started"):
        network.status()
    network.register("pairs", PAIRS)
    network.register("other", PAIRS.replace("20ms", "30ms"))
    network.register("csparql", QUERIES["csparql"], send_to=fail)
    refused = network.register_all({"bad": "SELECT ?x {", "pairs": QUERIES["join"]})
    assert [*refused.refused] == ["bad", "pairs"]
    network.start(
        FileSink(shared, JSON),
        checkpoint=tmp_path / "checkpoint",
        dead_letters=FileSink(letters, LineFormat.JSONL),
    )
    try:
        with pytest.raises(UsageError, match="runs already"):
            network.start(checkpoint=tmp_path / "checkpoint")
        for place, batch in enumerate(batches):
            write_batches(tmp_path / "in", batch, 1_000, first=place + 1)
            network.processAllAvailable()
        status = {each.id: each for each in network.status()}
        assert status["csparql"].state == "stopped"
        assert status["csparql"].reason == "its sink failed: no room"
        assert (status["pairs"].state, status["pairs"].shared_with) == ("running", 1)
        assert network.metrics()["late"] >= 1
    finally:
        network.stop()
    (letter,) = lines_of(letters)
    assert "late" in letter["reason"]
    assert "urn:late" in letter["record"]
    network.register("later", PAIRS)
    assert network.queries() == ["pairs", "other", "later"], "it waits for the next start"


def test_a_query_with_backfill_continues_what_others_hold(
    spark: SparkSession, tmp_path: Path
) -> None:
    """J5: from the batch on in which it joins, it gives the answers of its twin."""
    batches = [*batches_of(3), [LAST]]
    (tmp_path / "in").mkdir()
    taken: list[NetworkAnswer] = []
    network = network_over(spark, tmp_path / "in")
    network.register_all(QUERIES, send_to=dict.fromkeys(("join", "static"), taken.extend))
    network.start(checkpoint=tmp_path / "checkpoint")
    joined: dict[str, int] = {}
    try:
        for place, batch in enumerate(batches):
            write_batches(tmp_path / "in", batch, 1_000, first=place + 1)
            network.processAllAvailable()
            if place == 1:
                seen = [each for own in batches[:2] for each in own]
                again = {f"{name} again": QUERIES[name] for name in ("join", "static")}
                joined = {name: joined_at(QueryText(text), seen) for name, text in again.items()}
                found = network.register_all(
                    {
                        **again,
                        "new": PAIRS.replace("STREAM", "STREAM ")[:-1] + "FILTER(?x != ?y) }",
                    },
                    send_to=dict.fromkeys(again, taken.extend),
                    backfill=True,
                )
                assert found.not_backfilled == {"new": "no query of its template runs"}
        status = {each.id: each.backfill for each in network.status()}
    finally:
        network.stop()
    assert status["pairs"] is None
    assert status["new"] is not None
    assert status["new"].state == "none"
    for name, since in joined.items():
        twin = [each for each in taken if each.query == name.removesuffix(" again")]
        found_by = {
            each: Counter((one.t, one.sign, str(one.bindings)) for one in mine)
            for each, mine in (
                ("twin", [one for one in twin if one.t > since]),
                (name, [one for one in taken if one.query == name]),
            )
        }
        assert found_by["twin"] == found_by[name] != Counter()
        backfill = status[name]
        assert backfill is not None
        assert (backfill.state, backfill.since) == ("done", None)


def test_a_network_reads_its_static_data_again(spark: SparkSession, tmp_path: Path) -> None:
    """What windows hold is joined with the new data, and the queries are the same."""
    (tmp_path / "in").mkdir()
    rooms = tmp_path / "rooms.nt"
    rooms.write_text("<urn:b> <urn:in> <urn:hall> .\n")
    taken: list[NetworkAnswer] = []
    places = """SELECT ?x ?z { STREAM <urn:s> [RANGE 1s] { ?x <urn:p> ?y }
      STREAM <urn:s> [RANGE 1s] { ?y <urn:q> <urn:on> } ?x <urn:in> ?z }"""
    network = network_over(spark, tmp_path / "in", static=[rooms])
    network.register("places", places, send_to=taken.extend)
    network.register("pairs", PAIRS)
    network.pause("pairs")
    network.start(checkpoint=tmp_path / "checkpoint")

    def give(place: int, text: str) -> None:
        element = Element("urn:s", 10 * place, place, quads(text))
        write_batches(tmp_path / "in", [element], 1_000, first=place)
        network.processAllAvailable()

    try:
        give(1, "a p y . b p y")
        assert network.reload_static() is False
        rooms.write_text("<urn:a> <urn:in> <urn:attic> .\n")
        assert network.reload_static() is True
        network.register("later", PAIRS)
        give(2, "y q on")
        assert {each.id: each.state for each in network.status()} == {
            "places": "running",
            "pairs": "paused",
            "later": "running",
        }
        assert [each.bindings for each in taken] == [{"x": "<urn:a>", "z": "<urn:attic>"}]
        rooms.write_text("<urn:a> <urn:in>")
        with pytest.raises(DataError):
            network.reload_static()
        give(3, "y q on")
        assert len(taken) == 2, "it continues with the old data"
    finally:
        network.stop()


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the network in a driver of its own, which leads a session."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPO / "tests" / "killed_network.py", folder],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )


def promised(folder: Path) -> int:
    """How many calls have returned."""
    file = folder / "calls"
    return len(file.read_text().splitlines()) if file.is_file() else 0


def test_a_driver_that_is_killed_while_queries_are_registered(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All queries of each call are there afterwards, or none; and nobody else takes the checkpoint."""
    feed = make_feed(60)
    batches = [feed[:20], feed[20:40], feed[40:], [LAST]]
    write_batches(tmp_path / "in", batches[0], 1_000)
    checkpoint = tmp_path / "checkpoint"
    process = started(tmp_path)
    try:
        until(lambda: process.poll() is not None or promised(tmp_path) >= 4, "the first calls")
        assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        with pytest.raises(StateError, match=f"process {process.pid} runs with the checkpoint"):
            open_network(spark, tmp_path).start(checkpoint=checkpoint)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    returned = promised(tmp_path)
    assert returned < CALLS, "it was killed in the middle of them"

    network = open_network(spark, tmp_path)
    out = tmp_path / "again"
    network.start(FileSink(out, JSON), checkpoint=checkpoint)
    try:
        names = network.queries()
        numbers = sorted(int(name.removeprefix("q")) for name in names if name != "first")
        calls, rest = divmod(len(numbers), IN_CALL)
        assert (rest, numbers) == (0, [*range(calls * IN_CALL)])
        assert returned <= calls <= returned + 1
        for place in range(1, len(batches)):
            write_batches(tmp_path / "in", batches[place], 1_000, first=place + 1)
        network.processAllAvailable()
    finally:
        network.stop()
    found: dict[str, list[str]] = {}
    for row in lines_of(out):
        found.setdefault(row["query"], []).append(json.dumps(row))
    since = joined_at(QueryText(TEXT), batches[0])
    assert since == max(each.event_time for each in batches[0])
    for name in ["q0", "q1", f"q{numbers[-1]}", f"q{IN_CALL + 7}"]:
        text = QueryText(text_of(int(name[1:])))
        expected = alone(text, batches, 1, 4, streams=STREAMS)
        assert diff_answers(expected, answers_from_json(found.get(name, []))) == "", name
    assert len(found) > 5

    # The same checkpoint with anything else.
    def refusal(network: Network) -> str:
        with pytest.raises(StateError) as caught:
            network.start(checkpoint=checkpoint)
        return str(caught.value)

    engine = engine_over(spark, tmp_path / "in")
    assert "<urn:t>" in refusal(engine.network(streams=["urn:s"], shards=2))
    assert "static" in refusal(engine.network(static=STATIC, shards=2))
    assert "shards" in refusal(engine.network(shards=3))
    engine.schema(SCHEMA)
    assert "schema" in refusal(engine.network(shards=2))
    with pytest.raises(StateError, match="made for something else"):
        engine_over(spark, tmp_path / "in").query(PAIRS).start(
            FileSink(tmp_path / "other", JSON), checkpoint=checkpoint
        )
