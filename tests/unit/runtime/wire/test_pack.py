"""Blobs as rows: a long blob is followed by padding rows, so that rows count by their size."""

from __future__ import annotations

import pytest

from quadweir.runtime.wire.pack import BLOB, FIRST_TIME, SHARD_KEY, UNIT_BITS, blob_rows


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
