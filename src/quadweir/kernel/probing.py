"""The compiled loop of the multiway join: events in, results out (paper 001, section 4.1).

What the algorithms do, and what differs from the paper, is explained in `multijoin.py`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints
from quadweir.kernel.joinprefetch import bind_first, look_ahead, request_row
from quadweir.kernel.joinrecords import JoinRecord, buffer_at, frame_at
from quadweir.kernel.joinresults import emit, invalidate, list_of, row_of
from quadweir.kernel.memory import Record, Words, words, words_from
from quadweir.kernel.ringentries import entry_at, find, hash_key, index_at, insert, is_full, remove
from quadweir.kernel.tables import ENTER, LEAVE

# How a call ended.
DONE: Final = 0
OUTPUT_FULL: Final = 1
INDEX_FULL: Final = 2
TOO_MUCH: Final = 3


@njit(cache=True)  # type: ignore[untyped-decorator]
def merge_by_time(times: Ints, signs: Ints, places: Ints, ends: Ints, events: Ints) -> None:
    """Merge inputs, each in order and one after the other, to (time, sign, input, place).

    At one instant, what goes comes before what arrives.
    """
    inputs = len(ends)
    at = np.zeros(inputs, dtype=np.int64)
    for k in range(1, inputs):
        at[k] = ends[k - 1]
    for made in range(len(times)):
        best, least, arrives = -1, 0, False
        for k in range(inputs):
            if at[k] < ends[k]:
                t = times[at[k]]
                is_arrival = signs[at[k]] > 0
                if best < 0 or t < least or (t == least and arrives and not is_arrival):
                    best, least, arrives = k, t, is_arrival
        i = at[best]
        at[best] = i + 1
        events[0, made] = least
        events[1, made] = signs[i]
        events[2, made] = best
        events[3, made] = places[i]


@njit(cache=True)  # type: ignore[untyped-decorator]
def merge_arrivals_first(times: Ints, signs: Ints, places: Ints, ends: Ints, events: Ints) -> None:
    """Merge inputs like `merge_by_time`, but all arrivals before all that goes, input by input."""
    made = 0
    for turn in range(2):
        sign = 1 - 2 * turn
        first = 0
        for k in range(len(ends)):
            for i in range(first, ends[k]):
                if signs[i] == sign:
                    events[0, made] = times[i]
                    events[1, made] = sign
                    events[2, made] = k
                    events[3, made] = places[i]
                    made += 1
            first = ends[k]


@njit(cache=True)  # type: ignore[untyped-decorator]
def _choose(join: Record, depth: int, chosen: int) -> bool:
    """Choose the next buffer and open a frame on its matches; return False if one has none.

    Algorithm 5, lines 2 to 8, with exact counts for its estimate.
    """
    inputs, key = join.inputs, words(join.key)
    index_of = words_from(words(join.index_of), chosen * inputs)
    has_key = words_from(words(join.has_key), chosen * inputs)
    bound = words_from(words(join.bound), depth * join.shared)
    best, best_has_key, ring = -1, 0, 0
    least, start = np.int64(0), np.int64(0)
    for j in range(inputs):
        if chosen >> j & 1:
            continue
        index = index_at(join.indexes, index_of[j])
        variables = words(index.variables)
        for i in range(index.key_width):
            key[i] = bound[variables[i]]
        found = find(index, key, hash_key(key, index.key_width, index.seed))
        if found < 0:
            return False
        entry = entry_at(index.entries, found)
        count = np.int64(entry.count)
        if count == 0:
            return False
        keyed = has_key[j]
        if best < 0 or keyed > best_has_key or (keyed == best_has_key and count < least):
            best, best_has_key, least = j, keyed, count
            ring, start = index.ring, np.int64(entry.start)
    frame = frame_at(join.frames, depth)
    frame.input = best
    frame.next = start
    frame.left = least
    frame.ring = ring
    frame.chosen = chosen
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _bind(join: Record, depth: int, k: int, row: Words) -> bool:
    """Add a mapping's values to those of the frame below; return False if they disagree."""
    shared = join.shared
    bound = words_from(words(join.bound), depth * shared)
    columns, variables = words(join.bound_column), words(join.bound_variable)
    first = words(join.first_binding)
    for i in range(shared):
        bound[shared + i] = bound[i]
    for i in range(first[k], first[k + 1]):
        value = row[columns[i]]
        if value != 0:
            variable = shared + variables[i]
            known = bound[variable]
            if known == 0:
                bound[variable] = value
            elif known != value:
                return False
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _insert(join: Record, k: int, place: int) -> None:
    """Put a mapping into the indexes of its buffer."""
    first, key = words(join.first_index), words(join.key)
    for x in range(first[k], first[k + 1]):
        insert(index_at(join.indexes, x), place, key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _remove(join: Record, k: int, place: int) -> None:
    """Take a mapping out of the indexes of its buffer."""
    first, key = words(join.first_index), words(join.key)
    for x in range(first[k], first[k + 1]):
        remove(index_at(join.indexes, x), place, key)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _full_index(join: Record, k: int) -> int:
    """Return the index of a buffer that has to grow first; -1 if there is none."""
    first = words(join.first_index)
    for x in range(first[k], first[k + 1]):
        if is_full(index_at(join.indexes, x)):
            return x
    return -1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _arrive(join: Record, t: int, k: int, place: int) -> bool:
    """Open the first frame for a mapping that arrives; return False if nothing matches it."""
    buffer = buffer_at(join.buffers, k)
    row = row_of(buffer, place)
    if join.lists > 0:
        list_of(buffer, place)[0] = -1
    if buffer.copies == 1:
        # A row may go and come back within a step: what comes between two arrivals must
        # find the time of the first.
        row[ENTER] = t
    bind_first(join, k, place, words(join.bound))
    words(join.places)[k] = place
    if not _choose(join, np.int64(0), 1 << k):
        return False
    frame = frame_at(join.frames, 0)
    frame.enter = row[ENTER]
    frame.leave = row[LEAVE]
    return True


@njit(cache=True)  # type: ignore[untyped-decorator]
def _try_next(join: Record, depth: int) -> int:
    """Try the next mapping of a frame; return the depth of the frame to go on with."""
    frame = frame_at(join.frames, depth)
    j, place, left = frame.input, frame.next, frame.left
    buffer = buffer_at(join.buffers, j)
    row = row_of(buffer, place)
    frame.left = left - 1
    if left > 1:
        after = row[frame.ring]
        frame.next = after
        if join.far == 1:
            request_row(buffer, after)
    enter = max(frame.enter, row[ENTER])
    leave = min(frame.leave, row[LEAVE])
    if enter >= leave or not _bind(join, depth, j, row):
        return depth
    words(join.places)[j] = place
    if depth == join.inputs - 2:
        emit(join, enter, leave)
    elif _choose(join, depth + 1, frame.chosen | 1 << j):
        below = frame_at(join.frames, depth + 1)
        below.enter = enter
        below.leave = leave
        return depth + 1
    return depth


@njit(cache=True)  # type: ignore[untyped-decorator]
def advance(joins: JoinRecord) -> int:
    """Take events in order: Algorithm 4, and Algorithm 5 as a loop over frames."""
    join = joins[0]
    count, last, far = join.count, join.inputs - 2, join.far
    times = words(join.events)
    signs = words_from(times, count)
    inputs, places = words_from(signs, count), words_from(signs, 2 * count)
    event, depth, work = join.event, join.depth, join.work
    ended = DONE
    while True:
        if depth < 0:
            if event >= count:
                break
            if far == 1:
                look_ahead(join, event)
            k, place = inputs[event], places[event]
            if signs[event] < 0:
                if join.lists > 0 and not invalidate(join, times[event], k, place):
                    ended = OUTPUT_FULL
                    break
                _remove(join, k, place)
                event += 1
                continue
            full = _full_index(join, k)
            if full >= 0:
                join.full_index = full
                ended = INDEX_FULL
                break
            if _arrive(join, times[event], k, place):
                depth = 0
            else:
                _insert(join, k, place)
                event += 1
            continue
        if frame_at(join.frames, depth).left == 0:
            depth -= 1
            if depth < 0:
                _insert(join, inputs[event], places[event])
                event += 1
            continue
        if depth == last and (join.made >= join.room or join.free == 0):
            ended = OUTPUT_FULL
            break
        if work <= 0:
            ended = TOO_MUCH
            break
        work -= 1
        depth = _try_next(join, depth)
    join.event = event
    join.depth = depth
    join.work = work
    return ended
