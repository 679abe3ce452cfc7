"""Negation and existence by a key that every row of both sides binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.negation import RIGHT, LeftRows, changes_of
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

# Cells of a left row in `KeyNegation`: the entry of its key, its neighbours in the ring plus one,
# whether it is shown, whether it is in the ring, and whether this instant touched it.
_KEY: Final = FIRST_KEY + 1
_NEXT: Final = _KEY + 1
_BEFORE: Final = _KEY + 2
_VISIBLE: Final = _KEY + 3
_LINKED: Final = _KEY + 4
_MARKED: Final = _KEY + 5


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

    Returns how many changes were written and how far it came: it stops before an instant for which
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


class KeyNegation(LeftRows):
    """The left rows whose key the right side does not have (`negated`), or has.

    Algorithm 8 of paper 001, for keys that every row of both sides binds: a counter for each key of
    the right side and a ring of the left rows with that key; no pairs are made. What differs: the
    counter is that of the right side alone (line 12 of the paper counts left rows in it, so that a
    key would seem to be there when its last right row has gone), what goes is identified by its row, and
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
            deltas.append(changes_of(out, made))
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
