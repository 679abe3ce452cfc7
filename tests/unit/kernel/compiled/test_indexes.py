"""Compiled tables and indexes against dictionaries and lists."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from compiled_twins import WORD, compares, integers, ints, signed, word
from quadweir.kernel import oneway, ringentries
from quadweir.kernel.memory import address, words
from quadweir.kernel.ringentries import ENTRY, INDEX
from quadweir.kernel.tables import read_rows


def mixed(value: int) -> int:
    x = value % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def hash_of(key: tuple[int, ...], seed: int) -> int:
    found = seed
    for value in key:
        found = mixed(found * 0x9E3779B97F4A7C15 ^ mixed(value)) or 1
    return signed(found)


@compares("tables.read_rows")
@given(st.integers(1, 20), st.integers(0, 50), st.data())
def test_rows_of_a_circular_table(capacity: int, head: int, data: st.DataObject) -> None:
    cells = np.arange(capacity * 3).reshape(capacity, 3)
    rows = data.draw(st.lists(st.integers(head, head + capacity - 1)))
    found = ints([0] * len(rows))
    read_rows(cells, ints(rows), head - head % capacity, 1, found)
    assert found.tolist() == [3 * (row % capacity) + 1 for row in rows]


# --- the one-way index ------------------------------------------------------------------------------


@compares("oneway.hash_keys")
@given(st.lists(st.tuples(integers(), integers()), max_size=10), integers())
def test_hashes_of_rows(keys: list[tuple[int, int]], seed: int) -> None:
    hashes = ints([0] * len(keys))
    oneway.hash_keys(ints(keys).reshape(-1, 2), word(seed), hashes)
    assert hashes.tolist() == [hash_of(key, seed) for key in keys]


# Few values, so that keys come again; hashes that collide, so that searches are long.
small_keys = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=40)


def index_of(capacity: int = 64, extra: int = 1) -> oneway.Entries:
    return oneway.Entries(
        ints([0] * (2 * capacity)),
        np.zeros((capacity, 4 + extra), dtype=np.int64),
        np.arange(capacity - 1, -1, -1),
        ints([capacity, 0]),
    )


def keys_of(keys: list[tuple[int, int]], hashes: int) -> oneway.Keys:
    """Keys whose hashes are few and not 0."""
    values = ints(keys).reshape(-1, 2)
    return oneway.Keys(values, (values[:, 0] * 3 + values[:, 1]) % hashes + 1)


@compares("oneway.add_entry", "oneway.find_place", "oneway.find_entries", "oneway.look_ahead")
@given(small_keys, small_keys, st.integers(1, 40))
def test_keys_have_one_entry_each(
    added: list[tuple[int, int]], asked: list[tuple[int, int]], hashes: int
) -> None:
    index, keys = index_of(), keys_of(added, hashes)
    model: dict[tuple[int, int], int] = {}
    for at, key in enumerate(added):
        # Entries are taken from the end of the free ones, here in order from 0.
        expected = model.setdefault(key, len(model))
        oneway.look_ahead(index, keys.hashes, at)  # changes nothing
        assert oneway.add_entry(index, keys, at) == expected
        assert index.table[oneway.find_place(index, keys, at)] == expected + 1
    for key, entry in model.items():
        assert index.cells[entry].tolist()[2:4] == list(key)
    assert index.used[0] == 64 - len(model)
    wanted, found = keys_of(asked, hashes), ints([0] * len(asked))
    oneway.find_entries(index, wanted, found)
    assert found.tolist() == [model.get(key, -1) for key in asked]
    for at, key in enumerate(asked):
        if key not in model:
            assert index.table[oneway.find_place(index, wanted, at)] == 0


@compares("oneway.count_entries", "oneway.place_entries")
@given(small_keys, st.data())
def test_keys_are_counted(keys: list[tuple[int, int]], data: st.DataObject) -> None:
    index = index_of()
    change = data.draw(st.lists(st.integers(-2, 2), min_size=len(keys), max_size=len(keys)))
    became, found = ints(change), ints([0] * len(keys))
    oneway.count_entries(index, keys_of(keys, 9), became, found)
    counts: dict[tuple[int, int], int] = defaultdict(int)
    entries: dict[tuple[int, int], int] = {}
    for at, key in enumerate(keys):
        before = counts[key]
        counts[key] += change[at]
        assert found[at] == entries.setdefault(key, len(entries))
        assert became[at] == (counts[key] > 0) - (before > 0)
    for key, entry in entries.items():
        assert index.cells[entry, oneway.COUNT] == counts[key]
    # In a new table are the keys that count; the others are free.
    index = index._replace(table=ints([0] * 128))
    oneway.place_entries(index)
    live = {entry for key, entry in entries.items() if counts[key] != 0}
    assert {int(each) - 1 for each in index.table if each} == live
    assert set(index.free[: index.used[0]].tolist()) == set(range(64)) - live
    asked = list(entries)
    found = ints([0] * len(asked))
    oneway.find_entries(index, keys_of(asked, 9), found)
    assert found.tolist() == [entries[key] if entries[key] in live else -1 for key in asked]


# --- the ring index ---------------------------------------------------------------------------------

# What takes records and pointers is called through functions that take arrays.


@njit
def call_hash_key(key: Any, seed: Any) -> Any:
    return ringentries.hash_key(words(key), len(key), seed)


@njit
def call_key_of(one: Any, place: Any, key: Any) -> Any:
    return ringentries.key_of(one[0], place, words(key))


@njit
def call_find(one: Any, key: Any, hashed: Any) -> Any:
    return ringentries.find(one[0], words(key), hashed)


@njit
def call_has_key(one: Any, entry: Any, key: Any) -> Any:
    return ringentries._has_key(one[0], entry, words(key))


@njit
def call_insert(one: Any, place: Any, key: Any) -> None:
    ringentries.insert(one[0], place, words(key))


@njit
def call_insert_hashed(one: Any, place: Any, key: Any, hashed: Any) -> None:
    ringentries.insert_hashed(one[0], place, words(key), hashed)


@njit
def call_remove(one: Any, place: Any, key: Any) -> None:
    ringentries.remove(one[0], place, words(key))


@njit
def call_is_full(one: Any) -> Any:
    return ringentries.is_full(one[0])


class Ring:
    """The arrays of a ring index, and a list of places for each key, newest first."""

    def __init__(self, keys: list[tuple[int, ...]], *, linked: bool, size: int = 64) -> None:
        self.keys = keys
        width = len(keys[0]) if keys else 1
        self.cells = np.full((len(keys) + 1, 3 + width), -9, dtype=np.int64)
        self.cells[: len(keys), 1 : 1 + width] = ints(keys).reshape(-1, width)
        self.columns = ints(range(1, 1 + width))
        self.entries = np.zeros(size, ENTRY)
        self.one = np.zeros(1, INDEX)
        self.seed = -5
        self.room, self.hashes = ints([0] * width), ints([0] * ringentries.HASHES_AHEAD)
        for name, value in {
            "entries": address(self.entries), "mask": size - 1, "ring": 1 + width,
            "back": 2 + width if linked else 0, "cells": address(self.cells), "width": 3 + width,
            "columns": address(self.columns), "key_width": width, "seed": self.seed,
        }.items():  # fmt: skip
            self.one[name] = value
        self.model: dict[tuple[int, ...], list[int]] = {}

    def hashed(self, key: tuple[int, ...]) -> int:
        return signed(mixed(key[0] ^ self.seed)) if len(key) == 1 else hash_of(key, self.seed)

    def check(self) -> None:
        """Compare entries and rings with the model; keys without mappings keep their entries."""
        used = self.entries[self.entries["hash"] != 0]
        assert int(self.one["used"][0]) == len(used)
        assert sorted(used["hash"].tolist()) == sorted(map(self.hashed, self.model))
        ring, back = int(self.one["ring"][0]), int(self.one["back"][0])
        for key, places in self.model.items():
            (entry,) = used[used["hash"] == self.hashed(key)]
            assert entry["count"] == len(places)
            place = int(entry["start"])
            for number, expected in enumerate(places):
                assert place == expected
                if back:
                    after = places[number - 1] if number else -1
                    assert self.cells[place, back] == after
                place = int(self.cells[place, ring])


ring_keys = st.integers(1, 2).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(1, 4)] * width), min_size=1, max_size=30)
)


@compares("ringentries.hash_key", "ringentries.key_of")
@given(ring_keys, integers())
def test_keys_of_mappings(keys: list[tuple[int, ...]], seed: int) -> None:
    ring = Ring(keys, linked=False)
    for place, key in enumerate(keys):
        assert call_key_of(ring.one, place, ring.room) == ring.hashed(key)
        assert tuple(ring.room.tolist()) == key
        one_column = signed(mixed(key[0] ^ seed))
        expected = one_column if len(key) == 1 else hash_of(key, seed)
        assert call_hash_key(ints(key), word(seed)) == expected


@compares(
    "ringentries.insert", "ringentries.insert_hashed", "ringentries.remove", "ringentries.find",
    "ringentries._has_key", "ringentries.find_one",
)  # fmt: skip
@given(ring_keys, st.booleans(), st.lists(st.integers(0, 29), max_size=30), st.booleans())
def test_rings_follow_their_mappings(
    keys: list[tuple[int, ...]], linked: bool, gone: list[int], hashed: bool
) -> None:
    ring = Ring(keys, linked=linked)
    for place, key in enumerate(keys):
        if hashed:
            call_insert_hashed(ring.one, place, ints(key), ring.hashed(key))
        else:
            call_insert(ring.one, place, ring.room)
        ring.model.setdefault(key, []).insert(0, place)
        ring.check()
    for place in gone:
        key = keys[place % len(keys)]
        if ring.model[key]:
            # Without links back only the oldest can go.
            leaving = place % len(keys) if linked else ring.model[key][-1]
            if leaving in ring.model[key]:
                call_remove(ring.one, leaving, ring.room)
                ring.model[key].remove(leaving)
                ring.check()
    for key in {*keys, (9,) * len(keys[0])}:
        entry = call_find(ring.one, ints(key), ring.hashed(key))
        assert ringentries.find_one(ring.one, ints(key)) == entry
        if len(key) > 1 and not ring.model.get(key):
            assert entry == -1  # its ring is empty, so there is nothing to compare the key with
        else:
            assert (entry >= 0) == (key in ring.model)
        for number in range(len(ring.entries)):
            places = ring.model.get(key, [])
            is_here = bool(places) and ring.entries[number]["hash"] == ring.hashed(key)
            assert call_has_key(ring.one, number, ints(key)) == is_here


@compares("ringentries.insert_all", "ringentries.remove_all", "ringentries.is_full")
@given(ring_keys, st.integers(0, 10), st.booleans())
def test_many_are_inserted_until_entries_are_full(
    keys: list[tuple[int, ...]], start: int, linked: bool
) -> None:
    ring = Ring(keys, linked=linked, size=16)
    rows, start = ints(range(len(keys))), min(start, len(keys))
    done = ringentries.insert_all(ring.one, rows, start, ring.room, ring.hashes)
    expected = start
    while expected < len(keys) and not len(ring.model) * 4 > 15 * 3:
        ring.model.setdefault(keys[expected], []).insert(0, expected)
        expected += 1
    assert done == expected
    ring.check()
    assert call_is_full(ring.one) == (len(ring.model) * 4 > 15 * 3)
    ringentries.remove_all(ring.one, ints(range(start, done)), ring.room)
    ring.model = {key: [] for key in ring.model}
    ring.check()


@compares("ringentries.rebuild")
@given(ring_keys, st.sets(st.integers(0, 29)))
def test_entries_in_use_are_copied(keys: list[tuple[int, ...]], gone: set[int]) -> None:
    ring = Ring(keys, linked=True)
    ringentries.insert_all(ring.one, ints(range(len(keys))), 0, ring.room, ring.hashes)
    for place in gone:
        if place < len(keys):
            call_remove(ring.one, place, ring.room)
    fresh = np.zeros(128, ENTRY)
    count = ringentries.rebuild(ring.entries, fresh)
    live = ring.entries[ring.entries["count"] > 0]
    assert count == len(live)
    copied = {tuple(each) for each in fresh[fresh["hash"] != 0].tolist()}
    assert copied == {tuple(each) for each in live.tolist()}
    ring.one["entries"], ring.one["mask"] = address(fresh), 127
    for key in set(keys):
        left = any(keys[place] == key and place not in gone for place in range(len(keys)))
        assert (ringentries.find_one(ring.one, ints(key)) >= 0) == left


@compares("ringentries.probe_all")
@given(ring_keys, st.integers(1, 5))
def test_probes_add_up_places(keys: list[tuple[int, ...]], most: int) -> None:
    ring = Ring(keys, linked=False)
    ringentries.insert_all(ring.one, ints(range(len(keys))), 0, ring.room, ring.hashes)
    expected = 0
    for key in keys:
        places = [place for place in reversed(range(len(keys))) if keys[place] == key]
        expected += sum(places[:most])
    assert ringentries.probe_all(ring.one, ints(keys).ravel(), most) == expected
