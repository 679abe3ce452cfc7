"""Queries that differ in names, constants and lengths: one shape, found once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quadweir.optimize import optimize
from quadweir.sharing import Shaped, shape_of
from quadweir.sharing.skeletons import KnownShapes
from quadweir.syntax import parse

QUERY = """SELECT ?a ?c { STREAM <urn:s> [RANGE 5s] { ?a <urn:p> ?b . <urn:u> <urn:q> ?a }
  STREAM <urn:s> [RANGE 9s] { ?b <urn:q> ?c } FILTER(?b != ?c) }"""
LOOKUP = "SELECT ?a { STREAM <urn:s> [RANGE 5s] { ?a ?p ?b FILTER(?a = <urn:u> || ?b = <urn:u>) } }"
OTHER_CONDITION = (
    "SELECT ?a { STREAM <urn:s> [RANGE 5s] { ?a ?p ?b FILTER(?a = <urn:u> || ?b < 3) } }"
)
COUNTED = "SELECT ?a (COUNT(?b) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?a <urn:p> ?b } } GROUP BY ?a"


def known_of(known: KnownShapes, text: str, *, times: list[str] | None = None) -> Shaped:
    query = parse(text, dialect="cqels")

    def find() -> Shaped:
        if times is not None:
            times.append(text)
        return shape_of(optimize(query).query)

    return known.of(query, find)


def renamed(text: str) -> str:
    for old, new in (("?a", "?zz"), ("?b", "?a"), ("?c", "?b"), ("?n", "?how_many")):
        text = text.replace(old, new)
    return text


@pytest.mark.parametrize("text", [QUERY, LOOKUP, COUNTED])
def test_queries_with_other_names_of_variables_have_one_shape(text: str) -> None:
    one, other = (
        shape_of(optimize(parse(t, dialect="cqels")).query) for t in (text, renamed(text))
    )
    assert one.shape == other.shape
    assert one.constants == other.constants


def test_the_order_of_columns_makes_another_shape() -> None:
    texts = (QUERY, QUERY.replace("?a ?c", "?c ?a"))
    one, other = (shape_of(parse(text, dialect="cqels")) for text in texts)
    assert one.shape != other.shape


def test_names_stay_where_a_limit_may_depend_on_them() -> None:
    text = "SELECT ?a { STREAM <urn:s> [RANGE 5s] { ?a <urn:p> ?b } } LIMIT 2"
    one, other = (shape_of(parse(t, dialect="cqels")) for t in (text, renamed(text)))
    assert one.shape != other.shape


def other_constant(text: str) -> str:
    return text.replace("<urn:u>", "<urn:v>")


def other_length(text: str) -> str:
    return text.replace("5s", "7s")


@pytest.mark.parametrize("text", [QUERY, LOOKUP, COUNTED])
@pytest.mark.parametrize("change", [renamed, other_constant, other_length])
def test_a_shape_is_found_once(text: str, change: Callable[[str], str]) -> None:
    known, times = KnownShapes(), list[str]()
    known_of(known, text, times=times)
    found = known_of(known, change(text), times=times)
    assert times == [text]
    expected = shape_of(optimize(parse(change(text), dialect="cqels")).query)
    assert found == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (OTHER_CONDITION, other_constant(OTHER_CONDITION)),
        (LOOKUP, LOOKUP.replace("?b = <urn:u>", "?b = <urn:v>")),
        (QUERY, QUERY.replace("?b <urn:q> ?c", "?b <urn:q> <urn:u>")),
        (QUERY.replace("<urn:u> <urn:q>", "<urn:q> <urn:q>"), QUERY),
        (QUERY, QUERY.replace("5s", "5s SLIDE 1s")),
        (COUNTED, COUNTED.replace("COUNT(?b)", "COUNT(DISTINCT ?b)")),
        (QUERY, QUERY.replace("urn:s", "urn:t")),
        (QUERY, QUERY.replace("?b != ?c", "?b != ?a")),
        (QUERY + " LIMIT 3", renamed(QUERY) + " LIMIT 3"),
        (
            QUERY.replace("?b <urn:q> ?c", "?b a <urn:A> . ?b <urn:q> ?c"),
            QUERY.replace("?b <urn:q> ?c", "?b a <urn:B> . ?b <urn:q> ?c"),
        ),
    ],
)
def test_what_makes_another_shape_is_told_apart(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        known = KnownShapes()
        for text in (first, second, first):
            expected = shape_of(optimize(parse(text, dialect="cqels")).query)
            assert known_of(known, text) == expected
