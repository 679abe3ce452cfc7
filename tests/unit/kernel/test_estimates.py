"""Comparisons that floats decide give what exact ones give."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odd_numbers import DECIMALS, DOUBLES, INTEGERS
from quadweir.algebra.expressions import (
    Arithmetic,
    Compare,
    Constant,
    Expression,
    FunctionCall,
    Negate,
    VariableExpression,
)
from quadweir.algebra.functions import default_context
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.scalar import evaluate_expression
from quadweir.algebra.values import TRUE as TRUE_TERM
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.distinctcalls import DistinctCalls
from quadweir.kernel.estimates import may_estimate
from quadweir.kernel.expressions import Vectorized
from quadweir.terms import IRI, Literal, Term, Variable
from quadweir.vocab import XSD

A, B = (VariableExpression(variable=Variable(name)) for name in "ab")


def _literal(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, IRI(XSD[datatype]))


_NEAR = st.builds(
    lambda whole, part: _literal(f"{whole}.{part:03d}", "decimal"),
    st.integers(-3, 3),
    st.integers(0, 30),
)
TERMS = st.one_of(
    _NEAR,
    st.sampled_from([_literal(each, "integer") for each in INTEGERS]),
    st.sampled_from([_literal(each, "decimal") for each in DECIMALS]),
    st.sampled_from([_literal(each, "double") for each in DOUBLES]),
    st.sampled_from([_literal(each, "float") for each in ("0.1", "16777217", "1.5")]),
    st.builds(lambda value: _literal(repr(value), "double"), st.floats()),
    st.builds(lambda value: _literal(str(value), "integer"), st.integers(-(10**16), 10**16)),
    st.sampled_from(
        [Literal("x"), IRI("urn:a"), _literal("true", "boolean"), _literal("z", "integer")]
    ),
)
SUMS: Final[st.SearchStrategy[Expression]] = st.recursive(
    st.one_of(st.sampled_from([A, B]), st.builds(lambda term: Constant(term=term), TERMS)),
    lambda inner: st.one_of(
        st.builds(
            lambda op, left, right: Arithmetic(operator=op, left=left, right=right),
            st.sampled_from("+-"),
            inner,
            inner,
        ),
        st.builds(lambda one: Negate(operand=one), inner),
        st.builds(lambda one: FunctionCall(function="ABS", arguments=(one,)), inner),
    ),
    max_leaves=4,
)
BAND = Compare(
    operator="<",
    left=FunctionCall(function="ABS", arguments=(Arithmetic(operator="-", left=A, right=B),)),
    right=Constant(term=_literal("0.01", "decimal")),
)


def _holds(node: Expression, solution: dict[Variable, Term]) -> bool:
    try:
        value = evaluate_expression(node, solution, default_context(), lambda *_: False)
    except ExpressionError:
        return False
    return value == TRUE_TERM


@given(
    node=st.builds(
        lambda op, left, right: Compare(operator=op, left=left, right=right),
        st.sampled_from(["<", "<=", ">", ">="]),
        SUMS,
        SUMS,
    ),
    pairs=st.lists(st.tuples(st.none() | TERMS, st.none() | TERMS), min_size=1, max_size=8),
)
@example(
    node=BAND,
    pairs=[
        (_literal("1.00", "decimal"), _literal(each, kind))
        for each, kind in (
            ("1.01", "decimal"),
            ("0.99", "decimal"),
            ("1.009999999999999999", "decimal"),
            ("1.01", "double"),
            ("0.99", "double"),
            ("1", "integer"),
            ("1.01", "float"),
        )
    ],
)
def test_floats_decide_as_exact_values_do(
    node: Compare, pairs: list[tuple[Term | None, Term | None]]
) -> None:
    dictionary = Dictionary()
    columns = {
        each.variable: dictionary.numbers(
            ["" if pair[at] is None else str(pair[at]) for pair in pairs]
        )
        for at, each in enumerate((A, B))
    }
    for each in columns.values():
        dictionary.hold(each[each != 0])
    found = Vectorized(node, dictionary).truth(columns, len(pairs)).tolist()
    solutions = [
        {each.variable: term for each, term in zip((A, B), pair, strict=True) if term is not None}
        for pair in pairs
    ]
    assert found == [_holds(node, solution) for solution in solutions]


@pytest.mark.parametrize(
    ("node", "may"),
    [
        (BAND, True),
        (Compare(operator="<", left=A, right=B), False),
        (Compare(operator="=", left=BAND.left, right=B), False),
        (
            Compare(operator="<", left=Arithmetic(operator="*", left=A, right=B), right=B),
            False,
        ),
    ],
)
def test_what_floats_may_decide(node: Compare, may: bool) -> None:
    assert may_estimate(node) == may


def test_pairs_that_are_far_apart_are_not_calculated(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    terms = DistinctCalls.terms

    def counted(self: DistinctCalls, name: object, numbers: tuple, *rest: object, **more: object):
        asked.append(len(numbers[0]))
        return terms(self, name, numbers, *rest, **more)

    monkeypatch.setattr(DistinctCalls, "terms", counted)
    dictionary = Dictionary()
    texts = [str(_literal(f"{place / 1000:.3f}", "decimal")) for place in range(1000)]
    numbers = dictionary.numbers(texts)
    left, right = np.repeat(numbers, 100), np.tile(numbers[:100], 1000)
    found = Vectorized(BAND, dictionary).truth({A.variable: left, B.variable: right}, len(left))
    values = np.arange(1000)
    wanted = np.abs(np.repeat(values, 100) - np.tile(values[:100], 1000)) < 10
    assert found.tolist() == wanted.tolist()
    # Only those whose distance is 0.01 are calculated: two steps for each.
    assert sum(asked) == 2 * np.count_nonzero(
        np.abs(np.repeat(values, 100) - np.tile(values[:100], 1000)) == 10
    )
