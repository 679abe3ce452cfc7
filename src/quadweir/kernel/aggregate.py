"""GROUP BY and its aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numba import njit

from quadweir.algebra.expressions import AggregateCall, VariableExpression
from quadweir.algebra.patterns import Aggregation, is_hidden
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.concatenation import Concatenation
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.expressions import Vectorized
from quadweir.kernel.extremes import Extreme
from quadweir.kernel.memory import prefetch
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
from quadweir.kernel.results import spell_results
from quadweir.kernel.sums import KIND, LOW, NOTHING, NUMBER, RESULT_WIDTH, Counter, Sum
from quadweir.kernel.tables import SlotTable
from quadweir.terms import Variable

# Behind the key of a group: the output row that shows it, plus one, and the number of its last
# change, counted over all steps from 1.
_ROW: Final = 0
_CHANGE: Final = 1


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
    whether the group has rows then. Before this step there were so many `changes`. Gives how many
    are the last.
    """
    cells, change_cell = index.cells, FIRST_KEY + keys.values.shape[1] + _CHANGE
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
    gives how many changes there are and how many rows were used.
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


class _Call:
    """One aggregate of all groups: its argument, what DISTINCT leaves of it, and what adds it up."""

    def __init__(self, call: AggregateCall, source: Operator, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._source = source
        self._argument = call.argument
        self._expression = (
            None
            if call.argument is None or isinstance(call.argument, VariableExpression)
            else Vectorized(call.argument, dictionary)
        )
        self.accumulator: Counter | Sum | Extreme | Concatenation
        distinct = call.distinct
        match call.function:
            case "COUNT":
                self.accumulator = Counter()
            case "SUM" | "AVG":
                self.accumulator = Sum(average=call.function == "AVG")
            case "MIN" | "MAX" | "SAMPLE":
                # The least of the distinct values is the least of all.
                distinct = False
                self.accumulator = Extreme(call.function, dictionary)
            case _:
                self.accumulator = Concatenation(call.separator or "", dictionary)
        self.gives_terms = isinstance(self.accumulator, Extreme | Concatenation)
        # COUNT(DISTINCT *) tells solutions apart by their visible variables.
        self._visible = tuple(each for each in source.variables if not is_hidden(each))
        width = len(self._visible) if call.argument is None else 1
        self._seen = OneWay(1 + width) if distinct else None
        self._gone: list[Ints] = []

    @property
    def is_total(self) -> bool:
        """Whether no single value is kept."""
        return self._seen is None and isinstance(self.accumulator, Counter | Sum)

    def _values(self, rows: Ints) -> Ints:
        """Give the argument's values; 0 where it is an error."""
        argument = self._argument
        if argument is None:
            return ints(0)
        if isinstance(argument, VariableExpression):
            if argument.variable not in self._source.variables:
                return ints(len(rows))
            return plain(self._source.column(argument.variable, rows))
        assert self._expression is not None
        columns = {
            variable: self._source.column(variable, rows)
            for variable in self._expression.variables
            if variable in self._source.variables
        }
        return plain(self._expression.values(columns, len(rows)))

    def take(self, groups: Ints, delta: Delta, last: Ints, size: int) -> Ints:
        """Give the results, three cells each, at the changes where `last` is 1."""
        values = self._values(delta.row)
        sign = plain(delta.sign)
        if self._seen is not None:
            sign = self._first_and_last(groups, delta.row, values, sign)
        out: Ints = np.zeros((len(groups), RESULT_WIDTH), dtype=np.int64)
        match self.accumulator:
            case Counter() as counter:
                if self._argument is not None:
                    sign = np.where(values == 0, 0, sign)
                counter.take(groups, sign, last, size, out)
            case Sum() as total:
                typed = self._dictionary.typed(values)
                total.take(groups, sign, typed, last, size, out)
            case Extreme() as extreme:
                extreme.take(groups, sign, values, last, size, out)
            case Concatenation() as concatenation:
                concatenation.take(groups, sign, values, last, out)
        return out

    def _first_and_last(self, groups: Ints, rows: Ints, values: Ints, sign: Ints) -> Ints:
        """Keep the changes that bring a value into its group, or the last of it out of it."""
        assert self._seen is not None
        if self._argument is None:
            columns = self._source.columns(self._visible, rows)
        else:
            columns = values.reshape(-1, 1)
        _, became = self._seen.transitions(np.column_stack((groups, columns)), sign)
        self._dictionary.hold(columns[became > 0].ravel())
        self._gone.append(columns[became < 0].ravel())
        # Errors count one by one: what matters of them is whether there are any.
        return became if self._argument is None else np.where(values == 0, sign, became)

    def empty(self, size: int) -> Ints:
        """Give the result of a group without rows, the only group there is."""
        out: Ints = np.zeros((1, RESULT_WIDTH), dtype=np.int64)
        nothing, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        match self.accumulator:
            case Counter() as counter:
                counter.take(nothing, nothing, one, size, out)
            case Sum() as total:
                total.take(nothing, nothing, self._dictionary.typed(nothing), one, size, out)
            case Extreme():
                pass
            case Concatenation() as concatenation:
                concatenation.take(nothing, nothing, nothing, one, out)
        return out

    def settle(self) -> None:
        """Let go of the terms that went."""
        for numbers in self._gone:
            self._dictionary.drop(numbers)
        self._gone = []
        if isinstance(self.accumulator, Extreme | Concatenation):
            self.accumulator.settle()

    def arrays(self) -> dict[str, Ints]:
        found = prefixed("sum", self.accumulator.arrays())
        if self._seen is not None:
            found |= prefixed("seen", self._seen.arrays())
        return found

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self.accumulator.restore(part("sum", arrays))
        if self._seen is not None:
            self._seen.restore(part("seen", arrays))


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
        self._calls = tuple(_Call(each.call, source, dictionary) for each in calls)
        self._index = OneWay(len(keys), extra=2)
        # The keys, the results, and the numbers of those results that were asked for.
        self._interned = len(keys) + RESULT_WIDTH * len(calls)
        self._rows = SlotTable(self._interned + len(calls))
        self._started = bool(keys)
        # The aggregates whose results are terms, and those whose results were spelled.
        self._terms = [place for place, each in enumerate(self._calls) if each.gives_terms]
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
        """Give the changes of the groups where `last` is 1, which it is at `shown` places."""
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
        """Give what rows bind a variable to; sums and averages get their numbers here."""
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
        # The numbers of changes begin anew with every restore.
        index["cells"][:, self._index.first_extra + _CHANGE] = 0
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
