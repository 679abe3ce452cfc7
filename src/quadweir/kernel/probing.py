"""The compiled half of the multiway join: events in, results out (paper 001, section 4.1).

Everything is reached through one address, that of the table `JOIN` describes: compiled functions
call each other for every event and every match, and handing over one number is cheaper than handing
over two dozen arrays. What the algorithms do, and what differs from the paper, stands at the head of
`multijoin.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import FOREVER, Ints, load, prefetch, store
from quadweir.kernel.relation import ENTER, FIRST_VALUE, LEAVE
from quadweir.kernel.ring import (
    DESCRIPTION,
    ENTRIES,
    ENTRY,
    HALF,
    HASH,
    KEY_WIDTH,
    LOWER,
    MASK,
    RING,
    RING_OF,
    SEED,
    USED,
    VARIABLES,
    find,
    hash_key,
    insert,
    key_of,
    remove,
)

# The description of a join. Addresses, but where a number is said.
INPUTS: Final = 0  # number of inputs
SHARED: Final = 1  # number of shared variables, at least 1
LINKS_WIDE: Final = 2  # number of lists that a result stands in
BUFFERS: Final = 3  # a description for each input
INDEXES: Final = 4  # a description for each index, those of one input together
INDEX_FIRST: Final = 5  # for each input the number of its first index; then the number of all
INDEX_OF: Final = 6  # for each set of bound inputs, by which index every other is probed
SHARES: Final = 7  # and whether that one has a key
BIND_FIRST: Final = 8  # for each input its first pair of ...
BIND_COLUMN: Final = 9  # ... a column
BIND_VARIABLE: Final = 10  # ... and the shared variable that it binds
FRAMES: Final = 11
BOUND: Final = 12  # for each frame what the shared variables are bound to
KEY: Final = 13  # room for a key
PLACES: Final = 14  # for each input the place of the mapping that is in the combination
CELLS: Final = 15  # of the results: references to the parts, then links to other results
FREE_ROWS: Final = 16  # a stack of rows for results
RESULT: Final = 17  # number of words of a result
OUT: Final = 18  # times, signs, rows, ends
ROOM: Final = 19  # number of changes that there is room for in each
EVENTS: Final = 20  # times, signs, inputs, rows
COUNT: Final = 21  # number of events
# What outlives a call: numbers.
EVENT: Final = 22
DEPTH: Final = 23  # of the frame to go on with; -1 between two events
MADE: Final = 24  # changes given so far
FREE: Final = 25  # free rows for results
WHICH: Final = 26  # the index that is full
FAR: Final = 27  # 1 if indexes are too large for the processor's nearer caches
HASHES: Final = 28  # room for what the next events will look for, by event and input
WORK: Final = 29  # how many mappings may still be tried
JOIN: Final = 30

# The description of a buffer.
B_CELLS: Final = 0
B_WIDTH: Final = 1
B_PLACES: Final = 2  # number of places
B_POINTERS: Final = 3  # column: the first result made from a mapping, then the rings
B_COPIES: Final = 4  # 1 if the row of the input is kept in a cell rather than being the place
B_HEAD: Final = 5  # the oldest row ...
B_FIRST: Final = 6  # ... and its place; the rows after it follow, round the end
BUFFER: Final = 7

# A frame: the mappings of one buffer that are still to be tried.
F_INPUT: Final = 0
F_NEXT: Final = 1  # the place of the next mapping
F_LEFT: Final = 2  # how many are left
F_RING: Final = 3  # column of the ring
F_ENTER: Final = 4  # what is bound so far shares the instants from here ...
F_LEAVE: Final = 5  # ... to before here
F_CHOSEN: Final = 6  # the inputs bound before, as bits
FRAME: Final = 8

# How a call ended.
DONE: Final = 0
OUTPUT_FULL: Final = 1
INDEX_FULL: Final = 2
TOO_MUCH: Final = 3

_WORD: Final = 8
# How many events ahead the mapping is asked for, then its entries, then what they lead to.
_ROW_AHEAD: Final = 24
_AHEAD: Final = 12
_NEARER: Final = 6
# How many events are remembered from the one to the other: a power of two.
EVENTS_AHEAD: Final = 16
# How many results ahead the rows for them are asked for.
_ROWS_AHEAD: Final = 8


@njit(cache=True)  # type: ignore[untyped-decorator]
def merge(
    times: Ints, signs: Ints, places: Ints, ends: Ints, arrivals_first: int, events: Ints
) -> None:
    """Merge inputs that lie one behind the other, each in order, to (time, sign, input, place).

    At one instant what goes comes before what comes, unless `arrivals_first` is 1; if it is 2, all
    arrivals come before all that goes, whatever the time.
    """
    inputs = len(ends)
    at = np.zeros(inputs, dtype=np.int64)
    for k in range(1, inputs):
        at[k] = ends[k - 1]
    made = 0
    if arrivals_first == 2:
        for turn in range(2):
            sign = 1 - 2 * turn
            for k in range(inputs):
                for i in range(at[k], ends[k]):
                    if signs[i] == sign:
                        events[0, made] = times[i]
                        events[1, made] = sign
                        events[2, made] = k
                        events[3, made] = places[i]
                        made += 1
        return
    second = -1 if arrivals_first == 1 else 1
    while made < len(times):
        best, least, late = -1, 0, False
        for k in range(inputs):
            if at[k] < ends[k]:
                t = times[at[k]]
                is_late = signs[at[k]] == second
                if best < 0 or t < least or (t == least and late and not is_late):
                    best, least, late = k, t, is_late
        i = at[best]
        at[best] = i + 1
        events[0, made] = least
        events[1, made] = signs[i]
        events[2, made] = best
        events[3, made] = places[i]
        made += 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _choose(p: int, depth: int, chosen: int) -> bool:
    """Pick the next buffer and open a frame on its matches; False if some buffer has none.

    Algorithm 5, lines 2 to 8, with exact counts for its estimate.
    """
    inputs, indexes, key = load(p, INPUTS), load(p, INDEXES), load(p, KEY)
    index_of = load(p, INDEX_OF) + chosen * inputs * _WORD
    shares = load(p, SHARES) + chosen * inputs * _WORD
    bound = load(p, BOUND) + depth * load(p, SHARED) * _WORD
    frame = load(p, FRAMES) + depth * (FRAME * _WORD)
    best, best_shares, least, best_index, best_start = -1, 0, 0, 0, 0
    for j in range(inputs):
        if chosen >> j & 1:
            continue
        index = indexes + load(index_of, j) * (DESCRIPTION * _WORD)
        width, variables = load(index, KEY_WIDTH), load(index, VARIABLES)
        for i in range(width):
            store(key, i, load(bound, load(variables, i)))
        entry = find(index, key, hash_key(key, width, load(index, SEED)))
        if entry < 0:
            return False
        packed = load(load(index, ENTRIES), entry * ENTRY + RING_OF)
        count = packed & LOWER
        if count == 0:
            return False
        shared = load(shares, j)
        if best < 0 or shared > best_shares or (shared == best_shares and count < least):
            best, best_shares, least = j, shared, count
            best_index, best_start = index, packed >> HALF & LOWER
    store(frame, F_INPUT, best)
    store(frame, F_NEXT, best_start)
    store(frame, F_LEFT, least)
    store(frame, F_RING, load(best_index, RING))
    store(frame, F_CHOSEN, chosen)
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bind_first(p: int, k: int, at: int, bound: int) -> None:
    """Write down what the mapping of an event binds."""
    buffer = load(p, BUFFERS) + k * (BUFFER * _WORD)
    base = at * load(buffer, B_WIDTH)
    cells = load(buffer, B_CELLS)
    for i in range(load(p, SHARED)):
        store(bound, i, 0)
    columns, variables, first = load(p, BIND_COLUMN), load(p, BIND_VARIABLE), load(p, BIND_FIRST)
    for i in range(load(first, k), load(first, k + 1)):
        store(bound, load(variables, i), load(cells, base + load(columns, i)))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bind(p: int, depth: int, k: int, cells: int, base: int) -> bool:
    """Add a mapping's values to those of the frame below; False if they disagree."""
    shared = load(p, SHARED)
    bound = load(p, BOUND) + depth * shared * _WORD
    columns, variables, first = load(p, BIND_COLUMN), load(p, BIND_VARIABLE), load(p, BIND_FIRST)
    for i in range(shared):
        store(bound, shared + i, load(bound, i))
    for i in range(load(first, k), load(first, k + 1)):
        value = load(cells, base + load(columns, i))
        if value != 0:
            variable = shared + load(variables, i)
            known = load(bound, variable)
            if known == 0:
                store(bound, variable, value)
            elif known != value:
                return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _head(buffer: int, at: int) -> int:
    """Give the address at which the first result made from a mapping stands."""
    word = at * load(buffer, B_WIDTH) + load(buffer, B_POINTERS)
    return load(buffer, B_CELLS) + word * _WORD


