"""The ring index: from a key to the mappings that have it, newest first (paper 001, section 3).

Every key has an entry with a counter and the start of its ring; each mapping points to the one
before it with the same key. Algorithm 1 is `insert`, Algorithm 2 `find` and then following the
ring for as many mappings as the counter says. What differs from the paper:

- Mappings of a window go in the order in which they came. The oldest of a ring is then its last,
  and to remove it the counter is enough: nothing has to be unlinked, since nobody follows the ring
  further than the counter. Mappings that go in any order are linked both ways.
- An entry does not hold the key but its hash. For a key of one column the hash is a bijection; for
  longer keys the start of the ring is compared.
- Entries with a counter of zero stay until the table is built anew (the paper's lazy deletion in
  batches), which happens only when the table is full.

All of it works on addresses, so that one compiled function serves joins of any number of buffers.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, address, combine, ints, load, mix, power_of_two, store

# An entry: the key's hash (0 if the entry was never used), its counter, the start of its ring.
HASH: Final = 0
COUNT: Final = 1
START: Final = 2
ENTRY: Final = 3

# What describes an index, one row for each.
ENTRIES: Final = 0  # address of the entries
MASK: Final = 1  # number of entries less one
USED: Final = 2  # entries that were ever used since the last rebuild
RING: Final = 3  # address: the mapping before, for each mapping
BACK: Final = 4  # address: the mapping after; 0 if mappings go in the order they came
CELLS: Final = 5  # address of the mappings
WIDTH: Final = 6
ROWS: Final = 7  # number of mappings' places less one
KEYS: Final = 8  # where the key's columns start in the list of columns
KEY_WIDTH: Final = 9
DESCRIPTION: Final = 10


@njit(cache=True)  # type: ignore[untyped-decorator]
def hash_key(key: Ints, width: int) -> int:
    """Hash a key; a key of one column is told by its hash alone."""
    if width == 1:
        return mix(key[0])
    hashed = 1
    for place in range(width):
        hashed = combine(hashed, key[place])
    return hashed


@njit(cache=True)  # type: ignore[untyped-decorator]
def find(index: Ints, columns: Ints, key: Ints, hashed: int) -> int:
    """Find the entry of a key; -1 if there is none. Algorithm 2, line 1."""
    entries, mask, width = index[ENTRIES], index[MASK], index[KEY_WIDTH]
    place = hashed & mask
    while True:
        stored = load(entries, place * ENTRY + HASH)
        if stored == 0:
            return -1
        if stored == hashed:
            if width <= 1:
                return place
            if load(entries, place * ENTRY + COUNT) > 0:
                row = load(entries, place * ENTRY + START) & index[ROWS]
                base = row * index[WIDTH]
                same = True
                for i in range(width):
                    if load(index[CELLS], base + columns[index[KEYS] + i]) != key[i]:
                        same = False
                        break
                if same:
                    return place
        place = (place + 1) & mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def key_of(index: Ints, columns: Ints, row: int, key: Ints) -> int:
    """Read a mapping's key and hash it."""
    base = (row & index[ROWS]) * index[WIDTH]
    for i in range(index[KEY_WIDTH]):
        key[i] = load(index[CELLS], base + columns[index[KEYS] + i])
    return hash_key(key, index[KEY_WIDTH])


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert(index: Ints, columns: Ints, row: int, key: Ints) -> None:
    """Put a mapping at the start of its key's ring. Algorithm 1."""
    hashed = key_of(index, columns, row, key)
    entries, mask = index[ENTRIES], index[MASK]
    at = row & index[ROWS]
    place = find(index, columns, key, hashed)
    if place < 0:
        place = hashed & mask
        while True:
            stored = load(entries, place * ENTRY + HASH)
            if stored == 0:
                index[USED] += 1
                break
            if stored == hashed and load(entries, place * ENTRY + COUNT) == 0:
                break
            place = (place + 1) & mask
        store(entries, place * ENTRY + HASH, hashed)
        store(entries, place * ENTRY + COUNT, 0)
    count = load(entries, place * ENTRY + COUNT)
    before = load(entries, place * ENTRY + START) if count > 0 else -1
    store(index[RING], at, before)
    if index[BACK] != 0:
        store(index[BACK], at, -1)
        if before >= 0:
            store(index[BACK], before & index[ROWS], row)
    store(entries, place * ENTRY + COUNT, count + 1)
    store(entries, place * ENTRY + START, row)


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove(index: Ints, columns: Ints, row: int, key: Ints) -> None:
    """Take a mapping out; without links back it must be the oldest of its ring."""
    hashed = key_of(index, columns, row, key)
    place = find(index, columns, key, hashed)
    entries = index[ENTRIES]
    store(entries, place * ENTRY + COUNT, load(entries, place * ENTRY + COUNT) - 1)
    if index[BACK] != 0:
        at = row & index[ROWS]
        before, after = load(index[RING], at), load(index[BACK], at)
        if after >= 0:
            store(index[RING], after & index[ROWS], before)
        else:
            store(entries, place * ENTRY + START, before)
        if before >= 0:
            store(index[BACK], before & index[ROWS], after)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _rebuild(old: Ints, new: Ints, mask: int) -> int:
    """Copy the entries in use to a new table: the batch that makes lazy deletion good."""
    used = 0
    for place in range(len(old) // ENTRY):
        if old[place * ENTRY + COUNT] > 0:
            to = old[place * ENTRY + HASH] & mask
            while new[to * ENTRY + HASH] != 0:
                to = (to + 1) & mask
            for i in range(ENTRY):
                new[to * ENTRY + i] = old[place * ENTRY + i]
            used += 1
    return used


@njit(cache=True)  # type: ignore[untyped-decorator]
def _count_used(entries: Ints) -> int:
    used = 0
    for place in range(len(entries) // ENTRY):
        if entries[place * ENTRY + COUNT] > 0:
            used += 1
    return used


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert_all(index: Ints, columns: Ints, rows: Ints, key: Ints) -> int:
    """Insert many mappings; gives how many, since a full table has to be built anew first."""
    for i in range(len(rows)):
        if index[USED] * 4 > index[MASK] * 3:
            return i
        insert(index, columns, rows[i], key)
    return len(rows)


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove_all(index: Ints, columns: Ints, rows: Ints, key: Ints) -> None:
    for i in range(len(rows)):
        remove(index, columns, rows[i], key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def probe_all(index: Ints, columns: Ints, keys: Ints, width: int, key: Ints) -> int:
    """Follow the rings of many keys and add up the rows found; for measurements and tests."""
    total = 0
    for i in range(len(keys) // width):
        for place in range(width):
            key[place] = keys[i * width + place]
        entry = find(index, columns, key, hash_key(key, width))
        if entry >= 0:
            row = load(index[ENTRIES], entry * ENTRY + START)
            for _ in range(load(index[ENTRIES], entry * ENTRY + COUNT)):
                total += row
                row = load(index[RING], row & index[ROWS])
    return total


@final
class RingIndex:
    """A ring index over the rows of a table, by some of its columns.

    Linear: yes, what comes and goes can be added up.
    State: an entry for each key, a pointer (or two) for each mapping.
    Forgets: a mapping when it is removed; a key when the table is next built anew.

    >>> cells = np.array([[7, 1], [8, 2], [7, 3]], dtype=np.int64)
    >>> index = RingIndex((0,), linked=False)
    >>> index.attach(cells, rows=np.zeros(0, dtype=np.int64))
    >>> index.insert(np.arange(3))
    >>> index.probe(7), index.probe(9)
    ([2, 0], [])
    """

    def __init__(self, columns: tuple[int, ...], *, linked: bool) -> None:
        self.columns = np.array(columns, dtype=np.int64)
        self.linked = linked
        self.description = ints(DESCRIPTION)
        self.entries = ints(0)
        self.ring = ints(0)
        self.back = ints(0)
        self._key = ints(max(1, len(columns)))
        self._set_entries(ints(16 * ENTRY), 0)
        self.description[KEYS] = 0
        self.description[KEY_WIDTH] = len(columns)

    def _set_entries(self, entries: Ints, used: int) -> None:
        self.entries = entries
        self.description[ENTRIES] = address(entries)
        self.description[MASK] = len(entries) // ENTRY - 1
        self.description[USED] = used

    def attach(self, cells: np.ndarray, rows: Ints) -> None:  # type: ignore[type-arg]
        """Go with a table that has moved; `rows` are those in the index, at their new places."""
        capacity = len(cells)
        self.description[CELLS] = address(cells)
        self.description[WIDTH] = cells.shape[1]
        if capacity != len(self.ring):
            self.ring = _moved(self.ring, rows, capacity)
            if self.linked:
                self.back = _moved(self.back, rows, capacity)
        self.description[RING] = address(self.ring)
        self.description[BACK] = address(self.back) if self.linked else 0
        self.description[ROWS] = capacity - 1 if capacity & (capacity - 1) == 0 else -1

    def grow(self) -> None:
        """Build the entries anew: without those of no use, and with room for more."""
        alive = _count_used(self.entries)
        size = power_of_two(max(16, alive * 2 + 2))
        fresh = ints(size * ENTRY)
        self._set_entries(fresh, _rebuild(self.entries, fresh, size - 1))

    def clear(self) -> None:
        """Take all mappings out."""
        self._set_entries(ints(16 * ENTRY), 0)
        self.ring = self.back = ints(0)

    def insert(self, rows: Ints) -> None:
        done = 0
        while done < len(rows):
            done += insert_all(self.description, self.columns, rows[done:], self._key)
            if done < len(rows):
                self.grow()

    def remove(self, rows: Ints) -> None:
        remove_all(self.description, self.columns, rows, self._key)

    def probe(self, *key: int) -> list[int]:
        """List the rows that have a key, newest first."""
        values = np.array(key, dtype=np.int64)
        entry = find(self.description, self.columns, values, hash_key(values, len(values)))
        if entry < 0:
            return []
        found, row = [], int(self.entries[entry * ENTRY + START])
        for _ in range(self.entries[entry * ENTRY + COUNT]):
            found.append(row)
            row = int(self.ring[row & self.description[ROWS]])
        return found

    @property
    def keys(self) -> int:
        """How many keys have a mapping."""
        return int(_count_used(self.entries))

    @property
    def nbytes(self) -> int:
        return self.entries.nbytes + self.ring.nbytes + self.back.nbytes

    def arrays(self) -> dict[str, Ints]:
        return {"entries": self.entries, "ring": self.ring, "back": self.back}

    def restore(self, arrays: dict[str, Ints]) -> None:
        entries = np.array(arrays["entries"], dtype=np.int64)
        self._set_entries(entries, int(np.count_nonzero(entries[HASH::ENTRY])))
        self.ring = np.array(arrays["ring"], dtype=np.int64)
        self.back = np.array(arrays["back"], dtype=np.int64)


def _moved(pointers: Ints, rows: Ints, capacity: int) -> Ints:
    """Lay out pointers anew for another capacity."""
    fresh = np.full(capacity, -1, dtype=np.int64)
    if len(pointers):
        fresh[rows & (capacity - 1)] = pointers[rows & (len(pointers) - 1)]
    return fresh
