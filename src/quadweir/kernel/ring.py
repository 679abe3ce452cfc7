"""The ring index: from a key to the mappings that have it, newest first (paper 001, section 3).

Every key has an entry with a counter and the start of its ring; each mapping points to the one
before it with the same key. Algorithm 1 is `insert`, Algorithm 2 `find` and then following the
ring for as many mappings as the counter says. What differs from the paper:

- Mappings of a window go in the order in which they came. The oldest of a ring is then its last,
  and to remove it the counter is enough: nothing has to be unlinked, since no search follows the
  ring further than the counter. Mappings that go in any order are linked both ways.
- An entry does not hold the key but its hash. For a key of one column the hash is a bijection; for
  longer keys the start of the ring is compared.
- An entry takes 16 bytes, so that four of them lie in one line of the processor's cache: counter
  and start are numbers of 32 bits. No buffer has more than 2**32 places.
- A mapping is identified by its place in the table, and its pointer lies in its row: code that
  follows a ring reads the mappings too, and finds both with one access to memory. When the table
  moves, `attach` moves the rings.
- Entries with a counter of zero stay until the entries are rebuilt (the paper's lazy deletion in
  batches), which happens only when they are full.

An index is described to compiled code by a record of type `INDEX`; the entries are records of type
`ENTRY`. One compiled function so serves joins of any number of buffers.
"""

from __future__ import annotations

from typing import Final, TypeAlias, final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, combine, ints, mix, power_of_two, random_seed
from quadweir.kernel.memory import (
    NUMBER,
    PLACE,
    Record,
    Words,
    address,
    prefetch_record,
    records,
    words,
    words_from,
)

ENTRY: Final = np.dtype(
    [
        ("hash", NUMBER),  # of the key; 0 if the entry was never used
        ("count", "u4"),  # how many mappings have the key
        ("start", "u4"),  # the place of the newest of them
    ],
    align=True,
)
"""What an index knows of one key."""

INDEX: Final = np.dtype(
    [
        ("entries", PLACE),
        ("mask", NUMBER),  # number of entries less one
        ("used", NUMBER),  # entries that were ever used since the last rebuild
        ("ring", NUMBER),  # column: the mapping before
        ("back", NUMBER),  # column: the mapping after; 0 if mappings go in the order they came
        ("cells", PLACE),  # of the mappings
        ("width", NUMBER),  # words of a mapping
        ("columns", PLACE),  # of the key
        ("key_width", NUMBER),
        ("variables", PLACE),  # which of a join's variables the key's columns are
        ("seed", NUMBER),  # hashes depend on it and on the key
    ],
    align=True,
)
"""Where the parts of an index lie."""

Entries: TypeAlias = NDArray[np.void]
"""An array of type `ENTRY`."""
Index: TypeAlias = NDArray[np.void]
"""An array of type `INDEX` and of length 1."""

entry_at = records(ENTRY)
index_at = records(INDEX)

# How many mappings ahead entries are requested where many are inserted.
_AHEAD: Final = 12
_WAITING: Final = 15  # one less than a power of two that is greater

Moved: TypeAlias = tuple[Ints, Ints]
"""Where mappings lay, and where they lie now."""


@njit(cache=True)  # type: ignore[untyped-decorator]
def hash_key(key: Words, width: int, seed: int) -> int:
    """Hash a key, never to 0; different keys of one column have different hashes."""
    if width == 1:
        return mix(key[0] ^ seed)
    hashed = seed
    for place in range(width):
        hashed = combine(hashed, key[place])
    return hashed


@njit(cache=True)  # type: ignore[untyped-decorator]
def _has_key(index: Record, entry: int, key: Words) -> bool:
    """Return whether the ring of an entry is that of a key."""
    ring = entry_at(index.entries, entry)
    if ring.count == 0:
        return False
    row = words_from(words(index.cells), ring.start * index.width)
    columns = words(index.columns)
    for i in range(index.key_width):
        if row[columns[i]] != key[i]:
            return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def find(index: Record, key: Words, hashed: int) -> int:
    """Return the number of a key's entry; -1 if there is none. Algorithm 2, line 1."""
    mask = index.mask
    entry = hashed & mask
    while True:
        stored = entry_at(index.entries, entry).hash
        if stored == hashed:
            if index.key_width <= 1 or _has_key(index, entry, key):
                return entry
        elif stored == 0:
            return -1
        entry = (entry + 1) & mask


