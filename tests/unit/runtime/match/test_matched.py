"""Matched rows with the time and the bits of matches in one column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, MatchBits, shard_by
from quadweir.runtime.match.matched import MOMENT, MOST_BITS, widened
from runtime_tests import wanted

LAST = (1 << rows.TIME_BITS) - 1


def bits_of(tests: int, shards: int = 2) -> MatchBits:
    return MatchBits.of(wanted(tests), streams=3, shards=shards)


def narrow(bits: MatchBits, times: list[int], words: list[int]) -> pa.RecordBatch:
    moment = np.array(times) << bits.used | np.array(words)
    position = pa.array(range(len(times)), pa.int64())
    return pa.RecordBatch.from_arrays([pa.array(moment), position], [MOMENT, rows.POSITION])


def test_times_and_bits_are_separated_again():
    bits = bits_of(4)
    assert bits.used <= MOST_BITS
    dice = np.random.default_rng(1)
    times = [0, -1, LAST - 1, 1 - LAST, *dice.integers(-LAST, LAST, 50)]
    _, shift, _ = bits.places[REPORTS_TIME]
    words = dice.integers(0, 1 << bits.used, len(times)) & ~(1 << shift)
    found = widened(narrow(bits, times, list(words)), bits)
    assert found.column(rows.EVENT_TIME).to_pylist() == times
    assert found.column("passed0").to_pylist() == list(words)
    assert found.column(rows.POSITION).to_pylist() == list(range(len(times)))


def test_a_report_of_time_may_say_forever_or_always():
    bits = bits_of(4)
    report = 1 << bits.places[REPORTS_TIME][1] | 2 << bits.places[STREAM][1]
    found = widened(narrow(bits, [LAST, -LAST - 1, 7], [report] * 3), bits)
    assert found.column(rows.EVENT_TIME).to_pylist() == [FOREVER, ALWAYS, 7]
    assert bits.read(STREAM, found).tolist() == [2, 2, 2]


def test_many_tests_leave_times_alone():
    bits = bits_of(40, shards=64)
    assert bits.used > MOST_BITS
    assert bits.places[shard_by(0)]
    batch = pa.RecordBatch.from_pydict({rows.EVENT_TIME: [5], "passed0": [3]})
    assert widened(batch, bits) is batch
