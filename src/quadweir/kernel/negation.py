"""Negation and existence: rows of the left side for which the right side has nothing, or something.

Serves NOT EXISTS, MINUS, EXISTS, and that part of OPTIONAL which has no match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import FOREVER, Ints, ints
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
from quadweir.kernel.relation import Delta, Operator, in_order
from quadweir.terms import Variable

# Cells of a left row in `Negation`.
_HERE: Final = FIRST_KEY + 1
_PAIRS: Final = _HERE + 1
_SHOWN: Final = _HERE + 2
_MARK: Final = _HERE + 3


LEFT: Final = 0
RIGHT: Final = 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _pass_pairs(
    t: Ints,
    sign: Ints,
    source: Ints,
    rows: Keys,
    negated: int,
    index: Entries,
    touched: Ints,
    out: Ints,
) -> int:
    """Count the pairs of left rows, and write (t, sign, row) where one appears or disappears."""
    cells = index.cells
    made = 0
    at = np.int64(0)
    while at < len(t):
        now = t[at]
        count = 0
        while at < len(t) and t[at] == now:
            entry = add_entry(index, rows, at)
            if cells[entry, _MARK] == 0:
                cells[entry, _MARK] = 1
                touched[count] = entry
                count += 1
            cells[entry, _HERE if source[at] == LEFT else _PAIRS] += sign[at]
            at += 1
        for each in range(count):
            entry = touched[each]
            cells[entry, _MARK] = 0
            # An entry is kept while its count is not 0. At the end of an instant neither part is below 0.
            cells[entry, COUNT] = cells[entry, _HERE] + cells[entry, _PAIRS]
            is_free = cells[entry, _PAIRS] == 0
            show = 1 if cells[entry, _HERE] > 0 and is_free == (negated == 1) else 0
            if show == cells[entry, _SHOWN]:
                continue
            cells[entry, _SHOWN] = show
            out[made, 0] = now
            out[made, 1] = 1 if show == 1 else -1
            out[made, 2] = cells[entry, FIRST_KEY]
            made += 1
    return made


def changes_of(out: Ints, made: int) -> Delta:
    """Return the first rows of (t, sign, row) as changes; when a row goes is not known."""
    t, sign, row = out[:made].T.copy()
    return Delta(t, sign, row, np.full(made, FOREVER, dtype=np.int64))


class LeftRows(Operator):
    """What all forms share: their rows are rows of the left side."""

    def __init__(self, left: Operator, *, negated: bool) -> None:
        self.left = left
        self.variables = left.variables
        self.always = left.always
        self.tables = left.tables
        self._negated = negated

    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Return what the left side's rows bind a variable to."""
        return self.left.column(variable, rows)

    def identity(self, rows: Ints) -> Ints:
        return self.left.identity(rows)

    def spans(self) -> tuple[int, ...]:
        return self.left.spans()


class Negation(LeftRows):
    """The left rows that are in no pair (`negated`), or in at least one.

    Algorithm 8 of paper 001 for any condition: a join below makes pairs of left rows and what is
    compatible with them on the right, and this counts them by left row. The paper compares keys,
    which is not enough where a variable may be unbound or a condition speaks of both sides.

    With `stateless`, the right side is complete before any left row comes and never changes: left
    rows come once with all their pairs, and are not remembered.

    Linear: no, a pair that comes takes a left row back.
    State: a counter for each left row.
    Forgets: a left row once it and its pairs are gone.
    """

    def __init__(
        self,
        left: Operator,
        pairs: Operator,
        left_row: Callable[[Ints], Ints] | Variable,
        negated: bool,
        stateless: bool = False,
    ) -> None:
        super().__init__(left, negated=negated)
        self._stateless = stateless
        self.pairs = pairs
        self._left_row = left_row
        self._index = OneWay(1, extra=4)

    def _row_of(self, pairs: Ints) -> Ints:
        if isinstance(self._left_row, Variable):
            return self.pairs.column(self._left_row, pairs)
        return self._left_row(pairs)

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the left side and of the pairs, and give those of the left rows."""
        left, pairs = inputs
        if self._stateless:
            came = left.pick(left.sign > 0)
            paired = np.isin(came.row, self._row_of(pairs.row[pairs.sign > 0]))
            return came.pick(paired != self._negated)
        pairs = pairs._replace(row=self._row_of(pairs.row))
        merged, source = in_order([left, pairs], arrivals_first=True)
        count = len(merged.t)
        index = self._index
        index.reserve(count)
        out = np.empty((count, 3), dtype=np.int64)
        made = _pass_pairs(
            plain(merged.t),
            plain(merged.sign),
            plain(source),
            index.hashed(merged.row.reshape(-1, 1)),
            int(self._negated),
            index.entries,
            ints(count),
            out,
        )
        return changes_of(out, made)

    def arrays(self) -> dict[str, Ints]:
        return prefixed("index", self._index.arrays())

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._index.restore(part("index", arrays))

    def held(self) -> int:
        return len(self._index.live())


class FixedNegation(LeftRows):
    """The left rows whose key a fixed relation does not have (`negated`), or has.

    Every row of both sides binds the key.

    Linear: in the left side; the right one never changes.
    State: the keys of the right side, indexed before anything comes.
    Forgets: nothing; they are as many as the data has.
    """

    def __init__(
        self, left: Operator, right: Operator, keys: tuple[Variable, ...], negated: bool
    ) -> None:
        super().__init__(left, negated=negated)
        self.timed = left.timed
        self.right = right
        self._variables = keys
        self._keys = OneWay(len(keys))

    def reads(self, place: int) -> bool:
        return place == LEFT

    def lay_out(self, given: Mapping[str, Ints]) -> None:
        if given:
            self._keys.take(given)
            return
        rows = np.arange(self.right.held(), dtype=np.int64)
        self._keys.add(self.right.columns(self._variables, rows), np.ones_like(rows))

    def layout(self) -> dict[str, Ints]:
        return self._keys.entries._asdict()

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the left side and give those of the rows that stay."""
        left, _ = inputs
        found = self._keys.find(self.left.columns(self._variables, left.row))
        return left.pick((found >= 0) != self._negated)
