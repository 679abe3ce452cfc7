"""Tables of rows: those that come and go in any order, and those that go in the order they came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numba import njit

from quadweir.kernel.arrays import Ints, ints, power_of_two, table_of

# The first columns of a table that a join can probe without copying its rows.
ENTER: Final = 0
LEAVE: Final = 1
FIRST_VALUE: Final = 2


class SlotTable:
    """Rows that come and go in any order.

    A row number is used again once the row was released and the table settled.
    """

    def __init__(self, width: int, capacity: int = 16) -> None:
        capacity = power_of_two(capacity)
        self.width = width
        self.cells = table_of(capacity, width)
        # A stack of the free rows; the next to be taken is the last.
        self.free = np.arange(capacity - 1, -1, -1, dtype=np.int64)
        self.free_count = capacity
        self._released: list[Ints] = []

    @property
    def capacity(self) -> int:
        return len(self.cells)

    @property
    def held(self) -> int:
        """How many rows are in use, those included that were released but not settled."""
        return self.capacity - self.free_count

    def reserve(self, count: int) -> None:
        """Make sure that `count` more rows can be taken."""
        if self.free_count >= count:
            return
        old = self.capacity
        new = power_of_two(self.held + count)
        cells = table_of(new, self.width)
        cells[:old] = self.cells
        self.cells = cells
        free = np.empty(new, dtype=np.int64)
        free[: new - old] = np.arange(new - 1, old - 1, -1)
        free[new - old : new - old + self.free_count] = self.free[: self.free_count]
        self.free = free
        self.free_count += new - old

    def take(self, count: int) -> Ints:
        """Take rows; the caller fills their cells."""
        self.reserve(count)
        self.free_count -= count
        return self.free[self.free_count : self.free_count + count][::-1].copy()

    def release(self, rows: Ints) -> None:
        """Return rows; they can be read until `settle`."""
        if len(rows):
            self._released.append(rows)

    def settle(self) -> Ints:
        """Free what was released, and return those rows."""
        if not self._released:
            return ints(0)
        rows = np.concatenate(self._released)
        self._released = []
        self.free[self.free_count : self.free_count + len(rows)] = rows
        self.free_count += len(rows)
        return rows

    def arrays(self) -> dict[str, Ints]:
        """Return what `restore` needs; only between steps."""
        rows = self.rows()
        return {"rows": rows, "cells": self.cells[rows]}

    def rows(self) -> Ints:
        """Return the rows that are in use, in order of their numbers."""
        taken = np.ones(self.capacity, dtype=bool)
        taken[self.free[: self.free_count]] = False
        return np.flatnonzero(taken)

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        """Take back what `arrays` returned, in a table no larger than it has to be.

        Columns that are not there follow from others; the owner fills them in.
        """
        rows, cells = arrays["rows"], arrays["cells"]
        capacity = power_of_two(max(16, int(rows[-1]) + 1 if len(rows) else 0))
        self.cells = table_of(capacity, self.width)
        self.cells[rows, : cells.shape[1]] = cells
        taken = np.zeros(capacity, dtype=bool)
        taken[rows] = True
        free = np.flatnonzero(~taken)[::-1]
        self.free = np.zeros(capacity, dtype=np.int64)
        self.free[: len(free)] = free
        self.free_count = len(free)
        self._released = []


@njit(cache=True)  # type: ignore[untyped-decorator]
def read_rows(cells: Ints, rows: Ints, first: int, column: int, found: Ints) -> None:
    """Copy a column of a circular table to `found`; row `first` lies at place 0.

    This is faster than finding all places and then picking, which needs three arrays.
    """
    size = len(cells)
    for at in range(len(rows)):
        place = rows[at] - first
        found[at] = cells[place - size if place >= size else place, column]


class CircularTable:
    """Rows that go in the order in which they came.

    Row numbers only ever grow. A row lies at the place that is its number modulo the capacity, so
    that a reference stays valid when the table grows. It grows by a sixteenth: powers of two would
    leave up to half of a table empty.

    After its own columns a row has those that joins added with `widen`, so that their pointers lie
    in the row that they start from. A join copies its columns when `cells` becomes another array.
    """

    def __init__(self, width: int, capacity: int = 16) -> None:
        self.width = width  # the columns of its own
        self.cells = table_of(capacity, width)
        self.head = 0  # the oldest row that can still be read
        self.tail = 0  # the next row
        self._wide = width  # with those that joins added

    @staticmethod
    def of(cells: Ints, width: int, rows: int) -> CircularTable:
        """Return a table whose first rows are there, perhaps with columns that joins will add."""
        found = CircularTable(width, 0)
        found.cells, found.tail = cells, rows
        return found

    @property
    def capacity(self) -> int:
        return len(self.cells)

    @property
    def held(self) -> int:
        return self.tail - self.head

    def places(self, rows: Ints) -> Ints:
        """Return the places at which rows lie; they are among those that can be read."""
        # The same as the number modulo the capacity, without dividing.
        size = len(self.cells)
        found = rows - (self.head - self.head % size)
        np.subtract(found, size, out=found, where=found >= size)
        return found

    def read(self, rows: Ints, column: int, found: Ints) -> None:
        """Copy a column of rows to `found`."""
        read_rows(self.cells, rows, self.head - self.head % self.capacity, column, found)

    def widen(self, columns: int) -> int:
        """Add columns to all rows, and return the first of them."""
        first, self._wide = self._wide, self._wide + columns
        if self._wide > self.cells.shape[1]:
            cells = table_of(self.capacity, self._wide)
            cells[:, :first] = self.cells
            self.cells = cells
        return first

    def append(self, cells: np.ndarray) -> Ints:
        """Add rows at the end and return their numbers."""
        count = len(cells)
        if self.held + count > self.capacity:
            self._resize(_roomy(self.held + count))
        rows = np.arange(self.tail, self.tail + count, dtype=np.int64)
        first = self.tail % self.capacity
        before_end = min(count, self.capacity - first)
        self.cells[first : first + before_end, : self.width] = cells[:before_end]
        self.cells[: count - before_end, : self.width] = cells[before_end:]
        self.tail += count
        return rows

    def forget(self, head: int) -> None:
        """Forget the rows before `head`."""
        self.head = head
        # Memory that a burst took is freed; some room is left, so that the table does not grow and
        # shrink by turns.
        if self.capacity > 1024 and self.held * 4 < self.capacity:
            self._resize(_roomy(max(self.held * 2, 512)))

    def _resize(self, capacity: int) -> None:
        rows = np.arange(self.head, self.tail, dtype=np.int64)
        cells = table_of(capacity, self.cells.shape[1])
        cells[rows % capacity, : self.width] = self.cells[self.places(rows), : self.width]
        self.cells = cells

    def arrays(self) -> dict[str, Ints]:
        rows = np.arange(self.head, self.tail, dtype=np.int64)
        return {
            "cells": self.cells[self.places(rows), : self.width],
            "place": np.array([self.head, self.tail], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self.head, self.tail = (int(each) for each in arrays["place"])
        self.cells = table_of(max(16, self.held), self.cells.shape[1])
        rows = np.arange(self.head, self.tail, dtype=np.int64)
        self.cells[self.places(rows), : self.width] = arrays["cells"]


def _roomy(rows: int) -> int:
    """Return how many places so many rows get: some more, so that growing stays rare."""
    return rows + rows // 16 + 16
