"""What the terms of a dictionary are worth: kinds, numbers as floats and exactly, their order.

Everything here is an array or compiled; the meaning is that of `algebra.values`, and where an
array cannot tell, a code says so and the expression asks `algebra.values` itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.algebra.moments import Moment, MomentKind
from quadweir.algebra.values import Duration, Number, NumberKind, Value
from quadweir.kernel.arrays import Ints
from quadweir.kernel.interning import TermRecords
from quadweir.kernel.spellings import (
    INLINE_LIMIT,
    IS_BLANK,
    IS_LANGUAGE,
    IS_STRING,
    IS_TRIPLE,
    UNKNOWN,
    ZERO,
)

Floats = NDArray[np.float64]

# The numeric kinds stand in the order of their promotion.
INTEGER: Final = 5
DECIMAL: Final = 6
FLOAT: Final = 7
DOUBLE: Final = 8
BOOLEAN: Final = 9
DATE_TIME: Final = 10  # with a time zone; its exact value is on the time line, in attoseconds
MOMENT: Final = 11  # any other
DURATION: Final = 12
OTHER: Final = 13  # a literal of unknown datatype, of a bad lexical form, or out of range
UNBOUND: Final = 14

_NUMBER_KINDS: Final = {
    NumberKind.INTEGER: INTEGER,
    NumberKind.DECIMAL: DECIMAL,
    NumberKind.FLOAT: FLOAT,
    NumberKind.DOUBLE: DOUBLE,
}

# How two terms stand to each other, as `order` says it.
BELOW: Final = 0
SAME: Final = 1
ABOVE: Final = 2
NOT_A_NUMBER: Final = 3  # a comparison with NaN
APART: Final = 4  # not equal, and without an order
ALIKE: Final = 5  # the same term, of a kind that has no order
TEXTS: Final = 6  # different strings: not equal, but their order was not looked at
ERROR: Final = 7
ASK: Final = 8

TRUE: Final = 1
FALSE: Final = 0
NEITHER: Final = -1
ASK_TRUTH: Final = 2

_SCALE: Final = 10**18
_MASK: Final = 2**64 - 1


class Typed(NamedTuple):
    """What a batch of terms is worth, one place per term.

    Attributes:
        kind: one of the kinds above; `UNBOUND` for the number 0.
        approximate: a number as a 64-bit float, correctly rounded; NaN where there is none.
        integer: the value of an integer, the truth of a boolean as 0 or 1; else 0.
        high: the upper 64 bits of an integer or decimal times 10**18, else 0.
        low: the lower 64 bits of the same.
    """

    kind: Ints
    approximate: Floats
    integer: Ints
    high: Ints
    low: Ints


def signed(bits: int) -> int:
    """Read 64 bits as a signed integer.

    >>> signed(2**64 - 1)
    -1
    """
    return bits - 2**64 if bits >= 2**63 else bits


def halves(value: int) -> tuple[int, int]:
    """Split an integer of 128 bits into a signed upper and a lower half, both as 64 signed bits.

    >>> halves(-1), halves(2**64)
    ((-1, -1), (1, 0))
    """
    return value >> 64, signed(value & _MASK)


def whole(high: int, low: int) -> int:
    """Undo `halves`.

    >>> whole(*halves(-(10**30)))
    -1000000000000000000000000000000
    """
    return (int(high) << 64) | (int(low) & _MASK)


def describe(value: Value | None) -> tuple[int, float, int, int]:
    """Return the kind of a literal's value, the nearest float, and the exact value in two halves.

    The exact value of an integer is all in the lower half; a decimal's is scaled by 10**18.
    """
    match value:
        case Number(kind=kind, value=number):
            if kind is NumberKind.INTEGER:
                return INTEGER, float(number), 0, int(number)
            if kind is NumberKind.DECIMAL:
                # At most 38 digits, of which 18 are behind the point: it fits, and is exact.
                sign, digits, exponent = number.as_tuple()  # type: ignore[union-attr]
                unscaled = int("".join(map(str, digits))) * 10 ** (18 + int(exponent))
                return DECIMAL, float(number), *halves(-unscaled if sign else unscaled)
            return _NUMBER_KINDS[kind], float(number), 0, 0
        case bool():
            return BOOLEAN, np.nan, 0, int(value)
        case Moment(kind=MomentKind.DATE_TIME, offset=int()):
            line = value.timeline()
            if -(2**127) <= line < 2**127:
                return DATE_TIME, np.nan, *halves(line)
            return MOMENT, np.nan, 0, 0
        case Moment():
            return MOMENT, np.nan, 0, 0
        case Duration():
            return DURATION, np.nan, 0, 0
        case _:
            return OTHER, np.nan, 0, 0


# --- compiled -------------------------------------------------------------------------------------


@njit(cache=True)  # type: ignore[untyped-decorator]
def multiplied(value: int, factor: int) -> Any:
    """Multiply into 128 bits: the upper and the lower half; the factor is not negative."""
    magnitude = np.uint64(-value) if value < 0 else np.uint64(value)
    low_half = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    a, b = magnitude >> shift, magnitude & low_half
    c, d = np.uint64(factor) >> shift, np.uint64(factor) & low_half
    middle = a * d + ((b * d) >> shift)
    other = b * c + (middle & low_half)
    low = (other << shift) | ((b * d) & low_half)
    high = a * c + (middle >> shift) + (other >> shift)
    if value < 0:
        low = ~low + np.uint64(1)
        high = ~high + np.uint64(1 if low == np.uint64(0) else 0)
    return np.int64(high), np.int64(low)


@njit(cache=True)  # type: ignore[untyped-decorator]
def scaled(value: int) -> Any:
    """Multiply by 10**18 into 128 bits: the upper and the lower half."""
    return multiplied(value, np.int64(_SCALE))


@njit(cache=True)  # type: ignore[untyped-decorator]
def unknown(numbers: Ints, kinds: Ints, found: Ints) -> int:
    """Gather the entries whose kind is not known yet, each once, and say how many they are."""
    many = 0
    for i in range(len(numbers)):
        number = numbers[i]
        if 0 < number < INLINE_LIMIT and kinds[number] == UNKNOWN:
            kinds[number] = OTHER  # until it is looked at: so it is found but once
            found[many] = number
            many += 1
    return many


@njit(cache=True)  # type: ignore[untyped-decorator]
def read_typed(
    numbers: Ints,
    terms: TermRecords,
    kinds: Ints,
    floats: Floats,
    kind: Ints,
    approximate: Floats,
    integer: Ints,
    high: Ints,
    low: Ints,
) -> None:
    """Fill the arrays of a `Typed`."""
    for i in range(len(numbers)):
        number = numbers[i]
        approximate[i] = np.nan
        integer[i] = 0
        high[i] = 0
        low[i] = 0
        if number == 0:
            kind[i] = UNBOUND
        elif number >= INLINE_LIMIT:
            kind[i] = INTEGER
            integer[i] = number - ZERO
            approximate[i] = np.float64(number - ZERO)
            high[i], low[i] = scaled(number - ZERO)
        else:
            kind[i] = kinds[number]
            if INTEGER <= kind[i] <= DOUBLE:
                approximate[i] = floats[number]
            if kind[i] == INTEGER:
                integer[i] = terms[number].low
                high[i], low[i] = scaled(terms[number].low)
            elif kind[i] == BOOLEAN:
                integer[i] = terms[number].low
            elif kind[i] == DECIMAL:
                high[i] = terms[number].high
                low[i] = terms[number].low


@njit(cache=True)  # type: ignore[untyped-decorator]
def _three_way(left: int, right: int) -> int:
    return BELOW if left < right else (ABOVE if left > right else SAME)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _order_numbers(
    a: int, kind_a: int, b: int, kind_b: int, terms: TermRecords, floats: Floats
) -> Any:
    """Compare two numbers, at least one of which has an entry, in the wider of their kinds."""
    if kind_a == INTEGER and kind_b == INTEGER:
        left = a - ZERO if a >= INLINE_LIMIT else terms[a].low
        right = b - ZERO if b >= INLINE_LIMIT else terms[b].low
        return _three_way(left, right)
    x = np.float64(a - ZERO) if a >= INLINE_LIMIT else floats[a]
    y = np.float64(b - ZERO) if b >= INLINE_LIMIT else floats[b]
    if max(kind_a, kind_b) == FLOAT:
        x = np.float64(np.float32(x))
        y = np.float64(np.float32(y))
    if x != x or y != y:
        return NOT_A_NUMBER
    # Rounding keeps the order: where the nearest floats differ, so do the numbers, the same way.
    if x < y:
        return BELOW
    if x > y:
        return ABOVE
    if kind_a > DECIMAL or kind_b > DECIMAL:
        return SAME
    if kind_a == INTEGER:
        high_a, low_a = scaled(a - ZERO if a >= INLINE_LIMIT else terms[a].low)
    else:
        high_a, low_a = terms[a].high, terms[a].low
    if kind_b == INTEGER:
        high_b, low_b = scaled(b - ZERO if b >= INLINE_LIMIT else terms[b].low)
    else:
        high_b, low_b = terms[b].high, terms[b].low
    return _order_halves(high_a, low_a, high_b, low_b)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _order_halves(high_a: int, low_a: int, high_b: int, low_b: int) -> int:
    if high_a != high_b:
        return BELOW if high_a < high_b else ABOVE
    if low_a == low_b:
        return SAME
    return BELOW if np.uint64(low_a) < np.uint64(low_b) else ABOVE


@njit(cache=True)  # type: ignore[untyped-decorator]
def _order_literals(a: int, kind_a: int, b: int, kind_b: int, terms: TermRecords) -> Any:
    """Compare two literals that are not both numbers."""
    if a == b:
        return ALIKE if kind_a == OTHER else SAME
    if (kind_a == IS_LANGUAGE) != (kind_b == IS_LANGUAGE):
        return APART
    if kind_a == OTHER or kind_b == OTHER:
        return ERROR
    if kind_a != kind_b:
        both_moments = kind_a + kind_b == DATE_TIME + MOMENT and abs(kind_a - kind_b) == 1
        return ASK if both_moments else APART
    if kind_a in (IS_STRING, IS_LANGUAGE):
        return TEXTS
    if kind_a == BOOLEAN:
        return _three_way(terms[a].low, terms[b].low)
    if kind_a == DATE_TIME:
        return _order_halves(terms[a].high, terms[a].low, terms[b].high, terms[b].low)
    return ASK


@njit(cache=True)  # type: ignore[untyped-decorator]
def order(
    left: Ints, right: Ints, terms: TermRecords, kinds: Ints, floats: Floats, found: Ints
) -> bool:
    """Compare terms pairwise; false, with nothing to go by, where a kind is not known yet."""
    for i in range(len(left)):
        a, b = left[i], right[i]
        if a >= INLINE_LIMIT and b >= INLINE_LIMIT:
            found[i] = BELOW if a < b else (ABOVE if a > b else SAME)
            continue
        if a == 0 or b == 0:
            found[i] = ERROR
            continue
        kind_a = INTEGER if a >= INLINE_LIMIT else kinds[a]
        kind_b = INTEGER if b >= INLINE_LIMIT else kinds[b]
        if kind_a == UNKNOWN or kind_b == UNKNOWN:
            return False
        if kind_a == IS_TRIPLE and kind_b == IS_TRIPLE:
            found[i] = ASK
        elif min(kind_a, kind_b) <= IS_BLANK or max(kind_a, kind_b) == IS_TRIPLE:
            found[i] = ALIKE if a == b else APART
        elif INTEGER <= kind_a <= DOUBLE and INTEGER <= kind_b <= DOUBLE:
            found[i] = _order_numbers(a, kind_a, b, kind_b, terms, floats)
        else:
            found[i] = _order_literals(a, kind_a, b, kind_b, terms)
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def truths(numbers: Ints, terms: TermRecords, kinds: Ints, floats: Floats, found: Ints) -> bool:
    """Return the effective boolean values; false where a kind is not known yet."""
    for i in range(len(numbers)):
        number = numbers[i]
        if number >= INLINE_LIMIT:
            found[i] = TRUE if number != ZERO else FALSE
            continue
        kind = kinds[number]
        result = NEITHER
        if number == 0:
            pass
        elif kind == UNKNOWN:
            return False
        elif kind in (BOOLEAN, INTEGER):
            result = TRUE if terms[number].low != 0 else FALSE
        elif kind == DECIMAL:
            result = TRUE if terms[number].low | terms[number].high != 0 else FALSE
        elif kind in (FLOAT, DOUBLE):
            x = floats[number]
            result = TRUE if x == x and x != 0.0 else FALSE
        elif kind == IS_STRING:
            result = TRUE if terms[number].length > 2 else FALSE
        elif kind == OTHER:
            result = ASK_TRUTH
        found[i] = result
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def calculate(operator: int, left: Ints, right: Ints, found: Ints) -> int:
    """Add (0), subtract (1) or multiply (2) inline integers; -1 where that is not enough.

    Says how many places have to be looked at again.
    """
    asked = 0
    for i in range(len(left)):
        a, b = left[i], right[i]
        if a == 0 or b == 0:
            found[i] = 0
            continue
        if a < INLINE_LIMIT or b < INLINE_LIMIT:
            found[i] = -1
            asked += 1
            continue
        x, y = a - ZERO, b - ZERO
        if operator == 0:
            value = x + y
        elif operator == 1:
            value = x - y
        elif abs(np.float64(x) * np.float64(y)) < 2.0**60:
            value = x * y
        else:
            value = INLINE_LIMIT
        if abs(value) < INLINE_LIMIT:
            found[i] = ZERO + value
        else:
            found[i] = -1
            asked += 1
    return asked
