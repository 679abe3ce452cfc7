"""Negation and existence: rows of the left side for which the right side has nothing, or something.

Serves NOT EXISTS, MINUS, EXISTS, and that part of OPTIONAL which has no match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

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
from quadweir.kernel.relation import Delta, Operator, in_order, no_change
from quadweir.terms import Variable

# Cells of a left row in `Negation`.
_HERE: Final = FIRST_KEY + 1
_PAIRS: Final = _HERE + 1
_SHOWN: Final = _HERE + 2
_MARK: Final = _HERE + 3

# Cells of a left row in `KeyNegation`: the entry of its key, its neighbours in the ring plus one,
# whether it is shown, whether it is in the ring, and whether this instant touched it.
_KEY: Final = FIRST_KEY + 1
_NEXT: Final = _KEY + 1
_BEFORE: Final = _KEY + 2
_VISIBLE: Final = _KEY + 3
_LINKED: Final = _KEY + 4
_MARKED: Final = _KEY + 5

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
            # What keeps the entry; both parts are counts again at the end of an instant.
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


@njit(cache=True)  # type: ignore[untyped-decorator]
def _link(cells: Ints, keys: Ints, node: int, head_cell: int) -> None:
    """Put a left row at the start of the ring of its key."""
    key = cells[node, _KEY]
    head = keys[key, head_cell]
    cells[node, _LINKED] = 1
    cells[node, _NEXT] = head
    cells[node, _BEFORE] = 0
    if head > 0:
        cells[head - 1, _BEFORE] = node + 1
    keys[key, head_cell] = node + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _unlink(cells: Ints, keys: Ints, node: int, head_cell: int) -> None:
    """Take a left row out of the ring of its key."""
    cells[node, _LINKED] = 0
    after, before = cells[node, _NEXT], cells[node, _BEFORE]
    if before > 0:
        cells[before - 1, _NEXT] = after
    else:
        keys[cells[node, _KEY], head_cell] = after
    if after > 0:
        cells[after - 1, _BEFORE] = before


@njit(cache=True)  # type: ignore[untyped-decorator]
def _write(out: Ints, made: int, t: int, sign: int, row: int) -> int:
    out[made, 0] = t
    out[made, 1] = sign
    out[made, 2] = row
    return made + 1


@njit(cache=True)  # type: ignore[untyped-decorator]
def _pass_keys(
    t: Ints,
    sign: Ints,
    source: Ints,
    rows: Keys,
    keys_of: Keys,
    negated: int,
    by_row: Entries,
    by_key: Entries,
    touched: Ints,
    arrived: Ints,
    start: int,
    left_rows: int,
    out: Ints,
) -> tuple[int, int]:
    """Algorithm 8 over the merged changes of both sides, from change `start` on.

    Gives how many changes were written and how far it came: it stops before an instant for which
    there might not be room, should all of the `left_rows` be written.

    `by_row` has the left rows, `by_key` the keys `keys_of` all changes: the counter of the right side, the
    start of the ring of left rows, and a mark.
    """
    cells, keys = by_row.cells, by_key.cells
    right_cell = FIRST_KEY + keys_of.values.shape[1]
    head_cell = right_cell + 1
    mark_cell = right_cell + 2
    made = np.int64(0)
    at = start
    while at < len(t) and made + 2 * left_rows <= len(out):
        now = t[at]
        count = 0
        arrivals = 0
        while at < len(t) and t[at] == now:
            key = add_entry(by_key, keys_of, at)
            keys[key, COUNT] += sign[at]
            if source[at] == RIGHT:
                if keys[key, mark_cell] == 0:
                    keys[key, mark_cell] = 2 if keys[key, right_cell] > 0 else 1
                    touched[count] = key
                    count += 1
                keys[key, right_cell] += sign[at]
            else:
                node = add_entry(by_row, rows, at)
                cells[node, COUNT] += sign[at]
                if cells[node, _MARKED] == 0:
                    cells[node, _MARKED] = 1
                    cells[node, _KEY] = key
                    arrived[arrivals] = node
                    arrivals += 1
            at += 1
        # Left rows that go leave their rings first; those that come join them last, as they are.
        for each in range(arrivals):
            node = arrived[each]
            if cells[node, COUNT] == 0 and cells[node, _LINKED] == 1:
                _unlink(cells, keys, node, head_cell)
                if cells[node, _VISIBLE] == 1:
                    cells[node, _VISIBLE] = 0
                    made = _write(out, made, now, np.int64(-1), cells[node, FIRST_KEY])
        for each in range(count):
            key = touched[each]
            had = keys[key, mark_cell] == 2
            has = keys[key, right_cell] > 0
            keys[key, mark_cell] = 0
            if had == has:
                continue
            show = 1 if has == (negated == 0) else 0
            node = keys[key, head_cell] - 1
            while node >= 0:
                if cells[node, _VISIBLE] != show:
                    cells[node, _VISIBLE] = show
                    made = _write(out, made, now, 2 * show - 1, cells[node, FIRST_KEY])
                node = cells[node, _NEXT] - 1
        for each in range(arrivals):
            node = arrived[each]
            cells[node, _MARKED] = 0
            if cells[node, COUNT] == 0 or cells[node, _LINKED] == 1:
                continue
            key = cells[node, _KEY]
            _link(cells, keys, node, head_cell)
            if (keys[key, right_cell] > 0) == (negated == 0):
                cells[node, _VISIBLE] = 1
                made = _write(out, made, now, np.int64(1), cells[node, FIRST_KEY])
    return int(made), at


def _delta(out: Ints, made: int) -> Delta:
    t, sign, row = out[:made].T.copy()
    return Delta(t, sign, row, np.full(made, FOREVER, dtype=np.int64))


class _LeftRows(Operator):
    """What all forms share: their rows are rows of the left side."""

    def __init__(self, left: Operator, *, negated: bool) -> None:
        self.left = left
        self.variables = left.variables
        self.always = left.always
        self._negated = negated

    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Give what the left side's rows bind a variable to."""
        return self.left.column(variable, rows)

    def identity(self, rows: Ints) -> Ints:
        return self.left.identity(rows)

    def span(self) -> int:
        return self.left.span()


