"""The ring index: from a key to the mappings that have it, newest first (paper 001, section 3).

Every key has an entry with a counter and the start of its ring; each mapping points to the one
before it with the same key. Algorithm 1 is `insert`, Algorithm 2 `find` and then following the
ring for as many mappings as the counter says. What differs from the paper:

- Mappings of a window go in the order in which they came. The oldest of a ring is then its last,
  and to remove it the counter is enough: nothing has to be unlinked, since nobody follows the ring
  further than the counter. Mappings that go in any order are linked both ways.
- An entry does not hold the key but its hash. For a key of one column the hash is a bijection; for
  longer keys the start of the ring is compared.
- An entry takes two words, so that four of them lie in one line of the processor's cache: counter
  and start share a word. No buffer has more than 2**32 places.
- A mapping is told by its place in the table, and its pointer lies in its row: whoever follows a
  ring looks at the mappings too, and finds both with one access to memory. When the table moves,
  `attach` moves the rings.
- Entries with a counter of zero stay until the table is built anew (the paper's lazy deletion in
  batches), which happens only when the table is full.

All of it works on addresses, so that one compiled function serves joins of any number of buffers.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import (
    Ints,
    address,
    combine,
    ints,
    load,
    mix,
    power_of_two,
    prefetch,
    random_seed,
    store,
)

# An entry: the key's hash (0 if the entry was never used), then the start of its ring and, in the
# lower half, its counter.
HASH: Final = 0
RING_OF: Final = 1
ENTRY: Final = 2
HALF: Final = 32
LOWER: Final = 2**32 - 1

# What describes an index.
ENTRIES: Final = 0  # address of the entries
MASK: Final = 1  # number of entries less one
USED: Final = 2  # entries that were ever used since the last rebuild
RING: Final = 3  # column: the mapping before
BACK: Final = 4  # column: the mapping after; 0 if mappings go in the order they came
CELLS: Final = 5  # address of the mappings
WIDTH: Final = 6
COLUMNS: Final = 7  # address: the key's columns
KEY_WIDTH: Final = 8
VARIABLES: Final = 9  # address: which of a join's variables the key's columns are
SEED: Final = 10  # what hashes depend on besides the key
DESCRIPTION: Final = 11


# How many mappings ahead entries are asked for where many are inserted.
_AHEAD: Final = 12
_WAITING: Final = 15  # one less than a power of two that is greater

Moved: TypeAlias = tuple[Ints, Ints]
"""Where mappings lay, and where they lie now."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def hash_key(key: int, width: int, seed: int) -> int:
    """Hash the key at an address; a key of one column is told by its hash alone. Never 0."""
    if width == 1:
        return mix(load(key, 0) ^ seed)
    hashed = seed
    for place in range(width):
        hashed = combine(hashed, load(key, place))
    return hashed


