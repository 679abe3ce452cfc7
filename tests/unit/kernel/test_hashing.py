"""Keys that would all fall on one place of an index cannot be chosen from outside."""

from __future__ import annotations

import numpy as np
import pytest

from quadweir.kernel.oneway import OneWay
from quadweir.kernel.ring import RingIndex

COUNT = 5_000
_WORD = 2**64
# Far more than a table of this size has by chance, far fewer than the keys.
LONG = 200


def unmixed(value: int) -> int:
    """Give the integer that `mix` makes this one of."""

    def unshifted(found: int, bits: int) -> int:
        last = found
        while (found := value_ ^ (last >> bits)) != last:
            last = found
        return last

    value_ = value
    value_ = unshifted(value_, 31) * pow(0x94D049BB133111EB, -1, _WORD) % _WORD
    value_ = unshifted(value_, 27) * pow(0xBF58476D1CE4E5B9, -1, _WORD) % _WORD
    return unshifted(value_, 30)


def chosen(count: int) -> np.ndarray:
    """Integers that terms can have as numbers, and whose unseeded hashes end in the same bits."""
    found: list[int] = []
    high = 0
    while len(found) < count:
        high += 1
        value = unmixed(high << 32)
        if 0 < value < 2**62:
            found.append(value)
    return np.array(found, dtype=np.int64)


def longest_run(used: np.ndarray) -> int:
    """How many places in a row are taken: no search goes further."""
    bounds = np.flatnonzero(np.diff(np.concatenate([[0], used.astype(np.int64), [0]])))
    return int((bounds[1::2] - bounds[::2]).max())


@pytest.mark.parametrize("width", [1, 2])
def test_keys_chosen_to_collide_are_scattered_in_a_ring_index(width: int) -> None:
    cells = np.zeros((COUNT, width + 1), dtype=np.int64)
    cells[:, 0] = chosen(COUNT)
    index = RingIndex(tuple(range(width)), ring=width, linked=False)
    index.attach(cells)
    index.insert(np.arange(COUNT))
    assert index.keys == COUNT
    assert longest_run(index.entries["hash"] != 0) < LONG


def test_every_index_has_a_seed_of_its_own() -> None:
    keys = np.arange(100).reshape(-1, 1)
    hashes = [OneWay(1).hashed(keys).hashes.tolist() for _ in range(2)]
    assert hashes[0] != hashes[1]
    assert RingIndex((0,), ring=1, linked=False).seed != RingIndex((0,), ring=1, linked=False).seed


def test_an_index_that_is_brought_back_finds_its_keys() -> None:
    keys = np.arange(1000).reshape(-1, 1)
    index, again = OneWay(1), OneWay(1)
    entries = index.add(keys, np.ones(1000, dtype=np.int64))
    again.restore(index.arrays())
    assert again.find(keys).tolist() == entries.tolist()