class Negation(_LeftRows):
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
        return _delta(out, made)

    def arrays(self) -> dict[str, Ints]:
        return prefixed("index", self._index.arrays())

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._index.restore(part("index", arrays))

    def held(self) -> int:
        return len(self._index.live())


class KeyNegation(_LeftRows):
    """The left rows whose key the right side does not have (`negated`), or has.

    Algorithm 8 of paper 001, for keys that every row of both sides binds: a counter for each key of
    the right side and a ring of the left rows with that key; no pairs are made. What differs: the
    counter is that of the right side alone (line 12 of the paper counts left rows in it, so that a
    key would seem to be there when its last right row has gone), what goes is told by the row, and
    changes of one instant are netted before anything is given out.

    Linear: no, a right row that comes takes left rows back.
    State: the left rows, linked by key, and a counter for each key of either side.
    Forgets: a left row when it goes; a key when no row of either side has it.
    """

    def __init__(
        self,
        left: Operator,
        right: Operator,
        keys: tuple[Variable, ...],
        negated: bool,
        dictionary: Dictionary,
    ) -> None:
        super().__init__(left, negated=negated)
        self.right = right
        self._variables = keys
        self._dictionary = dictionary
        self._rows = OneWay(1, extra=6)
        self._keys = OneWay(len(keys), extra=3)
        self._gone: list[Ints] = []

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of both sides and give those of the left rows."""
        left, right = inputs
        right_values = self.right.columns(self._variables, right.row)
        left_values = self.left.columns(self._variables, left.row)
        order, source = in_order(
            [
                left._replace(leave=np.arange(len(left.t))),
                right._replace(leave=np.arange(len(right.t))),
            ],
            arrivals_first=True,
        )
        count = len(order.t)
        values = np.concatenate([left_values, right_values])[
            order.leave + np.where(source == RIGHT, len(left.t), 0)
        ]
        self._rows.reserve(len(left.t))
        self._keys.reserve(count)
        self._hold(values, order.sign)
        rows, keys = self._rows, self._keys
        fixed = (
            plain(order.t),
            plain(order.sign),
            plain(source),
            rows.hashed(order.row.reshape(-1, 1)),
            keys.hashed(values),
            int(self._negated),
            rows.entries,
            keys.entries,
            ints(count),
            ints(count),
        )
        done, deltas = 0, [no_change()]
        while done < count:
            # Each left row is written twice in an instant at most, and there are no more of them.
            most = rows.size + len(left.t)
            out = np.empty((4 * most + count, 3), dtype=np.int64)
            made, done = _pass_keys(*fixed, done, most, out)
            deltas.append(_delta(out, made))
        return Delta(*(np.concatenate(parts) for parts in zip(*deltas, strict=True)))

    def _hold(self, values: Ints, sign: Ints) -> None:
        self._dictionary.hold(values[sign > 0].ravel())
        self._gone.append(values[sign < 0].ravel())

    def settle(self) -> None:
        """Let go of the keys of the rows that went."""
        for numbers in self._gone:
            if len(numbers):
                self._dictionary.drop(numbers)
        self._gone = []

    def arrays(self) -> dict[str, Ints]:
        return prefixed("rows", self._rows.arrays()) | prefixed("keys", self._keys.arrays())

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._rows.restore(part("rows", arrays))
        self._keys.restore(part("keys", arrays))
        self._gone = []

    def held(self) -> int:
        return len(self._rows.live())


class FixedNegation(_LeftRows):
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
