"""The compiled functions of MIN, MAX and SAMPLE: a pairing heap of distinct values for each group."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints
from quadweir.kernel.oneway import (
    COUNT,
    FIRST_KEY,
    Entries,
    Keys,
    add_entry,
)
from quadweir.kernel.sums import KIND, LOW, NUMBER

# A value, by its number: four words and a label, and whether these are good. Its counter says how
# many heaps it is in.
WORDS: Final = FIRST_KEY + 1
LABEL: Final = WORDS + 4
KNOWN: Final = WORDS + 5
# A value in a group: how often it is there, its entry among the values, its first child and next
# sibling in the heap plus one, and the first of its words. Its counter is 1 while it is in the heap.
_TALLY: Final = FIRST_KEY + 2
_VALUE: Final = _TALLY + 1
_CHILD: Final = _TALLY + 2
_NEXT: Final = _TALLY + 3
_MAJOR: Final = _TALLY + 4
# A group: the top of its heap plus one, and how many errors are in it.
_TOP: Final = 0
_ERRORS: Final = 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _below(pairs: Ints, values: Ints, a: int, b: int) -> bool:
    if pairs[a, _MAJOR] != pairs[b, _MAJOR]:
        return pairs[a, _MAJOR] < pairs[b, _MAJOR]
    x, y = pairs[a, _VALUE], pairs[b, _VALUE]
    for place in range(WORDS + 1, LABEL + 1):
        if values[x, place] != values[y, place]:
            return values[x, place] < values[y, place]
    return False


@njit(cache=True)  # type: ignore[untyped-decorator]
def _meld(pairs: Ints, values: Ints, a: int, b: int) -> int:
    """Join two heaps, given by their tops plus one; 0 is an empty heap."""
    if a == 0:
        return b
    if b == 0:
        return a
    if _below(pairs, values, b - 1, a - 1):
        a, b = b, a
    pairs[b - 1, _NEXT] = pairs[a - 1, _CHILD]
    pairs[a - 1, _CHILD] = b
    return a


@njit(cache=True)  # type: ignore[untyped-decorator]
def _without(pairs: Ints, values: Ints, top: int, popped: Ints, count: int) -> tuple[int, int]:
    """Take values that went off the top of a heap: its new top, and the values that left it."""
    while top > 0 and pairs[top - 1, _TALLY] <= 0:
        # Children that went as well make room for theirs.
        rest = top
        pairs[top - 1, _NEXT] = 0
        merged = 0
        waiting = 0
        while rest > 0:
            node = rest - 1
            rest = pairs[node, _NEXT]
            if pairs[node, _TALLY] <= 0:
                value = pairs[node, _VALUE]
                values[value, COUNT] -= 1
                pairs[node, COUNT] = 0
                popped[count] = value
                count += 1
                child = pairs[node, _CHILD]
                pairs[node, _CHILD] = 0
                if child > 0:
                    end = child - 1
                    while pairs[end, _NEXT] > 0:
                        end = pairs[end, _NEXT] - 1
                    pairs[end, _NEXT] = rest
                    rest = child
                continue
            pairs[node, _NEXT] = 0
            # The two passes of a pairing heap: first two by two, then all into one.
            if waiting == 0:
                waiting = node + 1
            else:
                both = _meld(pairs, values, waiting, node + 1)
                waiting = 0
                pairs[both - 1, _NEXT] = merged
                merged = both
        top = waiting
        while merged > 0:
            after = pairs[merged - 1, _NEXT]
            pairs[merged - 1, _NEXT] = 0
            top = _meld(pairs, values, top, merged)
            merged = after
    return top, count


@njit(cache=True)  # type: ignore[untyped-decorator]
def extreme_pass(
    groups: Ints,
    sign: Ints,
    keys: Keys,
    entries: Ints,
    last: Ints,
    state: Ints,
    index: Entries,
    values: Ints,
    popped: Ints,
    out: Ints,
) -> int:
    """Keep the heaps of groups; the top of each goes out wherever `last` says so.

    `keys` are pairs of group and number, for `index`; `entries` are those of the numbers among the
    values.
    """
    pairs = index.cells
    count = np.int64(0)
    for at in range(len(groups)):
        group = groups[at]
        if keys.values[at, 1] == 0:
            state[group, _ERRORS] += sign[at]
        else:
            pair = add_entry(index, keys, at)
            pairs[pair, _TALLY] += sign[at]
            if pairs[pair, _TALLY] > 0 and pairs[pair, COUNT] == 0:
                value = entries[at]
                pairs[pair, COUNT] = 1
                pairs[pair, _VALUE] = value
                pairs[pair, _CHILD] = 0
                pairs[pair, _NEXT] = 0
                pairs[pair, _MAJOR] = values[value, WORDS]
                values[value, COUNT] += 1
                state[group, _TOP] = _meld(pairs, values, state[group, _TOP], pair + 1)
        if last[at] == 1:
            top = state[group, _TOP]
            if top > 0 and pairs[top - 1, _TALLY] <= 0:
                top, count = _without(pairs, values, top, popped, count)
                state[group, _TOP] = top
            if top > 0 and state[group, _ERRORS] == 0:
                out[at, KIND] = NUMBER
                out[at, LOW] = pairs[top - 1, FIRST_KEY + 1]
    return int(count)


@njit(cache=True)  # type: ignore[untyped-decorator]
def register_pass(
    numbers: Keys,
    sign: Ints,
    index: Entries,
    entries: Ints,
    new: Ints,
) -> int:
    """Find the entries of values that come, and gather those whose words are not known yet."""
    values = index.cells
    count = 0
    for at in range(len(sign)):
        if sign[at] <= 0 or numbers.values[at, 0] == 0:
            continue
        entry = add_entry(index, numbers, at)
        entries[at] = entry
        if values[entry, KNOWN] == 0:
            values[entry, KNOWN] = 1
            new[count] = entry
            count += 1
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def heap_pass(state: Ints, pairs: Ints, values: Ints, gone: Ints) -> int:
    """Rebuild all heaps from the values that are there; the others leave them."""
    for group in range(len(state)):
        state[group, _TOP] = 0
    count = 0
    for pair in range(len(pairs)):
        if pairs[pair, COUNT] == 0:
            continue
        pairs[pair, _CHILD] = 0
        pairs[pair, _NEXT] = 0
        if pairs[pair, _TALLY] > 0:
            group = pairs[pair, FIRST_KEY]
            state[group, _TOP] = _meld(pairs, values, state[group, _TOP], pair + 1)
        else:
            pairs[pair, COUNT] = 0
            values[pairs[pair, _VALUE], COUNT] -= 1
            gone[count] = pairs[pair, _VALUE]
            count += 1
    return count
