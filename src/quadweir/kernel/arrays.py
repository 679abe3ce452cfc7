"""What every compiled part of the kernel stands on: growing arrays, hashing, views by address.

All arrays are of 64-bit integers: terms, times, row numbers and counters. One type means one
compiled version of each function, so that nothing is compiled once a stream runs.
"""

from __future__ import annotations

import secrets
from typing import Any, Final, TypeAlias

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]

FOREVER: Final = 2**60
"""The time at which what never leaves leaves."""
ALWAYS: Final = -(2**60)
"""The time at which what was always there came."""

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)


def power_of_two(size: int) -> int:
    """Give the least power of two that is not below `size`.

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


def address(array: NDArray[Any]) -> int:
    """Give the place of an array in memory, for `view`; the array must outlive its use."""
    return int(array.ctypes.data)


@intrinsic  # type: ignore[untyped-decorator]
def _load(typing_context: Any, place: Any, index: Any) -> Any:
    """Read the integer at `place[index]`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load(builder.gep(pointer, [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _store(typing_context: Any, place: Any, index: Any, value: Any) -> Any:
    """Write the integer at `place[index]`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store(arguments[2], builder.gep(pointer, [arguments[1]]))
        return context.get_constant(types.int64, 0)

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typing_context: Any, place: Any, index: Any) -> Any:
    """Ask for the memory at `place[index]`, to be read or written soon."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        pointer = builder.bitcast(builder.gep(pointer, [arguments[1]]), byte)
        asked = builder.module.declare_intrinsic(
            "llvm.prefetch", (byte,), ir.FunctionType(ir.VoidType(), [byte, *[number] * 3])
        )
        # To be read, kept in all caches, data rather than code.
        builder.call(asked, [pointer, number(0), number(3), number(1)])
        return context.get_constant(types.int64, 0)

    return types.int64(types.int64, types.int64), generate


# A join works on any number of buffers and indexes, each an array of its own. Compiled code takes
# a fixed number of arrays, so those of a join are handed over as a table of addresses. It also
# spares the calls between compiled functions: an array is handed over as seven words, and counted.
load = _load
store = _store
prefetch = _prefetch


def random_seed() -> int:
    """Give a seed for hashes that nobody outside can know, so that nobody can choose colliding keys.

    It is negative. Numbers of terms and rows are not, so that no key equals the seed.
    """
    return secrets.randbits(63) - 2**63


@njit(cache=True, inline="always")  # type: ignore[untyped-decorator]
def mix(value: int) -> int:
    """Scatter an integer over 64 bits; no two integers share a result, and only 0 gives 0."""
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
