"""The one-way index against a dict, and the map of rows."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from quadweir.kernel.oneway import COUNT, FIRST_KEY, OneWay, part, prefixed

KEY = st.tuples(st.integers(-2, 2), st.sampled_from([0, 1, 2**62, -(2**62)]))
BATCHES = st.lists(st.lists(st.tuples(KEY, st.booleans()), max_size=12), max_size=12)


@given(batches=BATCHES, restart=st.booleans())
def test_counts_and_transitions_are_those_of_a_dict(
    batches: list[list[tuple[tuple[int, int], bool]]], restart: bool
) -> None:
    index = OneWay(2, extra=1, capacity=1)
    model: Counter[tuple[int, int]] = Counter()
    entry_of: dict[tuple[int, int], int] = {}
    for batch in batches:
        keys, signs, came = [], [], []
        for key, comes in batch:
            sign = 1 if comes or not model[key] else -1
            before = model[key]
            model[key] += sign
            keys.append(key)
            signs.append(sign)
            came.append((model[key] > 0) - (before > 0))
        array = np.array(keys, dtype=np.int64).reshape(-1, 2)
        entries, became = index.transitions(array, np.array(signs, dtype=np.int64))
        assert became.tolist() == came
        for key, entry in zip(keys, entries.tolist(), strict=True):
            assert index.cells[entry, FIRST_KEY : FIRST_KEY + 2].tolist() == list(key)
        if restart:
            stored = index.arrays()
            index = OneWay(2, extra=1)
            index.restore(stored)
        live = [key for key, count in model.items() if count]
        found = index.find(np.array(live, dtype=np.int64).reshape(-1, 2))
        assert index.cells[found, COUNT].tolist() == [model[key] for key in live]
        gone = [key for key, count in model.items() if not count]
        assert (index.find(np.array(gone, dtype=np.int64).reshape(-1, 2)) == -1).all()
        # An entry keeps its number for as long as its counter is not 0.
        numbers = dict(zip(live, found.tolist(), strict=True))
        stayed = {key: entry for key, entry in entry_of.items() if key in numbers}
        touched = set(keys)
        assert all(numbers[key] == entry for key, entry in stayed.items() if key not in touched)
        entry_of = numbers
        assert sorted(numbers.values()) == index.live().tolist()


def test_keys_that_went_make_room() -> None:
    index = OneWay(1)
    for start in range(0, 100_000, 100):
        keys = np.arange(start, start + 100).reshape(-1, 1)
        index.add(keys, np.ones(100, dtype=np.int64))
        index.add(keys, -np.ones(100, dtype=np.int64))
    assert index.capacity <= 1024


def test_a_key_of_no_columns_is_one_key() -> None:
    index = OneWay(0)
    assert index.add(np.zeros((3, 0)), np.array([1, 1, 1])).tolist() == [0, 0, 0]
    assert index.cells[0, COUNT] == 3


def test_arrays_of_parts_keep_apart() -> None:
    arrays = prefixed("a", {"x": np.zeros(1, dtype=np.int64)}) | prefixed("ab", {"x": np.ones(1)})
    assert part("a", arrays)["x"].tolist() == [0]
    assert list(part("ab", arrays)) == ["x"]
