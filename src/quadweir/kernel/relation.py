"""Relations that change: tables of rows, and signed rows in order of time.

An operator of the kernel takes the changes of its inputs and gives the changes of its output. A
change is a row of the operator's own output with a time and a sign. Rows are numbers; what they
bind is asked for by variable and comes as dictionary numbers. An operator that makes new values
keeps them in a table; all others keep references to the rows they were made from, so that the
bindings of a mapping are stored once, in its leaves (paper 001, section 3.1).

A row that is taken back within a step can still be read until the step is settled: operators above
look at it to see what goes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from quadweir.kernel.arrays import FOREVER, Ints, ints, power_of_two, table_of
from quadweir.terms import Variable

# Columns of a table that a join can probe without copying its rows.
ENTER: Final = 0
LEAVE: Final = 1
FIRST_VALUE: Final = 2


class Delta(NamedTuple):
    """Signed rows in order of time.

    Attributes:
        t: when each change happens.
        sign: +1 where the row comes, -1 where it goes.
        row: the row of the operator that gives the change.
        leave: until when a row that comes stays, if that is known at its coming, else FOREVER.
    """

    t: Ints
    sign: Ints
    row: Ints
    leave: Ints

    def pick(self, places: np.ndarray) -> Delta:
        """Keep the changes at these places, or where a mask is true."""
        return Delta(self.t[places], self.sign[places], self.row[places], self.leave[places])


def no_change() -> Delta:
    """The changes of a relation that stays as it is."""
    return Delta(ints(0), ints(0), ints(0), ints(0))


def in_order(deltas: list[Delta], *, arrivals_first: bool = False) -> tuple[Delta, Ints]:
    """Merge changes by time, and tell of each which delta it came from.

    At one instant what goes comes before what comes, unless `arrivals_first`.
    """
    source = np.repeat(np.arange(len(deltas), dtype=np.int64), [len(each.t) for each in deltas])
    merged = Delta(*(np.concatenate(parts) for parts in zip(*deltas, strict=True)))
    second = merged.sign < 0 if arrivals_first else merged.sign > 0
    order = np.argsort(merged.t * 2 + second, kind="stable")
    return merged.pick(order), source[order]


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
        """Take rows; what is in their cells is up to the taker."""
        self.reserve(count)
        self.free_count -= count
        return self.free[self.free_count : self.free_count + count][::-1].copy()

    def release(self, rows: Ints) -> None:
        """Give rows back; they can be read until `settle`."""
        if len(rows):
            self._released.append(rows)

    def settle(self) -> Ints:
        """Free what was released, and say which rows those are."""
        if not self._released:
            return ints(0)
        rows = np.concatenate(self._released)
        self._released = []
        self.free[self.free_count : self.free_count + len(rows)] = rows
        self.free_count += len(rows)
        return rows

    def arrays(self) -> dict[str, Ints]:
        """Give what `restore` needs; only between steps."""
        rows = self.rows()
        return {"rows": rows, "cells": self.cells[rows]}

    def rows(self) -> Ints:
        """Give the rows that are in use, in order of their numbers."""
        taken = np.ones(self.capacity, dtype=bool)
        taken[self.free[: self.free_count]] = False
        return np.flatnonzero(taken)

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        """Take back what `arrays` gave, in a table no larger than it has to be.

        Columns that are not given follow from others, and are left to the owner.
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
    """Read a column of a circular table, of which row `first` lies at place 0.

    Faster than to find all places and then to pick, which makes three arrays on the way.
    """
    size = len(cells)
    for at in range(len(rows)):
        place = rows[at] - first
        found[at] = cells[place - size if place >= size else place, column]


