"""What compiled code reads from the bytes of a spelling: its hash, its kind, a small integer.

A spelling is given by a place and a length: it lies in an Arrow buffer or in the store of a
dictionary, and compiled functions see no difference.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import mix
from quadweir.kernel.memory import load_byte, load_word, store_byte, store_word
from quadweir.vocab import XSD

# What the first and the last byte of a spelling show; see `typed.py` for all kinds.
UNKNOWN: Final = 0
IS_IRI: Final = 1
IS_BLANK: Final = 2
IS_STRING: Final = 3
IS_LANGUAGE: Final = 4
IS_TRIPLE: Final = 15  # after all kinds of `typed.py`

ZERO: Final = 2**62
"""The number of the integer 0; other integers lie around it."""
INLINE_LIMIT: Final = 2**61
"""Integers from here on have entries; so all numbers up to here are entries."""

INTEGER_SUFFIX: Final = f'"^^<{XSD.integer}>'
_SUFFIX_LENGTH: Final = len(INTEGER_SUFFIX)


def _word(text: str) -> np.int64:
    return np.frombuffer(text.encode(), dtype="<i8")[0]


_LAST: Final = _word(INTEGER_SUFFIX[-8:])
_WORDS: Final = tuple(_word(INTEGER_SUFFIX[at : at + 8]) for at in range(0, _SUFFIX_LENGTH - 8, 8))

_FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
_LOW_HALF: Final = 0xFFFFFFFF
_QUOTE, _MINUS, _LESS, _UNDERSCORE, _GREATER = (ord(each) for each in '"-<_>')


@njit(cache=True)  # type: ignore[untyped-decorator]
def hash_bytes(place: int, length: int, seed: int) -> int:
    """Return 32 bits that depend on every byte, and on a seed that no user can know."""
    found = np.uint64(seed) ^ np.uint64(length)
    at = 0
    while at + 8 <= length:
        found = (found ^ np.uint64(load_word(place + at))) * _FACTOR
        found ^= found >> np.uint64(32)
        at += 8
    rest = np.uint64(0)
    while at < length:
        rest = (rest << np.uint64(8)) | np.uint64(load_byte(place + at))
        at += 1
    found = (found ^ rest) * _FACTOR
    mixed: int = mix(np.int64(found))
    return (mixed >> 32) & _LOW_HALF


@njit(cache=True)  # type: ignore[untyped-decorator]
def same_bytes(left: int, right: int, length: int) -> bool:
    """Return whether the bytes at two places are the same."""
    at = 0
    while at + 8 <= length:
        if load_word(left + at) != load_word(right + at):
            return False
        at += 8
    while at < length:
        if load_byte(left + at) != load_byte(right + at):
            return False
        at += 1
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def copy_bytes(source: int, target: int, length: int) -> None:
    """Copy bytes from one place to another; the two do not overlap."""
    at = 0
    while at + 8 <= length:
        store_word(target + at, load_word(source + at))
        at += 8
    while at < length:
        store_byte(target + at, load_byte(source + at))
        at += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def inline_number(place: int, length: int) -> int:
    """Return the number of a small canonical integer; 0 for any other spelling."""
    digits = length - _SUFFIX_LENGTH - 1
    if digits < 1 or digits > 20 or load_word(place + length - 8) != _LAST:
        return 0
    at = place + length - _SUFFIX_LENGTH
    for word in _WORDS:
        if load_word(at) != word:
            return 0
        at += 8
    at = place + 1
    negative = load_byte(at) == _MINUS
    if negative:
        at += 1
        digits -= 1
    # 2**61 has 19 digits; what has as many and overflows 64 bits comes out negative.
    if digits < 1 or digits > 19 or load_byte(place) != _QUOTE:
        return 0
    if load_byte(at) == 48 and (digits > 1 or negative):
        return 0
    value = 0
    for _ in range(digits):
        digit = load_byte(at) - 48
        if digit < 0 or digit > 9:
            return 0
        value = value * 10 + digit
        at += 1
    if value < 0 or value >= INLINE_LIMIT:
        return 0
    return ZERO - value if negative else ZERO + value


@njit(cache=True)  # type: ignore[untyped-decorator]
def first_kind(place: int, length: int) -> int:
    """Return the kind of a term as far as its first and last byte show it."""
    first, last = load_byte(place), load_byte(place + length - 1)
    if first == _LESS:
        return IS_TRIPLE if load_byte(place + 1) == _LESS else IS_IRI
    if first == _UNDERSCORE:
        return IS_BLANK
    if last == _QUOTE:
        return IS_STRING
    return UNKNOWN if last == _GREATER else IS_LANGUAGE
