"""COUNT, SUM and AVG of the groups of an aggregation, exact under expiry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.exactarithmetic import (
    INFINITY,
    LIMBS,
    MANTISSA,
    NOT_A_NUMBER,
    add_float,
    add_scaled,
    add_wide,
    divide_signed,
    round_limbs,
)
from quadweir.kernel.memory import prefetch
from quadweir.kernel.oneway import part, prefixed
from quadweir.kernel.spellings import INLINE_LIMIT, ZERO
from quadweir.kernel.tables import SlotTable
from quadweir.kernel.typed import DECIMAL, DOUBLE, FLOAT, INTEGER, Floats, Typed

# A result is three cells: its kind, and what it is. Numbers that are not inline integers are not
# spelled before they are read: DECIMAL has both halves of its value times 10**18, INTEGER has its
# value and FLOAT and DOUBLE the bits of a double in the lower half.
KIND: Final = 0
HIGH: Final = 1
LOW: Final = 2
RESULT_WIDTH: Final = 3
NOTHING: Final = 0  # not bound
NUMBER: Final = 1  # the lower half is the number of a term

# The state of a sum: how many values, by kind; the sum of integers and decimals times 10**18 in 192
# bits; where the sum of the floats is, plus one.
_VALUES: Final = 0
_DECIMALS: Final = 1
_FLOATS: Final = 2
_DOUBLES: Final = 3
_OTHERS: Final = 4  # errors, and what is no number
_NANS: Final = 5
_POSITIVE: Final = 6  # infinities
_NEGATIVE: Final = 7
_EXACT: Final = 8
_WIDE: Final = 11
_STATE: Final = 12

_SCALE: Final = 10**18
# 10**38 in two halves: what a decimal may not reach.
_LIMIT_HIGH: Final = 10**38 >> 64
_LIMIT_LOW: Final = np.uint64(10**38 & (2**64 - 1))


@njit(cache=True)  # type: ignore[untyped-decorator]
def count_pass(groups: Ints, sign: Ints, last: Ints, state: Ints, out: Ints) -> None:
    """Count by group; the count goes out wherever `last` says so."""
    for at in range(len(groups)):
        group = groups[at]
        state[group] += sign[at]
        if last[at] == 1:
            out[at, KIND] = NUMBER
            out[at, LOW] = ZERO + state[group]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _put_integer(out: Ints, at: int, value: int) -> None:
    if -INLINE_LIMIT < value < INLINE_LIMIT:
        out[at, KIND] = NUMBER
        out[at, LOW] = ZERO + value
    else:
        out[at, KIND] = INTEGER
        out[at, LOW] = value


@njit(cache=True)  # type: ignore[untyped-decorator]
def _put_exact(state: Ints, group: int, average: int, out: Ints, at: int) -> None:
    """Return the sum or the average of integers and decimals; out of range is an error."""
    top, high, low = state[group, _EXACT], state[group, _EXACT + 1], state[group, _EXACT + 2]
    if top != high >> 63:
        return
    is_integer = state[group, _DECIMALS] == 0
    if is_integer:
        # A sum that is no integer of 64 bits: 2**63 times the scale is half of it times 2**64.
        if not -_SCALE // 2 <= high < _SCALE // 2:
            return
        if average == 0:
            _, q0, _ = divide_signed(high, low, np.int64(_SCALE))
            _put_integer(out, at, q0)
            return
    else:
        upper, lower = np.uint64(high), np.uint64(low)
        if high < 0:
            lower = ~lower + np.uint64(1)
            upper = ~upper + np.uint64(1 if lower == np.uint64(0) else 0)
        if upper > np.uint64(_LIMIT_HIGH) or (
            upper == np.uint64(_LIMIT_HIGH) and lower >= _LIMIT_LOW
        ):
            return
    if average == 1:
        high, low, _ = divide_signed(high, low, state[group, _VALUES])
    out[at, KIND] = DECIMAL
    out[at, HIGH] = high
    out[at, LOW] = low


@njit(cache=True)  # type: ignore[untyped-decorator]
def _put_floating(
    state: Ints,
    group: int,
    average: int,
    wide: Ints,
    scratch: Ints,
    floats: Floats,
    out: Ints,
    at: int,
) -> None:
    """Return the sum or the average where a float or double is among the values.

    `floats` are the same cells as `scratch`.
    """
    if state[group, _NANS] > 0 or (state[group, _POSITIVE] > 0 and state[group, _NEGATIVE] > 0):
        bits = np.int64(NOT_A_NUMBER)
    elif state[group, _POSITIVE] > 0:
        bits = np.int64(INFINITY)
    elif state[group, _NEGATIVE] > 0:
        bits = np.int64(INFINITY) | np.int64(-(1 << 63))
    elif state[group, _EXACT] | state[group, _EXACT + 1] | state[group, _EXACT + 2] == 0:
        bits = round_limbs(wide, state[group, _WIDE] - 1)
    else:
        for digit in range(LIMBS):
            scratch[0, digit] = wide[state[group, _WIDE] - 1, digit]
        add_scaled(scratch, 0, state, group, _EXACT, _SCALE)
        bits = round_limbs(scratch, np.int64(0))
    kind = DOUBLE if state[group, _DOUBLES] > 0 else FLOAT
    scratch[0, 0] = bits
    value = floats[0, 0]
    count = np.float64(state[group, _VALUES])
    if kind == FLOAT:
        value = np.float64(np.float32(value))
        count = np.float64(np.float32(count))
    if average == 1:
        value = value / count
        if kind == FLOAT:
            value = np.float64(np.float32(value))
    floats[0, 0] = value
    out[at, KIND] = kind
    out[at, LOW] = scratch[0, 0] if value == value else NOT_A_NUMBER


@njit(cache=True)  # type: ignore[untyped-decorator]
def sum_pass(
    groups: Ints,
    sign: Ints,
    kind: Ints,
    bits: Ints,
    high: Ints,
    low: Ints,
    last: Ints,
    average: int,
    state: Ints,
    wide: Ints,
    wide_free: Ints,
    wide_used: Ints,
    scratch: Ints,
    floats: Floats,
    out: Ints,
) -> None:
    """Add up by group; the sum, or the average, goes out wherever `last` says so."""
    for at in range(len(groups)):
        if at + 8 < len(groups):
            prefetch(state, _STATE * groups[at + 8])
            prefetch(state, _STATE * groups[at + 8] + 8)
        group = groups[at]
        change = sign[at]
        if change != 0:
            if kind[at] == INTEGER or kind[at] == DECIMAL:
                add_wide(state, group, _EXACT, high[at], low[at], change)
                state[group, _VALUES] += change
                if kind[at] == DECIMAL:
                    state[group, _DECIMALS] += change
            elif kind[at] == FLOAT or kind[at] == DOUBLE:
                if state[group, _WIDE] == 0:
                    wide_used[0] -= 1
                    state[group, _WIDE] = wide_free[wide_used[0]] + 1
                state[group, _VALUES] += change
                state[group, _FLOATS if kind[at] == FLOAT else _DOUBLES] += change
                if bits[at] & INFINITY == INFINITY:
                    special = _POSITIVE if bits[at] > 0 else _NEGATIVE
                    if bits[at] & MANTISSA != 0:
                        special = _NANS
                    state[group, special] += change
                else:
                    add_float(wide, state[group, _WIDE] - 1, bits[at], change)
            else:
                state[group, _OTHERS] += change
        if last[at] == 0:
            continue
        no_floats = state[group, _FLOATS] == 0 and state[group, _DOUBLES] == 0
        if no_floats and state[group, _WIDE] > 0:
            # Nothing is left in it but carries that add up to nothing.
            for digit in range(LIMBS):
                wide[state[group, _WIDE] - 1, digit] = 0
            wide_free[wide_used[0]] = state[group, _WIDE] - 1
            wide_used[0] += 1
            state[group, _WIDE] = 0
        if state[group, _OTHERS] == 0:
            if state[group, _VALUES] == 0:
                _put_integer(out, at, np.int64(0))
            elif no_floats:
                _put_exact(state, group, average, out, at)
            else:
                _put_floating(state, group, average, wide, scratch, floats, out, at)


class Counter:
    """COUNT: how many values, or rows, each group has."""

    keeps_terms = False

    def __init__(self) -> None:
        self._state = ints(0)

    def take(self, groups: Ints, sign: Ints, last: Ints, size: int, out: Ints) -> None:
        """Count changes of `size` groups in order, and write results where `last` is 1."""
        self._state = grown(self._state, size)
        count_pass(groups, sign, last, self._state, out)

    def settle(self) -> None:
        """There is no term to forget."""

    def arrays(self) -> dict[str, Ints]:
        return {"state": self._state}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._state = np.array(arrays["state"], dtype=np.int64)


class Sum:
    """SUM and AVG.

    Integers and decimals are added exactly; only a total out of their range is an error. Floats
    and doubles are added exactly too and the total is rounded once, together with that of the
    integers and decimals among them, so that it depends neither on the order of the values nor on
    those that went before. (Adding one after the other, as SPARQL describes it, rounds after each.)
    The average is this total divided by the number of values. `algebra.aggregates.total` says the
    same in plain Python.
    """

    keeps_terms = False

    def __init__(self, *, average: bool) -> None:
        self._average = int(average)
        self._state: Ints = np.zeros((0, _STATE), dtype=np.int64)
        self._wide = SlotTable(LIMBS, 1)
        self._scratch: Ints = np.zeros((1, LIMBS), dtype=np.int64)

    def take(
        self, groups: Ints, sign: Ints, values: Typed, last: Ints, size: int, out: Ints
    ) -> None:
        """Add up changes of `size` groups in order, and write results where `last` is 1."""
        self._state = grown(self._state, size)
        is_float = (values.kind == FLOAT) | (values.kind == DOUBLE)
        if is_float.any():
            # Each group with a float needs a place, and no group more than one.
            self._wide.reserve(min(int(is_float.sum()), size))
        used = np.array([self._wide.free_count], dtype=np.int64)
        sum_pass(
            groups,
            sign,
            values.kind,
            values.approximate.view(np.int64),
            values.high,
            values.low,
            last,
            self._average,
            self._state,
            self._wide.cells,
            self._wide.free,
            used,
            self._scratch,
            self._scratch.view(np.float64),
            out,
        )
        self._wide.free_count = int(used[0])

    def settle(self) -> None:
        """There is no term to forget."""

    def arrays(self) -> dict[str, Ints]:
        return {"state": self._state} | prefixed("wide", self._wide.arrays())

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._state = np.array(arrays["state"], dtype=np.int64).reshape(-1, _STATE)
        self._wide.restore(part("wide", arrays))


def grown(state: Any, size: int) -> Any:
    """Return an array with a place for each of `size` groups, those there were as they are."""
    if len(state) >= size:
        return state
    more = np.zeros((size, *state.shape[1:]), dtype=np.int64)
    more[: len(state)] = state
    return more
