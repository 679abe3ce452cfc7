"""GROUP BY and its aggregates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from quadweir.algebra.patterns import Aggregation
from quadweir.kernel.aggregatecall import GroupedCall
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.grouprows import CHANGE, emit_pass, group_pass
from quadweir.kernel.oneway import (
    OneWay,
    part,
    plain,
    prefixed,
)
from quadweir.kernel.relation import Delta, Operator, no_change
from quadweir.kernel.results import spell_results
from quadweir.kernel.sums import KIND, LOW, NOTHING, NUMBER, RESULT_WIDTH
from quadweir.kernel.tables import SlotTable
from quadweir.terms import Variable


class Aggregate(Operator):
    """One row for each combination of the keys' values: the keys, and the aggregates' values.

    Algorithm 6 of paper 001. What differs: the paper keeps the input (EXP) to know the values of
    what goes, here a row that goes still has them; a group is dispatched once at the end of each
    instant, and only if its row is not what it was; sums are exact, so that what expired leaves no
    trace; MIN and MAX, which the paper recomputes, come from a heap for each group. Without keys
    there is one row always, from the first step on.

    Linear: no, a row that comes takes back what its group gave before.
    State: for each group its counters and sums, and its row; for MIN, MAX, SAMPLE, GROUP_CONCAT and
        DISTINCT each distinct value of each group.
    Forgets: a group once it has no rows.
    """

    def __init__(
        self,
        source: Operator,
        keys: tuple[Variable, ...],
        calls: tuple[Aggregation, ...],
        dictionary: Dictionary,
    ) -> None:
        self.source = source
        self.variables = keys + tuple(each.variable for each in calls)
        counted = (each.variable for each in calls if each.call.function == "COUNT")
        self.always = (source.always & frozenset(keys)) | frozenset(counted)
        self._dictionary = dictionary
        self._keys = keys
        self._calls = tuple(GroupedCall(each.call, source, dictionary) for each in calls)
        self._index = OneWay(len(keys), extra=2)
        # The keys, the results, and the numbers of those results that were asked for.
        self._interned = len(keys) + RESULT_WIDTH * len(calls)
        self._rows = SlotTable(self._interned + len(calls))
        self._started = bool(keys)
        # The aggregates whose results are terms, and those whose results were spelled.
        self._terms = [place for place, each in enumerate(self._calls) if each.keeps_terms]
        self._asked: set[int] = set()
        self._leaving: list[Ints] = []
        self._changes = 0  # how many there were so far

    @property
    def is_total(self) -> bool:
        """Whether all that is kept are counters and sums of all rows."""
        return not self._keys and all(each.is_total for each in self._calls)

    def step(self, inputs: list[Delta]) -> Delta:
        """Take the changes of the source and give those of the groups."""
        (delta,) = inputs
        first = self._start(delta) if not self._started else no_change()
        count = len(delta.t)
        if not count:
            return first
        index = self._index
        index.reserve(count)
        keys = index.hashed(self.source.columns(self._keys, delta.row))
        t, groups, last, alive = plain(delta.t), ints(count), ints(count), ints(count)
        shown = group_pass(
            t,
            plain(delta.sign),
            keys,
            index.entries,
            self._changes,
            groups,
            last,
            alive,
        )
        self._changes += count
        size = index.capacity
        results = [each.take(groups, delta, last, size) for each in self._calls]
        changes = self._emit(t, groups, last, shown, alive, results)
        if not len(first.t):
            return changes
        return Delta(*(np.concatenate(both) for both in zip(first, changes, strict=True)))

    def _start(self, delta: Delta) -> Delta:
        """Without keys, make the one group, and its row as it is before any input."""
        self._started = True
        group = self._index.add(np.zeros((1, 0), dtype=np.int64), np.ones(1, dtype=np.int64))
        if len(delta.t) and delta.t[0] <= ALWAYS:
            return no_change()  # it is not empty even then
        results = [each.empty(self._index.capacity) for each in self._calls]
        one = np.ones(1, dtype=np.int64)
        return self._emit(one * ALWAYS, group, one, 1, one, results)

    def _emit(
        self, t: Ints, groups: Ints, last: Ints, shown: int, alive: Ints, results: list[Ints]
    ) -> Delta:
        """Return the changes of the groups where `last` is 1, which it is at `shown` places."""
        if len(results) == 1:
            (together,) = results
        else:
            together = np.concatenate([np.zeros((len(t), 0), np.int64), *results], axis=1)
        fresh = self._rows.take(shown)
        out = np.empty((4, 2 * shown), dtype=np.int64)
        made, taken = emit_pass(
            t,
            groups,
            last,
            alive,
            plain(together),
            len(self._keys),
            self._index.cells,
            self._rows.cells,
            fresh,
            out,
        )
        self._rows.free_count += shown - taken
        t, sign, row, whole = out[:, :made]
        gone = row[sign < 0]
        self._rows.release(gone)
        # A group holds its keys once, whatever the number of its rows in this step.
        cells, width = self._rows.cells, len(self._keys)
        whole = np.flatnonzero(whole)
        comes = sign[whole] > 0
        self._dictionary.hold(cells[row[whole[comes]], :width])
        self._leaving.append(cells[row[whole[~comes]], :width])
        for call in self._terms:
            place = width + RESULT_WIDTH * call + LOW
            self._dictionary.hold(cells[fresh[:taken], place])
            self._leaving.append(cells[gone, place])
        return Delta(t, sign, row, np.full(made, FOREVER, dtype=np.int64))

    def column(self, variable: Variable, rows: Ints) -> Ints:
        """Return what rows bind a variable to; sums and averages get their numbers here."""
        place = self.variables.index(variable)
        cells = self._rows.cells
        if place < len(self._keys):
            return cells[rows, place]
        call = place - len(self._keys)
        start = len(self._keys) + RESULT_WIDTH * call
        kind = cells[rows, start + KIND]
        found = np.where(kind == NUMBER, cells[rows, start + LOW], 0)
        late = (kind != NUMBER) & (kind != NOTHING)
        if late.any():
            interned = self._interned + call
            wanted = np.unique(rows[late])
            wanted = wanted[cells[wanted, interned] == 0]
            if len(wanted):
                numbers = spell_results(
                    cells[wanted, start : start + RESULT_WIDTH], self._dictionary
                )
                self._dictionary.hold(numbers)
                cells[wanted, interned] = numbers
                self._asked.add(call)
            found[late] = cells[rows[late], interned]
        return found

    def span(self) -> int:
        return self._rows.capacity

    def settle(self) -> None:
        """Let go of the rows that went."""
        rows = self._rows.settle()
        for call in self._asked if len(rows) else ():
            self._dictionary.drop(self._rows.cells[rows, self._interned + call])
        for numbers in self._leaving:
            self._dictionary.drop(numbers)
        self._leaving = []
        for each in self._calls:
            each.settle()

    def arrays(self) -> dict[str, Ints]:
        index = self._index.arrays()
        # The numbers of changes begin again with every restore.
        index["cells"][:, self._index.first_extra + CHANGE] = 0
        found = prefixed("index", index) | prefixed("rows", self._rows.arrays())
        for place, each in enumerate(self._calls):
            found |= prefixed(f"call{place}", each.arrays())
        flags = [self._started, *(place in self._asked for place in range(len(self._calls)))]
        return found | {"flags": np.array(flags, dtype=np.int64)}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._index.restore(part("index", arrays))
        self._rows.restore(part("rows", arrays))
        for place, each in enumerate(self._calls):
            each.restore(part(f"call{place}", arrays))
        started, *asked = np.asarray(arrays["flags"]).tolist()
        self._started = bool(started)
        self._asked = {place for place, each in enumerate(asked) if each}
        self._leaving = []
        self._changes = 0

    def held(self) -> int:
        return self._rows.held
