"""Rows that leave and come back within one step: a join dates each of their stays by itself."""

from __future__ import annotations

import pytest

from properties.test_kernel import by_the_kernel
from quadweir.optimize import optimize
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.testing import MemoryStream, Oracle, diff_answers

HEAD = """
PREFIX : <urn:>
SELECT *
FROM NAMED WINDOW :w0 ON STREAM <urn:s> [RANGE 10ms]
FROM NAMED WINDOW :w1 ON STREAM <urn:t> [RANGE 3ms]
WHERE { WINDOW :w0 { ?a :p ?b } %s }
"""
THEN_JOINED = "WINDOW :w0 { ?a :r ?d }"
BODIES = {
    "MINUS": "MINUS { WINDOW :w1 { ?a :q ?c } } " + THEN_JOINED,
    "NOT EXISTS": "FILTER NOT EXISTS { WINDOW :w1 { ?a :q ?c } } " + THEN_JOINED,
    "NOT EXISTS, joined before": (
        "{ WINDOW :w0 { ?a :r ?d } FILTER NOT EXISTS { WINDOW :w1 { ?a :q ?c } } }"
    ),
    "OPTIONAL": "OPTIONAL { WINDOW :w1 { ?a :q ?c } } " + THEN_JOINED,
    "two OPTIONALs": ("OPTIONAL { WINDOW :w1 { ?a :q ?c } } OPTIONAL { WINDOW :w0 { ?a :r ?d } }"),
    "two OPTIONALs on one variable": (
        "OPTIONAL { WINDOW :w1 { ?a :q ?c } } OPTIONAL { WINDOW :w0 { ?a :r ?c } }"
    ),
    "EXISTS": "FILTER EXISTS { WINDOW :w1 { ?a :q ?c } } " + THEN_JOINED,
}


def feed() -> list[Element]:
    s, t = MemoryStream("urn:s"), MemoryStream("urn:t")
    s.add(1, "<urn:x> <urn:p> <urn:y> . <urn:x> <urn:r> <urn:z> .")
    t.add(3, "<urn:x> <urn:q> 1 .")
    # Comes, goes and comes back once more before the left side is over.
    t.add(7, "<urn:x> <urn:q> 1 .")
    s.add(40, "<urn:x> <urn:p> <urn:y> .")
    t.add(40, "<urn:x> <urn:q> 1 .")
    return sorted([*s, *t], key=lambda each: each.event_time)


@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("size", [1, 2, 100])
def test_rows_that_come_back_within_a_step_have_their_own_times(
    body: str, size: int, output: str
) -> None:
    query = parse((HEAD % body).replace("SELECT", f"SELECT {output}"), dialect="rspql")
    arrived = feed()
    expected = Oracle(query).answers(arrived)
    assert expected
    found, _ = by_the_kernel(optimize(query).query, arrived, [], steps=[size])
    assert diff_answers(expected, found) == ""