class CircularTable:
    """Rows that go in the order in which they came.

    Row numbers only ever grow; a row lies at the place that its number gives modulo the capacity,
    so that a reference stays good when the table grows. It grows by a sixteenth: powers of two would
    leave up to half of a table empty.

    Behind its own columns a row has those that joins asked for, to have their pointers beside what
    they point from; whoever asked for a column brings it along when `cells` becomes another array.
    """

    def __init__(self, width: int, capacity: int = 16) -> None:
        self.width = width  # the columns of its own
        self.cells = table_of(capacity, width)
        self.head = 0  # the oldest row that can still be read
        self.tail = 0  # the next row
        self._wide = width  # with those that were asked for

    @staticmethod
    def of(cells: Ints, width: int, rows: int) -> CircularTable:
        """Give a table whose first rows are there, maybe with columns that will be asked for."""
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
        """Give the places at which rows lie; they are among those that can be read."""
        # The same as the number modulo the capacity, without dividing.
        size = len(self.cells)
        found = rows - (self.head - self.head % size)
        np.subtract(found, size, out=found, where=found >= size)
        return found

    def read(self, rows: Ints, column: int, found: Ints) -> None:
        """Write what rows have in a column to `found`."""
        read_rows(self.cells, rows, self.head - self.head % self.capacity, column, found)

    def widen(self, columns: int) -> int:
        """Add columns to all rows, and give the first of them."""
        first, self._wide = self._wide, self._wide + columns
        if self._wide > self.cells.shape[1]:
            cells = table_of(self.capacity, self._wide)
            cells[:, :first] = self.cells
            self.cells = cells
        return first

    def append(self, cells: np.ndarray) -> Ints:
        """Add rows at the end and give their numbers."""
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
        """Let go of the rows before `head`."""
        self.head = head
        # What a burst took is given back, with room left so that growing and shrinking alternate
        # only where the content does.
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
    """Give how many places so many rows get: some more, so that growing stays rare."""
    return rows + rows // 16 + 16


class Operator(ABC):
    """One node of a shard's network.

    `variables` are what its rows may bind, `always` those that every row binds. A number of 0
    stands for a variable that is not bound.
    """

    variables: tuple[Variable, ...]
    always: frozenset[Variable]
    timed: bool = False
    """Whether every row tells at its coming when it goes."""
    fixed: bool = False
    """Whether its rows are there from the start and stay; they lie in a `table`."""

    @abstractmethod
    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the inputs, in order of time, and give those of the output."""

    @abstractmethod
    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Give what rows bind a variable to; 0 where it is not bound."""

    def columns(self, variables: tuple[Variable, ...], rows: Ints) -> np.ndarray:
        """Give several variables side by side."""
        found = np.empty((len(rows), len(variables)), dtype=np.int64)
        for place, variable in enumerate(variables):
            found[:, place] = self.column(variable, rows) if variable in self.variables else 0
        return found

    def identity(self, rows: Ints) -> np.ndarray:
        """Give the numbers of the leaves that each row was made from; they never come again."""
        return rows.reshape(-1, 1)

    def span(self) -> int:
        """Give a power of two modulo which no two rows that are there have the same number."""
        raise NotImplementedError

    def lay_out(self, given: Mapping[str, Ints]) -> None:
        """Prepare what does not depend on streams, once all operators are there.

        Args:
            given: What `layout` of the same operator gave elsewhere; nothing if it has to be made.
        """

    def layout(self) -> dict[str, Ints]:
        """Give what does not depend on streams as arrays, for `lay_out`."""
        return {}

    def hears(self, place: int) -> bool:
        """Whether it looks at the changes of one of its inputs."""
        return True

    def settle(self) -> None:
        """Let go of what went in this step."""

    def arrays(self) -> dict[str, Ints]:
        """Give the state as arrays, for a snapshot; only between steps."""
        return {}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        """Take back what `arrays` gave."""

    def held(self) -> int:
        """How many mappings are remembered here."""
        return 0


__all__ = [
    "ENTER",
    "FIRST_VALUE",
    "FOREVER",
    "LEAVE",
    "CircularTable",
    "Delta",
    "Operator",
    "SlotTable",
    "in_order",
    "no_change",
]
