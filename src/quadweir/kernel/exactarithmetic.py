"""Exact arithmetic in compiled code: integers of several words, and sums of floats without error.

A window adds and takes back numbers for as long as the stream runs. Sums must not depend on the
order in which that happens, and what is taken back must be gone without a trace. So integers and
decimals are added as whole numbers of 192 bits, and floats in a fixed-point number that is wide
enough for every finite double; only the result is rounded, once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints

# A sum of floats: digits of 32 bits, each in a word, so that many sums need no carrying. Digit k
# counts 2 ** (32 * k - BIAS); the lowest digits are for the fractions of decimals.
LIMBS: Final = 70
_BIAS: Final = 1088
_WORD: Final = np.uint64(32)
_LOW_HALF: Final = np.uint64(0xFFFFFFFF)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_TOP_BIT: Final = np.uint64(1 << 63)
INFINITY: Final = 0x7FF << 52
NOT_A_NUMBER: Final = INFINITY | 1 << 51
MANTISSA: Final = (1 << 52) - 1
_HALF_DIGIT: Final = 1 << 31


@njit(cache=True)  # type: ignore[untyped-decorator]
def add_wide(cells: Ints, at: int, place: int, high: int, low: int, sign: int) -> None:
    """Add a number of 128 bits to that of 192 bits in `cells[at, place:]`, or take it away."""
    if sign < 0:
        low = -low
        high = ~high + (1 if low == 0 else 0)
    top = high >> 63
    # The lowest number of 128 bits has no opposite; no decimal comes near it.
    before = np.uint64(cells[at, place + 2])
    after = before + np.uint64(low)
    cells[at, place + 2] = np.int64(after)
    carry = _ONE if after < before else _ZERO
    before = np.uint64(cells[at, place + 1])
    after = before + np.uint64(high)
    again = after + carry
    cells[at, place + 1] = np.int64(again)
    cells[at, place] += top + (1 if after < before else 0) + (1 if again < after else 0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def leading_zeros(value: Any) -> Any:
    """Count the bits above the highest that is set; the value is not 0."""
    found = _ZERO
    for step in (32, 16, 8, 4, 2, 1):
        bits = np.uint64(step)
        if value >> (np.uint64(64) - bits) == _ZERO:
            value = value << bits
            found += bits
    return found


@njit(cache=True)  # type: ignore[untyped-decorator]
def divide(high: Any, low: Any, divisor: Any) -> tuple[Any, Any]:
    """Divide 128 bits, of which the upper half is below the divisor: quotient and remainder.

    Long division in digits of 32 bits, Knuth's algorithm D for two of them.
    """
    shift = leading_zeros(divisor)
    if shift > _ZERO:
        divisor = divisor << shift
        high = (high << shift) | (low >> (np.uint64(64) - shift))
        low = low << shift
    first, second = divisor >> _WORD, divisor & _LOW_HALF
    upper, lower = low >> _WORD, low & _LOW_HALF
    q1 = high // first
    rest = high - q1 * first
    while q1 > _LOW_HALF or q1 * second > ((rest << _WORD) | upper):
        q1 -= _ONE
        rest += first
        if rest > _LOW_HALF:
            break
    middle = (high << _WORD) + upper - q1 * divisor
    q0 = middle // first
    rest = middle - q0 * first
    while q0 > _LOW_HALF or q0 * second > ((rest << _WORD) | lower):
        q0 -= _ONE
        rest += first
        if rest > _LOW_HALF:
            break
    return (q1 << _WORD) + q0, ((middle << _WORD) + lower - q0 * divisor) >> shift


@njit(cache=True)  # type: ignore[untyped-decorator]
def divide_signed(high: int, low: int, divisor: int) -> tuple[Any, Any, Any]:
    """Divide a signed number of 128 bits, towards zero: both halves, and the rest's magnitude."""
    upper, lower = np.uint64(high), np.uint64(low)
    if high < 0:
        lower = ~lower + _ONE
        upper = ~upper + (_ONE if lower == _ZERO else _ZERO)
    by = np.uint64(divisor)
    q1 = upper // by
    q0, rest = divide(upper - q1 * by, lower, by)
    if high < 0:
        q0 = ~q0 + _ONE
        q1 = ~q1 + (_ONE if q0 == _ZERO else _ZERO)
    return np.int64(q1), np.int64(q0), np.int64(rest)


