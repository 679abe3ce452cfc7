"""What all windows of stream joins have: for each key two lists of records, child's and parent's.

A list runs from its newest record backwards, by `HeldRecords.chain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from numba import njit

from quadweir.kernel.arrays import Ints
from quadweir.kernel.oneway import COUNT, OneWay
from quadweir.kernel.streamjoin.records import HeldRecords

# Extra cells of a key; of each, the child's and the parent's.
COUNTS: Final = 0
HEADS: Final = 2
LISTS: Final = 4
"""How many cells the lists take."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def put(key: Ints, side: int, slot: int, chain: Ints) -> None:
    """Put a record at the head of a list."""
    # Heads are counted from 1: a new key has none.
    chain[slot] = key[HEADS + side] - 1
    key[HEADS + side] = slot + 1
    key[COUNTS + side] += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def emptied(key: Ints, side: int) -> int:
    """Empty a list; returns its newest slot, from which what stays is to be kept."""
    slot = key[HEADS + side] - 1
    key[HEADS + side] = 0
    key[COUNTS + side] = 0
    return int(slot)


@njit(cache=True)  # type: ignore[untyped-decorator]
def keep(key: Ints, side: int, slot: int, newer: int, chain: Ints) -> None:
    """Put a record at the end of a list that is rebuilt, after the slot `newer`, -1 for none."""
    if newer < 0:
        key[HEADS + side] = slot + 1
    else:
        chain[newer] = slot
    key[COUNTS + side] += 1


class KeyLists:
    """The lists of all keys of a shard; what windows of all kinds have in common.

    In: records, by key and side. Out: pairs of records.
    State: for each key its lists, and what its window needs.
    Forgets: records that nothing can meet any more; keys that are left with nothing.

    Attributes:
        evictions: how many windows of keys that are forgotten were evicted.
        adapting: the cells of a key that adapt, by name; empty for windows that do not adapt.

    Args:
        cells: how many cells a key has in addition to those of its lists.
    """

    adapting: Mapping[str, int] = MappingProxyType({})

    def __init__(self, cells: int = 0) -> None:
        self.keys = OneWay(1, extra=LISTS + cells)
        self.evictions = 0

    def evicted(self) -> int:
        """Return how many windows were evicted so far."""
        return self.evictions

    def most(self, rows: Ints, row: int) -> int:
        """How many pairs a record can make."""
        place = self.keys.first_extra + COUNTS + 1 - rows[1, row]
        return int(self.keys.cells[rows[0, row], place])

    def forget(self, keys: Ints) -> None:
        """Let go keys that are left with nothing."""
        self.keys.cells[keys, COUNT] = 0
        self.keys.cells[keys, self.keys.first_extra :] = 0

    def _counts(self, keys: Ints) -> Ints:
        """How many records each key has, of both sides."""
        place = self.keys.first_extra + COUNTS
        found: Ints = self.keys.cells[keys, place] + self.keys.cells[keys, place + 1]
        return found

    def _compact(self, keys: Ints, held: HeldRecords, alive: Ints) -> None:
        """Let go the slots that are not alive."""
        moved = held.compact(alive)
        for side in range(2):
            place = self.keys.first_extra + HEADS + side
            heads = self.keys.cells[keys, place]
            used = heads > 0
            self.keys.cells[keys[used], place] = moved[heads[used] - 1] + 1
