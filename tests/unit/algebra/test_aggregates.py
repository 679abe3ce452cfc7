"""SUM, AVG, MIN and MAX from scratch: exact, and the same for every order of the values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odd_numbers import ODD_NUMBERS
from quadweir.algebra.aggregates import evaluate_aggregate
from quadweir.algebra.expressions import AggregateCall, Expression, VariableExpression
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.solutions import Solution
from quadweir.algebra.values import compare, order_key
from quadweir.terms import IRI, BlankNode, Literal, Term, Variable
from quadweir.vocab import XSD

X = Variable("x")


def typed(kind: str, *spellings: str) -> list[Term]:
    return [Literal(each, datatype=IRI(XSD[kind])) for each in spellings]


def value(_: Expression, solution: Solution) -> Term:
    if X not in solution:
        raise ExpressionError("unbound")
    return solution[X]


def aggregate(function: str, values: list[Term | None]) -> str | None:
    call = AggregateCall(function=function, argument=VariableExpression(variable=X))
    group: list[Solution] = [{} if each is None else {X: each} for each in values]
    try:
        return str(evaluate_aggregate(call, group, value)).replace(XSD.string[:-6], "xsd:")
    except ExpressionError:
        return None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (typed("double", "1e16", "1", "-1e16"), '"1"^^<xsd:double>'),
        (typed("double", "1e308", "1e308", "-1e308"), '"1.0E308"^^<xsd:double>'),
        (typed("double", "1e308", "1e308"), '"INF"^^<xsd:double>'),
        (typed("double", "INF", "1e308", "1e308"), '"INF"^^<xsd:double>'),
        (typed("double", "INF", "-INF"), '"NaN"^^<xsd:double>'),
        (typed("double", "-0.0"), '"0"^^<xsd:double>'),
        (typed("float", "3e38", "3e38", "-3e38"), '"3.0E38"^^<xsd:float>'),
        (
            typed("integer", "9223372036854775807", "1", "-5"),
            '"9223372036854775803"^^<xsd:integer>',
        ),
        (typed("integer", "9223372036854775807", "1"), None),
        (
            typed("decimal", "99999999999999999999", "1", "-2"),
            '"99999999999999999998"^^<xsd:decimal>',
        ),
        ([*typed("integer", "1"), *typed("double", "1e16", "-1e16")], '"1"^^<xsd:double>'),
        ([], '"0"^^<xsd:integer>'),
    ],
)
def test_sums_are_exact_and_rounded_once(values: list[Term | None], expected: str | None) -> None:
    assert aggregate("SUM", values) == expected
    assert aggregate("SUM", values[::-1]) == expected


def test_averages_are_of_the_exact_sum() -> None:
    assert aggregate("AVG", typed("double", "1e16", "2", "-1e16", "0")) == '"0.5"^^<xsd:double>'
    assert aggregate("AVG", typed("integer", "9223372036854775807", "1", "-8")) == (
        '"3074457345618258600"^^<xsd:decimal>'
    )


def test_sample_ignores_what_has_no_value() -> None:
    assert aggregate("SAMPLE", [None, *typed("integer", "7")]) == '"7"^^<xsd:integer>'
    assert aggregate("SAMPLE", [None]) is None


@pytest.mark.parametrize("function", ["SUM", "AVG", "MIN", "MAX"])
@given(data=st.data(), values=st.lists(st.sampled_from(ODD_NUMBERS), max_size=6))
def test_the_order_of_the_values_is_of_no_account(
    function: str, data: st.DataObject, values: list[Term | None]
) -> None:
    turned = data.draw(st.permutations(values))
    assert aggregate(function, values) == aggregate(function, turned)


IN_ORDER: list[Term] = [
    BlankNode("b"),
    IRI("urn:a"),
    *typed("double", "NaN", "-INF"),
    *typed("integer", "2"),
    *typed("decimal", "2.5"),
    *typed("integer", "10"),
    *typed("double", "INF"),
    Literal("10"),
    Literal("9"),
    *typed("boolean", "false", "true"),
    Literal("a", language="en"),
    Literal("a", language="fr"),
    *typed("date", "2024-01-01Z", "2024-01-02"),
    *typed("dateTime", "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    *typed("duration", "P364D", "P1Y"),
    *typed("integer", "ten"),
    Literal("a", datatype=IRI("urn:unknown")),
]


def test_A4_min_and_max_follow_the_order_of_order_by() -> None:
    turned = IN_ORDER[::-1]
    assert sorted(turned, key=order_key) == IN_ORDER
    for place, least in enumerate(IN_ORDER):
        rest = IN_ORDER[place:]
        shown = str(least).replace(XSD.string[:-6], "xsd:")
        assert aggregate("MIN", rest[::-1]) == shown
        assert aggregate("MAX", IN_ORDER[: place + 1]) == shown


def test_A4_of_equal_values_min_takes_the_least_spelling_and_max_the_greatest() -> None:
    ones = [*typed("integer", "1", "01"), *typed("decimal", "1.0")]
    assert aggregate("MIN", ones) == '"01"^^<xsd:integer>'
    assert aggregate("MAX", ones) == '"1.0"^^<xsd:decimal>'


@given(st.lists(st.sampled_from([*ODD_NUMBERS, *IN_ORDER]), min_size=2, max_size=2))
def test_the_order_agrees_with_comparing_where_that_has_an_answer(pair: list[Term]) -> None:
    try:
        order = compare(*pair)
    except ExpressionError:
        return
    if order:
        assert (order_key(pair[0]) > order_key(pair[1])) - (
            order_key(pair[0]) < order_key(pair[1])
        ) == order
