"""The values of COUNT, SUM, MIN, MAX, AVG, SAMPLE and GROUP_CONCAT for a group.

This is the plain form of `kernel.sums`, `kernel.extremes` and `kernel.concatenation`, which update
aggregates as rows come and go; `tests/unit/kernel/test_aggregate.py` compares the two.

Spec: https://www.w3.org/TR/sparql11-query/#aggregateAlgebra
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from quadweir.algebra.expressions import AggregateCall, Expression
from quadweir.algebra.functions import call
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import is_hidden
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import Bag, Solution, key_of
from quadweir.algebra.values import (
    EXACT,
    Number,
    NumberKind,
    arithmetic,
    literal_of,
    order_key,
    value_of,
)
from quadweir.algebra.work import TextCounter
from quadweir.terms import Literal, Term


def evaluate_aggregate(
    aggregate: AggregateCall,
    group: Bag,
    value: Callable[[Expression, Solution], Term],
    texts: TextCounter | None = None,
) -> Term:
    """Compute an aggregate over the solutions of a group.

    COUNT and SAMPLE ignore solutions for which the argument is an error; for the others the whole
    aggregate is an error, as the specification says.

    Raises:
        ExpressionError: the aggregate has no value; its variable stays unbound.
        LimitError: its text would be too long, by what `texts` allows.
    """
    if aggregate.argument is None:
        return literal_of(Number.integer(_count_rows(group, distinct=aggregate.distinct)))
    values: list[Term] = []
    failure: ExpressionError | None = None
    for solution in group:
        try:
            values.append(value(aggregate.argument, solution))
        except ExpressionError as error:
            failure = error
    if aggregate.distinct:
        values = list(dict.fromkeys(values))
    if aggregate.function == "COUNT":
        return literal_of(Number.integer(len(values)))
    if aggregate.function == "SAMPLE":
        return _sample(values)
    if failure is not None:
        raise failure
    if aggregate.function == "GROUP_CONCAT":
        return _group_concat(values, aggregate.separator or "", texts or TextCounter())
    return _COMBINE[aggregate.function](values)


def _count_rows(group: Bag, *, distinct: bool) -> int:
    if not distinct:
        return len(group)
    return len({frozenset(i for i in key_of(each) if not is_hidden(i[0])) for each in group})


def _sample(values: Sequence[Term]) -> Term:
    # The least spelling, so that the answer does not depend on the order of arrival (P1).
    if not values:
        raise ExpressionError("SAMPLE of nothing")
    return min(values, key=str)


def _number(term: Term) -> Number:
    number = value_of(term) if isinstance(term, Literal) else None
    if not isinstance(number, Number):
        raise ExpressionError(f"{term} is not a number")
    return number


def total(numbers: Sequence[Number]) -> Number:
    """Add numbers exactly, and round the total once to the widest of their types.

    So the total depends on the numbers alone, and not on their order (P1). Only a total that does
    not fit its type is an error; for floats and doubles it is an infinity.

    >>> double = NumberKind.DOUBLE
    >>> total([Number(double, 1e16), Number(double, 1.0), Number(double, -1e16)]).lexical()
    '1'
    """
    kind = max((number.kind for number in numbers), default=NumberKind.INTEGER)
    values = [number.value for number in numbers]
    if kind is NumberKind.INTEGER:
        return Number.integer(sum(map(int, values)))
    if kind is NumberKind.DECIMAL:
        return Number.decimal(reduce(EXACT.add, map(Decimal, values)))
    special = [each for each in values if isinstance(each, float) and not math.isfinite(each)]
    if special:
        return Number.floating(kind, sum(special))
    exact = sum(map(Fraction, values))
    try:
        return Number.floating(kind, float(exact))
    except OverflowError:
        return Number.floating(kind, math.inf if exact > 0 else -math.inf)


def _sum(values: Sequence[Term]) -> Term:
    return literal_of(total([_number(term) for term in values]))


def _average(values: Sequence[Term]) -> Term:
    if not values:
        return literal_of(Number.integer(0))
    numbers = [_number(term) for term in values]
    return literal_of(arithmetic("/", total(numbers), Number.integer(len(numbers))))


def _minimum(values: Sequence[Term]) -> Term:
    if not values:
        raise ExpressionError("MIN of nothing")
    return min(values, key=lambda term: (order_key(term), str(term)))


def _maximum(values: Sequence[Term]) -> Term:
    if not values:
        raise ExpressionError("MAX of nothing")
    return max(values, key=lambda term: (order_key(term), str(term)))


def _group_concat(values: Sequence[Term], separator: str, counter: TextCounter) -> Term:
    # In order of spelling, which no order of arrival can change (P1).
    context = Context()
    texts = [call("STR", (term,), context) for term in sorted(values, key=str)]
    parts = [text.lexical for text in texts if isinstance(text, Literal)]
    counter.spend(sum(map(len, parts)) + len(separator) * len(parts), "GROUP_CONCAT")
    return Literal(separator.join(parts))


_COMBINE: dict[str, Callable[[Sequence[Term]], Term]] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": _minimum,
    "MAX": _maximum,
}