@njit(cache=True)  # type: ignore[untyped-decorator]
def _emit(p: int, t: int, leave: int) -> None:
    """Make a result: references to its parts, and a place in the lists of what can end it."""
    inputs, wide, places = load(p, INPUTS), load(p, LINKS_WIDE), load(p, PLACES)
    buffers, result, free = load(p, BUFFERS), load(p, RESULT), load(p, FREE) - 1
    store(p, FREE, free)
    o = load(load(p, FREE_ROWS), free)
    all_cells = load(p, CELLS)
    if free >= _ROWS_AHEAD:
        prefetch(all_cells, load(load(p, FREE_ROWS), free - _ROWS_AHEAD) * result)
    cells = all_cells + o * result * _WORD
    head, least = 0, FOREVER + 1
    for k in range(inputs):
        buffer = buffers + k * (BUFFER * _WORD)
        at = load(places, k)
        parts, base = load(buffer, B_CELLS), at * load(buffer, B_WIDTH)
        if load(buffer, B_COPIES) == 1:
            row = load(parts, base + FIRST_VALUE)
        else:
            after = at - load(buffer, B_FIRST)
            if after < 0:
                after += load(buffer, B_PLACES)
            row = load(buffer, B_HEAD) + after
        store(cells, k, row)
        if wide == 1:
            goes = load(parts, base + LEAVE)
            if goes < least:
                least = goes
                head = parts + (base + load(buffer, B_POINTERS)) * _WORD
        elif wide > 1:
            head = parts + (base + load(buffer, B_POINTERS)) * _WORD
            after = load(head, 0)
            store(cells, inputs + k, after)
            # The first of a list remembers whose list it is.
            store(cells, 2 * inputs + k, -at - 2)
            if after >= 0:
                store(all_cells, after * result + 2 * inputs + k, o)
            store(head, 0, o)
    if wide == 1:
        store(cells, inputs, load(head, 0))
        store(head, 0, o)
    _give(p, t, np.int64(1), o, leave)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _give(p: int, t: int, sign: int, row: int, leave: int) -> None:
    """Write a change of the output; there is room for it."""
    out, room, made = load(p, OUT), load(p, ROOM), load(p, MADE)
    store(out, made, t)
    store(out, room + made, sign)
    store(out, 2 * room + made, row)
    store(out, 3 * room + made, leave)
    store(p, MADE, made + 1)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _invalidate(p: int, t: int, k: int, at: int) -> bool:
    """Take back what a mapping made, through its list. Algorithm 3; False if the output is full."""
    inputs, wide, all_cells = load(p, INPUTS), load(p, LINKS_WIDE), load(p, CELLS)
    buffers, result = load(p, BUFFERS), load(p, RESULT)
    head = _head(buffers + k * (BUFFER * _WORD), at)
    while True:
        o = load(head, 0)
        if o < 0:
            return True
        if load(p, MADE) >= load(p, ROOM):
            return False
        if wide == 1:
            store(head, 0, load(all_cells, o * result + inputs))
        else:
            links = all_cells + (o * result + inputs) * _WORD
            for j in range(inputs):
                after = load(links, j)
                before = load(links, inputs + j)
                if before >= 0:
                    store(all_cells, before * result + inputs + j, after)
                else:
                    store(_head(buffers + j * (BUFFER * _WORD), -before - 2), 0, after)
                if after >= 0:
                    store(all_cells, after * result + 2 * inputs + j, before)
        _give(p, t, np.int64(-1), o, t)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _insert(p: int, k: int, at: int) -> None:
    """Put a mapping into the indexes of its buffer."""
    first, indexes, key = load(p, INDEX_FIRST), load(p, INDEXES), load(p, KEY)
    for x in range(load(first, k), load(first, k + 1)):
        insert(indexes + x * (DESCRIPTION * _WORD), at, key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _look_ahead(p: int, event: int) -> None:
    """Ask for what the events after this one will need: memory takes longer than all the rest.

    One thing leads to the next: the mapping to its key, the key to the entry, the entry to the
    matches. Each is asked for when the one before has had the time to come.
    """
    events, count = load(p, EVENTS), load(p, COUNT)
    row = event + _ROW_AHEAD
    if row < count:
        buffer = load(p, BUFFERS) + load(events, 2 * count + row) * (BUFFER * _WORD)
        prefetch(load(buffer, B_CELLS), load(events, 3 * count + row) * load(buffer, B_WIDTH))
    if event + _AHEAD >= count:
        return
    _ask_for_entries(p, event + _AHEAD)
    if load(events, count + event + _NEARER) > 0:
        _ask_for_matches(p, event + _NEARER)
    if load(p, LINKS_WIDE) > 0:
        for nth in range(3):
            near = event + _NEARER - 2 * nth
            if load(events, count + near) < 0:
                _ask_for_result(p, near, nth)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _ask_for_entries(p: int, event: int) -> None:
    """Ask for the entries of an event's mapping, and of what it will look for."""
    events, count = load(p, EVENTS), load(p, COUNT)
    k, at = load(events, 2 * count + event), load(events, 3 * count + event)
    indexes, key, first = load(p, INDEXES), load(p, KEY), load(p, INDEX_FIRST)
    for x in range(load(first, k), load(first, k + 1)):
        index = indexes + x * (DESCRIPTION * _WORD)
        entry = key_of(index, at, key) & load(index, MASK)
        prefetch(load(index, ENTRIES), entry * ENTRY)
    if load(events, count + event) < 0:
        return
    inputs = load(p, INPUTS)
    bound = load(p, BOUND) + inputs * load(p, SHARED) * _WORD
    hashes = load(p, HASHES) + (event & (EVENTS_AHEAD - 1)) * inputs * _WORD
    _bind_first(p, k, at, bound)
    index_of = load(p, INDEX_OF) + (1 << k) * inputs * _WORD
    for j in range(inputs):
        if j != k:
            index = indexes + load(index_of, j) * (DESCRIPTION * _WORD)
            width, variables = load(index, KEY_WIDTH), load(index, VARIABLES)
            for i in range(width):
                store(key, i, load(bound, load(variables, i)))
            hashed = hash_key(key, width, load(index, SEED))
            store(hashes, j, hashed)
            prefetch(load(index, ENTRIES), (hashed & load(index, MASK)) * ENTRY)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _ask_for_matches(p: int, event: int) -> None:
    """Ask for the newest match in each other buffer, unless there is one without any.

    An entry that is not the first of its line of probes is let be.
    """
    events, count, inputs = load(p, EVENTS), load(p, COUNT), load(p, INPUTS)
    k = load(events, 2 * count + event)
    hashes = load(p, HASHES) + (event & (EVENTS_AHEAD - 1)) * inputs * _WORD
    index_of = load(p, INDEX_OF) + (1 << k) * inputs * _WORD
    for j in range(inputs):
        if j != k:
            index = load(p, INDEXES) + load(index_of, j) * (DESCRIPTION * _WORD)
            hashed, entries = load(hashes, j), load(index, ENTRIES)
            entry = (hashed & load(index, MASK)) * ENTRY
            stored = load(entries, entry + HASH)
            if stored == hashed:
                packed = load(entries, entry + RING_OF)
                if packed & LOWER == 0:
                    return
                _ask_for_row(load(p, BUFFERS) + j * (BUFFER * _WORD), packed >> HALF & LOWER)
            elif stored == 0:
                return


@njit(cache=True)  # type: ignore[untyped-decorator]
def _ask_for_row(buffer: int, at: int) -> None:
    """Ask for a mapping with its pointers, which may lie in the next line of the cache."""
    cells, base = load(buffer, B_CELLS), at * load(buffer, B_WIDTH)
    prefetch(cells, base)
    prefetch(cells, base + load(buffer, B_POINTERS))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _ask_for_result(p: int, event: int, nth: int) -> None:
    """Ask for a result that goes with an event's mapping, when those before it have come."""
    events, count = load(p, EVENTS), load(p, COUNT)
    buffer = load(p, BUFFERS) + load(events, 2 * count + event) * (BUFFER * _WORD)
    links, result = load(p, CELLS) + load(p, INPUTS) * _WORD, load(p, RESULT)
    o = load(_head(buffer, load(events, 3 * count + event)), 0)
    for _ in range(nth):
        if o >= 0:
            o = load(links, o * result)
    if o >= 0:
        prefetch(links, o * result)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _full_index(p: int, k: int) -> int:
    """Give the index of a buffer that has to be built anew first; -1 if there is none."""
    first = load(p, INDEX_FIRST)
    for x in range(load(first, k), load(first, k + 1)):
        index = load(p, INDEXES) + x * (DESCRIPTION * _WORD)
        if load(index, USED) * 4 > load(index, MASK) * 3:
            return x
    return -1


@njit(cache=True)  # type: ignore[untyped-decorator]
def advance(p: int) -> int:
    """Take events in order: Algorithm 4, and Algorithm 5 as a loop over frames."""
    events, count, last = load(p, EVENTS), load(p, COUNT), load(p, INPUTS) - 2
    frames, places, far = load(p, FRAMES), load(p, PLACES), load(p, FAR)
    event, depth, work = load(p, EVENT), load(p, DEPTH), load(p, WORK)
    ended = DONE
    while True:
        if depth < 0:
            if event >= count:
                break
            if far == 1:
                _look_ahead(p, event)
            k, at = load(events, 2 * count + event), load(events, 3 * count + event)
            buffer = load(p, BUFFERS) + k * (BUFFER * _WORD)
            if load(events, count + event) < 0:
                if load(p, LINKS_WIDE) > 0 and not _invalidate(p, load(events, event), k, at):
                    ended = OUTPUT_FULL
                    break
                first, indexes = load(p, INDEX_FIRST), load(p, INDEXES)
                for x in range(load(first, k), load(first, k + 1)):
                    remove(indexes + x * (DESCRIPTION * _WORD), at, load(p, KEY))
                event += 1
                continue
            which = _full_index(p, k)
            if which >= 0:
                store(p, WHICH, which)
                ended = INDEX_FULL
                break
            if load(p, LINKS_WIDE) > 0:
                store(_head(buffer, at), 0, -1)
            cells, base = load(buffer, B_CELLS), at * load(buffer, B_WIDTH)
            if load(buffer, B_COPIES) == 1:
                # A row may go and come back within a step: what comes between two arrivals must
                # find the time of the first.
                store(cells, base + ENTER, load(events, event))
            _bind_first(p, k, at, load(p, BOUND))
            store(places, k, at)
            if _choose(p, np.int64(0), 1 << k):
                store(frames, F_ENTER, load(cells, base + ENTER))
                store(frames, F_LEAVE, load(cells, base + LEAVE))
                depth = 0
            else:
                _insert(p, k, at)
                event += 1
            continue
        frame = frames + depth * (FRAME * _WORD)
        left = load(frame, F_LEFT)
        if left == 0:
            depth -= 1
            if depth < 0:
                _insert(p, load(events, 2 * count + event), load(events, 3 * count + event))
                event += 1
            continue
        if depth == last and (load(p, MADE) >= load(p, ROOM) or load(p, FREE) == 0):
            ended = OUTPUT_FULL
            break
        if work <= 0:
            ended = TOO_MUCH
            break
        work -= 1
        j = load(frame, F_INPUT)
        buffer = load(p, BUFFERS) + j * (BUFFER * _WORD)
        at = load(frame, F_NEXT)
        store(frame, F_LEFT, left - 1)
        cells, base = load(buffer, B_CELLS), at * load(buffer, B_WIDTH)
        if left > 1:
            after = load(cells, base + load(frame, F_RING))
            store(frame, F_NEXT, after)
            if far == 1:
                _ask_for_row(buffer, after)
        enter = max(load(frame, F_ENTER), load(cells, base + ENTER))
        leave = min(load(frame, F_LEAVE), load(cells, base + LEAVE))
        if enter >= leave or not _bind(p, depth, j, cells, base):
            continue
        store(places, j, at)
        if depth == last:
            _emit(p, enter, leave)
        elif _choose(p, depth + 1, load(frame, F_CHOSEN) | 1 << j):
            depth += 1
            store(frame, FRAME + F_ENTER, enter)
            store(frame, FRAME + F_LEAVE, leave)
    store(p, EVENT, event)
    store(p, DEPTH, depth)
    store(p, WORK, work)
    return ended
