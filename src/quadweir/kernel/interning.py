"""The compiled part of a dictionary: terms found by the hash of their spelling, counted, forgotten."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints
from quadweir.kernel.memory import NUMBER, prefetch, prefetch_record
from quadweir.kernel.spellings import (
    INLINE_LIMIT,
    copy_bytes,
    first_kind,
    hash_bytes,
    inline_number,
    same_bytes,
)

TERM: Final = np.dtype(
    [
        ("start", NUMBER),  # of the spelling in the store
        ("length", NUMBER),  # of the spelling; 0 if the slot is free
        ("hash", NUMBER),
        ("count", NUMBER),  # twice the number of holders, plus one while it waits for `forget`
        ("high", NUMBER),  # the exact value of a number, as `typed.py` reads it
        ("low", NUMBER),
    ],
    align=True,
)
"""What a dictionary knows of a term. Kinds and floats have arrays of their own, since comparisons
read many of them and nothing else."""

COUNTERS: Final = np.dtype(
    [
        ("fresh", NUMBER),  # the first slot that was never used
        ("free", NUMBER),  # how many slots can be used again
        ("pending", NUMBER),  # how many entries wait for `forget`
        ("tail", NUMBER),  # the end of the bytes stored
        ("live", NUMBER),  # how many of them belong to entries
    ],
    align=True,
)
"""The numbers of a dictionary that compiled functions change."""

TermRecords: TypeAlias = NDArray[np.void]
"""An array of type `TERM`; the number of a term is its place."""
Counters: TypeAlias = NDArray[np.void]
"""An array of type `COUNTERS` and of length 1."""

LOW_HALF: Final = 0xFFFFFFFF

KEPT: Final = 2**60
"""So many holders have what is kept for good; no sum of others comes near it."""

# A table of more places is not in the processor's nearer caches, and waiting for memory takes
# longer than all the rest. An entry is requested so many spellings ahead, and its place in the table
# twice as many.
_NEAR: Final = 1 << 15
_AHEAD: Final = 6
_TAGS: Final = 16  # a power of two: the hashes of the spellings from here to there


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look_ahead(
    data: int, starts: Ints, lengths: Ints, i: int, tags: Ints, table: Ints, seed: int
) -> None:
    """Hash a spelling and request its place in the table."""
    if i < len(starts):
        tag = hash_bytes(data + starts[i], lengths[i], seed)
        tags[i & (_TAGS - 1)] = tag
        prefetch(table, tag & (len(table) - 1))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look_nearer(i: int, tags: Ints, terms: TermRecords, table: Ints, store: int) -> None:
    """Request the entry that a spelling probably has, and the bytes of one half as far ahead."""
    tag = tags[i & (_TAGS - 1)]
    found = table[tag & (len(table) - 1)]
    if (found >> 32) & LOW_HALF == tag:
        prefetch_record(terms[(found & LOW_HALF)])
    tag = tags[(i - _AHEAD // 2) & (_TAGS - 1)]
    found = table[tag & (len(table) - 1)]
    if (found >> 32) & LOW_HALF == tag:
        prefetch(store + terms[found & LOW_HALF].start, 0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def intern(
    data: int,
    starts: Ints,
    lengths: Ints,
    begin: int,
    numbers: Ints,
    terms: TermRecords,
    kinds: Ints,
    table: Ints,
    free: Ints,
    pending: Ints,
    counters: Counters,
    store: int,
    room: int,
    seed: int,
) -> int:
    """Number spellings from `begin` on, making entries for new ones.

    Stops where slots or bytes run out and returns that place: the caller makes room and calls
    again. An empty spelling stands for no term and gets the number 0.
    """
    mask = len(table) - 1
    is_far = len(table) > _NEAR
    tags = np.zeros(_TAGS, dtype=np.int64)
    if is_far:
        for i in range(begin, min(begin + 2 * _AHEAD, len(starts))):
            _look_ahead(data, starts, lengths, i, tags, table, seed)
    for i in range(begin, len(starts)):
        length = lengths[i]
        place = data + starts[i]
        if is_far:
            _look_ahead(data, starts, lengths, i + 2 * _AHEAD, tags, table, seed)
            _look_nearer(i + _AHEAD, tags, terms, table, store)
        if length == 0:
            numbers[i] = 0
            continue
        number = inline_number(place, length)
        if number != 0:
            numbers[i] = number
            continue
        tag = tags[i & (_TAGS - 1)] if is_far else hash_bytes(place, length, seed)
        at = tag & mask
        while table[at] != 0:
            # An entry of the table is the hash and the slot, so that no other line of memory is
            # touched until the hashes agree.
            if (table[at] >> 32) & LOW_HALF == tag:
                slot = table[at] & LOW_HALF
                if terms[slot].length == length and same_bytes(
                    store + terms[slot].start, place, length
                ):
                    number = slot
                    break
            at = (at + 1) & mask
        if number != 0:
            numbers[i] = number
            continue
        if counters[0].tail + length > room:
            return i
        if counters[0].free > 0:
            counters[0].free -= 1
            number = free[counters[0].free]
        elif counters[0].fresh < len(terms):
            number = counters[0].fresh
            counters[0].fresh += 1
        else:
            return i
        copy_bytes(place, store + counters[0].tail, length)
        terms[number].start = counters[0].tail
        terms[number].length = length
        terms[number].hash = tag
        terms[number].count = 1
        kinds[number] = first_kind(place, length)
        counters[0].tail += length
        counters[0].live += length
        pending[counters[0].pending] = number
        counters[0].pending += 1
        table[at] = (tag << 32) | number
        numbers[i] = number
    return len(starts)


@njit(cache=True)  # type: ignore[untyped-decorator]
def account(numbers: Ints, sign: int, held: Ints) -> int:
    """Add a holder or take one away, up to the first number that `held` has no room for.

    Returns:
        The place of that number; the length of `numbers` if there is none.
    """
    for i in range(len(numbers)):
        number = numbers[i]
        if 0 < number < INLINE_LIMIT:
            if number >= len(held):
                return i
            held[number] += sign
    return len(numbers)


@njit(cache=True)  # type: ignore[untyped-decorator]
def count(
    numbers: Ints, sign: int, granted: int, terms: TermRecords, pending: Ints, counters: Counters
) -> bool:
    """Add holders to entries or take them away; false where there was no entry or no holder.

    Entries up to `granted` are kept in any case, and are skipped.
    """
    good = True
    is_far = len(terms) > _NEAR
    for i in range(len(numbers)):
        if is_far and i + _AHEAD < len(numbers):
            ahead = numbers[i + _AHEAD]
            if granted < ahead < len(terms):
                prefetch_record(terms[ahead])
        number = numbers[i]
        if number <= granted or number >= INLINE_LIMIT:
            continue
        if number >= counters[0].fresh or terms[number].length == 0:
            good = False
            continue
        held = terms[number].count
        if held >= KEPT:
            continue
        held += 2 * sign
        if held < 0:
            good = False
            continue
        if held == 0:
            pending[counters[0].pending] = number
            counters[0].pending += 1
            held = 1
        terms[number].count = held
    return good


@njit(cache=True)  # type: ignore[untyped-decorator]
def forget(terms: TermRecords, table: Ints, free: Ints, pending: Ints, counters: Counters) -> None:
    """Free the entries that wait and that have no holder."""
    mask = len(table) - 1
    for i in range(counters[0].pending):
        slot = pending[i]
        if terms[slot].count != 1:
            terms[slot].count -= 1
            continue
        tag = terms[slot].hash
        hole = tag & mask
        while table[hole] != (tag << 32) | slot:
            hole = (hole + 1) & mask
        # What lies behind the hole and was pushed past it moves up, so no marks of the deleted
        # stay in the table.
        at = hole
        while True:
            at = (at + 1) & mask
            if table[at] == 0:
                break
            home = (table[at] >> 32) & mask
            if (at - home) & mask >= (at - hole) & mask:
                table[hole] = table[at]
                hole = at
        table[hole] = 0
        counters[0].live -= terms[slot].length
        terms[slot].length = 0
        terms[slot].count = 0
        free[counters[0].free] = slot
        counters[0].free += 1
    counters[0].pending = 0


@njit(cache=True)  # type: ignore[untyped-decorator]
def fill_table(terms: TermRecords, fresh: int, table: Ints) -> None:
    """Put all entries into an empty table."""
    mask = len(table) - 1
    for slot in range(1, fresh):
        if terms[slot].length == 0:
            continue
        tag = terms[slot].hash
        at = tag & mask
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = (tag << 32) | slot


@njit(cache=True)  # type: ignore[untyped-decorator]
def adopt(
    data: int,
    slots: Ints,
    lengths: Ints,
    counts: Ints,
    terms: TermRecords,
    kinds: Ints,
    table: Ints,
    counters: Counters,
    store: int,
    seed: int,
) -> None:
    """Make entries that have a number and holders already; there is room for all of them.

    Their spellings lie at `data`, one after the other. An entry that exists stays as it is.
    """
    mask = len(table) - 1
    place = data
    is_far = len(terms) > _NEAR
    for i in range(len(slots)):
        if is_far and i + _AHEAD < len(slots):
            prefetch_record(terms[slots[i + _AHEAD]])
        slot, length = slots[i], lengths[i]
        if terms[slot].length == 0:
            tag = hash_bytes(place, length, seed)
            at = tag & mask
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = (tag << 32) | slot
            copy_bytes(place, store + counters[0].tail, length)
            terms[slot].start = counters[0].tail
            terms[slot].length = length
            terms[slot].hash = tag
            terms[slot].count = counts[i]
            kinds[slot] = first_kind(place, length)
            counters[0].tail += length
            counters[0].live += length
        place += length


@njit(cache=True)  # type: ignore[untyped-decorator]
def gather(slots: Ints, terms: TermRecords, store: int, ends: Ints, target: int) -> None:
    """Copy spellings to one place, one after the other; write to `ends` where each ends."""
    at = ends[0]
    is_far = len(terms) > _NEAR
    for i in range(len(slots)):
        if is_far and i + 2 * _AHEAD < len(slots):
            prefetch_record(terms[slots[i + 2 * _AHEAD]])
            prefetch(store + terms[slots[i + _AHEAD]].start, 0)
        length = terms[slots[i]].length
        copy_bytes(store + terms[slots[i]].start, target + at, length)
        at += length
        ends[i + 1] = at
