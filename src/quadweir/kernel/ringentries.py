"""The compiled functions of a ring index, and the records that they work on.

`ring.py` explains the index. An index is described by a record of type `INDEX`, its entries are
records of type `ENTRY`; one compiled function so serves joins of any number of buffers.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, combine, mix
from quadweir.kernel.memory import (
    NUMBER,
    PLACE,
    Record,
    Words,
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

RingEntries: TypeAlias = NDArray[np.void]
"""An array of type `ENTRY`."""
Index: TypeAlias = NDArray[np.void]
"""An array of type `INDEX` and of length 1."""

entry_at = records(ENTRY)
index_at = records(INDEX)

# How many mappings ahead entries are requested where many are inserted.
_AHEAD: Final = 12
HASHES_AHEAD: Final = 16  # a power of two that is greater


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
    for i in range(index.key_width):  # noqa: SIM110 (compiled code has no generators)
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
def rebuild(old: RingEntries, new: RingEntries) -> int:
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
        hashes[i & (HASHES_AHEAD - 1)] = key_of(index, rows[i], key)
    for i in range(start, len(rows)):
        if is_full(index):
            return i
        if i + _AHEAD < len(rows):
            hashed = key_of(index, rows[i + _AHEAD], key)
            hashes[i + _AHEAD & (HASHES_AHEAD - 1)] = hashed
            prefetch_record(entry_at(index.entries, hashed & index.mask))
        if index.key_width > 1:
            key_of(index, rows[i], key)
        insert_hashed(index, rows[i], key, hashes[i & (HASHES_AHEAD - 1)])
    return len(rows)


@njit(cache=True)  # type: ignore[untyped-decorator]
def is_full(index: Record) -> bool:
    """Return whether three quarters of the entries are used: searches get long from there."""
    return index.used * 4 > index.mask * 3


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
            place: Any = np.int64(ring.start)
            count: Any = np.int64(ring.count)
            for _ in range(min(count, most)):
                total += place
                place = cells[place * index.width + index.ring]
    return total
