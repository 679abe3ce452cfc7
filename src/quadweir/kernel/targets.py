"""Who is to have a row: the index of constants and the router of paper 004 in one.

Targets are members of a template, or classes of members. Each has a key, which the row must have,
the lengths of its windows, which the row's oldest parts must be inside of, and an instant, which all
parts must be later than.

The paper's router goes through a list of windows by size for each answer. Here targets with equal
keys stand together, sorted by length; those whose window is long enough are found by halving, so
that a row costs what it is handed on for. With several windows there is one such order for each, and
a row goes through the one in which the fewest qualify.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.arrays import FOREVER, Ints, ints
from quadweir.kernel.oneway import FIRST_KEY, OneWay
from quadweir.kernel.tables import SlotTable

_BITS: Final = 40
_MOST: Final = (1 << _BITS) - 1

# Tables of fewer targets do not shrink.
_SMALL: Final = 1024

# Columns of a target; its lengths follow.
_ENTRY: Final = 0
_SINCE: Final = 1
_FIRST_ID: Final = 2


class TargetRows(NamedTuple):
    """Targets as columns, one in each row: identities, keys, lengths and instants."""

    ids: Ints
    keys: Ints
    ranges: Ints
    since: Ints

    def pick(self, which: NDArray[np.bool_] | Ints) -> TargetRows:
        """The targets at some places."""
        return TargetRows(*(each[which] for each in self))


@final
class Targets:
    """Targets that come and go.

    Adding and removing copies the sorted arrays once, whatever the number of changes: some
    hundred microseconds for 100,000 targets.

    Args:
        ids: How many integers identify a target.
        keys: How many integers its key has.
        windows: How many lengths it has.
    """

    def __init__(self, ids: int, keys: int, windows: int) -> None:
        self._ids, self._keys, self._windows = ids, keys, windows
        self._clear()

    def _clear(self) -> None:
        ids, keys, windows = self._ids, self._keys, self._windows
        self._index = OneWay(keys)
        self._slots = OneWay(ids, extra=1)
        self._cells = SlotTable(_FIRST_ID + ids + windows)
        # For each window, the entry of the key and the length as one integer, sorted, with slots.
        self._sorted = [ints(0) for _ in range(max(1, windows))]
        self._order = [ints(0) for _ in range(max(1, windows))]

    def __len__(self) -> int:
        return len(self._sorted[0])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        indexes = (self._index, self._slots)
        own = sum(each.nbytes for each in indexes)
        table = self._cells.cells.nbytes + self._cells.free.nbytes
        return own + table + sum(each.nbytes for each in (*self._sorted, *self._order))

    def longest(self) -> Ints:
        """The greatest length for each window; 0 where there are no targets."""
        own = self._cells.cells[self._order[0], _FIRST_ID + self._ids :]
        found: Ints = own.max(axis=0, initial=0)
        return found

    def earliest(self) -> int:
        """The least instant of all targets; FOREVER if there are none."""
        return int(self._cells.cells[self._order[0], _SINCE].min(initial=FOREVER))

    def keys(self) -> Ints:
        """The keys of all targets, each once."""
        found: Ints = self._index.cells[self._index.live(), FIRST_KEY : FIRST_KEY + self._keys]
        return found

    # --- changes ---

    def add(self, rows: TargetRows) -> Ints:
        """Add targets, none of which is there yet; return the keys that had none before."""
        count = len(rows.ids)
        entries, became = self._index.transitions(rows.keys, np.ones(count, dtype=np.int64))
        slots = self._cells.take(count)
        cells = self._cells.cells
        cells[slots, _ENTRY] = entries
        cells[slots, _SINCE] = rows.since
        cells[slots, _FIRST_ID : _FIRST_ID + self._ids] = rows.ids
        cells[slots, _FIRST_ID + self._ids :] = rows.ranges
        places = self._slots.add(rows.ids, np.ones(count, dtype=np.int64))
        self._slots.cells[places, self._slots.first_extra] = slots
        for window in range(len(self._order)):
            lengths = rows.ranges[:, window] if self._windows else ints(count)
            packed = (entries << _BITS) | lengths
            order = np.argsort(packed, kind="stable")
            at = np.searchsorted(self._sorted[window], packed[order])
            self._sorted[window] = np.insert(self._sorted[window], at, packed[order])
            self._order[window] = np.insert(self._order[window], at, slots[order])
        found: Ints = rows.keys[became > 0]
        return found

    def remove(self, ids: Ints) -> tuple[TargetRows, Ints]:
        """Remove targets that are there; return them, and the keys that have none any more.

        Raises:
            KeyError: One is not there.
        """
        places = self._slots.find(ids)
        if (places < 0).any():
            raise KeyError(int(ids[places < 0][0, 0]))
        slots = self._slots.cells[places, self._slots.first_extra]
        rows = self._rows(slots)
        self._slots.add(ids, np.full(len(ids), -1, dtype=np.int64))
        _, became = self._index.transitions(rows.keys, np.full(len(ids), -1, dtype=np.int64))
        gone = np.zeros(self._cells.capacity, dtype=bool)
        gone[slots] = True
        for window, order in enumerate(self._order):
            stays = ~gone[order]
            self._sorted[window] = self._sorted[window][stays]
            self._order[window] = order[stays]
        self._cells.release(slots)
        self._cells.settle()
        if self._cells.capacity > _SMALL and len(self) * 8 < self._cells.capacity:
            self._shrink()
        return rows, rows.keys[became < 0]

    def _shrink(self) -> None:
        rest = self.rows()
        self._clear()
        self.add(rest)

    def rows(self) -> TargetRows:
        """All targets."""
        return self._rows(self._order[0])

    def _rows(self, slots: Ints) -> TargetRows:
        cells = self._cells.cells[slots]
        keys = self._index.cells[cells[:, _ENTRY], FIRST_KEY : FIRST_KEY + self._keys]
        ids = cells[:, _FIRST_ID : _FIRST_ID + self._ids]
        return TargetRows(ids, keys, cells[:, _FIRST_ID + self._ids :], cells[:, _SINCE])

    # --- rows ---

    def are_wanted(self, keys: Ints) -> NDArray[np.bool_]:
        """Whether there is a target with each key."""
        found: NDArray[np.bool_] = self._index.find(keys) >= 0
        return found

    def find(self, keys: Ints, ages: Ints, oldest: Ints) -> tuple[Ints, Ints]:
        """Find who is to have each row.

        Args:
            keys: The key of each row.
            ages: For each window, how long it must be more than.
            oldest: The time of the oldest part.

        Returns:
            For each row and each of its targets, the row's place and the target's slot.
        """
        entries = self._index.find(keys)
        rows = np.flatnonzero(entries >= 0)
        entries = entries[rows]
        starts, counts, chosen = self._first(entries, ages[rows])
        taken = np.repeat(np.arange(len(rows)), counts)
        at = np.arange(len(taken)) - np.repeat(np.cumsum(counts) - counts - starts, counts)
        slots = self._order[0][at] if len(self._order) == 1 else self._slots_at(at, chosen[taken])
        taken = rows[taken]
        fits = self._cells.cells[slots, _SINCE] < oldest[taken]
        for window in range(self._windows if self._windows > 1 else 0):
            lengths = self._cells.cells[slots, _FIRST_ID + self._ids + window]
            fits &= lengths > ages[taken, window]
        if fits.all():
            return taken, slots
        return taken[fits], slots[fits]

    def _first(self, entries: Ints, ages: Ints) -> tuple[Ints, Ints, Ints]:
        """For each row the first place and the number of its targets, and in which order."""
        best: tuple[Ints, Ints, Ints] | None = None
        for window, packed in enumerate(self._sorted):
            if self._windows:
                least = np.clip(ages[:, window], 0, _MOST)
                starts = np.searchsorted(packed, (entries << _BITS) | least, side="right")
            else:
                starts = np.searchsorted(packed, entries << _BITS)
            counts = np.searchsorted(packed, (entries + 1) << _BITS) - starts
            if best is None:
                best = starts, counts, np.zeros_like(starts)
            else:
                less = counts < best[1]
                best = (
                    np.where(less, starts, best[0]),
                    np.where(less, counts, best[1]),
                    np.where(less, window, best[2]),
                )
        assert best is not None
        return best

    def _slots_at(self, at: Ints, chosen: Ints) -> Ints:
        slots = np.empty_like(at)
        for window, order in enumerate(self._order):
            here = chosen == window
            slots[here] = order[at[here]]
        return slots

    def ids(self, slots: Ints) -> Ints:
        """The identities of targets; those of one integer as one column."""
        found: Ints = self._cells.cells[slots, _FIRST_ID : _FIRST_ID + self._ids]
        return found

    def length(self, slots: Ints, window: int) -> Ints:
        """The lengths of one of the windows of targets."""
        found: Ints = self._cells.cells[slots, _FIRST_ID + self._ids + window]
        return found
