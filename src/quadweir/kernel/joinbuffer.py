"""What a join holds of one input, and the indexes by which it is probed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints, power_of_two, table_of
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.memory import address
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.ring import RingIndex
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE
from quadweir.terms import Variable


@final
class Buffer:
    """What a join holds of one input: its rows, or the columns of them that are compared.

    The rows of a leaf are probed where they lie. Of any other input the join keeps the values of
    the shared variables and a reference to the row. Behind these a row has the pointers of the
    join: to the first result made from it if the join `keeps` results, then those of the indexes.
    """

    def __init__(
        self,
        source: Operator,
        shared: Sequence[Variable],
        dictionary: Dictionary,
        *,
        keeps: bool,
    ) -> None:
        self.source = source
        self.shared = tuple(variable for variable in shared if variable in source.variables)
        self.dictionary = dictionary
        table = source.table
        self.table = table
        self.in_order = table is not None
        # The columns of a row that are not pointers.
        self.width = self._wide = (
            table.width if table is not None else FIRST_VALUE + 1 + len(self.shared)
        )
        # Of rows that are copied: how many places each table of the input has, and the first of them.
        self._spans: tuple[int, ...] = ()
        self._stride = power_of_two(source.tables)
        self._masks = self._firsts = ints(self._stride)
        self.cells = table.cells if table is not None else self._fresh((16,) * source.tables)
        self.indexes: list[RingIndex] = []
        self.keeps = keeps
        self._pointers = 0  # the column of the first pointer
        self._dropped: list[Ints] = []
        self._gone: list[Ints] = []
        self._known = 0  # rows of the table from here on are not in the indexes
        self.fixed = False  # whether all rows are there from the start
        self.partly_fixed = False  # whether some of its rows are
        self.places = {
            variable: (
                FIRST_VALUE + source.variables.index(variable)
                if table is not None
                else FIRST_VALUE + 1 + place
            )
            for place, variable in enumerate(self.shared)
        }

    def widen(self, pointers: int) -> int:
        """Make room in every row for so many pointers of indexes, and give their first column."""
        columns = pointers + self.keeps
        if self.table is not None:
            self._pointers = self.table.widen(columns)
            self.cells = self.table.cells
        else:
            self._pointers = self.width
            self._wide = self.width + columns
            self.cells = self._fresh(self._spans)
        if not self.source.fixed:
            self._no_results()
        return self._pointers + self.keeps

    @property
    def results(self) -> Ints:
        """The first result made from each mapping; -1 where there is none."""
        return self.cells[:, self._pointers]

    def _no_results(self) -> None:
        if self.keeps:
            self.results[:] = -1

    def lay_out(self, given: Sequence[Ints], seeds: Sequence[int]) -> None:
        """Index all rows, which are there from the start; `given` are the entries, if known.

        With them come the seeds of the indexes.
        """
        assert self.table is not None
        self.fixed, self.cells, self._known = True, self.table.cells, self.table.tail
        for index, entries, seed in zip(self.indexes, given, seeds, strict=False):
            index.take(entries, self.cells, seed)
        if not given:
            self._no_results()
            for index in self.indexes:
                index.attach(self.cells)
                index.insert(self._rows_of_table())

    def lay_out_part(self, given: Mapping[str, Ints]) -> None:
        """Take and index what of the input is there from the start; `given` is all that, if known."""
        if given:
            self._divide(tuple(given["spans"].tolist()))
            self.cells = given["cells"]
            facts = zip(self.indexes, given["seeds"], given["used"], strict=True)
            for number, (index, seed, used) in enumerate(facts):
                index.take(given[f"entries.{number}"], self.cells, int(seed), int(used))
            return
        rows = self.source.fixed_rows()
        self.cells = self._fresh(self.source.spans())
        at = self.places_of(rows)
        self.cells[at, ENTER] = ALWAYS
        self.cells[at, LEAVE] = FOREVER
        self.cells[at, FIRST_VALUE] = rows
        self.cells[at, FIRST_VALUE + 1 : self.width] = self.source.columns(self.shared, rows)
        self._no_results()
        for index in self.indexes:
            index.attach(self.cells)
            index.insert(at)
            # With room for more: those that take this layout should not have to rebuild it.
            index.grow()

    def layout_part(self) -> dict[str, Ints]:
        """Return what `lay_out_part` made."""
        used = np.array([index.used for index in self.indexes], dtype=np.int64)
        entries = {f"entries.{number}": each.words for number, each in enumerate(self.indexes)}
        spans = np.array(self._spans, dtype=np.int64)
        return {
            "cells": self.cells,
            "spans": spans,
            "used": used,
            "seeds": self.seeds,
            **entries,
        }

    @property
    def seeds(self) -> Ints:
        """The seeds of its indexes."""
        return np.array([index.seed for index in self.indexes], dtype=np.int64)

    def copied(self) -> Ints:
        """Return the rows that were copied from the input as they came."""
        rows = self.cells[:, FIRST_VALUE]
        there = rows >= 0
        if self.partly_fixed:
            there &= ~self.source.are_fixed(rows)
        found: Ints = self.cells[there, : self.width]
        return found

    def _divide(self, spans: tuple[int, ...]) -> None:
        """Lay the rows of each table of the input behind those of the one before."""
        self._spans = spans
        self._masks, self._firsts = ints(self._stride), ints(self._stride)
        self._masks[: len(spans)] = np.array(spans) - 1
        self._firsts[: len(spans)] = np.cumsum([0, *spans[:-1]])

    def _fresh(self, spans: tuple[int, ...]) -> np.ndarray:
        self._divide(spans)
        cells = table_of(sum(spans), self._wide)
        cells[:, FIRST_VALUE] = -1  # no row is here
        return cells

    def take(self, delta: Delta) -> bool:
        """Make room for what comes, and copy what has to be copied; return whether rows moved.

        When a row comes is not written here but by `probing.advance`, arrival by arrival.
        """
        if self.table is not None:
            moved = self.table.cells is not self.cells
            if moved:
                before, self.cells = self.cells, self.table.cells
                # What came in this step is not in the indexes yet.
                rows = self._rows_of_table()
                rows = rows[rows < self._known]
                self._move(before, rows % len(before), self.places_of(rows))
            self._known = self.table.tail
            return moved
        moved = self._fit()
        came = delta.sign > 0
        rows = delta.row[came]
        at = self.places_of(rows)
        values = self.source.columns(self.shared, rows)
        self.dictionary.hold(values.ravel())
        self.cells[at, LEAVE] = delta.leave[came]
        self.cells[at, FIRST_VALUE] = rows
        self.cells[at, FIRST_VALUE + 1 : self.width] = values
        self._dropped.append(delta.row[~came])
        # A negation may take a row back and add it again within a step: the last change counts.
        last = np.unique(delta.row[::-1], return_index=True)[1]
        self._gone.append(delta.row[::-1][last[delta.sign[::-1][last] < 0]])
        return moved

    def _fit(self) -> bool:
        """Make room for as many rows as the input has numbers for; return whether rows moved."""
        spans = self.source.spans()
        if spans == self._spans:
            return False
        rows = self.cells[:, FIRST_VALUE]
        rows = rows[rows >= 0]
        before, old = self.cells, self.places_of(rows)
        self.cells = self._fresh(spans)
        new = self.places_of(rows)
        self.cells[new, : self.width] = before[old, : self.width]
        self._move(before, old, new)
        return True

    def places_of(self, rows: Ints) -> Ints:
        """Return the places at which rows of the input lie here."""
        if self.table is not None:
            return self.table.places(rows)
        if self._stride == 1:
            return rows & (len(self.cells) - 1)
        table = rows & (self._stride - 1)
        places: Ints = self._firsts[table] + (rows // self._stride & self._masks[table])
        return places

    def _rows_of_table(self) -> Ints:
        assert self.table is not None
        return np.arange(self.table.head, self.table.tail, dtype=np.int64)

    def _move(self, before: np.ndarray, old: Ints, new: Ints) -> None:
        """Bring the pointers along from the rows as they lay before."""
        for index in self.indexes:
            index.attach(self.cells, (old, new))
        self._no_results()
        if self.keeps:
            self.results[new] = before[old, self._pointers]

    def describe(self, record: np.void) -> None:
        """Fill in a record of type `joinrecords.BUFFER`."""
        head = self.table.head if self.table is not None else 0
        record["cells"] = address(self.cells)
        record["width"] = self.cells.shape[1]
        record["capacity"] = len(self.cells)
        record["pointers"] = self._pointers
        record["copies"] = self.table is None
        record["head"] = head
        record["head_place"] = head % len(self.cells)

    def settle(self) -> None:
        for rows in self._dropped:
            at = self.places_of(rows)
            self.dictionary.drop(self.cells[at, FIRST_VALUE + 1 : self.width].ravel())
        for rows in self._gone:
            self.cells[self.places_of(rows), FIRST_VALUE] = -1
        self._dropped, self._gone = [], []

    def restore(self, copied: Ints | None, *, begun: bool) -> None:
        """Index again what the input holds, in the order in which it came."""
        if self.fixed:
            return
        rows = ints(0)
        if self.partly_fixed:
            assert copied is not None
            self._fit()
            places = self.places_of(np.ascontiguousarray(copied[:, FIRST_VALUE]))
            self.cells[places, : self.width] = copied
            for index in self.indexes:
                index.insert(places)
            return
        if self.table is None:
            assert copied is not None
            self.cells = self._fresh(self.source.spans())
            rows = np.ascontiguousarray(copied[:, FIRST_VALUE])
            self.cells[self.places_of(rows), : self.width] = copied
        else:
            self.cells = self.table.cells
            if begun:
                rows = self._rows_of_table()
        self._no_results()
        self._dropped, self._gone = [], []
        self._known = self.table.tail if self.table is not None and begun else 0
        for index in self.indexes:
            index.clear()
            index.attach(self.cells)
            index.insert(self.places_of(rows))
