"""DISTINCT: each row once, as long as some row of the input is equal to it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from quadweir.kernel.arrays import FOREVER, Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.oneway import (
    COUNT,
    FIRST_KEY,
    Entries,
    Keys,
    OneWay,
    add_entry,
    part,
    plain,
    prefixed,
)
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.tables import SlotTable
from quadweir.terms import Variable


@njit(cache=True)  # type: ignore[untyped-decorator]
def _pass(
    t: Ints,
    sign: Ints,
    keys: Keys,
    index: Entries,
    fresh: Ints,
    values: Ints,
    touched: Ints,
    out: Ints,
) -> tuple[int, int]:
    """Algorithm 7 over changes in order of time.

    `out` takes (t, sign, row); `values` are the cells of the rows, `fresh` the rows to be used.
    Returns how many changes there are and how many rows were used.
    """
    cells, key_width = index.cells, keys.values.shape[1]
    row_cell = FIRST_KEY + key_width
    mark_cell = row_cell + 1
    made = 0
    taken = 0
    at = np.int64(0)
    while at < len(t):
        now = t[at]
        count = 0
        while at < len(t) and t[at] == now:
            entry = add_entry(index, keys, at)
            if cells[entry, mark_cell] == 0:
                cells[entry, mark_cell] = 2 if cells[entry, COUNT] > 0 else 1
                touched[count] = entry
                count += 1
            cells[entry, COUNT] += sign[at]
            at += 1
        for each in range(count):
            entry = touched[each]
            was_there = cells[entry, mark_cell] == 2
            is_there = cells[entry, COUNT] > 0
            cells[entry, mark_cell] = 0
            if was_there == is_there:
                continue
            if is_there:
                row = fresh[taken]
                taken += 1
                cells[entry, row_cell] = row
                for place in range(key_width):
                    values[row, place] = cells[entry, FIRST_KEY + place]
            out[made, 0] = now
            out[made, 1] = 1 if is_there else -1
            out[made, 2] = cells[entry, row_cell]
            made += 1
    return made, taken


class Distinct(Operator):
    """Each combination of values of `variables` once; not bound is a value too.

    Algorithm 7 of paper 001. A key that goes and comes back within an instant changes nothing: the
    paper's null mapping, which ends a tick, is the end of the changes of one time here. There is no
    buffer of the input (the paper's EXP): a row that goes comes with its values.

    Linear: no, a row goes when its last equal goes.
    State: one row and one entry of the one-way index for each distinct row.
    Forgets: a row once nothing in the input is equal to it.
    """

    def __init__(
        self, source: Operator, variables: tuple[Variable, ...], dictionary: Dictionary
    ) -> None:
        self.source = source
        self.variables = variables
        self.always = source.always & frozenset(variables)
        self._dictionary = dictionary
        self._place = {variable: place for place, variable in enumerate(variables)}
        self._index = OneWay(len(variables), extra=2)
        self._rows = SlotTable(len(variables))

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the source and give those of the distinct rows."""
        (delta,) = inputs
        count = len(delta.t)
        if not count:
            return no_change()
        index = self._index
        keys = index.hashed(self.source.columns(self.variables, delta.row))
        index.reserve(count)
        fresh = self._rows.take(count)
        out = np.empty((count, 3), dtype=np.int64)
        made, taken = _pass(
            plain(delta.t),
            plain(delta.sign),
            keys,
            index.entries,
            fresh,
            self._rows.cells,
            ints(count),
            out,
        )
        self._rows.free_count += count - taken
        t, sign, row = out[:made].T.copy()
        self._dictionary.hold(self._rows.cells[fresh[:taken]].ravel())
        self._rows.release(row[sign < 0])
        return Delta(t, sign, row, np.full(made, FOREVER, dtype=np.int64))

    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Return what rows bind a variable to."""
        return self._rows.cells[rows, self._place[variable]]

    def span(self) -> int:
        return self._rows.capacity

    def settle(self) -> None:
        """Let go of the rows that went."""
        rows = self._rows.settle()
        if len(rows):
            self._dictionary.drop(self._rows.cells[rows].ravel())

    def arrays(self) -> dict[str, Ints]:
        return prefixed("index", self._index.arrays()) | prefixed("rows", self._rows.arrays())

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._index.restore(part("index", arrays))
        self._rows.restore(part("rows", arrays))

    def held(self) -> int:
        return self._rows.held
