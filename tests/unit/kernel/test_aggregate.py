"""Aggregates against recomputation, at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from changing_rows import Change, Row, Rows, contents, cut, follow, histories, terms_of
from odd_numbers import ODD_NUMBERS
from quadweir.algebra.aggregates import evaluate_aggregate
from quadweir.algebra.expressions import (
    AggregateCall,
    Arithmetic,
    Expression,
    VariableExpression,
)
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import Aggregation
from quadweir.algebra.scalar import evaluate_expression
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import Solution
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.arrays import ALWAYS, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.terms import IRI, BlankNode, Literal, Term, Variable
from quadweir.vocab import XSD

INTEGER, DECIMAL, DOUBLE, FLOAT = (
    IRI(each) for each in (XSD.integer, XSD.decimal, XSD.double, XSD.float)
)
X, K, H = Variable("x"), Variable("k"), Variable("_:h")
NAMES = ["k", "x", "_:h"]
NUMBERS = [
    *(Literal(each, INTEGER) for each in ("1", "01", "-7", "0", str(2**61), str(-(2**61)))),
    *(Literal(each, DECIMAL) for each in ("1.0", "1.50", "-0.25", "0.000000000000000001", "99")),
    *(Literal(each, DOUBLE) for each in ("1", "1.0E0", "-2.5", "0.25", "-0.0")),
    *(Literal(each, FLOAT) for each in ("1", "0.5", "-3")),
]
INTEGERS = [Literal(str(each), INTEGER) for each in (3, -3, 4, 5, 2**61, -(2**61), 2**62)]
DECIMALS = [Literal(each, DECIMAL) for each in ("0.1", "0.3", "-7", "1.10", "1.1")] + INTEGERS[:4]
OTHERS: list[Term | None] = [
    None,
    IRI("urn:a"),
    IRI("urn:a-name-that-begins-like-another/1"),
    IRI("urn:a-name-that-begins-like-another/2"),
    BlankNode("b"),
    Literal("text"),
    Literal("a text that is a little longer, 1"),
    Literal("a text that is a little longer, 2"),
    Literal("text", language="en"),
    Literal("true", IRI(XSD.boolean)),
    Literal("2024-01-01T00:00:00Z", IRI(XSD.dateTime)),
    Literal("2024-01-01T01:00:00+01:00", IRI(XSD.dateTime)),
    Literal("P1D", IRI(XSD.dayTimeDuration)),
    Literal("?", INTEGER),
    Literal("NaN", DOUBLE),
    Literal("INF", DOUBLE),
    Literal("-INF", FLOAT),
]
KEY = st.sampled_from([None, IRI("urn:k1"), IRI("urn:k2")])
HIDDEN = st.sampled_from([IRI("urn:h1"), IRI("urn:h2")])


def _rows(values: Iterable[Term | None], size: int = 30) -> st.SearchStrategy[list[Change]]:
    return histories(st.tuples(KEY, st.sampled_from(list(values)), HIDDEN), size)


ARGUMENT: Expression = VariableExpression(variable=X)


def _call(
    function: str, argument: Expression | None = ARGUMENT, *, distinct: bool
) -> AggregateCall:
    separator = ", " if function == "GROUP_CONCAT" else None
    return AggregateCall(
        function=function, argument=argument, distinct=distinct, separator=separator
    )


FUNCTIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
EVERY = [_call(each, distinct=distinct) for each in FUNCTIONS for distinct in (False, True)] + [
    _call("COUNT", None, distinct=False),
    _call("COUNT", None, distinct=True),
]


def _value(expression: Expression, solution: Solution) -> Term:
    return evaluate_expression(expression, solution, Context(), lambda _, __: False)


def _model(calls: list[AggregateCall], keys: tuple[Variable, ...], rows: list[Row]) -> Counter[Row]:
    groups: dict[Row, list[Solution]] = {} if keys else {(): []}
    for row in rows:
        bound = zip((Variable(name) for name in NAMES), row, strict=True)
        solution = {name: term for name, term in bound if term is not None}
        groups.setdefault(tuple(solution.get(key) for key in keys), []).append(solution)
    found: Counter[Row] = Counter()
    for key, members in groups.items():
        results: list[Term | None] = []
        for call in calls:
            try:
                results.append(evaluate_aggregate(call, members, _value))
            except ExpressionError:
                results.append(None)
        found[(*key, *results)] += 1
    return found


def _check(
    changes: list[Change],
    calls: list[AggregateCall],
    keys: tuple[Variable, ...],
    size: int,
    restart: bool,
) -> None:
    aggregations = tuple(
        Aggregation(variable=Variable(f"_:a{place}"), call=call) for place, call in enumerate(calls)
    )

    def make(dictionary: Dictionary) -> tuple[Rows, Operator]:
        rows = Rows(NAMES, dictionary)
        return rows, Aggregate(rows, keys, aggregations, dictionary)

    operator, dictionary = follow(
        make, changes, lambda rows: _model(calls, keys, rows), size, restart=restart
    )
    if keys:
        assert operator.held() == 0
        # Expressions keep the terms that they name themselves, and true and false.
        assert len(dictionary) <= (
            2 if any(each.argument not in (None, ARGUMENT) for each in calls) else 0
        )


STEPS = {"size": st.sampled_from([1, 3, 1000]), "restart": st.booleans()}


@given(
    changes=st.one_of(
        _rows(NUMBERS),
        _rows(INTEGERS),
        _rows(DECIMALS),
        _rows(ODD_NUMBERS),
        _rows(OTHERS + NUMBERS),
        _rows([None, *NUMBERS[:3]]),
    ),
    keys=st.sampled_from([(K,), (), (K, H)]),
    **STEPS,
)
@settings(max_examples=40)
def test_every_aggregate(
    changes: list[Change], keys: tuple[Variable, ...], size: int, restart: bool
) -> None:
    _check(changes, EVERY, keys, size, restart)


@given(
    changes=_rows(NUMBERS + ODD_NUMBERS + OTHERS, 80),
    function=st.sampled_from(["MIN", "MAX", "SAMPLE"]),
    **STEPS,
)
def test_extremes(changes: list[Change], function: str, size: int, restart: bool) -> None:
    _check(changes, [_call(function, distinct=False)], (K,), size, restart)


@given(changes=_rows([*INTEGERS, None, IRI("urn:a")]), **STEPS)
def test_arguments_are_expressions(changes: list[Change], size: int, restart: bool) -> None:
    twice = Arithmetic(
        operator="+", left=VariableExpression(variable=X), right=VariableExpression(variable=X)
    )
    calls = [_call(each, twice, distinct=True) for each in ("SUM", "COUNT", "MAX")]
    _check(changes, calls, (K,), size, restart)


DOUBLES = st.floats(allow_nan=False, allow_infinity=False)


def _double(value: float) -> Literal:
    return Literal(repr(value), DOUBLE)


@given(
    changes=histories(
        st.tuples(st.none(), st.one_of(DOUBLES.map(_double), st.sampled_from(DECIMALS)), st.none())
    ),
    size=st.sampled_from([1, 1000]),
    restart=st.booleans(),
)
@example(
    changes=[(0, 1, 0, (None, _double(1e16), None)), (1, 1, 1, (None, _double(1.0), None)),
             (2, -1, 0, (None, _double(1e16), None))],
    size=1,
    restart=False,
)  # fmt: skip
@example(
    # Both doubles cancel 0.1 to its 110th binary digit; what is left has 53 more.
    changes=[(0, 1, 0, (None, Literal("0.1", DECIMAL), None)), (0, 1, 1, (None, _double(-0.1), None)),
             (0, 1, 2, (None, _double(5.551115123125783e-18), None))],
    size=1,
    restart=False,
)  # fmt: skip
def test_the_sum_of_doubles_is_exact_and_rounded_once(
    changes: list[Change], size: int, restart: bool
) -> None:
    def exact(rows: list[Row]) -> Counter[Row]:
        values = [row[1] for row in rows]
        doubles = [each for each in values if isinstance(each, Literal) and each.datatype == DOUBLE]
        if not doubles:
            return _model([_call("SUM", distinct=False)], (), rows)
        total = sum(
            (Fraction(float(e.lexical)) if e.datatype == DOUBLE else Fraction(e.lexical))
            for e in values
            if isinstance(e, Literal)
        )
        try:
            rounded = total.numerator / total.denominator
        except OverflowError:
            rounded = float("inf") if total > 0 else float("-inf")
        return Counter([(Literal(_spelled(rounded), DOUBLE),)])

    def make(dictionary: Dictionary) -> tuple[Rows, Operator]:
        rows = Rows(NAMES, dictionary)
        calls = (Aggregation(variable=Variable("s"), call=_call("SUM", distinct=False)),)
        return rows, Aggregate(rows, (), calls, dictionary)

    follow(make, changes, exact, size, restart=restart)


def _spelled(value: float) -> str:
    from quadweir.algebra.values import Number, NumberKind

    return Number(NumberKind.DOUBLE, value).lexical()


def _plain(function: str, keys: tuple[Variable, ...] = ()) -> tuple[Rows, Aggregate, Dictionary]:
    dictionary = Dictionary()
    rows = Rows(NAMES, dictionary)
    calls = (Aggregation(variable=Variable("a"), call=_call(function, distinct=False)),)
    return rows, Aggregate(rows, keys, calls, dictionary), dictionary


@pytest.mark.parametrize(
    ("function", "empty"),
    [
        ("COUNT", Literal("0", INTEGER)),
        ("SUM", Literal("0", INTEGER)),
        ("AVG", Literal("0", INTEGER)),
        ("MIN", None),
        ("SAMPLE", None),
        ("GROUP_CONCAT", Literal("")),
    ],
)
def test_without_keys_there_is_a_row_before_any_input(function: str, empty: Term | None) -> None:
    _, operator, dictionary = _plain(function)
    first = operator.step([no_change()])
    assert first.t.tolist() == [ALWAYS]
    assert terms_of(operator, first, dictionary) == [(empty,)]
    assert len(operator.step([no_change()]).t) == 0


def test_what_was_always_there_is_in_the_first_row() -> None:
    rows, operator, dictionary = _plain("COUNT")
    delta = operator.step([rows.feed([(ALWAYS, 1, 0, (None, Literal("a"), None))])])
    assert delta.sign.tolist() == [1]
    assert terms_of(operator, delta, dictionary) == [(Literal("1", INTEGER),)]


def test_an_average_that_stays_the_same_is_no_change() -> None:
    rows, operator, _ = _plain("AVG", (K,))
    two: Row = (None, Literal("2", INTEGER), None)
    delta = operator.step([rows.feed([(1, 1, 0, two), (2, 1, 1, two), (3, -1, 0, two)])])
    assert delta.t.tolist() == [1]


def test_a_row_may_go_before_it_comes_within_an_instant() -> None:
    for function in FUNCTIONS:
        rows, operator, dictionary = _plain(function)
        value = Literal("2.5", DOUBLE)
        delta = rows.feed([(1, 1, 0, (None, value, None)), (1, -1, 0, (None, value, None))])
        before = operator.step([no_change()])
        turned = Delta(*(each[::-1].copy() for each in delta))
        assert len(operator.step([turned]).t) == 0, function
        after = rows.feed([(2, 1, 1, (None, value, None))])
        assert len(operator.step([after]).t) == 2, function
        assert len(before.t) == 1
        operator.settle()
        rows.settle()
        dictionary.settle()


def test_sample_ignores_rows_without_a_value() -> None:
    rows, operator, dictionary = _plain("SAMPLE", (K,))
    seven: Row = (None, Literal("7", INTEGER), None)
    delta = operator.step([rows.feed([(1, 1, 0, (None, None, None)), (1, 1, 1, seven)])])
    assert terms_of(operator, delta, dictionary) == [(None, Literal("7", INTEGER))]


def test_values_that_went_do_not_pile_up_under_a_lasting_minimum() -> None:
    rows, operator, dictionary = _plain("MIN")
    operator.step([rows.feed([(0, 1, 0, (None, Literal("-1", INTEGER), None))])])
    sizes = set()
    for t in range(1, 400):
        value: Row = (None, Literal(f"{t}.5", DECIMAL), None)
        delta = rows.feed([(t, 1, t, value), (t, -1, t, value)])
        assert len(operator.step([delta]).t) == 0
        operator.settle()
        rows.settle()
        dictionary.settle()
        sizes.add(len(dictionary))
    assert max(sizes) < 100


def test_history_helpers_agree_with_themselves() -> None:
    a: Row = (None, None, None)
    changes: list[Change] = [(0, 1, 0, a), (0, 1, 1, a), (1, -1, 0, a)]
    assert [len(each) for each in cut(changes, 1)] == [2, 1]
    assert {t: len(rows) for t, rows in contents(changes).items()} == {0: 2, 1: 1}
    assert ints(0).dtype == np.int64
