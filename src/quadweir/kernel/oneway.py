"""The one-way index: from a key to a counter and to cells that belong to it.

Paper 001, sections 3.2 to 3.4. A key is any number of integers. Each key has an entry; the number
of the entry stays the same as long as its counter is not 0, so that other arrays can have the
same numbers. Open addressing over one array of entry numbers: the keys lie in a second array, so that the
first stays small and growing it moves no entry.

Deletion is lazy and in batches, as in section 3.4: an entry whose counter is 0 stays in the index
until room is needed, and comes back to life if its key comes back before. Where the paper keeps a
list of the keys to be deleted, the pass that makes room looks at all of them: it has to place those
that stay anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, combine, ints, power_of_two, random_seed
from quadweir.kernel.memory import prefetch

# Columns of the entries; the key follows, then the cells of the owner.
HASH: Final = 0
COUNT: Final = 1
FIRST_KEY: Final = 2

# Indexes of fewer entries do not shrink.
_SMALL: Final = 1024
# How many keys ahead entries are fetched; their places in the table twice as many.
_AHEAD: Final = 8


class Keys(NamedTuple):
    """Keys, one in each row, with their hashes."""

    values: Ints
    hashes: Ints


class Entries(NamedTuple):
    """The arrays of an index, as compiled functions take them."""

    table: Ints
    cells: Ints
    free: Ints
    used: Ints  # how many entries are free, which compiled code changes; then the seed of hashes


def plain(array: NDArray[Any]) -> Ints:
    """Return an array in the one form that compiled functions are called with."""
    return np.require(array, np.int64, ["C", "W"])


@njit(cache=True)  # type: ignore[untyped-decorator]
def hash_keys(keys: Ints, seed: int, hashes: Ints) -> None:
    """Hash the key in each row; never 0."""
    for at in range(len(hashes)):
        hashed = seed
        for place in range(keys.shape[1]):
            hashed = combine(hashed, keys[at, place])
        hashes[at] = hashed


@njit(cache=True)  # type: ignore[untyped-decorator]
def look_ahead(index: Entries, hashes: Ints, at: int) -> None:
    """Fetch what the next keys will need: a large index is never in the processor's cache."""
    table, cells = index.table, index.cells
    mask = len(table) - 1
    if at + 2 * _AHEAD < len(hashes):
        prefetch(table, hashes[at + 2 * _AHEAD] & mask)
        entry = table[hashes[at + _AHEAD] & mask] - 1
        if entry >= 0:
            prefetch(cells, cells.shape[1] * entry)
            prefetch(cells, cells.shape[1] * entry + 8)


@njit(cache=True)  # type: ignore[untyped-decorator]
def find_place(index: Entries, keys: Keys, at: int) -> int:
    """Return the place in the table of the key in row `at`, or the free place where it belongs."""
    table, cells, values, hashed = index.table, index.cells, keys.values, keys.hashes[at]
    mask = len(table) - 1
    place = hashed & mask
    while True:
        entry = table[place] - 1
        if entry < 0:
            return place
        if cells[entry, HASH] == hashed:
            same = True
            for each in range(values.shape[1]):
                if cells[entry, FIRST_KEY + each] != values[at, each]:
                    same = False
                    break
            if same:
                return place
        place = (place + 1) & mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def add_entry(index: Entries, keys: Keys, at: int) -> int:
    """Return the entry of the key in row `at`, a new one with counter 0 if there is none.

    Room was reserved.
    """
    look_ahead(index, keys.hashes, at)
    place = find_place(index, keys, at)
    table, cells = index.table, index.cells
    if table[place] > 0:
        return int(table[place]) - 1
    index.used[0] -= 1
    entry = int(index.free[index.used[0]])
    table[place] = entry + 1
    for each in range(cells.shape[1]):
        cells[entry, each] = 0
    cells[entry, HASH] = keys.hashes[at]
    for each in range(keys.values.shape[1]):
        cells[entry, FIRST_KEY + each] = keys.values[at, each]
    return entry


@njit(cache=True)  # type: ignore[untyped-decorator]
def place_entries(index: Entries) -> None:
    """Fill a new table; entries with counter 0 become free."""
    table, cells, free, used = index
    mask = len(table) - 1
    for entry in range(len(cells)):
        if cells[entry, HASH] == 0:
            continue
        if cells[entry, COUNT] == 0:
            cells[entry, HASH] = 0
            free[used[0]] = entry
            used[0] += 1
            continue
        place = cells[entry, HASH] & mask
        while table[place] != 0:
            place = (place + 1) & mask
        table[place] = entry + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def find_entries(index: Entries, keys: Keys, found: Ints) -> None:
    """Return the entries of many keys, or -1; their counters may be 0."""
    for at in range(len(found)):
        look_ahead(index, keys.hashes, at)
        found[at] = index.table[find_place(index, keys, at)] - 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def count_entries(index: Entries, keys: Keys, change: Ints, found: Ints) -> None:
    """Add to the counters of many keys, in order.

    What `change` says is replaced by what becomes of the key: +1 where it comes, its counter having
    been 0, -1 where it goes, else 0.
    """
    cells = index.cells
    for at in range(len(found)):
        entry = add_entry(index, keys, at)
        before = cells[entry, COUNT]
        after = before + change[at]
        cells[entry, COUNT] = after
        change[at] = (after > 0) - (before > 0)
        found[at] = entry


