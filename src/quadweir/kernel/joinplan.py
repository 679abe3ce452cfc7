"""By which index a join probes each input, for every set of inputs that are bound already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from quadweir.kernel.arrays import Ints
from quadweir.terms import Variable


class ProbePlan(NamedTuple):
    """The indexes of a join, those of one input together.

    Attributes:
        owners: The input of each index.
        keys: The key of each index, as places among the shared variables.
        first_index: For each input the number of its first index; then the number of all.
        index_of: For each set of bound inputs, as bits, and each input: the index to probe.
        has_key: For the same whether that index has a key.
    """

    owners: list[int]
    keys: list[tuple[int, ...]]
    first_index: Ints
    index_of: Ints
    has_key: Ints


def plan_probes(always: Sequence[frozenset[Variable]], shared: Sequence[Variable]) -> ProbePlan:
    """Choose the indexes of a join.

    A variable that an input may leave unbound is no part of a key.

    Args:
        always: For each input what all of its rows bind.
        shared: The variables that more than one input has.

    >>> a, b = Variable("a"), Variable("b")
    >>> plan_probes([frozenset({a}), frozenset({a, b}), frozenset({b})], [a, b]).keys
    [(0,), (), (0,), (1,), (0, 1), (), (1,)]
    """
    count = len(always)
    by_input: list[dict[tuple[int, ...], None]] = [{} for _ in range(count)]
    key_of: dict[tuple[int, int], tuple[int, ...]] = {}
    for chosen in range(1, 1 << count):
        sure = frozenset().union(*(always[k] for k in range(count) if chosen >> k & 1))
        for j in range(count):
            if chosen >> j & 1:
                continue
            key = tuple(
                place
                for place, variable in enumerate(shared)
                if variable in sure and variable in always[j]
            )
            by_input[j].setdefault(key)
            key_of[chosen, j] = key
    owners = [j for j in range(count) for _ in by_input[j]]
    keys = [key for own in by_input for key in own]
    number = {(j, key): at for at, (j, key) in enumerate(zip(owners, keys, strict=True))}
    index_of = np.zeros((1 << count, count), dtype=np.int64)
    has_key = np.zeros((1 << count, count), dtype=np.int64)
    for (chosen, j), key in key_of.items():
        index_of[chosen, j] = number[j, key]
        has_key[chosen, j] = bool(key)
    first_index = np.searchsorted(owners, np.arange(count + 1)).astype(np.int64)
    return ProbePlan(owners, keys, first_index, index_of.ravel(), has_key.ravel())
