"""The watermark of a join as each record finds it.

The watermark is the lower of the two streams' highest times, less the allowed delay. It depends on
the records that arrived before, and not on the batch. So it does not matter for lateness and
eviction where batches end. A shard sees only its own records, but it gets the times of all records
(`Heard`): of those, it needs the ones that raise a stream's highest time or the time of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.oneway import plain
from quadweir.kernel.streamjoin.windows import JoinTiming

__all__ = ["Heard", "JoinClock", "JoinTiming"]

# Cells of the clock; the two sides follow one another.
_HIGHEST: Final = 0
_ARRIVED: Final = 2
_FIRST: Final = 4
_WATERMARK: Final = 5
_CELLS: Final = 6


@final
@dataclass(frozen=True, slots=True)
class Heard:
    """When and how time went on in both streams, in order of arrival.

    Attributes:
        order: places in the order of arrival, increasing.
        side: 0 for the child, 1 for the parent.
        time: event times.
        arrival: times of arrival.
    """

    order: Ints
    side: Ints
    time: Ints
    arrival: Ints


@njit(cache=True)  # type: ignore[untyped-decorator]
def _advance(cells: Ints, lags: Ints, idle: int, now: int) -> None:
    """Find the instant until which all is known at a time of arrival; it never goes back."""
    known = np.int64(FOREVER)
    for side in range(2):
        last = cells[_ARRIVED + side] if cells[_ARRIVED + side] != ALWAYS else cells[_FIRST]
        if idle >= 0 and now - last > idle:
            continue
        if cells[_HIGHEST + side] == ALWAYS:
            return
        known = min(known, cells[_HIGHEST + side] - lags[side])
    if known != FOREVER and known > cells[_WATERMARK]:
        cells[_WATERMARK] = known


@njit(cache=True)  # type: ignore[untyped-decorator]
def _hear(cells: Ints, lags: Ints, idle: int, side: int, time: int, arrival: int) -> None:
    if cells[_FIRST] == ALWAYS:
        cells[_FIRST] = arrival
    _advance(cells, lags, idle, arrival)
    cells[_HIGHEST + side] = max(cells[_HIGHEST + side], time)
    cells[_ARRIVED + side] = max(cells[_ARRIVED + side], arrival)
    _advance(cells, lags, idle, arrival)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _follow(
    cells: Ints,
    lags: Ints,
    idle: int,
    heard: Ints,
    order: Ints,
    arrival: Ints,
    found: Ints,
) -> None:
    """Let time go on by `heard`, and note for each record the watermark just before it."""
    at = 0
    for row in range(len(order)):
        while at < heard.shape[1] and heard[0, at] < order[row]:
            _hear(cells, lags, idle, heard[1, at], heard[2, at], heard[3, at])
            at += 1
        if cells[_FIRST] == ALWAYS:
            cells[_FIRST] = arrival[row]
        _advance(cells, lags, idle, arrival[row])
        found[row] = cells[_WATERMARK]
    while at < heard.shape[1]:
        _hear(cells, lags, idle, heard[1, at], heard[2, at], heard[3, at])
        at += 1


@final
class JoinClock:
    """How far time has come in the two streams of a join.

    >>> clock = JoinClock(JoinTiming())
    >>> order, side, time = np.arange(4), np.array([0, 1, 0, 1]), np.array([10, 20, 30, 40])
    >>> clock.follow(Heard(order, side, time, time), order, time).tolist()[2:]
    [9, 19]
    >>> clock.watermark
    29
    """

    def __init__(self, timing: JoinTiming) -> None:
        self.cells = np.full(_CELLS, ALWAYS, dtype=np.int64)
        # Without any delay the newest instant is not over before a later one is seen.
        self._lags = np.array([max(each, 1) for each in timing.delay_ms], dtype=np.int64)
        self._idle = -1 if timing.idle_ms is None else timing.idle_ms

    @property
    def watermark(self) -> int:
        return int(self.cells[_WATERMARK])

    def follow(self, heard: Heard, order: Ints, arrival: Ints) -> Ints:
        """Return the watermark that each record finds, and go on to the end of what was heard."""
        found = ints(len(order))
        times = np.empty((4, len(heard.order)), dtype=np.int64)
        for place, column in enumerate((heard.order, heard.side, heard.time, heard.arrival)):
            times[place] = column
        order, arrival = plain(order), plain(arrival)
        _follow(self.cells, self._lags, self._idle, times, order, arrival, found)
        return found