@njit(cache=True)  # type: ignore[untyped-decorator]
def key_of(index: Record, place: int, key: Words) -> int:
    """Read a mapping's key into `key` and return its hash."""
    row = words_from(words(index.cells), place * index.width)
    columns, width = words(index.columns), index.key_width
    for i in range(width):
        key[i] = row[columns[i]]
    return hash_key(key, width, index.seed)


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert(index: Record, place: int, key: Words) -> None:
    """Put a mapping at the start of its key's ring. Algorithm 1."""
    insert_hashed(index, place, key, key_of(index, place, key))


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert_hashed(index: Record, place: int, key: Words, hashed: int) -> None:
    """Insert a mapping whose hash is known; a key of several columns is in `key`."""
    mask, width = index.mask, index.key_width
    entry = hashed & mask
    vacant = -1
    while True:
        ring = entry_at(index.entries, entry)
        if ring.hash == hashed:
            if width <= 1 or _has_key(index, entry, key):
                break
            if vacant < 0 and ring.count == 0:
                vacant = entry
        elif ring.hash == 0:
            if vacant >= 0:
                entry = vacant
            else:
                index.used += 1
                ring.hash = hashed
            break
        entry = (entry + 1) & mask
    ring = entry_at(index.entries, entry)
    count = ring.count
    # The start, or -1 if there is none: without a branch, which is predicted badly for rare keys.
    before = np.int64(ring.start) | -np.int64(count == 0)
    cells = words(index.cells)
    row = words_from(cells, place * index.width)
    row[index.ring] = before
    if index.back != 0:
        row[index.back] = -1
        if before >= 0:
            cells[before * index.width + index.back] = place
    ring.start = place
    ring.count = count + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove(index: Record, place: int, key: Words) -> None:
    """Take a mapping out; without links back it must be the oldest of its ring."""
    entry = find(index, key, key_of(index, place, key))
    ring = entry_at(index.entries, entry)
    if index.back != 0:
        cells, width = words(index.cells), index.width
        row = words_from(cells, place * width)
        before, after = row[index.ring], row[index.back]
        if after >= 0:
            cells[after * width + index.ring] = before
        else:
            ring.start = before
        if before >= 0:
            cells[before * width + index.back] = after
    ring.count -= 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _rebuild(old: Entries, new: Entries) -> int:
    """Copy the entries in use to empty ones and count them: the end of lazy deletion."""
    used = 0
    mask = len(new) - 1
    for entry in range(len(old)):
        if old[entry].count > 0:
            to = old[entry].hash & mask
            while new[to].hash != 0:
                to = (to + 1) & mask
            new[to].hash = old[entry].hash
            new[to].count = old[entry].count
            new[to].start = old[entry].start
            used += 1
    return used


@njit(cache=True)  # type: ignore[untyped-decorator]
def insert_all(one: Index, rows: Ints, start: int, room: Ints, hashes: Ints) -> int:
    """Insert many mappings; stop where the entries are full, and return how many are done.

    There is `room` for a key, and in `hashes` for those of the mappings ahead.
    """
    index, key = one[0], words(room)
    for i in range(start, min(start + _AHEAD, len(rows))):
        hashes[i & _WAITING] = key_of(index, rows[i], key)
    for i in range(start, len(rows)):
        if is_full(index):
            return i
        if i + _AHEAD < len(rows):
            hashed = key_of(index, rows[i + _AHEAD], key)
            hashes[i + _AHEAD & _WAITING] = hashed
            prefetch_record(entry_at(index.entries, hashed & index.mask))
        if index.key_width > 1:
            key_of(index, rows[i], key)
        insert_hashed(index, rows[i], key, hashes[i & _WAITING])
    return len(rows)


@njit(cache=True)  # type: ignore[untyped-decorator]
def is_full(index: Record) -> bool:
    """Return whether three quarters of the entries are used: searches get long from there."""
    return index.used * 4 > index.mask * 3  # type: ignore[no-any-return]


