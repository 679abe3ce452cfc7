"""Doubtful parts of a query are reported before it runs."""

from __future__ import annotations

import pytest

from quadweir.algebra.warn import warnings_of
from quadweir.syntax import parse

GEO = "<http://www.example.org/function/near>"


def said(text: str) -> list[str]:
    return [str(each) for each in warnings_of(parse(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT ?woh { ?who <urn:p> ?y }",
            "1:1: nothing binds ?woh: it has no value in any answer. Did you mean ?who?",
        ),
        (
            "SELECT ?x { ?x <urn:p> ?y FILTER(?z > 3) }",
            "1:34: nothing binds ?z where this expression stands. Check its name.",
        ),
        (
            "SELECT ?x { ?x <urn:p> ?y { ?x <urn:q> ?z FILTER(?y > 3) } }",
            "1:50: nothing binds ?y where this expression stands. "
            "It is bound elsewhere, but not inside these braces.",
        ),
        (
            "SELECT ?x (COUNT(?w) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x",
            "1:18: nothing binds ?w where this expression stands. Check its name.",
        ),
        (
            "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?z",
            "1:1: nothing binds ?z: it separates no groups. Check its name.",
        ),
        (
            "SELECT ?x { ?x <urn:p> ?y } ORDER BY ?z",
            "1:38: nothing binds ?z where this expression stands. Check its name.",
        ),
        (
            "CONSTRUCT { ?x <urn:p> ?z } { ?x <urn:p> ?y }",
            "1:16: nothing binds ?z: triples with it are never made. Check its name.",
        ),
        (
            "CONSTRUCT { GRAPH ?z { ?x <urn:p> ?y } } { ?x <urn:p> ?y }",
            "1:27: nothing binds ?z: triples with it are never made. Check its name.",
        ),
        (
            "DESCRIBE ?z { ?x <urn:p> ?y }",
            "1:1: nothing binds ?z: there is nothing to describe. Check its name.",
        ),
        (
            f"SELECT ?x {{ ?x <urn:p> ?y FILTER({GEO}(?y)) }}",
            f"1:34: the function {GEO} is not known: its calls have no value, and a FILTER on one "
            "drops every solution. Check its IRI, or register it in Python: quadweir.register(iri, code).",
        ),
        (
            "SELECT ?x { ?x <urn:p> ?y FILTER(<http://www.w3.org/2001/XMLSchema#intger>(?y) > 1) }",
            "1:34: the function <http://www.w3.org/2001/XMLSchema#intger> is not known: its calls "
            "have no value, and a FILTER on one drops every solution. "
            "Did you mean <http://www.w3.org/2001/XMLSchema#integer>?",
        ),
    ],
)
def test_what_is_hardly_meant(text: str, expected: str) -> None:
    assert said(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?x <urn:p> ?y }",
        "SELECT ?x ?z { ?x <urn:p> ?y OPTIONAL { ?x <urn:q> ?z FILTER(?z > ?y) } }",
        "SELECT ?x { ?x <urn:p> ?y FILTER NOT EXISTS { ?x <urn:q> ?z FILTER(?z = ?y) } }",
        "SELECT ?x (SUM(?y) / COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY ?x HAVING (MAX(?y) > 1)",
        "SELECT ?z { ?x <urn:p> ?y BIND(<http://www.w3.org/2001/XMLSchema#integer>(?y) AS ?z) }",
        "SELECT ?g ?s { GRAPH ?g { ?s <urn:p> ?y } VALUES ?y { 1 2 } }",
        "SELECT ?s ?x { STREAM ?s [RANGE 1s] { ?x <urn:p> ?y } }",
        "SELECT (COUNT(*) AS ?n) { ?x <urn:p> ?y } GROUP BY (STR(?y))",
        "CONSTRUCT { ?x <urn:p> _:b } { ?x <urn:p> ?y }",
    ],
)
def test_what_may_well_be_meant(text: str) -> None:
    assert said(text) == []


def test_a_thing_is_said_once() -> None:
    text = f"SELECT ?x {{ ?x <urn:p> ?y FILTER({GEO}(?y) || {GEO}(?x)) FILTER(?z > 1 && ?z < 3) }}"
    assert len(said(text)) == 2
