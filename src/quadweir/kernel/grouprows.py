"""The compiled functions of GROUP BY: the group of each change, and the rows that show groups."""

from __future__ import annotations

from typing import Final

from numba import njit

from quadweir.kernel.arrays import Ints
from quadweir.kernel.memory import prefetch
from quadweir.kernel.oneway import (
    COUNT,
    FIRST_KEY,
    Entries,
    Keys,
    add_entry,
)

# Behind the key of a group: the output row that shows it, plus one, and the number of its last
# change, counted over all steps from 1.
_ROW: Final = 0
CHANGE: Final = 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def group_pass(
    t: Ints,
    sign: Ints,
    keys: Keys,
    index: Entries,
    changes: int,
    groups: Ints,
    last: Ints,
    alive: Ints,
) -> int:
    """Find the group of each change (Algorithm 6, lines 6 to 11 and 19 to 20), and count rows.

    `last` becomes 1 at the last change of a group within an instant, and `alive` says there
    whether the group has rows then. Before this step there were so many `changes`. Returns how many
    are the last.
    """
    cells, change_cell = index.cells, FIRST_KEY + keys.values.shape[1] + CHANGE
    instant = 0  # the first change of this instant
    shown = len(t)
    for at in range(len(t)):
        if t[at] != t[instant]:
            instant = at
        group = add_entry(index, keys, at)
        groups[at] = group
        before = cells[group, change_cell] - changes - 1
        if before >= instant:
            last[before] = 0
            shown -= 1
        cells[group, change_cell] = changes + at + 1
        cells[group, COUNT] += sign[at]
        last[at] = 1
        alive[at] = 1 if cells[group, COUNT] > 0 else 0
    return shown


@njit(cache=True)  # type: ignore[untyped-decorator]
def emit_pass(
    t: Ints,
    groups: Ints,
    last: Ints,
    alive: Ints,
    results: Ints,
    key_width: int,
    cells: Ints,
    rows: Ints,
    fresh: Ints,
    out: Ints,
) -> tuple[int, int]:
    """Replace the rows of groups that changed (Algorithm 6, line 2).

    Looks where `last` is 1. Writes times, signs, rows, and whether the group itself comes or goes;
    returns how many changes there are and how many rows were used.
    """
    row_cell = FIRST_KEY + key_width + _ROW
    width = results.shape[1]
    made = 0
    taken = 0
    for at in range(len(t)):
        if at + 16 < len(t):
            # The group, and then the row that shows it, before they are needed.
            prefetch(cells, cells.shape[1] * groups[at + 16])
            prefetch(rows, rows.shape[1] * (cells[groups[at + 8], row_cell] - 1))
        if last[at] == 0:
            continue
        group = groups[at]
        old = cells[group, row_cell] - 1
        if alive[at] == 1 and old >= 0:
            same = True
            for place in range(width):
                if rows[old, key_width + place] != results[at, place]:
                    same = False
                    break
            if same:
                continue
        if old >= 0:
            out[0, made] = t[at]
            out[1, made] = -1
            out[2, made] = old
            out[3, made] = 1 - alive[at]
            made += 1
            cells[group, row_cell] = 0
        if alive[at] == 1:
            row = fresh[taken]
            taken += 1
            for place in range(key_width + width, rows.shape[1]):
                rows[row, place] = 0
            for place in range(key_width):
                rows[row, place] = cells[group, FIRST_KEY + place]
            for place in range(width):
                rows[row, key_width + place] = results[at, place]
            cells[group, row_cell] = row + 1
            out[0, made] = t[at]
            out[1, made] = 1
            out[2, made] = row
            out[3, made] = 1 if old < 0 else 0
            made += 1
    return made, taken
