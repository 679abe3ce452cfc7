"""Which shard a term goes to, as Spark's `xxhash64` says: static data is cut as streams are."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numba import njit

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.memory import load_byte, load_word

# https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, XXH64
_P1: Final = np.uint64(0x9E3779B185EBCA87)
_P2: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_P3: Final = np.uint64(0x165667B19E3779F9)
_P4: Final = np.uint64(0x85EBCA77C2B2AE63)
_P5: Final = np.uint64(0x27D4EB2F165667C5)
_BITS: Final = np.uint64(64)

SPARK_SEED: Final = 42


@njit(cache=True)  # type: ignore[untyped-decorator]
def _turned(value: int, by: int) -> int:
    bits = np.uint64(by)
    return (value << bits) | (value >> (_BITS - bits))  # type: ignore[return-value]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _round(lane: int, word: int) -> int:
    return _turned(lane + np.uint64(word) * _P2, 31) * _P1


@njit(cache=True)  # type: ignore[untyped-decorator]
def xxhash64(place: int, length: int, seed: int) -> int:
    """Hash the bytes at an address."""
    start = np.uint64(seed)
    at = 0
    if length >= 32:
        one, two, three, four = start + _P1 + _P2, start + _P2, start, start - _P1
        while at + 32 <= length:
            one = _round(one, load_word(place + at))
            two = _round(two, load_word(place + at + 8))
            three = _round(three, load_word(place + at + 16))
            four = _round(four, load_word(place + at + 24))
            at += 32
        found = _turned(one, 1) + _turned(two, 7) + _turned(three, 12) + _turned(four, 18)
        for lane in (one, two, three, four):
            found = (found ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        found = start + _P5
    found += np.uint64(length)
    while at + 8 <= length:
        found = _turned(found ^ _round(np.uint64(0), load_word(place + at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= length:
        word = np.uint64(0)
        for byte in range(4):
            word |= np.uint64(load_byte(place + at + byte)) << np.uint64(8 * byte)
        found = _turned(found ^ (word * _P1), 23) * _P2 + _P3
        at += 4
    while at < length:
        found = _turned(found ^ (np.uint64(load_byte(place + at)) * _P5), 11) * _P1
        at += 1
    found = (found ^ (found >> np.uint64(33))) * _P2
    found = (found ^ (found >> np.uint64(29))) * _P3
    return np.int64(found ^ (found >> np.uint64(32)))  # type: ignore[return-value]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _number(data: int, offsets: Ints, shards: int, found: Ints) -> None:
    for i in range(len(found)):
        place, length = data + offsets[i], offsets[i + 1] - offsets[i]
        found[i] = xxhash64(place, length, SPARK_SEED) % shards


def shard_numbers(terms: pa.Array, shards: int) -> Ints:
    """Return for each spelling of a column without nulls the shard that its matches go to.

    >>> shard_numbers(pa.array(["<urn:a>", "<urn:b>", "<urn:c>"]), 2).tolist()
    [1, 0, 0]
    """
    column = terms.cast(pa.large_string())
    found = ints(len(column))
    if len(column):
        _, offsets, data = column.buffers()
        places = np.frombuffer(offsets, dtype=np.int64)
        places = places[column.offset : column.offset + len(column) + 1]
        _number(data.address if data is not None else 0, np.array(places), shards, found)
    return found
