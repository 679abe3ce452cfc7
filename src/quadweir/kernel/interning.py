"""The compiled part of the dictionary: spellings as bytes, found by hash, counted and forgotten.

Bytes are read and written by address, eight at a time: spellings lie at any place in an Arrow
buffer, and a compiled function sees no difference between that and our own store.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, mix
from quadweir.kernel.memory import load_byte, load_word, prefetch, store_byte, store_word
from quadweir.vocab import XSD

# The columns of an entry. Kinds and numbers as floats have arrays of their own, since comparisons
# look at many of them and at nothing else.
START: Final = 0
LENGTH: Final = 1
HASH: Final = 2
COUNT: Final = 3  # twice the number of holders, plus one while the entry waits for `forget`
HIGH: Final = 4
LOW: Final = 5
WIDTH: Final = 6

KEPT: Final = 2**60
"""So many holders have what is kept for good; no sum of others comes near it."""

# The places of the scalars that compiled functions change.
FRESH: Final = 0  # the first slot that was never used
FREE: Final = 1  # how many slots can be used again
PENDING: Final = 2  # how many entries wait for `forget`
TAIL: Final = 3  # the end of the bytes stored
LIVE: Final = 4  # how many of them belong to entries

# What the first and the last byte of a spelling tell; see `typed.py` for all kinds.
UNKNOWN: Final = 0
IS_IRI: Final = 1
IS_BLANK: Final = 2
IS_STRING: Final = 3
IS_LANGUAGE: Final = 4
IS_TRIPLE: Final = 15  # after all kinds of `typed.py`

ZERO: Final = 2**62
"""The number of the integer 0; other integers lie around it."""
INLINE_LIMIT: Final = 2**61
"""Integers from here on have entries; so all numbers up to here are entries."""

INTEGER_SUFFIX: Final = f'"^^<{XSD.integer}>'
_SUFFIX_LENGTH: Final = len(INTEGER_SUFFIX)


def _word(text: str) -> np.int64:
    return np.frombuffer(text.encode(), dtype="<i8")[0]


_LAST: Final = _word(INTEGER_SUFFIX[-8:])
_WORDS: Final = tuple(_word(INTEGER_SUFFIX[at : at + 8]) for at in range(0, _SUFFIX_LENGTH - 8, 8))

_FACTOR: Final = np.uint64(0x9FB21C651E98DF25)
_LOW_HALF: Final = 0xFFFFFFFF
_QUOTE, _MINUS, _LESS, _UNDERSCORE, _GREATER = (ord(each) for each in '"-<_>')


@njit(cache=True)  # type: ignore[untyped-decorator]
def _hash(place: int, length: int, seed: int) -> int:
    """Give 32 bits that depend on every byte, and on a seed nobody outside can know."""
    found = np.uint64(seed) ^ np.uint64(length)
    at = 0
    while at + 8 <= length:
        found = (found ^ np.uint64(load_word(place + at))) * _FACTOR
        found ^= found >> np.uint64(32)
        at += 8
    rest = np.uint64(0)
    while at < length:
        rest = (rest << np.uint64(8)) | np.uint64(load_byte(place + at))
        at += 1
    found = (found ^ rest) * _FACTOR
    mixed: int = mix(np.int64(found))
    return (mixed >> 32) & _LOW_HALF


@njit(cache=True)  # type: ignore[untyped-decorator]
def same_bytes(left: int, right: int, length: int) -> bool:
    """Tell whether the bytes at two places are the same."""
    at = 0
    while at + 8 <= length:
        if load_word(left + at) != load_word(right + at):
            return False
        at += 8
    while at < length:
        if load_byte(left + at) != load_byte(right + at):
            return False
        at += 1
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _copy(source: int, target: int, length: int) -> None:
    at = 0
    while at + 8 <= length:
        store_word(target + at, load_word(source + at))
        at += 8
    while at < length:
        store_byte(target + at, load_byte(source + at))
        at += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _inline(place: int, length: int) -> int:
    """Give the number of a small canonical integer; 0 for any other spelling."""
    digits = length - _SUFFIX_LENGTH - 1
    if digits < 1 or digits > 20 or load_word(place + length - 8) != _LAST:
        return 0
    at = place + length - _SUFFIX_LENGTH
    for word in _WORDS:
        if load_word(at) != word:
            return 0
        at += 8
    at = place + 1
    negative = load_byte(at) == _MINUS
    if negative:
        at += 1
        digits -= 1
    # 2**61 has 19 digits; what has as many and overflows 64 bits comes out negative.
    if digits < 1 or digits > 19 or load_byte(place) != _QUOTE:
        return 0
    if load_byte(at) == 48 and (digits > 1 or negative):
        return 0
    value = 0
    for _ in range(digits):
        digit = load_byte(at) - 48
        if digit < 0 or digit > 9:
            return 0
        value = value * 10 + digit
        at += 1
    if value < 0 or value >= INLINE_LIMIT:
        return 0
    return ZERO - value if negative else ZERO + value


@njit(cache=True)  # type: ignore[untyped-decorator]
def _first_kind(place: int, length: int) -> int:
    """Tell the kind of a term as far as its ends show it."""
    first, last = load_byte(place), load_byte(place + length - 1)
    if first == _LESS:
        return IS_TRIPLE if load_byte(place + 1) == _LESS else IS_IRI
    if first == _UNDERSCORE:
        return IS_BLANK
    if last == _QUOTE:
        return IS_STRING
    return UNKNOWN if last == _GREATER else IS_LANGUAGE


# --- entries --------------------------------------------------------------------------------------

# A table of more places is not in the processor's nearer caches, and memory takes longer than all the
# rest: so many spellings ahead an entry is asked for, and its place in the table twice as many.
_NEAR: Final = 1 << 15
_AHEAD: Final = 6
_TAGS: Final = 16  # a power of two: the hashes of the spellings from here to there


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look_ahead(
    data: int, starts: Ints, lengths: Ints, i: int, tags: Ints, table: Ints, seed: int
) -> None:
    """Hash a spelling and ask for its place in the table."""
    if i < len(starts):
        tag = _hash(data + starts[i], lengths[i], seed)
        tags[i & (_TAGS - 1)] = tag
        prefetch(table, tag & (len(table) - 1))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look_nearer(i: int, tags: Ints, cells: Ints, table: Ints, store: int) -> None:
    """Ask for the entry that a spelling probably has, and for that of half the way its bytes."""
    tag = tags[i & (_TAGS - 1)]
    found = table[tag & (len(table) - 1)]
    if (found >> 32) & _LOW_HALF == tag:
        prefetch(cells, (found & _LOW_HALF) * WIDTH)
    tag = tags[(i - _AHEAD // 2) & (_TAGS - 1)]
    found = table[tag & (len(table) - 1)]
    if (found >> 32) & _LOW_HALF == tag:
        prefetch(store + cells[found & _LOW_HALF, START], 0)


@njit(cache=True)  # type: ignore[untyped-decorator]
def intern(
    data: int,
    starts: Ints,
    lengths: Ints,
    begin: int,
    numbers: Ints,
    cells: Ints,
    kinds: Ints,
    table: Ints,
    free: Ints,
    pending: Ints,
    state: Ints,
    store: int,
    room: int,
    seed: int,
) -> int:
    """Number spellings from `begin` on, making entries for new ones.

    Stops where slots or bytes run out, and says where: the caller makes room and calls again. A
    spelling of no length stands for no term and gets the number 0.
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
            _look_nearer(i + _AHEAD, tags, cells, table, store)
        if length == 0:
            numbers[i] = 0
            continue
        number = _inline(place, length)
        if number != 0:
            numbers[i] = number
            continue
        tag = tags[i & (_TAGS - 1)] if is_far else _hash(place, length, seed)
        at = tag & mask
        while table[at] != 0:
            # An entry of the table is the hash and the slot, so that no other line of memory is
            # touched until the hashes agree.
            if (table[at] >> 32) & _LOW_HALF == tag:
                slot = table[at] & _LOW_HALF
                if cells[slot, LENGTH] == length and same_bytes(
                    store + cells[slot, START], place, length
                ):
                    number = slot
                    break
            at = (at + 1) & mask
        if number != 0:
            numbers[i] = number
            continue
        if state[TAIL] + length > room:
            return i
        if state[FREE] > 0:
            state[FREE] -= 1
            number = free[state[FREE]]
        elif state[FRESH] < len(cells):
            number = state[FRESH]
            state[FRESH] += 1
        else:
            return i
        _copy(place, store + state[TAIL], length)
        cells[number, START] = state[TAIL]
        cells[number, LENGTH] = length
        cells[number, HASH] = tag
        cells[number, COUNT] = 1
        kinds[number] = _first_kind(place, length)
        state[TAIL] += length
        state[LIVE] += length
        pending[state[PENDING]] = number
        state[PENDING] += 1
        table[at] = (tag << 32) | number
        numbers[i] = number
    return len(starts)