class OneWay:
    """Keys with counters, and `extra` cells for each key, which are 0 when it is new.

    >>> index = OneWay(1)
    >>> keys = np.array([[7], [8], [7]])
    >>> entries = index.add(keys, np.array([1, 1, 1]))
    >>> index.cells[index.find(np.array([[7]])), COUNT].tolist()
    [2]
    """

    def __init__(self, key_width: int, extra: int = 0, capacity: int = 16) -> None:
        self.key_width = key_width
        self.first_extra = FIRST_KEY + key_width
        self._clear(extra, power_of_two(max(16, capacity)))

    def _clear(self, extra: int, capacity: int) -> None:
        self.cells: Ints = np.zeros((capacity, self.first_extra + extra), dtype=np.int64)
        self.table = ints(2 * capacity)
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int64)
        self.used = np.array([capacity, random_seed()], dtype=np.int64)

    def hashed(self, keys: NDArray[Any]) -> Keys:
        """Return keys as compiled functions take them, with their hashes in this index."""
        values = plain(keys)
        hashes = np.empty(len(values), dtype=np.int64)
        hash_keys(values, int(self.used[1]), hashes)
        return Keys(values, hashes)

    @property
    def entries(self) -> Entries:
        """The arrays, until `reserve` next makes room."""
        return Entries(self.table, self.cells, self.free, self.used)

    @property
    def capacity(self) -> int:
        return len(self.cells)

    @property
    def size(self) -> int:
        """How many entries there are, those of counter 0 included."""
        return self.capacity - int(self.used[0])

    def reserve(self, count: int) -> None:
        """Make room for `count` new keys; entries whose counter is 0 may go."""
        if self.used[0] >= count:
            return
        live = int(np.count_nonzero(self.cells[:, COUNT]))
        # At least as much room again as is taken, so that the next pass comes after as many keys.
        needed = power_of_two(2 * live + count)
        if needed > self.capacity:
            self._grow(needed)
        self.table = ints(2 * self.capacity)
        place_entries(self.entries)

    def _grow(self, capacity: int) -> None:
        old, left = self.capacity, int(self.used[0])
        cells = np.zeros((capacity, self.cells.shape[1]), dtype=np.int64)
        cells[:old] = self.cells
        free = ints(capacity)
        free[: capacity - old] = np.arange(capacity - 1, old - 1, -1)
        free[capacity - old : capacity - old + left] = self.free[:left]
        self.cells, self.free = cells, free
        self.used[0] = left + capacity - old

    def find(self, keys: NDArray[Any]) -> Ints:
        """Return the entries of keys; -1 where there is none or its counter is 0."""
        found = ints(len(keys))
        find_entries(self.entries, self.hashed(keys), found)
        found[(found >= 0) & (self.cells[found, COUNT] == 0)] = -1
        return found

    def add(self, keys: NDArray[Any], change: NDArray[Any]) -> Ints:
        """Add to the counters of keys, in order, and give their entries."""
        return self.transitions(keys, change)[0]

    def transitions(self, keys: NDArray[Any], change: NDArray[Any]) -> tuple[Ints, Ints]:
        """Add to counters like `add`; tell also where a key came (+1) and went (-1)."""
        self.reserve(len(keys))
        found = ints(len(keys))
        became = np.array(change, dtype=np.int64)
        count_entries(self.entries, self.hashed(keys), became, found)
        return found, became

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self.cells.nbytes + self.table.nbytes + self.free.nbytes

    def pack(self) -> None:
        """Give memory back if few entries are left; their numbers change then."""
        live = self.live()
        if self.capacity <= _SMALL or 8 * len(live) > self.capacity:
            return
        cells = self.cells[live]
        extra = cells.shape[1] - self.first_extra
        self._clear(extra, power_of_two(max(_SMALL, 2 * len(live))))
        entries = self.add(cells[:, FIRST_KEY : self.first_extra], cells[:, COUNT])
        self.cells[entries, self.first_extra :] = cells[:, self.first_extra :]

    def take(self, entries: Mapping[str, Ints]) -> None:
        """Take arrays over as they are: what another index of the same kind has as `entries`."""
        self.table, self.cells, self.free, self.used = Entries(**entries)

    def live(self) -> Ints:
        """Return the entries whose counter is not 0."""
        return np.flatnonzero(self.cells[:, COUNT])

    def arrays(self) -> dict[str, Ints]:
        entries = self.live()
        return {
            "entries": entries,
            "cells": self.cells[entries],
            "capacity": np.array([self.capacity], dtype=np.int64),
            "seed": self.used[1:],
        }

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        capacity = int(arrays["capacity"][0])
        entries = plain(arrays["entries"])
        self.cells = np.zeros((capacity, self.cells.shape[1]), dtype=np.int64)
        self.cells[entries] = np.asarray(arrays["cells"]).reshape(-1, self.cells.shape[1])
        is_free = np.ones(capacity, dtype=bool)
        is_free[entries] = False
        rest = np.flatnonzero(is_free)[::-1]
        self.free = ints(capacity)
        self.free[: len(rest)] = rest
        # The hashes among the cells were made with the seed of the index that was saved.
        self.used = np.array([len(rest), arrays["seed"][0]], dtype=np.int64)
        self.table = ints(2 * capacity)
        place_entries(self.entries)


def prefixed(prefix: str, arrays: Mapping[str, Ints]) -> dict[str, Ints]:
    """Name the arrays of a part as those of its whole."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part(prefix: str, arrays: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return the arrays of a part, as it named them.

    >>> part("a", prefixed("a", {"x": ints(1)})).keys()
    dict_keys(['x'])
    """
    start = len(prefix) + 1
    return {name[start:]: each for name, each in arrays.items() if name.startswith(f"{prefix}.")}