@njit(cache=True)  # type: ignore[untyped-decorator]
def _has_key(index: int, entry: int, key: int) -> bool:
    """Tell whether the ring of an entry is that of a key."""
    packed = load(load(index, ENTRIES), entry * ENTRY + RING_OF)
    if packed & LOWER == 0:
        return False
    cells = load(index, CELLS)
    base = (packed >> HALF & LOWER) * load(index, WIDTH)
    columns = load(index, COLUMNS)
    for i in range(load(index, KEY_WIDTH)):
        if load(cells, base + load(columns, i)) != load(key, i):
            return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def find(index: int, key: int, hashed: int) -> int:
    """Find the entry of a key; -1 if there is none. Algorithm 2, line 1."""
    entries, mask, width = load(index, ENTRIES), load(index, MASK), load(index, KEY_WIDTH)
    entry = hashed & mask
    while True:
        stored = load(entries, entry * ENTRY + HASH)
        if stored == hashed:
            if width <= 1 or _has_key(index, entry, key):
                return entry
        elif stored == 0:
            return -1
        entry = (entry + 1) & mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def key_of(index: int, place: int, key: int) -> int:
    """Read a mapping's key and hash it."""
    cells, columns, width = load(index, CELLS), load(index, COLUMNS), load(index, KEY_WIDTH)
    base = place * load(index, WIDTH)
    for i in range(width):
        store(key, i, load(cells, base + load(columns, i)))
    return hash_key(key, width, load(index, SEED))


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert(index: int, place: int, key: int) -> None:
    """Put a mapping at the start of its key's ring. Algorithm 1."""
    insert_hashed(index, place, key, key_of(index, place, key))


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert_hashed(index: int, place: int, key: int, hashed: int) -> None:
    """Insert a mapping whose hash is known; a key of several columns is at `key`."""
    entries, mask, width = load(index, ENTRIES), load(index, MASK), load(index, KEY_WIDTH)
    entry = hashed & mask
    vacant = -1
    while True:
        stored = load(entries, entry * ENTRY + HASH)
        if stored == hashed:
            if width <= 1 or _has_key(index, entry, key):
                break
            if vacant < 0 and load(entries, entry * ENTRY + RING_OF) & LOWER == 0:
                vacant = entry
        elif stored == 0:
            if vacant >= 0:
                entry = vacant
            else:
                store(index, USED, load(index, USED) + 1)
                store(entries, entry * ENTRY + HASH, hashed)
            break
        entry = (entry + 1) & mask
    packed = load(entries, entry * ENTRY + RING_OF)
    count = packed & LOWER
    before = packed >> HALF & LOWER if count > 0 else -1
    cells, wide = load(index, CELLS), load(index, WIDTH)
    store(cells, place * wide + load(index, RING), before)
    back = load(index, BACK)
    if back != 0:
        store(cells, place * wide + back, -1)
        if before >= 0:
            store(cells, before * wide + back, place)
    store(entries, entry * ENTRY + RING_OF, place << HALF | count + 1)


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove(index: int, place: int, key: int) -> None:
    """Take a mapping out; without links back it must be the oldest of its ring."""
    hashed = key_of(index, place, key)
    entry = find(index, key, hashed)
    entries = load(index, ENTRIES)
    packed = load(entries, entry * ENTRY + RING_OF) - 1
    back = load(index, BACK)
    if back != 0:
        cells, wide, ring = load(index, CELLS), load(index, WIDTH), load(index, RING)
        before, after = load(cells, place * wide + ring), load(cells, place * wide + back)
        if after >= 0:
            store(cells, after * wide + ring, before)
        else:
            packed = (before & LOWER) << HALF | packed & LOWER
        if before >= 0:
            store(cells, before * wide + back, after)
    store(entries, entry * ENTRY + RING_OF, packed)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _rebuild(old: Ints, new: Ints, mask: int) -> int:
    """Copy the entries in use to a new table: the batch that makes lazy deletion good."""
    used = 0
    for entry in range(len(old) // ENTRY):
        if old[entry * ENTRY + RING_OF] & LOWER > 0:
            to = old[entry * ENTRY + HASH] & mask
            while new[to * ENTRY + HASH] != 0:
                to = (to + 1) & mask
            for i in range(ENTRY):
                new[to * ENTRY + i] = old[entry * ENTRY + i]
            used += 1
    return used


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert_all(index: int, rows: Ints, start: int, key: int, hashes: Ints) -> int:
    """Insert many mappings; gives how many, since a full table has to be built anew first.

    The hashes of mappings ahead wait in `hashes`.
    """
    entries, mask, width = load(index, ENTRIES), load(index, MASK), load(index, KEY_WIDTH)
    for i in range(start, min(start + _AHEAD, len(rows))):
        hashes[i & _WAITING] = key_of(index, rows[i], key)
    for i in range(start, len(rows)):
        if load(index, USED) * 4 > mask * 3:
            return i
        if i + _AHEAD < len(rows):
            hashed = key_of(index, rows[i + _AHEAD], key)
            hashes[i + _AHEAD & _WAITING] = hashed
            prefetch(entries, (hashed & mask) * ENTRY)
        if width > 1:
            key_of(index, rows[i], key)
        insert_hashed(index, rows[i], key, hashes[i & _WAITING])
    return len(rows)


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove_all(index: int, rows: Ints, key: int) -> None:
    """Take many mappings out."""
    for i in range(len(rows)):
        remove(index, rows[i], key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def probe_all(index: int, keys: Ints, most: int) -> int:
    """Follow the rings of many keys, and add up the places found; for measurements.

    Up to `most` mappings of each ring are looked at.
    """
    width, seed = load(index, KEY_WIDTH), load(index, SEED)
    entries, cells = load(index, ENTRIES), load(index, CELLS)
    wide, ring = load(index, WIDTH), load(index, RING)
    total = 0
    for i in range(len(keys) // width):
        key = keys.ctypes.data + i * width * 8
        entry = find(index, key, hash_key(key, width, seed))
        if entry >= 0:
            packed = load(entries, entry * ENTRY + RING_OF)
            place = packed >> HALF & LOWER
            for _ in range(min(packed & LOWER, most)):
                total += place
                place = load(cells, place * wide + ring)
    return total


@final
class RingIndex:
    """A ring index over the rows of a table, by some of its columns.

    `ring` is the column that its pointers take, and the next one too if `linked`.

    Linear: yes, what comes and goes can be added up.
    State: an entry for each key, a pointer (or two) for each mapping.
    Forgets: a mapping when it is removed; a key when the table is next built anew.

    `description` is where the index is described to compiled code, if not in an array of its own.

    >>> cells = np.array([[7, -1], [8, -1], [7, -1]], dtype=np.int64)
    >>> index = RingIndex((0,), ring=1, linked=False)
    >>> index.attach(cells)
    >>> index.insert(np.arange(3))
    >>> index.probe(7), index.probe(9)
    ([2, 0], [])
    """

    def __init__(
        self, columns: tuple[int, ...], *, ring: int, linked: bool, description: Ints | None = None
    ) -> None:
        self.columns = np.array(columns or (0,), dtype=np.int64)
        self.ring = ring
        self.pointers = range(ring, ring + 1 + linked)
        self.description = ints(DESCRIPTION) if description is None else description
        self.entries = ints(0)
        self.cells: Ints = np.zeros((0, ring + 1 + linked), dtype=np.int64)
        self._key = ints(max(1, len(columns)))
        self._hashes = ints(_WAITING + 1)
        self._set_entries(ints(16 * ENTRY), 0)
        self.description[COLUMNS] = address(self.columns)
        self.description[KEY_WIDTH] = len(columns)
        self.description[RING] = ring
        self.description[BACK] = ring + 1 if linked else 0
        self.description[SEED] = random_seed()

    def _set_entries(self, entries: Ints, used: int) -> None:
        self.entries = entries
        self.description[ENTRIES] = address(entries)
        self.description[MASK] = len(entries) // ENTRY - 1
        self.description[USED] = used

    def attach(self, cells: np.ndarray, moved: Moved | None = None) -> None:
        """Go with a table that has moved; `moved` says from where to where its mappings went.

        Without it no mapping is in the index yet.
        """
        self.description[CELLS] = address(cells)
        self.description[WIDTH] = cells.shape[1]
        if moved is None:
            self.cells = cells
            return
        old, new = moved
        to = np.full(len(self.cells) + 1, -1, dtype=np.int64)  # the last for no mapping, -1
        to[old] = new
        for column in self.pointers:
            cells[new, column] = to[self.cells[old, column]]
        self.cells = cells
        packed = self.entries[RING_OF::ENTRY]
        used = packed & LOWER > 0
        packed[used] = to[packed[used] >> HALF & LOWER] << HALF | packed[used] & LOWER

    def take(self, entries: Ints, cells: Ints, seed: int, used: int = 0) -> None:
        """Take the entries of an index over equal rows, whose pointers are in these, with its seed.

        How many are `used` matters only where mappings are still to be inserted.
        """
        self.attach(cells)
        self.description[SEED] = seed
        self._set_entries(entries, used)

    @property
    def seed(self) -> int:
        """What the hashes of its keys depend on."""
        return int(self.description[SEED])

    @property
    def used(self) -> int:
        """How many entries have a key, or had one since they were last built anew."""
        return int(self.description[USED])

    def grow(self) -> None:
        """Build the entries anew: without those of no use, and with room for more."""
        size = power_of_two(max(16, self.keys * 2 + 2))
        fresh = ints(size * ENTRY)
        self._set_entries(fresh, _rebuild(self.entries, fresh, size - 1))

    def clear(self) -> None:
        """Take all mappings out."""
        self._set_entries(ints(16 * ENTRY), 0)

    def insert(self, places: Ints) -> None:
        """Insert the mappings at these places, the oldest first."""
        index, key = address(self.description), address(self._key)
        done = insert_all(index, places, 0, key, self._hashes)
        while done < len(places):
            self.grow()
            done = insert_all(index, places, done, key, self._hashes)

    def remove(self, places: Ints) -> None:
        """Take mappings out; without links back, the oldest first."""
        remove_all(address(self.description), places, address(self._key))

    def probe(self, *key: int) -> list[int]:
        """List the places of the mappings that have a key, newest first."""
        values = np.array(key or (0,), dtype=np.int64)
        hashed = hash_key(address(values), len(key), self.seed)
        entry = find(address(self.description), address(values), hashed)
        if entry < 0:
            return []
        packed = int(self.entries[entry * ENTRY + RING_OF])
        found, place = [], packed >> HALF & LOWER
        for _ in range(packed & LOWER):
            found.append(place)
            place = int(self.cells[place, self.ring])
        return found

    @property
    def keys(self) -> int:
        """How many keys have a mapping."""
        return int(np.count_nonzero(self.entries[RING_OF::ENTRY] & LOWER))

    @property
    def nbytes(self) -> int:
        """The bytes of the entries; the pointers are in the rows of the table."""
        return self.entries.nbytes
