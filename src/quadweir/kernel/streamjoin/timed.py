"""Joins in windows that times alone decide: tumbling, sliding and interval.

Each key has two lists, of the child's records and the parent's. A record meets those of the other
list that are close enough to it; it does not matter in which order the two came. What nothing that
is still to come can meet stays in its list until the lists are next gone through, and is not met.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.streamjoin.keylists import COUNTS, HEADS, KeyLists, emptied, keep, put
from quadweir.kernel.streamjoin.records import HeldRecords
from quadweir.kernel.streamjoin.windows import TimedWindow


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
    """Let records meet and join their lists, until the pairs are too many; returns which is next."""
    for row in range(start, rows.shape[1]):
        key, side = cells[rows[0, row], extra:], rows[1, row]
        if made[0] + key[COUNTS + 1 - side] > pairs.shape[1]:
            return row
        slot = first + row
        time = times[slot]
        other = key[HEADS + 1 - side] - 1
        while other >= 0:
            early, late = min(time, times[other]), max(time, times[other])
            if late < early // step * step + reach:
                pairs[side, made[0]] = slot
                pairs[1 - side, made[0]] = other
                made[0] += 1
            other = chain[other]
        put(key, side, slot, chain)
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
        key = cells[keys[each], extra:]
        for side in range(2):
            slot = emptied(key, side)
            newer = -1
            while slot >= 0:
                before = chain[slot]
                if times[slot] // step * step + reach - 1 > watermark:
                    alive[slot] = 1
                    keep(key, side, slot, newer, chain)
                    newer = slot
                slot = before
            if newer >= 0:
                chain[newer] = -1


@final
class TimedWindows(KeyLists):
    """The lists of all keys of a shard."""

    def __init__(self, window: TimedWindow) -> None:
        super().__init__()
        self._step, self._reach = window.step, window.reach
        self._expired = 0

    def meet(
        self, rows: Ints, held: HeldRecords, first: int, start: int, pairs: Ints, made: Ints
    ) -> int:
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

    def leave(self, held: HeldRecords, watermark: int) -> Ints:
        """Let go what has expired, if that is worth it; returns the keys that are left with nothing."""
        ends = held.times[: held.size] // self._step * self._step + self._reach - 1
        self._expired = int(np.count_nonzero(ends <= watermark))
        if not self._expired or 2 * self._expired < held.size:
            return ints(0)
        return self.tidy(held, watermark)

    def tidy(self, held: HeldRecords, watermark: int) -> Ints:
        """Let go all that has expired."""
        keys, alive = self.keys.live(), ints(held.size)
        _leave(
            self.keys.cells,
            self.keys.first_extra,
            keys,
            held.times,
            held.chain,
            self._step,
            self._reach,
            watermark,
            alive,
        )
        self._compact(keys, held, alive)
        self._expired = 0
        return keys[self._counts(keys) == 0]

    def held(self, held: HeldRecords) -> int:
        """How many records can still meet something."""
        return held.size - self._expired
