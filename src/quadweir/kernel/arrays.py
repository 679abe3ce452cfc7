"""What every compiled part of the kernel uses: arrays of 64-bit integers, and their hashes.

All arrays are of 64-bit integers: terms, times, row numbers and counters. One type means one
compiled version of each function, so that nothing is compiled once a stream runs.
"""

from __future__ import annotations

import secrets
from typing import Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

FOREVER: Final = 2**60
"""The time at which what never leaves leaves."""
ALWAYS: Final = -(2**60)
"""The time at which what was always there came."""

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)


def power_of_two(size: int) -> int:
    """Return the least power of two that is not below `size`.

    >>> power_of_two(5), power_of_two(8)
    (8, 8)
    """
    return 1 << max(0, size - 1).bit_length()


def ints(size: int) -> Ints:
    """Make an array of zeros."""
    return np.zeros(size, dtype=np.int64)


_LINE: Final = 64


def table_of(rows: int, width: int) -> Ints:
    """Make a table of zeros whose first row is at the start of a line of the processor's cache.

    Then a row of 2, 4 or 8 words never lies in two lines, and to touch it costs one access.
    """
    room = np.zeros(rows * width * 8 + _LINE, dtype=np.uint8)
    start = -room.ctypes.data % _LINE
    return room[start : start + rows * width * 8].view(np.int64).reshape(rows, width)


def random_seed() -> int:
    """Return a seed for hashes that no user can know, so that no user can choose colliding keys.

    It is negative. Numbers of terms and rows are not, so that no key equals the seed.
    """
    return secrets.randbits(63) - 2**63


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def mix(value: int) -> int:
    """Scatter an integer over 64 bits; no two integers share a result, and only 0 becomes 0."""
    x = np.uint64(value)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return np.int64(x)  # type: ignore[return-value]


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def combine(hashed: int, value: int) -> int:
    """Add one more integer to the hash of a key; never 0."""
    found = mix(np.int64(np.uint64(hashed) * _MULTIPLIER) ^ mix(value))
    return found if found != 0 else 1
