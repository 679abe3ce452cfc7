"""Matches in few columns, and rows that count by their size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from quadweir import rows
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, MatchBits, shard_by
from quadweir.runtime.match.matched import MOMENT, MOST_BITS, widened
from quadweir.runtime.wire.pack import BLOB, FIRST_TIME, SHARD_KEY, UNIT_BITS, blob_rows
from runtime_tests import wanted

LAST = (1 << rows.TIME_BITS) - 1


def bits_of(tests: int, shards: int = 2) -> MatchBits:
    return MatchBits.of(wanted(tests), streams=3, shards=shards)


def handed(bits: MatchBits, times: list[int], words: list[int]) -> pa.RecordBatch:
    moment = np.array(times) << bits.used | np.array(words)
    position = pa.array(range(len(times)), pa.int64())
    return pa.RecordBatch.from_arrays([pa.array(moment), position], [MOMENT, rows.POSITION])


def test_times_and_bits_are_parted_again():
    bits = bits_of(4)
    assert bits.used <= MOST_BITS
    dice = np.random.default_rng(1)
    times = [0, -1, LAST - 1, 1 - LAST, *dice.integers(-LAST, LAST, 50)]
    _, shift, _ = bits.places[REPORTS_TIME]
    words = dice.integers(0, 1 << bits.used, len(times)) & ~(1 << shift)
    found = widened(handed(bits, times, list(words)), bits)
    assert found.column(rows.EVENT_TIME).to_pylist() == times
    assert found.column("passed0").to_pylist() == list(words)
    assert found.column(rows.POSITION).to_pylist() == list(range(len(times)))


def test_what_is_told_may_be_that_all_is_known_or_nothing():
    bits = bits_of(4)
    told = 1 << bits.places[REPORTS_TIME][1] | 2 << bits.places[STREAM][1]
    found = widened(handed(bits, [LAST, -LAST - 1, 7], [told] * 3), bits)
    assert found.column(rows.EVENT_TIME).to_pylist() == [FOREVER, ALWAYS, 7]
    assert bits.read(STREAM, found).tolist() == [2, 2, 2]


def test_many_tests_leave_times_alone():
    bits = bits_of(40, shards=64)
    assert bits.used > MOST_BITS
    assert bits.places[shard_by(0)]
    batch = pa.RecordBatch.from_pydict({rows.EVENT_TIME: [5], "passed0": [3]})
    assert widened(batch, bits) is batch


@pytest.mark.parametrize("sizes", [(5, 7), (0, 100_000), (3 << UNIT_BITS, (2 << UNIT_BITS) - 1)])
def test_a_blob_counts_by_its_size(sizes):
    blobs = [bytes(size) for size in sizes]
    found = blob_rows((11, 12), 40, blobs)
    assert found.column(BLOB).drop_null().to_pylist() == blobs
    assert set(found.column(FIRST_TIME).to_pylist()) == {40}
    keys = found.column(SHARD_KEY).to_pylist()
    assert [keys.count(key) for key in (11, 12)] == [1 + (size >> UNIT_BITS) for size in sizes]
    # The blob is the first of its rows.
    assert [found.column(BLOB)[keys.index(key)].as_py() for key in (11, 12)] == blobs