@njit(cache=True)  # type: ignore[untyped-decorator]
def count(numbers: Ints, sign: int, granted: int, cells: Ints, pending: Ints, state: Ints) -> bool:
    """Add holders to entries or take them away; false where there was no entry or no holder.

    Entries up to `granted` are kept whoever holds them, and need not be looked at.
    """
    good = True
    is_far = len(cells) > _NEAR
    for i in range(len(numbers)):
        if is_far and i + _AHEAD < len(numbers):
            ahead = numbers[i + _AHEAD]
            if granted < ahead < len(cells):
                prefetch(cells, ahead * WIDTH)
        number = numbers[i]
        if number <= granted or number >= INLINE_LIMIT:
            continue
        if number >= state[FRESH] or cells[number, LENGTH] == 0:
            good = False
            continue
        held = cells[number, COUNT]
        if held >= KEPT:
            continue
        held += 2 * sign
        if held < 0:
            good = False
            continue
        if held == 0:
            pending[state[PENDING]] = number
            state[PENDING] += 1
            held = 1
        cells[number, COUNT] = held
    return good


@njit(cache=True)  # type: ignore[untyped-decorator]
def forget(cells: Ints, table: Ints, free: Ints, pending: Ints, state: Ints) -> None:
    """Let go of the entries that wait and that nobody holds."""
    mask = len(table) - 1
    for i in range(state[PENDING]):
        slot = pending[i]
        if cells[slot, COUNT] != 1:
            cells[slot, COUNT] -= 1
            continue
        tag = cells[slot, HASH]
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
        state[LIVE] -= cells[slot, LENGTH]
        cells[slot, LENGTH] = 0
        cells[slot, COUNT] = 0
        free[state[FREE]] = slot
        state[FREE] += 1
    state[PENDING] = 0


