"""The dynamic window: one for each key, which adapts when it is evicted. Paper 000, section III.

A record meets all records of the other stream that its key's window holds, and stays in it. When
the watermark passes the window's end, the policy says how the next one is to be. Done otherwise
than in the published code: size and limits outlive an eviction, limits have a floor, and a key that
has been without records for long is forgotten.

*When* a window is evicted must not depend on batches: a record finds the watermark that the records
before it made, and evicts its key's window first if that watermark has passed the end. Windows
whose keys get no record are evicted at the end of a step. The result is the same: nothing came to them
in between, and an eviction works by the window's end, not by the watermark at which it was noticed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.streamjoin.keylists import COUNTS, HEADS, LISTS, KeyLists, emptied, keep, put
from quadweir.kernel.streamjoin.policies import MOST_RECORDS, PaperPolicy, Policy, Subwindow
from quadweir.kernel.streamjoin.records import HeldRecords

# Extra cells of a key, after those of its lists; of limits, the child's and the parent's.
SIZE: Final = LISTS
LIMITS: Final = LISTS + 1
_END: Final = LISTS + 3
_FIRST: Final = LISTS + 4
_LAST: Final = LISTS + 5
_STATE: Final = LISTS + 6
EVICTIONS: Final = LISTS + 7
_CELLS: Final = 8

# States of a key: never seen or forgotten; in a window; between two, with what was carried over or
# with nothing.
_FRESH: Final = 0
_OPEN: Final = 1
_CARRIED: Final = 2
_CLOSED: Final = 3

# Cells of a policy of ours, for compiled code.
_LOWER, _UPPER, _GROW, _SHRINK, _LEAST, _SHORTEST, _LONGEST, _CARRIES, _COUNTS = range(9)
_START: Final = 9
_LIMIT: Final = 10
_OURS: Final = 11


@njit(cache=True)  # type: ignore[untyped-decorator]
def _is_due(key: Ints, policy: NDArray[np.float64], watermark: int) -> bool:
    if watermark >= key[_END]:
        return True
    return policy[_COUNTS] > 0 and key[COUNTS] + key[COUNTS + 1] >= key[LIMITS]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _adapt(key: Ints, policy: NDArray[np.float64]) -> int:
    """What `adapt` of our policies does; returns how far back records are carried over."""
    before = key[SIZE]
    if policy[_COUNTS] > 0:
        count = key[LIMITS]
        share = (key[_LAST] - key[_FIRST]) / key[SIZE]
        if share > policy[_UPPER]:
            count = max(np.int64(count / policy[_SHRINK]), np.int64(policy[_LEAST]))
        elif share < policy[_LOWER] and key[COUNTS] + key[COUNTS + 1] >= count:
            count = min(np.int64(count * policy[_GROW]), np.int64(MOST_RECORDS))
        key[LIMITS] = count
        key[LIMITS + 1] = count
        return 0
    cost = key[COUNTS] / key[LIMITS] + key[COUNTS + 1] / key[LIMITS + 1]
    if cost > policy[_UPPER] or cost < policy[_LOWER]:
        change = 1 / policy[_SHRINK] if cost > policy[_UPPER] else policy[_GROW]
        size = max(np.int64(before * change), np.int64(policy[_SHORTEST]))
        key[SIZE] = min(size, np.int64(policy[_LONGEST]))
        for side in range(2):
            limit = key[COUNTS + side] + key[LIMITS + side] // 2
            key[LIMITS + side] = max(limit, np.int64(policy[_LEAST]))
    return before if policy[_CARRIES] > 0 else 0


@njit(cache=True)  # type: ignore[untyped-decorator]
def _clear(key: Ints, times: Ints, chain: Ints, carry: int) -> None:
    """End a window; what came less than `carry` before its end stays until nothing is that near."""
    newest = key[_END] - carry
    for side in range(2):
        slot = emptied(key, side)
        newer = -1
        while slot >= 0 and carry > 0:
            if times[slot] > key[_END] - carry:
                newest = max(newest, times[slot])
                keep(key, side, slot, newer, chain)
                newer = slot
            slot = chain[slot]
        if newer >= 0:
            chain[newer] = -1
    key[_STATE] = _CLOSED
    if key[COUNTS] + key[COUNTS + 1] > 0:
        key[_STATE] = _CARRIED
        key[_END] = newest + carry


@njit(cache=True)  # type: ignore[untyped-decorator]
def _settle(
    key: Ints, times: Ints, chain: Ints, policy: NDArray[np.float64], forget: int, watermark: int
) -> bool:
    """Bring a key to a watermark; returns whether a policy in Python must be asked first."""
    if key[_STATE] == _OPEN and _is_due(key, policy, watermark):
        if policy[_OURS] == 0:
            return True
        key[EVICTIONS] += 1
        _clear(key, times, chain, _adapt(key, policy))
    if key[_STATE] == _CARRIED and watermark >= key[_END]:
        # A plain 0 would compile `_clear` a second time, for that literal alone.
        _clear(key, times, chain, np.int64(0))
    if key[_STATE] == _CLOSED and watermark >= key[_END] + forget:
        key[_STATE] = _FRESH
    return False


@njit(cache=True)  # type: ignore[untyped-decorator]
def _meet(
    cells: Ints,
    extra: int,
    rows: Ints,
    times: Ints,
    chain: Ints,
    first: int,
    start: int,
    policy: NDArray[np.float64],
    forget: int,
    pairs: Ints,
    made: Ints,
) -> int:
    """Let records meet and join their windows.

    Stops, and returns which is next, when the pairs are too many, or (`made[1]` is then 1) a policy in
    Python has to be asked about that record's key.
    """
    made[1] = 0
    for row in range(start, rows.shape[1]):
        key, side = cells[rows[0, row], extra:], rows[1, row]
        slot = first + row
        time = times[slot]
        if key[_STATE] != _FRESH and _settle(key, times, chain, policy, forget, rows[2, row]):
            made[1] = 1
            return row
        if made[0] + key[COUNTS + 1 - side] > pairs.shape[1]:
            return row
        if key[_STATE] == _FRESH:
            key[SIZE] = np.int64(policy[_START])
            key[LIMITS] = np.int64(policy[_LIMIT])
            key[LIMITS + 1] = np.int64(policy[_LIMIT])
            key[_STATE] = _CLOSED
        if key[_STATE] != _OPEN:
            size = np.int64(policy[_LONGEST]) if policy[_COUNTS] > 0 else key[SIZE]
            key[_END] = time + size
            key[_FIRST] = time
            key[_LAST] = time
            key[_STATE] = _OPEN
        key[_FIRST] = min(key[_FIRST], time)
        key[_LAST] = max(key[_LAST], time)
        other = key[HEADS + 1 - side] - 1
        while other >= 0:
            pairs[side, made[0]] = slot
            pairs[1 - side, made[0]] = other
            made[0] += 1
            other = chain[other]
        put(key, side, slot, chain)
    return rows.shape[1]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _settle_all(
    cells: Ints,
    extra: int,
    keys: Ints,
    times: Ints,
    chain: Ints,
    policy: NDArray[np.float64],
    forget: int,
    watermark: int,
    start: int,
) -> int:
    """Bring all keys to a watermark; stops where a policy in Python has to be asked."""
    for each in range(start, len(keys)):
        if _settle(cells[keys[each], extra:], times, chain, policy, forget, watermark):
            return each
    return len(keys)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _mark(cells: Ints, extra: int, keys: Ints, chain: Ints, alive: Ints) -> None:
    """Mark the slots that windows hold."""
    for each in range(len(keys)):
        for side in range(2):
            slot = cells[keys[each], extra + HEADS + side] - 1
            while slot >= 0:
                alive[slot] = 1
                slot = chain[slot]


@final
class DynamicWindows(KeyLists):
    """The windows of all keys of a shard."""

    adapting = MappingProxyType(
        {
            "size_ms": SIZE,
            "child_limit": LIMITS,
            "parent_limit": LIMITS + 1,
            "evictions": EVICTIONS,
        }
    )

    def __init__(self, policy: Policy, forget_ms: int) -> None:
        super().__init__(_CELLS)
        self._policy = policy
        self._forget = forget_ms
        self._numbers = _as_numbers(policy)

    def meet(
        self, rows: Ints, held: HeldRecords, first: int, start: int, pairs: Ints, made: Ints
    ) -> int:
        """Take records in; see `_meet`. `rows` holds keys, sides and the watermarks they find."""
        while True:
            start = int(
                _meet(
                    self.keys.cells,
                    self.keys.first_extra,
                    rows,
                    held.times,
                    held.chain,
                    first,
                    start,
                    self._numbers,
                    self._forget,
                    pairs,
                    made,
                )
            )
            if not made[1]:
                return start
            self._ask(int(rows[0, start]), held)

    def leave(self, held: HeldRecords, watermark: int) -> Ints:
        """Evict what is over; returns the keys to be forgotten."""
        keys = self.keys.live()
        extra, start = self.keys.first_extra, 0
        while True:
            start = _settle_all(
                self.keys.cells,
                extra,
                keys,
                held.times,
                held.chain,
                self._numbers,
                self._forget,
                watermark,
                start,
            )
            if start == len(keys):
                break
            self._ask(int(keys[start]), held)
        if 2 * self.held(held) < held.size:
            self.tidy(held, watermark)
        return keys[self.keys.cells[keys, extra + _STATE] == _FRESH]

    def tidy(self, held: HeldRecords, watermark: int) -> Ints:
        """Let go all slots that no window holds."""
        keys, alive = self.keys.live(), ints(held.size)
        _mark(self.keys.cells, self.keys.first_extra, keys, held.chain, alive)
        self._compact(keys, held, alive)
        return ints(0)

    def held(self, held: HeldRecords) -> int:
        """How many records windows hold."""
        return int(self._counts(self.keys.live()).sum())

    def evicted(self) -> int:
        place = self.keys.first_extra + EVICTIONS
        return self.evictions + int(self.keys.cells[self.keys.live(), place].sum())

    def forget(self, keys: Ints) -> None:
        self.evictions += int(self.keys.cells[keys, self.keys.first_extra + EVICTIONS].sum())
        super().forget(keys)

    def _ask(self, key: int, held: HeldRecords) -> None:
        """Ask a policy in Python about a key's window, and evict it."""
        cells = self.keys.cells[key, self.keys.first_extra :]
        found = self._policy.adapt(
            Subwindow(
                int(cells[SIZE]),
                (int(cells[LIMITS]), int(cells[LIMITS + 1])),
                (int(cells[COUNTS]), int(cells[COUNTS + 1])),
                int(cells[_LAST] - cells[_FIRST]),
            )
        )
        # Whatever it says: a window has a length, and is no longer than the policy's own bound.
        longest = self._policy.max_size_ms
        cells[SIZE] = min(max(int(found.size_ms), 1), longest)
        cells[LIMITS], cells[LIMITS + 1] = (max(int(each), 1) for each in found.limits)
        cells[EVICTIONS] += 1
        _clear(cells, held.times, held.chain, min(max(int(found.carry_ms), 0), longest))


def _as_numbers(policy: Policy) -> NDArray[np.float64]:
    found = np.zeros(_OURS + 1)
    found[_START], found[_LIMIT] = policy.size_ms, policy.limit
    found[_LONGEST] = policy.max_size_ms
    if isinstance(policy, PaperPolicy):
        found[_LOWER], found[_UPPER] = policy.lower, policy.upper
        found[_GROW], found[_SHRINK] = policy.grow, policy.shrink
        found[_LEAST], found[_SHORTEST] = policy.least_limit, policy.min_size_ms
        found[_CARRIES], found[_COUNTS] = policy.carries, policy.counts_records
        # A user may derive from ours and decide otherwise.
        found[_OURS] = type(policy).__module__ == PaperPolicy.__module__
    return found
