"""Reading numbers from their spellings, compiled.

Streams of measurements bring a new literal with nearly every element. Usual numbers are read here;
what is long, out of range or not a number is left to `algebra.values`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.algebra.values import DERIVED_INTEGERS
from quadweir.kernel.arrays import Ints
from quadweir.kernel.interning import TermRecords
from quadweir.kernel.memory import NUMBER, address, load_byte
from quadweir.kernel.spellings import same_bytes
from quadweir.kernel.typed import DECIMAL, DOUBLE, FLOAT, INTEGER, OTHER, Floats, multiplied
from quadweir.vocab import XSD

_MOST_LETTERS: Final = 64
_EXACT: Final = 2**53
"""Integers up to here are 64-bit floats, and so are powers of ten up to the 22nd: their product or
quotient is rounded once, hence correctly (Clinger, How to read floating point numbers accurately)."""
_MOST_POWER: Final = 22
_FLOAT_POWERS: Final = np.array([10.0**n for n in range(_MOST_POWER + 1)])
_POWERS: Final = np.array([10**n for n in range(19)], dtype=np.int64)

_POINT, _PLUS, _MINUS, _QUOTE, _SMALL_E, _LARGE_E = (ord(each) for each in '.+-"eE')


def _tails() -> list[tuple[bytes, int, int, int]]:
    """List how literals of numeric types end, with the kind and the bounds of each."""
    found = [(XSD.decimal, DECIMAL, 0, 0), (XSD.double, DOUBLE, 0, 0), (XSD.float, FLOAT, 0, 0)]
    for datatype, (low, high) in DERIVED_INTEGERS.items():
        least = -(2**63) if low is None else max(low, -(2**63))
        most = 2**63 - 1 if high is None else min(high, 2**63 - 1)
        found.append((datatype, INTEGER, least, most))
    return [(f'"^^<{datatype}>'.encode(), *rest) for datatype, *rest in found]  # type: ignore[misc]


TAIL: Final = np.dtype(
    [
        ("start", NUMBER),  # where its letters begin
        ("length", NUMBER),
        ("kind", NUMBER),
        ("least", NUMBER),  # the bounds of the values, where it is an integer type
        ("most", NUMBER),
    ],
    align=True,
)
"""How literals of one numeric type end."""

_LETTERS: Final = np.frombuffer(b"".join(tail for tail, *_ in _tails()), dtype=np.uint8)
_LENGTHS: Final = [len(tail) for tail, *_ in _tails()]
TAILS: Final[NDArray[np.void]] = np.array(
    [
        (start, length, *rest)
        for start, length, (_, *rest) in zip(
            np.cumsum(_LENGTHS) - _LENGTHS, _LENGTHS, _tails(), strict=True
        )
    ],
    TAIL,
)
"""The endings of all numeric types."""
TAIL_PLACE: Final = address(_LETTERS)

LONG: Final = 1
"""Marks a double of good lexical form that has too many digits to be read here."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def _scan(place: int) -> Any:
    """Read a numeral: its digits as one integer, their count, how many stand behind the point.

    The count leaves out leading zeros; from the 19th on, digits are counted only. Last come
    whether there is a point, the exponent or 0, whether there is one, and where the closing quote
    is: 0 if the letters are no numeral, or one that is too long.
    """
    at = place
    if load_byte(at) == _MINUS or load_byte(at) == _PLUS:
        at += 1
    mantissa, digits, behind, seen, point = 0, 0, 0, 0, 0
    while at - place < _MOST_LETTERS:
        letter = load_byte(at)
        if 48 <= letter <= 57:
            seen += 1
            behind += point
            if digits > 0 or letter != 48:
                digits += 1
                if digits <= 18:
                    mantissa = mantissa * 10 + (letter - 48)
        elif letter == _POINT and point == 0:
            point = 1
        else:
            break
        at += 1
    power, powers, sign = 0, 0, 1
    if seen > 0 and (load_byte(at) == _SMALL_E or load_byte(at) == _LARGE_E):
        at += 1
        if load_byte(at) == _MINUS:
            sign = -1
        if load_byte(at) == _MINUS or load_byte(at) == _PLUS:
            at += 1
        while powers < 4 and 48 <= load_byte(at) <= 57:
            power = power * 10 + (load_byte(at) - 48)
            powers += 1
            at += 1
        if powers == 0:
            seen = 0
    end = at if seen > 0 and load_byte(at) == _QUOTE else 0
    return mantissa, digits, behind, point, sign * power, powers, end


@njit(cache=True)  # type: ignore[untyped-decorator]
def _type_at(place: int, length: int, tail_place: int, tails: NDArray[np.void]) -> int:
    """Find the numeric type that ends a literal, by its place in `tails`; -1 if there is none."""
    for i in range(len(tails)):
        if tails[i].length == length and same_bytes(tail_place + tails[i].start, place, length):
            return i
    return -1


@njit(cache=True)  # type: ignore[untyped-decorator]
def read_numbers(
    slots: Ints,
    terms: TermRecords,
    kinds: Ints,
    floats: Floats,
    store: int,
    tail_place: int,
    tails: NDArray[np.void],
    left: Ints,
) -> int:
    """Fill in the kinds and values of entries, and return how many were not read.

    These are listed in `left`, each as twice its slot, plus `LONG` for a long double.
    """
    count = 0
    for i in range(len(slots)):
        slot = slots[i]
        place = store + terms[slot].start + 1
        mantissa, digits, behind, point, power, powers, end = _scan(place)
        found = -1
        if end > 0:
            rest = store + terms[slot].start + terms[slot].length - end
            found = _type_at(end, rest, tail_place, tails)
        left[count] = 2 * slot
        count += 1
        if found < 0:
            continue
        kind = tails[found].kind
        negative = load_byte(place) == _MINUS
        if kind == INTEGER:
            if digits > 18 or point > 0 or powers > 0:
                continue
            value = -mantissa if negative else mantissa
            inside = tails[found].least <= value <= tails[found].most
            kinds[slot] = INTEGER if inside else OTHER
            terms[slot].low = value
            floats[slot] = np.float64(value)
        elif kind == DECIMAL:
            if digits > 18 or mantissa > _EXACT or behind > 18 or powers > 0:
                continue
            value = -mantissa if negative else mantissa
            kinds[slot] = DECIMAL
            terms[slot].high, terms[slot].low = multiplied(value, _POWERS[18 - behind])
            floats[slot] = np.float64(value) / _FLOAT_POWERS[behind]
        else:
            shift = power - behind
            if digits > 18 or mantissa > _EXACT or abs(shift) > _MOST_POWER:
                left[count - 1] += LONG
                continue
            number = np.float64(mantissa)
            number = number * _FLOAT_POWERS[shift] if shift >= 0 else number / _FLOAT_POWERS[-shift]
            number = -number if negative else number
            kinds[slot] = kind
            floats[slot] = np.float64(np.float32(number)) if kind == FLOAT else number
        count -= 1
    return count
