"""Peers give the oracle's answers: re-evaluation, and a separate program."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from quadweir.bench.mismatch import compare
from quadweir.bench.peer_process import ProcessPeer
from quadweir.bench.peers import Reevaluation
from quadweir.bench.tables import as_elements, as_quads, at_rate, head
from quadweir.bench.workloads import SMALL, Data, Question, lsbench, lsbench_data, taxi, taxi_data
from quadweir.errors import SourceError, UnsupportedError
from quadweir.terms import IRI, Quad
from quadweir.testing import Oracle

PROGRAM = """
import json, sys
from quadweir.sources.rdfdocuments import read_quads
from quadweir.sources.statements import parse_statement
from quadweir.sources.streamfiles import Element, split_time
from quadweir.testing import Oracle
from pathlib import Path
query, static = map(Path, sys.argv[-2:])
elements = []
for line in sys.stdin:
    if line.strip():
        stream, _, rest = line.rstrip("\\n").partition("\\t")
        time, statement = split_time(rest)
        elements.append(Element(stream, time, len(elements), (parse_statement(statement),)))
triples = list(read_quads(static)) if static.stat().st_size else []
for answer in Oracle(query.read_text(), static=triples).answers(elements):
    print(json.dumps(answer.to_json()))
"""


@cache
def data() -> Data:
    return lsbench_data(SMALL, *lsbench().values())


def feed(question: Question, triples: int = 250) -> Data:
    given = data().of(question)
    return Data(at_rate(head(given.streams, triples), 200.0), given.static)


def in_named_graph(quads: list[Quad]) -> list[Quad]:
    graph = IRI("urn:lsbench:static")
    return [Quad(each.subject, each.predicate, each.object, graph) for each in quads]


@pytest.mark.parametrize("name", list(lsbench()))
def test_reevaluation_gives_the_answers_of_the_oracle(name: str) -> None:
    question = lsbench("csparql")[name]
    # Queries about nearby users need more input before they have answers.
    given = feed(question, 600 if name == "Q7" else 250)
    peer = Reevaluation()
    peer.start(question, given.static)
    middle = {iri: len(table) // 2 for iri, table in given.streams.items()}
    cut = min(given.streams[iri].column("time")[at].as_py() for iri, at in middle.items())
    for late in (False, True):
        peer.feed(
            {
                iri: table.filter((table.column("time").to_numpy() >= cut) == late)
                for iri, table in given.streams.items()
            }
        )
    found = peer.collect()
    static = in_named_graph(as_quads(given.static))
    wanted = Oracle(question.text, static=static).answers(as_elements(given.streams))
    assert wanted
    agreement = compare(found, wanted)
    assert agreement.worst == 0.0 and agreement.size == agreement.other_size
    peer.stop()


def test_reevaluation_says_what_it_cannot_do() -> None:
    with pytest.raises(UnsupportedError):
        Reevaluation().start(
            Question(
                name="q",
                asks="",
                text="REGISTER QUERY q AS SELECT * FROM STREAM <urn:s> [RANGE TRIPLES 10] "
                "WHERE { ?s ?p ?o }",
                streams=("urn:s",),
            ),
            None,
        )


def test_a_program_of_its_own_is_fed_and_answers(tmp_path: Path) -> None:
    script = tmp_path / "engine.py"
    script.write_text(PROGRAM, encoding="utf-8")
    question = lsbench()["Q5"]
    given = feed(question)
    peer = ProcessPeer("oracle in a process", [sys.executable, str(script)])
    try:
        peer.start(question, given.static)
        peer.feed(given.streams)
        found = peer.collect()
    finally:
        peer.stop()
    wanted = Oracle(question.text, static=as_quads(given.static)).answers(
        as_elements(given.streams)
    )
    assert wanted
    assert compare(found, wanted).worst == 0.0


def test_a_program_that_fails_is_reported() -> None:
    peer = ProcessPeer("broken", [sys.executable, "-c", "raise SystemExit(3)"])
    question = taxi()
    peer.start(question, None)
    with pytest.raises(SourceError, match="exit code 3"):
        peer.feed(taxi_data(2, 3).streams)
        peer.collect()
    peer.stop()
    with pytest.raises(SourceError, match="cannot start"):
        ProcessPeer("missing", ["/no/such/program"]).start(question, None)
