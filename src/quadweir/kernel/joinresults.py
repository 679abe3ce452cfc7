"""The compiled functions of a join that make results and take them back (paper 001, Algorithm 3)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import FOREVER
from quadweir.kernel.joinrecords import buffer_at
from quadweir.kernel.memory import Record, Words, prefetch, words, words_from
from quadweir.kernel.tables import FIRST_VALUE, LEAVE

# How many results ahead the rows for them are requested.
_ROWS_AHEAD: Final = 8


@njit(cache=True)  # type: ignore[untyped-decorator]
def row_of(buffer: Record, place: int) -> Words:
    """Return the words of the mapping at a place."""
    return words_from(words(buffer.cells), place * buffer.width)


@njit(cache=True)  # type: ignore[untyped-decorator]
def list_of(buffer: Record, place: int) -> Words:
    """Return where the number of the first result made from a mapping is stored."""
    return words_from(words(buffer.cells), place * buffer.width + buffer.pointers)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _number_of(buffer: Record, place: int) -> int:
    """Return the number that the mapping at a place has as a row of the input."""
    if buffer.copies == 1:
        return row_of(buffer, place)[FIRST_VALUE]
    after = place - buffer.head_place
    if after < 0:
        after += buffer.capacity
    return buffer.head + after


@njit(cache=True)  # type: ignore[untyped-decorator]
def emit(join: Record, t: int, leave: int) -> None:
    """Make a result: references to its parts, and a link in the lists of what can end it."""
    inputs, lists, places = join.inputs, join.lists, words(join.places)
    width, free = join.result_width, join.free - 1
    join.free = free
    free_rows, cells = words(join.free_rows), words(join.result_cells)
    result = free_rows[free]
    if free >= _ROWS_AHEAD:
        prefetch(cells, free_rows[free - _ROWS_AHEAD] * width)
    own = words_from(cells, result * width)
    ends_first = own
    least = FOREVER + 1
    for k in range(inputs):
        buffer, place = buffer_at(join.buffers, k), places[k]
        own[k] = _number_of(buffer, place)
        if lists == 1:
            goes = row_of(buffer, place)[LEAVE]
            if goes < least:
                least = goes
                ends_first = list_of(buffer, place)
        elif lists > 1:
            first = list_of(buffer, place)
            after = first[0]
            own[inputs + k] = after
            # The first of a list remembers whose list it is.
            own[2 * inputs + k] = -place - 2
            if after >= 0:
                cells[after * width + 2 * inputs + k] = result
            first[0] = result
    if lists == 1:
        own[inputs] = ends_first[0]
        ends_first[0] = result
    _change(join, t, np.int64(1), result, leave)


@njit(cache=True)  # type: ignore[untyped-decorator]
def _change(join: Record, t: int, sign: int, row: int, leave: int) -> None:
    """Write a change of the output; there is room for it."""
    output, room, made = words(join.output), join.room, join.made
    output[made] = t
    output[room + made] = sign
    output[2 * room + made] = row
    output[3 * room + made] = leave
    join.made = made + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def invalidate(join: Record, t: int, k: int, place: int) -> bool:
    """Take back what a mapping made, through its list; return False if the output is full."""
    inputs, lists, width = join.inputs, join.lists, join.result_width
    cells = words(join.result_cells)
    first = list_of(buffer_at(join.buffers, k), place)
    while True:
        result = first[0]
        if result < 0:
            return True
        if join.made >= join.room:
            return False
        if lists == 1:
            first[0] = cells[result * width + inputs]
        else:
            links = words_from(cells, result * width + inputs)
            for j in range(inputs):
                after = links[j]
                before = links[inputs + j]
                if before >= 0:
                    cells[before * width + inputs + j] = after
                else:
                    list_of(buffer_at(join.buffers, j), -before - 2)[0] = after
                if after >= 0:
                    cells[after * width + 2 * inputs + j] = before
        _change(join, t, np.int64(-1), result, t)
