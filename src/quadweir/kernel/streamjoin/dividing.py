"""The records that the shards of a stream join hold, divided again for another number of shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.oneway import COUNT, FIRST_KEY
from quadweir.kernel.streamjoin.join import StreamJoin
from quadweir.kernel.streamjoin.keylists import HEADS
from quadweir.kernel.xxhash import shard_numbers

ShardsOf = Callable[[pa.Array, int], Ints]
"""Returns the shard of each key, among so many."""


def divided_joins(
    joins: Sequence[StreamJoin],
    make: Callable[[], StreamJoin],
    count: int,
    shards_of: ShardsOf = shard_numbers,
) -> list[StreamJoin]:
    """Return so many joins that together hold what some joins held; these are used up.

    Args:
        joins: the joins of all shards, between two steps.
        make: makes an empty join of the same kind.
        count: the number of new joins.
        shards_of: finds the shard of a key.
    """
    found = [make() for _ in range(count)]
    for join in joins:
        # Then only what can still meet something is there.
        join.snapshot()
        keys = join._windows.keys
        entries = keys.live()
        numbers = np.ascontiguousarray(keys.cells[entries, FIRST_KEY])
        to = shards_of(pc.fill_null(join._terms.decode(numbers), ""), count)
        for number, into in enumerate(found):
            _hand_over(join, into, entries[to == number])
    for into in found:
        # All shards hear of all times.
        into._clock.cells = joins[0]._clock.cells.copy()
    first = found[0]
    first.late = sum(each.late for each in joins)
    first.without_key = sum(each.without_key for each in joins)
    first.pairs = sum(each.pairs for each in joins)
    first._windows.evictions = sum(each._windows.evictions for each in joins)
    return found


def _hand_over(join: StreamJoin, into: StreamJoin, entries: Ints) -> None:
    """Let another join have the records of some keys, too."""
    if not len(entries):
        return
    keys = join._windows.keys
    texts = join._terms.decode(np.ascontiguousarray(keys.cells[entries, FIRST_KEY]))
    extra = keys.first_extra
    heads = keys.cells[entries, extra + HEADS : extra + HEADS + 2]
    slots = np.sort(_slots_of(heads, join._held.chain))
    moved = ints(join._held.size)
    held = into._held
    moved[slots] = np.arange(len(slots)) + held.size
    old = join._held
    first = held.append(old.times[slots], old.numbers[slots], old.take(slots))
    chain = old.chain[slots]
    held.chain[first : held.size] = np.where(chain >= 0, moved[np.maximum(chain, 0)], -1)
    named = into._terms.encode(texts)
    own = into._windows.keys
    places, became = own.transitions(named.reshape(-1, 1), np.ones(len(named), dtype=np.int64))
    into._terms.hold(named[became > 0])
    own.cells[places, COUNT] = 1
    cells = np.array(keys.cells[entries, extra:])
    cells[:, HEADS : HEADS + 2] = np.where(heads > 0, moved[np.maximum(heads - 1, 0)] + 1, 0)
    own.cells[places, own.first_extra :] = cells


def _slots_of(heads: NDArray[Any], chain: Ints) -> Ints:
    """Return the slots of all lists that begin at some heads, which are counted from 1."""
    at = heads.ravel() - 1
    found = [ints(0)]
    while True:
        at = at[at >= 0]
        if not len(at):
            return np.concatenate(found)
        found.append(at)
        at = chain[at]
