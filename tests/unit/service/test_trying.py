"""Queries are tried on a sample: the kernel answers, and the oracle agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import PlanError
from quadweir.runtime.network.querytext import QueryText
from quadweir.service.problems import PressureError
from quadweir.service.queries import QueryDesk
from quadweir.service.settings import ServiceLimits
from quadweir.service.trying import MOST_ELEMENTS, TrialDesk
from quadweir.sources.statements import parse_statement
from quadweir.sources.staticfiles import StaticFile
from quadweir.sources.streamfiles import Element

PAIRS = "SELECT ?x ?y { STREAM <urn:s> [RANGE 10ms] { ?x <urn:p> ?y } }"
COUNTS = """SELECT ?y (COUNT(*) AS ?n) FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.03S STEP PT0.01S]
WHERE { WINDOW <urn:w> { ?x <urn:p> ?y } ?y <urn:is> <urn:good> } GROUP BY ?y"""


def elements(iri: str, count: int = 60) -> list[Element]:
    return [
        Element(iri, 1_000 + 3 * n, n, (parse_statement(f"<urn:a{n}> <urn:p> <urn:b{n % 5}> ."),))
        for n in range(count)
    ]


def desk(feed: list[Element], static: tuple[StaticFile, ...] = ()) -> TrialDesk:
    unused: Any = None
    queries = QueryDesk(unused, unused, lambda: frozenset({"urn:s"}), ServiceLimits())
    return TrialDesk(queries, lambda _iri: feed, lambda: static, lambda: None)


def test_a_query_is_answered_and_verified() -> None:
    found = desk(elements("urn:s")).run(QueryText(PAIRS))
    assert (found["elements"], found["from"], found["to"]) == (60, 1_000, 1_177)
    assert (found["count"], found["reports"], found["difference"]) == (60, 20, None)
    assert found["answers"][0]["bindings"]["x"] == {"type": "uri", "value": "urn:a0"}


def test_static_data_counts(tmp_path: Path) -> None:
    (tmp_path / "good.ttl").write_text("<urn:b1> <urn:is> <urn:good> .")
    found = desk(elements("urn:s"), (StaticFile.of(tmp_path / "good.ttl"),)).run(QueryText(COUNTS))
    assert found["count"] > 5
    assert found["difference"] is None
    assert {each["bindings"]["y"]["value"] for each in found["answers"]} == {"urn:b1"}


def test_graphs_are_shown_and_not_verified() -> None:
    text = PAIRS.replace("SELECT ?x ?y", "CONSTRUCT { ?y <urn:of> [] }")
    found = desk(elements("urn:s")).run(QueryText(text))
    assert found["answers"][0]["graph"]
    assert found["reports"] == 0


def test_only_the_last_elements_are_used() -> None:
    found = desk(elements("urn:s", 3 * MOST_ELEMENTS)).run(QueryText(PAIRS))
    assert found["elements"] == MOST_ELEMENTS
    assert len(found["answers"]) == 100


def test_without_elements_there_is_nothing() -> None:
    found = desk([]).run(QueryText(PAIRS))
    assert (found["elements"], found["from"], found["answers"]) == (0, None, [])


def test_bad_queries_and_queues_are_refused() -> None:
    with pytest.raises(PlanError):
        desk([]).run(QueryText("SELECT * { ?s ?p ?o }"))
    busy = desk([])
    busy._running.acquire()
    with pytest.raises(PressureError):
        busy.run(QueryText(PAIRS))
