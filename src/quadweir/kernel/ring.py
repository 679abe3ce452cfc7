"""The ring index: from a key to the mappings that have it, newest first (paper 001, section 3).

Every key has an entry with a counter and the start of its ring; each mapping points to the one
before it with the same key. Algorithm 1 is `ringentries.insert`, Algorithm 2 `find` and then following the
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

The compiled functions are in `ringentries.py`.
"""

from __future__ import annotations

from typing import TypeAlias, final

import numpy as np

from quadweir.kernel.arrays import Ints, ints, power_of_two, random_seed
from quadweir.kernel.memory import address
from quadweir.kernel.ringentries import (
    ENTRY,
    HASHES_AHEAD,
    INDEX,
    Index,
    RingEntries,
    find_one,
    insert_all,
    rebuild,
    remove_all,
)

Moved: TypeAlias = tuple[Ints, Ints]
"""Where mappings lay, and where they lie now."""


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
        self.entries: RingEntries = np.zeros(0, ENTRY)
        self.cells: Ints = np.zeros((0, ring + 1 + linked), dtype=np.int64)
        self._key = ints(max(1, len(columns)))
        self._hashes = ints(HASHES_AHEAD)
        self._set_entries(np.zeros(16, ENTRY), 0)
        self.description["columns"] = address(self.columns)
        self.description["key_width"] = len(columns)
        self.description["ring"] = ring
        self.description["back"] = ring + 1 if linked else 0
        self.description["seed"] = random_seed()

    def _set_entries(self, entries: RingEntries, used: int) -> None:
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
        fresh: RingEntries = np.zeros(power_of_two(max(16, self.keys * 2 + 2)), ENTRY)
        self._set_entries(fresh, rebuild(self.entries, fresh))

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
