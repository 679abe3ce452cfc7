"""The compiled functions of a join that request memory ahead of its use.

Once indexes are larger than the near caches, waiting for memory takes most of the time of a join.
One thing leads to the next: the mapping to its key, the key to the entry, the entry to the matches.
Each is requested when the one before has had the time to arrive.
"""

from __future__ import annotations

from typing import Final

from numba import njit

from quadweir.kernel.joinrecords import EVENTS_AHEAD, buffer_at
from quadweir.kernel.joinresults import list_of
from quadweir.kernel.memory import Record, Words, prefetch, prefetch_record, words, words_from
from quadweir.kernel.ringentries import entry_at, hash_key, index_at, key_of

# How many events ahead the mapping is requested, then its entries, then what they lead to.
_ROW_AHEAD: Final = 24
_ENTRIES_AHEAD: Final = 12
_MATCHES_AHEAD: Final = 6


@njit(cache=True)  # type: ignore[untyped-decorator]
def bind_first(join: Record, k: int, place: int, bound: Words) -> None:
    """Write what the mapping of an event binds to `bound`."""
    buffer = buffer_at(join.buffers, k)
    row = words_from(words(buffer.cells), place * buffer.width)
    for i in range(join.shared):
        bound[i] = 0
    columns, variables = words(join.bound_column), words(join.bound_variable)
    first = words(join.first_binding)
    for i in range(first[k], first[k + 1]):
        bound[variables[i]] = row[columns[i]]


@njit(cache=True)  # type: ignore[untyped-decorator]
def look_ahead(join: Record, event: int) -> None:
    """Request what the events after this one need."""
    count = join.count
    signs = words_from(words(join.events), count)
    inputs, places = words_from(signs, count), words_from(signs, 2 * count)
    row = event + _ROW_AHEAD
    if row < count:
        buffer = buffer_at(join.buffers, inputs[row])
        prefetch(words(buffer.cells), places[row] * buffer.width)
    if event + _ENTRIES_AHEAD >= count:
        return
    _request_entries(join, event + _ENTRIES_AHEAD)
    if signs[event + _MATCHES_AHEAD] > 0:
        _request_matches(join, event + _MATCHES_AHEAD)
    if join.lists > 0:
        for nth in range(3):
            near = event + _MATCHES_AHEAD - 2 * nth
            if signs[near] < 0:
                _request_result(join, inputs[near], places[near], nth)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _request_entries(join: Record, event: int) -> None:
    """Request the entries of an event's mapping, and of what it looks for."""
    count, key = join.count, words(join.key)
    events = words(join.events)
    sign, k, place = events[count + event], events[2 * count + event], events[3 * count + event]
    first = words(join.first_index)
    for x in range(first[k], first[k + 1]):
        index = index_at(join.indexes, x)
        prefetch_record(entry_at(index.entries, key_of(index, place, key) & index.mask))
    if sign < 0:
        return
    inputs = join.inputs
    bound = words_from(words(join.bound), inputs * join.shared)
    hashes = words_from(words(join.hashes), (event & (EVENTS_AHEAD - 1)) * inputs)
    bind_first(join, k, place, bound)
    index_of = words_from(words(join.index_of), (1 << k) * inputs)
    for j in range(inputs):
        if j != k:
            index = index_at(join.indexes, index_of[j])
            variables = words(index.variables)
            for i in range(index.key_width):
                key[i] = bound[variables[i]]
            hashed = hash_key(key, index.key_width, index.seed)
            hashes[j] = hashed
            prefetch_record(entry_at(index.entries, hashed & index.mask))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _request_matches(join: Record, event: int) -> None:
    """Request the newest match in each other buffer; stop at a buffer without any.

    Only the first entry that a hash leads to is tried.
    """
    inputs = join.inputs
    k = words(join.events)[2 * join.count + event]
    hashes = words_from(words(join.hashes), (event & (EVENTS_AHEAD - 1)) * inputs)
    index_of = words_from(words(join.index_of), (1 << k) * inputs)
    for j in range(inputs):
        if j != k:
            index = index_at(join.indexes, index_of[j])
            entry = entry_at(index.entries, hashes[j] & index.mask)
            if entry.hash == hashes[j]:
                if entry.count == 0:
                    return
                request_row(buffer_at(join.buffers, j), entry.start)
            elif entry.hash == 0:
                return


@njit(cache=True)  # type: ignore[untyped-decorator]
def request_row(buffer: Record, place: int) -> None:
    """Request a mapping with its pointers, which may lie in the next line of the cache."""
    cells, first = words(buffer.cells), place * buffer.width
    prefetch(cells, first)
    prefetch(cells, first + buffer.pointers)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _request_result(join: Record, k: int, place: int, nth: int) -> None:
    """Request the n-th result that goes with a mapping, when those before it have arrived."""
    links, width = words_from(words(join.result_cells), join.inputs), join.result_width
    result = list_of(buffer_at(join.buffers, k), place)[0]
    for _ in range(nth):
        if result >= 0:
            result = links[result * width]
    if result >= 0:
        prefetch(links, result * width)
