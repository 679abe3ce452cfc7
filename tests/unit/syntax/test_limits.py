"""Size, depth and operator limits: large queries end in a `LimitError`, never in a crash."""

from __future__ import annotations

import sys

import pytest

from quadweir.errors import LimitError, QuadweirError, QuerySyntaxError, UsageError
from quadweir.syntax import Limits, parse
from trees import asked

DEEP = {
    "groups": "SELECT * " + "{" * 5_000 + "}" * 5_000,
    "brackets": "SELECT * { FILTER(" + "(" * 5_000 + "1" + ")" * 5_000 + ") }",
    "lists": "SELECT * { ?a :p " + "(" * 5_000 + "1" + ")" * 5_000 + " }",
    "nodes": "SELECT * { ?a :p " + "[ :q " * 5_000 + "1" + "]" * 5_000 + " }",
    "paths": "SELECT * { ?a " + "(" * 5_000 + ":p" + ")" * 5_000 + " ?b }",
    "calls": "SELECT * { FILTER(" + "STR(" * 5_000 + "1" + ")" * 5_000 + ") }",
    "optionals": "SELECT * { " + "OPTIONAL { ?a :p ?b } " * 500 + "}",
    "sums": "SELECT (1" + " + 1" * 2_000 + " AS ?x) {}",
    "binds": "SELECT * { " + " ".join(f"BIND(1 AS ?x{n})" for n in range(500)) + " }",
    "minuses": "SELECT * { " + "MINUS { ?a :p ?b } " * 500 + "}",
    "subqueries": "SELECT * { " + "{ SELECT * { " * 2_000 + "} }" * 2_000 + " }",
    "open": "SELECT * { " + "{" * 5_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_queries_are_refused(name: str) -> None:
    with pytest.raises(LimitError):
        asked(DEEP[name])


@pytest.mark.parametrize("name", DEEP)
def test_even_without_limits_nothing_breaks(name: str) -> None:
    boundless = Limits(length=10**9, nesting=10**9, depth=10**9, operators=10**9)
    try:
        asked(DEEP[name], limits=boundless)
    except QuadweirError as problem:
        assert not isinstance(problem, UsageError)


def test_ordinary_depths_pass_from_a_shallow_stack() -> None:
    def at_depth(frames: int, text: str) -> object:
        return asked(text) if frames == 0 else at_depth(frames - 1, text)

    nested = "SELECT * " + "{ OPTIONAL " * 60 + "{}" + "}" * 60
    assert at_depth(sys.getrecursionlimit() // 4, nested)


def test_wide_queries() -> None:
    many = "SELECT * { " + " UNION ".join("{ ?a :p ?b }" for _ in range(2_000)) + " }"
    assert asked(many)
    with pytest.raises(LimitError):
        asked(many, limits=Limits(operators=1_000))
    conjunction = " && ".join(f"?a != {n}" for n in range(2_000))
    assert asked(f"SELECT * {{ FILTER({conjunction}) }}")


def test_length() -> None:
    with pytest.raises(LimitError):
        parse("SELECT * {}" + " " * 300_000)
    with pytest.raises(LimitError):
        parse("SELECT * {}", limits=Limits(length=10))


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("SELECT * {\n ?a ?b '\ud800' }")
    assert caught.value.span is not None
    assert caught.value.span.line == 2


def test_unknown_dialects_are_refused() -> None:
    with pytest.raises(UsageError):
        parse("SELECT * {}", dialect="sql")


@pytest.mark.parametrize(
    "text",
    ["'" * 20_000, '"""' + "\\" * 20_001, "a-" * 20_000, "<" * 20_000, "?" * 20_000, "a." * 20_000],
)
def test_odd_texts_end_quickly(text: str) -> None:
    # The suite's own timeout is the bound: a quadratic scan of these would take minutes.
    with pytest.raises(QuadweirError):
        parse(f"SELECT * {{ ?s ?p {text} }}", limits=Limits(nesting=10**6))
