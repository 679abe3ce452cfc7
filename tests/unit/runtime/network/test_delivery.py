"""The answers of a network at its sinks: each where it belongs, once, and no fault spreads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from network_hosts import NO_SESSION, POINTS, NetworkHost, inputs_of
from quadweir.errors import QuadweirError
from quadweir.runtime.network.delivery import NetworkAnswer
from quadweir.runtime.network.network import Network
from quadweir.runtime.network.running import NetworkRun
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from streaming import stream

PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"
OTHERS = "SELECT ?y { STREAM <urn:s> [RANGE 20ms] { ?x <urn:q> ?y } }"
MAKES = """CONSTRUCT { _:it <urn:is> ?x . GRAPH ?x { _:it <urn:has> ?y } }
{ STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } }"""
JSON = LineFormat.ANSWERS_JSONL


def lines_of(folder: Path) -> list[str]:
    return [line for file in sorted(folder.glob("0*")) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("dies", [None, *POINTS])
def test_answers_are_written_once_wherever_the_driver_dies(
    tmp_path: Path, dies: str | None
) -> None:
    """To the sink of all and to sinks of their own, in the lines of a query alone."""
    folders = {name: tmp_path / name for name in ("all", "a", "b", "made")}
    for folder in folders.values():
        folder.mkdir()
    with NetworkHost(tmp_path / "network", sink=FileSink(folders["all"], JSON)) as host:
        host.register(a=PAIRS, b=OTHERS, same=PAIRS, made=MAKES)
        host.send(
            a=FileSink(folders["a"], LineFormat.ANSWERS_CSV),
            b=FileSink(folders["b"], LineFormat.ANSWERS_TSV),
            made=FileSink(folders["made"], LineFormat.NQUADS),
        )
        host.push(stream((1000, "a p b . a q c")), dies=dies)
        host.push(stream((1001, "x r y")), dies=dies)
        host.push(stream((1002, 'd p "e,f"')), dies=dies)
        host.finish()
    assert lines_of(folders["a"]) == ["1000,+,urn:a,urn:b", '1002,+,urn:d,"e,f"']
    assert lines_of(folders["b"]) == ["1000\t+\t<urn:c>"]
    named = [line.split(" ") for line in lines_of(folders["made"])]
    assert [len({each[0] for each in named[at : at + 2]}) for at in (0, 2)] == [1, 1]
    assert len({each[0] for each in named}) == 2, "each solution has its own blank node"
    found = lines_of(folders["all"])
    assert Counter(line.split('"')[3] for line in found) == {"a": 2, "b": 1, "same": 2, "made": 2}
    assert (
        '{"query":"b","t":1000,"sign":"+","bindings":{"y":{"type":"uri","value":"urn:c"}}}' in found
    )


def test_queries_of_one_template_that_make_other_triples_of_a_solution(tmp_path: Path) -> None:
    """They share everything but what is made at the end."""
    out = tmp_path / "out"
    out.mkdir()
    other = MAKES.replace("<urn:has>", "<urn:had>")
    with NetworkHost(tmp_path / "network", sink=FileSink(out, JSON)) as host:
        host.register(a=MAKES, b=other, c=MAKES, d=other)
        assert {each.template for each in host.registry.queries()} == {0}
        host.push(stream((1000, "a p b . a p c")))
    found = [json.loads(line) for line in lines_of(out)]
    assert Counter(each["query"] for each in found) == dict.fromkeys("abcd", 2)
    made = {(each["query"], each["graph"][0].split(" ")[1]) for each in found}
    assert made == {("a", "<urn:has>"), ("b", "<urn:had>"), ("c", "<urn:has>"), ("d", "<urn:had>")}
    assert len({each["graph"][0].split(" ")[0] for each in found}) == 8


def test_the_blank_nodes_of_a_repeated_batch_are_those_of_before(tmp_path: Path) -> None:
    batches: list[list[NetworkAnswer]] = []
    with NetworkHost(tmp_path) as host:
        host.register(made=MAKES, again=MAKES)
        host.send(made=batches.append)
        elements = stream((1000, "a p b . a p c"))
        host.push(elements, dies="written")
    first, second = batches
    assert first == second
    assert len({each.graph[0].split(" ")[0] for each in first}) == len(first) == 2


def test_a_sink_that_fails_stops_its_query_alone(tmp_path: Path) -> None:
    found: list[NetworkAnswer] = []

    def fail(answers: list[NetworkAnswer]) -> None:
        raise OSError("no room")

    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS, b=PAIRS)
        host.send(a=fail, b=found.extend)
        host.push(stream((1000, "a p b")))
        assert [(each.id, each.stopped) for each in host.registry.stopped()] == [
            ("a", "its sink failed: no room")
        ]
        host.push(stream((1001, "a p c")))
        host.push(stream((1002, "a p d")))
        # It has left the shards, too.
        assert host.number("b") == 1
        assert {*host.answers} == {0, 1}
        assert [each.t for each in host.answers[0]] == [1000]
    assert [each.bindings["y"] for each in found] == ["<urn:b>", "<urn:c>", "<urn:d>"]


def test_a_format_that_a_query_cannot_have_stops_it(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with NetworkHost(tmp_path / "network") as host:
        host.register(made=MAKES, a=PAIRS)
        host.send(made=FileSink(folder, LineFormat.ANSWERS_CSV))
        host.push(stream((1000, "a p b")))
        (stopped,) = host.registry.stopped()
    assert stopped.id == "made"
    assert "cannot be written as answers-csv" in str(stopped.stopped)


def test_a_sink_can_be_added_and_taken_away_while_the_query_runs(tmp_path: Path) -> None:
    found: list[NetworkAnswer] = []
    with NetworkHost(tmp_path) as host:
        host.register(a=PAIRS)
        host.push(stream((1000, "a p b")))
        host.send(a=found.extend)
        host.push(stream((1001, "a p c")))
        host.delivery.send("a", None)
        host.push(stream((1002, "a p d")))
        assert host.delivery.counts == {0: 3}
    assert [(each.query, each.t, each.sign) for each in found] == [("a", 1001, "+")]


def test_the_sink_of_a_query_gets_all_of_its_answers_whenever_it_comes_and_goes(
    tmp_path: Path,
) -> None:
    """A batch may run while a query is registered, replaced or unregistered."""
    found: dict[str, list[NetworkAnswer]] = {"old": [], "new": []}
    with NetworkHost(tmp_path) as host:
        network = Network(inputs_of())
        network._running = NetworkRun(  # what `start` makes with Spark
            host.registry, host.delivery, host.control, NO_SESSION, host.log, *([NO_SESSION] * 5)
        )
        network.register("a", PAIRS, send_to=found["old"].extend)
        host.push(stream((1000, "a p b")))
        write = host.delivery.write_arrow

        def write_while(do: Callable[[], None]) -> None:
            def write_arrow(*args: Any) -> None:
                do()
                write(*args)

            host.delivery.write_arrow = write_arrow  # type: ignore[method-assign]

        write_while(lambda: network.replace("a", OTHERS, send_to=found["new"].extend))
        host.push(stream((1001, "a p c")))
        write_while(lambda: network.unregister("a"))
        host.push(stream((1002, "a q d")))
        write_while(lambda: None)
        with pytest.raises(QuadweirError):
            network.replace("b", "SELECT", send_to=found["new"].extend)
        network._running = None
        host.push(stream((1003, "a q e")))
    assert {name: [each.t for each in got] for name, got in found.items()} == {
        "old": [1000, 1001],
        "new": [1002],
    }
