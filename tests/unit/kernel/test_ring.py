"""The ring index against a dictionary of lists."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.kernel.arrays import Ints, mix
from quadweir.kernel.ring import RingIndex
from quadweir.kernel.ringentries import probe_all

Keys = list[tuple[int, ...]]


def table(rows: Keys, capacity: int, first: int = 0) -> Ints:
    """Cells in which row n lies at n modulo the capacity, behind two columns of other things.

    Behind the key there are two more, for pointers.
    """
    cells = np.full((capacity, 4 + len(rows[0])), 99, dtype=np.int64)
    for number, key in enumerate(rows, first):
        cells[number & (capacity - 1), 2:-2] = key
    return cells


def ring_index(width: int, *, linked: bool) -> RingIndex:
    """An index by a key that lies as in `table`."""
    return RingIndex(tuple(range(2, 2 + width)), ring=2 + width, linked=linked)


class Model:
    """What the index is to hold: for each key its rows, the newest first."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, ...], list[int]] = defaultdict(list)

    def insert(self, key: tuple[int, ...], row: int) -> None:
        self.rows[key].insert(0, row)

    def remove(self, key: tuple[int, ...], row: int) -> None:
        self.rows[key].remove(row)

    def check(self, index: RingIndex, keys: Keys) -> None:
        for key in {*keys, (77,) * len(keys[0])}:
            assert index.probe(*key) == self.rows[key], key
        assert index.keys == sum(bool(rows) for rows in self.rows.values())


@st.composite
def mappings(draw: st.DrawFn) -> Keys:
    width = draw(st.integers(1, 3))
    key = st.tuples(*[st.integers(1, 4)] * width)
    return draw(st.lists(key, min_size=1, max_size=60))


@given(keys=mappings(), held=st.integers(1, 20), first=st.integers(0, 40))
def test_mappings_that_go_in_order(keys: Keys, held: int, first: int) -> None:
    """A window: the oldest goes, row numbers grow, and places are used again."""
    capacity = 23
    cells = np.full((capacity, 4 + len(keys[0])), 99, dtype=np.int64)
    index = ring_index(len(keys[0]), linked=False)
    index.attach(cells)
    model = Model()
    for number, key in enumerate(keys, first):
        if number - first >= held:
            oldest = (number - held) % capacity
            index.remove(np.array([oldest]))
            model.remove(keys[number - held - first], oldest)
        place = number % capacity
        cells[place, 2:-2] = key
        index.insert(np.array([place]))
        model.insert(key, place)
    model.check(index, keys)


@given(keys=mappings(), gone=st.lists(st.integers(0, 59), max_size=60, unique=True))
def test_mappings_that_go_in_any_order(keys: Keys, gone: list[int]) -> None:
    cells = table(keys, 64)
    index = ring_index(len(keys[0]), linked=True)
    index.attach(cells)
    model = Model()
    index.insert(np.arange(len(keys)))
    for row, key in enumerate(keys):
        model.insert(key, row)
    for row in gone:
        if row < len(keys):
            index.remove(np.array([row]))
            model.remove(keys[row], row)
            model.check(index, keys)
    # What went can come back.
    for row in gone:
        if row < len(keys):
            index.insert(np.array([row]))
            model.insert(keys[row], row)
    model.check(index, keys)


@pytest.mark.parametrize("linked", [False, True])
def test_a_table_that_grows_takes_its_rings_along(linked: bool) -> None:
    rows = [(1 + n % 3,) for n in range(20)]
    # The first rows are gone, so that places and numbers differ.
    index = ring_index(1, linked=linked)
    index.attach(table(rows[4:], 16, first=4))
    kept = np.arange(4, 20)
    index.insert(kept % 16)
    index.attach(table(rows[4:], 64, first=4), (kept % 16, kept))
    assert index.probe(1) == [18, 15, 12, 9, 6]
    index.remove(np.array([4, 5, 6]))
    assert index.probe(1) == [18, 15, 12, 9]


def test_entries_without_mappings_make_room() -> None:
    """Lazy deletion: ever new keys, few of them at a time, take no more room."""
    cells = np.zeros((16, 5), dtype=np.int64)
    index = ring_index(1, linked=False)
    index.attach(cells)
    for number in range(1_000):
        cells[number % 16, 2] = number + 1
        index.insert(np.array([number % 16]))
        if number >= 8:
            index.remove(np.array([(number - 8) % 16]))
    assert index.keys == 8
    assert index.entries.nbytes <= 64 * 16
    assert index.probe(1_000) == [999 % 16]


def test_keys_of_equal_hash_are_distinguished() -> None:
    """Two keys of two columns are given one hash by hand; a dead entry stands before a live one."""
    cells = table([(1, 2), (3, 4), (3, 4)], 4)
    index = ring_index(2, linked=True)
    index.attach(cells)
    index.insert(np.array([0, 1]))
    entries = index.entries
    used = entries[np.flatnonzero(entries["hash"])]
    one, other = used[np.argsort(used["start"])]
    # Row 0 now stands where row 1 is looked for, under the hash of row 1.
    entries[:] = 0
    home = int(other["hash"]) & (len(entries) - 1)
    entries[home] = other["hash"], one["count"], one["start"]
    entries[(home + 1) & (len(entries) - 1)] = other
    assert index.probe(3, 4) == [1]
    entries["count"][home] -= 1  # row 0 is gone
    assert index.probe(3, 4) == [1]
    index.insert(np.array([2]))
    assert index.probe(3, 4) == [2, 1]
    index.remove(np.array([1]))
    assert index.probe(3, 4) == [2]


def test_probing_many_keys_adds_up_what_it_finds() -> None:
    cells = table([(1,), (2,), (1,)], 4)
    index = ring_index(1, linked=False)
    index.attach(cells)
    index.insert(np.arange(3))
    assert probe_all(index.description, np.array([1, 9, 2]), 10) == 2 + 0 + 1
    assert probe_all(index.description, np.array([1]), 1) == 2


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_mixing_is_a_bijection(one: int, other: int) -> None:
    def mixed(value: int) -> int:
        mask = 2**64 - 1
        x = value & mask
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
        return x - 2**64 if x >= 2**63 else x

    assert mix(np.int64(one)) == mixed(one)
    assert (mix(np.int64(one)) == mix(np.int64(other))) == (one == other)
    assert mix(np.int64(0)) == 0