@njit(cache=True)  # type: ignore[untyped-decorator]
def remove_all(one: Index, rows: Ints, room: Ints) -> None:
    """Take many mappings out; there is `room` for a key."""
    key = words(room)
    for i in range(len(rows)):
        remove(one[0], rows[i], key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def find_one(one: Index, key: Ints) -> int:
    """Return the number of a key's entry; -1 if there is none."""
    index = one[0]
    return find(index, words(key), hash_key(words(key), index.key_width, index.seed))


@njit(cache=True)  # type: ignore[untyped-decorator]
def probe_all(one: Index, keys: Ints, most: int) -> int:
    """Follow the rings of many keys, and add up the places found; for measurements.

    Up to `most` mappings of each ring are read.
    """
    index = one[0]
    width, cells = index.key_width, words(index.cells)
    total = 0
    for i in range(len(keys) // width):
        key = words_from(words(keys), i * width)
        entry = find(index, key, hash_key(key, width, index.seed))
        if entry >= 0:
            ring = entry_at(index.entries, entry)
            place = np.int64(ring.start)
            for _ in range(min(np.int64(ring.count), most)):
                total += place
                place = cells[place * index.width + index.ring]
    return total


@final
class RingIndex:
    """A ring index over the rows of a table, by some of its columns.

    `ring` is the column that its pointers take, and the next one too if `linked`.

    Linear: yes, what comes and goes can be added up.
    State: an entry for each key, a pointer (or two) for each mapping.
    Forgets: a mapping when it is removed; a key when the entries are next rebuilt.

    `description` is where the index is described to compiled code, if not in an array of its own.

    >>> cells = np.array([[7, -1], [8, -1], [7, -1]], dtype=np.int64)
    >>> index = RingIndex((0,), ring=1, linked=False)
    >>> index.attach(cells)
    >>> index.insert(np.arange(3))
    >>> index.probe(7), index.probe(9)
    ([2, 0], [])
    """

    def __init__(
        self, columns: tuple[int, ...], *, ring: int, linked: bool, description: Index | None = None
    ) -> None:
        self.columns = np.array(columns or (0,), dtype=np.int64)
        self.ring = ring
        self.pointers = range(ring, ring + 1 + linked)
        self.description = np.zeros(1, INDEX) if description is None else description
        self.entries: Entries = np.zeros(0, ENTRY)
        self.cells: Ints = np.zeros((0, ring + 1 + linked), dtype=np.int64)
        self._key = ints(max(1, len(columns)))
        self._hashes = ints(_WAITING + 1)
        self._set_entries(np.zeros(16, ENTRY), 0)
        self.description["columns"] = address(self.columns)
        self.description["key_width"] = len(columns)
        self.description["ring"] = ring
        self.description["back"] = ring + 1 if linked else 0
        self.description["seed"] = random_seed()

    def _set_entries(self, entries: Entries, used: int) -> None:
        self.entries = entries
        self.description["entries"] = address(entries)
        self.description["mask"] = len(entries) - 1
        self.description["used"] = used

    def attach(self, cells: np.ndarray, moved: Moved | None = None) -> None:
        """Go with a table that has moved; `moved` says from where to where its mappings went.

        Without it no mapping is in the index yet.
        """
        self.description["cells"] = address(cells)
        self.description["width"] = cells.shape[1]
        if moved is None:
            self.cells = cells
            return
        old, new = moved
        to = np.full(len(self.cells) + 1, -1, dtype=np.int64)  # the last for no mapping, -1
        to[old] = new
        for column in self.pointers:
            cells[new, column] = to[self.cells[old, column]]
        self.cells = cells
        used = self.entries["count"] > 0
        self.entries["start"][used] = to[self.entries["start"][used]]

    def take(self, entries: Ints, cells: Ints, seed: int, used: int = 0) -> None:
        """Take the entries of an index over equal rows, whose pointers are in these, with its seed.

        How many are `used` matters only where mappings are still to be inserted.

        Args:
            entries: What `words` of that index returned.
        """
        self.attach(cells)
        self.description["seed"] = seed
        self._set_entries(entries.view(ENTRY), used)

    @property
    def seed(self) -> int:
        """What the hashes of its keys depend on."""
        return int(self.description["seed"][0])

    @property
    def used(self) -> int:
        """How many entries have a key, or had one since they were last rebuilt."""
        return int(self.description["used"][0])

    def grow(self) -> None:
        """Rebuild the entries: without those that have no mapping, and with room for more."""
        fresh: Entries = np.zeros(power_of_two(max(16, self.keys * 2 + 2)), ENTRY)
        self._set_entries(fresh, _rebuild(self.entries, fresh))

    def clear(self) -> None:
        """Take all mappings out."""
        self._set_entries(np.zeros(16, ENTRY), 0)

    def insert(self, places: Ints) -> None:
        """Insert the mappings at these places, the oldest first."""
        done = insert_all(self.description, places, 0, self._key, self._hashes)
        while done < len(places):
            self.grow()
            done = insert_all(self.description, places, done, self._key, self._hashes)

    def remove(self, places: Ints) -> None:
        """Take mappings out; without links back, the oldest first."""
        remove_all(self.description, places, self._key)

    def probe(self, *key: int) -> list[int]:
        """List the places of the mappings that have a key, newest first."""
        entry = find_one(self.description, np.array(key or (0,), dtype=np.int64))
        if entry < 0:
            return []
        found, place = [], int(self.entries[entry]["start"])
        for _ in range(int(self.entries[entry]["count"])):
            found.append(place)
            place = int(self.cells[place, self.ring])
        return found

    @property
    def words(self) -> Ints:
        """The entries as plain integers, for `take`."""
        return self.entries.view(np.int64)

    @property
    def keys(self) -> int:
        """How many keys have a mapping."""
        return int(np.count_nonzero(self.entries["count"]))

    @property
    def nbytes(self) -> int:
        """The bytes of the entries; the pointers are in the rows of the table."""
        return self.entries.nbytes
