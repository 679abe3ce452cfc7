"""Comparisons of sums and differences, decided by floats wherever these are sure.

`ABS(?a - ?b) < 0.01` for each pair of many places would be a calculation with exact decimals for
each pair. The same calculation with floats has an error that is known to be below some bound. If
the two sides are further apart than that, it decides. The few other pairs are calculated exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from quadweir.algebra.expressions import (
    Arithmetic,
    Compare,
    Constant,
    Expression,
    FunctionCall,
    Negate,
    VariableExpression,
)
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.typed import DECIMAL, DOUBLE, FALSE, INTEGER, TRUE, Floats

UNSURE: Final = -2
"""What a comparison gives where floats cannot decide."""
# Half a unit in the last place is 2**-53 of a number; twice that also pays for its own rounding.
_ROUNDING: Final = 2.0**-52
# Below this, floats are not exact to so many digits.
_TINY: Final = 1e-290
# Sums of larger numbers may be out of range, which is an error.
_LARGE: Final = 1e15
# Whether it is true if the left side is below, and if it is above.
_DECIDED: Final = {"<": (TRUE, FALSE), "<=": (TRUE, FALSE), ">": (FALSE, TRUE), ">=": (FALSE, TRUE)}

Numbers: TypeAlias = Callable[[Expression], Ints]
"""Gives the numbers of the terms of a variable or constant."""


class _Estimate(NamedTuple):
    """Values, NaN where there is none, and how far they may be from the exact ones."""

    value: Floats
    error: Floats


def may_estimate(node: Compare) -> bool:
    """Return whether floats may decide a comparison, and are cheaper than exact values.

    Without a calculation, terms are compared as they are.
    """
    sides = (node.left, node.right)
    return (
        node.operator in _DECIDED
        and all(map(_is_sum, sides))
        and not all(isinstance(each, VariableExpression | Constant) for each in sides)
    )


def _is_sum(node: Expression) -> bool:
    """Return whether a value is made of sums, differences and absolute values of terms."""
    match node:
        case VariableExpression() | Constant():
            return True
        case Arithmetic(operator="+" | "-", left=left, right=right):
            return _is_sum(left) and _is_sum(right)
        case Negate(operand=operand) | FunctionCall(function="ABS", arguments=(operand,)):
            return _is_sum(operand)
        case _:
            return False


def estimate(node: Compare, numbers: Numbers, dictionary: Dictionary) -> Ints:
    """Return the truth of a comparison as 1 or 0, and `UNSURE` where floats cannot decide.

    Args:
        node: the comparison; `may_estimate` holds.
        numbers: gives the numbers of terms.
        dictionary: what the terms are worth.
    """
    left = _estimate(node.left, numbers, dictionary)
    right = _estimate(node.right, numbers, dictionary)
    # The error of a difference covers the two sides, and is its own.
    apart = _sum(left, _Estimate(-right.value, right.error))
    if_below, if_above = _DECIDED[node.operator]
    found = np.full(len(apart.value), UNSURE)
    found[apart.value < -apart.error] = if_below
    found[apart.value > apart.error] = if_above
    return found


def _estimate(node: Expression, numbers: Numbers, dictionary: Dictionary) -> _Estimate:
    match node:
        case Arithmetic(operator=operator, left=left, right=right):
            one = _estimate(left, numbers, dictionary)
            value, error = _estimate(right, numbers, dictionary)
            return _sum(one, _Estimate(value if operator == "+" else -value, error))
        case Negate(operand=operand):
            value, error = _estimate(operand, numbers, dictionary)
            return _Estimate(-value, error)
        case FunctionCall(arguments=(operand,)):
            value, error = _estimate(operand, numbers, dictionary)
            return _Estimate(np.abs(value), error)
        case _:
            found = dictionary.typed(numbers(node))
            # A float of 32 bits is rounded to fewer digits at each step.
            is_known = (found.kind == INTEGER) | (found.kind == DECIMAL) | (found.kind == DOUBLE)
            return _rounded(np.where(is_known, found.approximate, np.nan), 0.0)


def _sum(one: _Estimate, other: _Estimate) -> _Estimate:
    return _rounded(one.value + other.value, one.error + other.error)


def _rounded(value: Floats, error: Floats | float) -> _Estimate:
    """Return a value that was rounded once more, by the exact calculation or by this one."""
    size = np.abs(value)
    value = np.where(size < _LARGE, value, np.nan)
    return _Estimate(value, (error + size * (2 * _ROUNDING)) * (1 + _ROUNDING) + _TINY)
