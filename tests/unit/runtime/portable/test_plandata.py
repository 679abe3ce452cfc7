"""Plans as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from quadweir.runtime.portable.plandata import as_data, from_data
from quadweir.terms import IRI, Literal, Variable
from query_hosts import spec_of
from streaming import quads

QUERIES = [
    "SELECT ?x { STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } FILTER(?y > 1.5e0 && ?y != 2.5) }",
    "SELECT ?z (AVG(?y) AS ?n) { STREAM <urn:s> [RANGE 1m SLIDE 10s] { ?x <urn:p> ?y } ?y <urn:r> ?z } "
    "GROUP BY ?z HAVING (COUNT(*) > 1) ORDER BY ?z LIMIT 3",
    "CONSTRUCT { ?x <urn:q> _:b } { STREAM <urn:s> [TRIPLES 9] { ?x <urn:p>+ ?y } "
    "OPTIONAL { STREAM <urn:t> [NOW] { ?x <urn:q> 'a'@en } } }",
]


@pytest.mark.parametrize("text", QUERIES)
def test_a_plan_is_the_same_after_json(text: str) -> None:
    plan = spec_of(text, static=quads("b0 r c0"), shards=3).plan.for_shards()
    again = from_data(json.loads(json.dumps(as_data(plan))))
    assert again == plan
    assert again.held == plan.held


def test_what_is_shared_is_written_once() -> None:
    shared: Any = (IRI("urn:a"), IRI("urn:b"))
    for _ in range(60):
        shared = (shared, shared)
    assert len(as_data(shared)) < 70


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "text",
        -3,
        2.5,
        float("inf"),
        Decimal("1.50"),
        timedelta(days=-1, milliseconds=5),
        datetime(2026, 1, 1, tzinfo=UTC),
        (Literal("a"), Variable("b")),
        frozenset({IRI("urn:a"), IRI("urn:b")}),
        b"\x00\xff",
    ],
)
def test_values_stay_what_they_are(value: Any) -> None:
    again = from_data(json.loads(json.dumps(as_data(value))))
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [["os.system", 0]],
        ["true", ["subprocess.Popen", 0]],
        ["true", ["builtins.eval", 0]],
        [["quadweir.terms.parse_term", 0]],
        ["a", ["quadweir.plan.nodes.walk", 0]],
        ["a", ["quadweir.plan.nodes.BaseNode", 0]],
        ["a", ["quadweir.plan.nodes.dataclass", 0]],
        ["a", ["quadweir.plan.nonsense.Window", 0]],
        ["a", ["quadweir.terms.IRI", 0, 0]],
        [["tuple", 0]],
        [["tuple", -1]],
        [["enum", "quadweir.terms.IRI", "a"]],
        [{"a": 1}],
        [1.5],
    ],
)
def test_anything_else_is_refused(entries: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        from_data(entries)