@njit(cache=True)  # type: ignore[untyped-decorator]
def fill_table(cells: Ints, fresh: int, table: Ints) -> None:
    """Put all entries into an empty table."""
    mask = len(table) - 1
    for slot in range(1, fresh):
        if cells[slot, LENGTH] == 0:
            continue
        tag = cells[slot, HASH]
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
    cells: Ints,
    kinds: Ints,
    table: Ints,
    state: Ints,
    store: int,
    seed: int,
) -> None:
    """Make entries that have a number and holders already; there is room for all of them.

    Their spellings lie at `data`, one after the other. An entry that is there stays as it is.
    """
    mask = len(table) - 1
    place = data
    is_far = len(cells) > _NEAR
    for i in range(len(slots)):
        if is_far and i + _AHEAD < len(slots):
            prefetch(cells, slots[i + _AHEAD] * WIDTH)
        slot, length = slots[i], lengths[i]
        if cells[slot, LENGTH] == 0:
            tag = _hash(place, length, seed)
            at = tag & mask
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = (tag << 32) | slot
            _copy(place, store + state[TAIL], length)
            cells[slot, START] = state[TAIL]
            cells[slot, LENGTH] = length
            cells[slot, HASH] = tag
            cells[slot, COUNT] = counts[i]
            kinds[slot] = _first_kind(place, length)
            state[TAIL] += length
            state[LIVE] += length
        place += length


@njit(cache=True)  # type: ignore[untyped-decorator]
def gather(slots: Ints, cells: Ints, store: int, ends: Ints, target: int) -> None:
    """Copy spellings to one place, one after the other; `ends` gets where each ends."""
    at = ends[0]
    is_far = len(cells) > _NEAR
    for i in range(len(slots)):
        if is_far and i + 2 * _AHEAD < len(slots):
            prefetch(cells, slots[i + 2 * _AHEAD] * WIDTH)
            prefetch(store + cells[slots[i + _AHEAD], START], 0)
        length = cells[slots[i], LENGTH]
        _copy(store + cells[slots[i], START], target + at, length)
        at += length
        ends[i + 1] = at
