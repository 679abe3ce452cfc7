"""The bits of matches: whatever the number of tests, each says what it said before."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, MatchBits, shard_by, word_of
from quadweir.testing import Oracle, diff_answers
from query_hosts import run_bounded
from runtime_tests import wanted
from streaming import stream

TESTS = [1, 55, 58, 61, 62, 63, 124]


@pytest.mark.parametrize("count", TESTS)
@pytest.mark.parametrize(("streams", "shards"), [(1, 2), (3, 1), (5, 64), (2, 1000)])
def test_no_bit_says_two_things(count, streams, shards):
    tests = wanted(count)
    bits = MatchBits.of(tests, streams=streams, shards=shards)
    used = {name: np.int64(0) for name in bits.names}
    parts = [*map(word_of, range(count))]
    parts += [
        (bits.names[word], shift + at)
        for word, shift, width in bits.places.values()
        for at in range(width)
    ]
    for name, bit in parts:
        assert not used[name] >> bit & 1
        used[name] |= np.int64(1) << bit
    assert min(used.values()) >= 0


@pytest.mark.parametrize("count", TESTS)
def test_fields_are_read_beside_all_tests(count):
    tests = wanted(count)
    bits = MatchBits.of(tests, streams=5, shards=100)
    fields = {REPORTS_TIME: 1, STREAM: 4} | {
        shard_by(each.key): 99 for each in tests if each.key is not None
    }
    for passed in (True, False):
        words = dict.fromkeys(bits.names, 0) | bits.masks([passed] * count)
        for field, number in fields.items():
            word, shift, _ = bits.places[field]
            words[bits.names[word]] |= number << shift
        batch = pa.RecordBatch.from_pydict({name: [word] for name, word in words.items()})
        assert {field: int(bits.read(field, batch)[0]) for field in bits.places} == fields
        for field, number in fields.items():
            assert bits.is_(field, number, batch).all()
            assert not bits.is_(field, number - 1, batch).any()


@pytest.mark.parametrize("count", [57, 62, 63])
def test_a_query_of_many_patterns_gives_the_answers_of_the_oracle(count):
    patterns = " UNION ".join(f"{{ ?x <urn:p{number}> ?y }}" for number in range(count))
    text = f"SELECT ?x ?y {{ STREAM <urn:s> [RANGE 15ms] {{ {patterns} }} }}"
    feed = stream(
        *[(1000 + 7 * n, f"a{n % 5} p{n % count} b{n} . a o b") for n in range(count + 9)]
    )
    wanted = Oracle(text).answers(feed)
    assert len(wanted) > count
    assert diff_answers(wanted, run_bounded(text, feed, tasks=2, shards=2)) == ""
