"""Joins in windows that times alone decide: tumbling, sliding and interval.

Each key has two lists, of the child's records and the parent's. A record meets those of the other
list that are close enough to it; it does not matter in which order the two came. What nothing that
is still to come can meet stays in its list until the lists are next gone through, and is not met.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.held import Held
from quadweir.kernel.joinwindows import TimedWindow
from quadweir.kernel.oneway import COUNT, OneWay

# Extra cells of a key; the two sides follow one another.
COUNTS: Final = 0
_HEADS: Final = 2
_CELLS: Final = 4


@njit(cache=True)  # type: ignore[untyped-decorator]
def _meet(
    cells: Ints,
    extra: int,
    rows: Ints,
    times: Ints,
    chain: Ints,
    first: int,
    start: int,
    step: int,
    reach: int,
    pairs: Ints,
    made: Ints,
) -> int:
    """Let records meet and join their lists, until the pairs are too many; gives who is next."""
    for row in range(start, rows.shape[1]):
        key, side = rows[0, row], rows[1, row]
        if made[0] + cells[key, extra + COUNTS + 1 - side] > pairs.shape[1]:
            return row
        slot = first + row
        time = times[slot]
        other = cells[key, extra + _HEADS + 1 - side] - 1
        while other >= 0:
            early, late = min(time, times[other]), max(time, times[other])
            if late < early // step * step + reach:
                pairs[side, made[0]] = slot
                pairs[1 - side, made[0]] = other
                made[0] += 1
            other = chain[other]
        # Heads are counted from 1: a new key has none.
        chain[slot] = cells[key, extra + _HEADS + side] - 1
        cells[key, extra + _HEADS + side] = slot + 1
        cells[key, extra + COUNTS + side] += 1
    return rows.shape[1]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _leave(
    cells: Ints,
    extra: int,
    keys: Ints,
    times: Ints,
    chain: Ints,
    step: int,
    reach: int,
    watermark: int,
    alive: Ints,
) -> None:
    """Take what has expired out of all lists, and mark what is left."""
    for each in range(len(keys)):
        key = keys[each]
        for side in range(2):
            slot = cells[key, extra + _HEADS + side] - 1
            newer = -1
            cells[key, extra + _HEADS + side] = 0
            cells[key, extra + COUNTS + side] = 0
            while slot >= 0:
                before = chain[slot]
                if times[slot] // step * step + reach - 1 > watermark:
                    alive[slot] = 1
                    if newer < 0:
                        cells[key, extra + _HEADS + side] = slot + 1
                    else:
                        chain[newer] = slot
                    newer = slot
                    cells[key, extra + COUNTS + side] += 1
                slot = before
            if newer >= 0:
                chain[newer] = -1


@final
class TimedWindows:
    """The lists of all keys of a shard."""

    def __init__(self, window: TimedWindow) -> None:
        self.keys = OneWay(1, extra=_CELLS)
        self._step, self._reach = window.step, window.reach
        self._expired = 0

    def meet(self, rows: Ints, held: Held, first: int, start: int, pairs: Ints, made: Ints) -> int:
        """Take records in; see `_meet`. `rows` holds keys, sides and the watermarks they find."""
        return int(
            _meet(
                self.keys.cells,
                self.keys.first_extra,
                rows,
                held.times,
                held.chain,
                first,
                start,
                self._step,
                self._reach,
                pairs,
                made,
            )
        )

    def most(self, rows: Ints, row: int) -> int:
        """How many pairs a record can make."""
        place = self.keys.first_extra + COUNTS + 1 - rows[1, row]
        return int(self.keys.cells[rows[0, row], place])

    def leave(self, held: Held, watermark: int) -> Ints:
        """Let go what has expired, if that is worth it; gives the keys that are left with nothing."""
        ends = held.times[: held.size] // self._step * self._step + self._reach - 1
        self._expired = int(np.count_nonzero(ends <= watermark))
        if not self._expired or 2 * self._expired < held.size:
            return ints(0)
        return self.tidy(held, watermark)

    def tidy(self, held: Held, watermark: int) -> Ints:
        """Let go all that has expired."""
        keys = self.keys.live()
        extra, cells = self.keys.first_extra, self.keys.cells
        alive = ints(held.size)
        _leave(
            cells, extra, keys, held.times, held.chain, self._step, self._reach, watermark, alive
        )
        moved = held.compact(alive)
        for side in range(2):
            heads = cells[keys, extra + _HEADS + side]
            used = heads > 0
            cells[keys[used], extra + _HEADS + side] = moved[heads[used] - 1] + 1
        self._expired = 0
        counts = cells[keys, extra + COUNTS] + cells[keys, extra + COUNTS + 1]
        return keys[counts == 0]

    def held(self, held: Held) -> int:
        """How many records can still meet something."""
        return held.size - self._expired

    def arrays(self) -> dict[str, Ints]:
        return self.keys.arrays()

    def forget(self, keys: Ints) -> None:
        self.keys.cells[keys, COUNT] = 0