@njit(cache=True)  # type: ignore[untyped-decorator]
def add_float(limbs: Ints, at: int, bits: int, sign: int) -> None:
    """Add a finite double, given by its bits, or take it away."""
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & MANTISSA
    if exponent > 0:
        mantissa |= MANTISSA + 1
    else:
        exponent = 1
    if bits < 0:
        sign = -sign
    place = exponent - 1075 + _BIAS
    digit, shift = place >> 5, place & 31
    lower = (mantissa & 0xFFFFFFFF) << shift
    upper = (mantissa >> 32) << shift
    limbs[at, digit] += sign * (lower & 0xFFFFFFFF)
    limbs[at, digit + 1] += sign * ((lower >> 32) + (upper & 0xFFFFFFFF))
    limbs[at, digit + 2] += sign * (upper >> 32)


@njit(cache=True)  # type: ignore[untyped-decorator]
def add_scaled(limbs: Ints, at: int, cells: Ints, row: int, place: int, scale: int) -> None:
    """Add the 192 bits of `cells[row, place:]` divided by `scale`, as exactly as rounding needs.

    Floats may cancel all of the quotient's leading digits, so it is written down to the lowest
    digit of all. If it goes on behind that, its lowest bit is set: the sum is then on the right side
    of every number half-way between two doubles, which all are multiples of a higher bit.
    """
    negative = cells[row, place] < 0
    high, middle = np.uint64(cells[row, place]), np.uint64(cells[row, place + 1])
    low = np.uint64(cells[row, place + 2])
    if negative:
        low = ~low + _ONE
        middle = ~middle + (_ONE if low == _ZERO else _ZERO)
        high = ~high + (_ONE if low == _ZERO and middle == _ZERO else _ZERO)
    by = np.uint64(scale)
    sign = -1 if negative else 1
    rest = _ZERO
    # Three words before the point, then fractions; the digit of 2 ** 0 is BIAS / 32.
    digit = _BIAS // 32 + 5
    each = 0
    while each < 3 or (rest != _ZERO and digit > 0):
        word = high if each == 0 else middle if each == 1 else low if each == 2 else _ZERO
        quotient, rest = divide(rest, word, by)
        if digit < 2 and rest != _ZERO:
            quotient |= _ONE
        limbs[at, digit] += sign * np.int64(quotient >> _WORD)
        limbs[at, digit - 1] += sign * np.int64(quotient & _LOW_HALF)
        digit -= 2
        each += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def round_limbs(limbs: Ints, at: int) -> Any:
    """Return the bits of the double nearest to a sum, ties to even; carries what is to be carried."""
    # Digits from -2**31 up: then a small negative sum does not fill all of the digits above it.
    carry = 0
    top = -1
    for digit in range(LIMBS):
        value = limbs[at, digit] + carry
        carry = (value + _HALF_DIGIT) >> 32
        value -= carry << 32
        limbs[at, digit] = value
        if value != 0:
            top = digit
    if top < 0:
        return 0
    sign = 1 if limbs[at, top] > 0 else -1
    # The two highest digits have at least 31 bits, the third makes 63; the rest is only looked at
    # for whether it is there, and on which side.
    low = sign * limbs[at, top - 2] if top >= 2 else 0
    sticky = 0
    for digit in range(top - 3, -1, -1):
        if limbs[at, digit] != 0:
            sticky = 1
            if sign * limbs[at, digit] < 0:
                low -= 1
            break
    second = sign * limbs[at, top - 1] if top >= 1 else 0
    if low < 0:
        low += 1 << 32
        second -= 1
    window = (np.uint64(sign * limbs[at, top]) << _WORD) + np.uint64(second)
    third = np.uint64(low)
    exponent = 32 * (top - 1) - _BIAS
    shift = 0
    while window < _TOP_BIT:
        window = (window << _ONE) | ((third >> np.uint64(31)) & _ONE)
        third = (third << _ONE) & _LOW_HALF
        shift += 1
    exponent -= shift
    if third != _ZERO:
        sticky = 1
    drop = np.uint64(max(11, -1074 - exponent))
    quotient = np.int64(window >> drop)
    rest = window & ((_ONE << drop) - _ONE)
    half = _ONE << (drop - _ONE)
    if rest > half or (rest == half and (sticky == 1 or quotient & 1 == 1)):
        quotient += 1
    # With as many bits as an exponent needs to be there, a mantissa of 2 ** 53 carries into it.
    field = exponent + np.int64(drop) + 1075
    bits = np.int64(INFINITY)
    if field < 0x7FF:
        bits = (field << 52) + (quotient - MANTISSA - 1)
    return bits if sign > 0 else bits | np.int64(-(1 << 63))
