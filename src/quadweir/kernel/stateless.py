"""Operators that remember nothing: filters, new values, projections, unions; and fixed relations.

They work on the rows of their inputs: a filter lets rows through, a projection hides columns, BIND
computes its column whenever it is read, and a union numbers the rows of all branches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import final

import numpy as np

from quadweir.algebra.expressions import Constant, Expression, VariableExpression
from quadweir.algebra.scopes import bound_by
from quadweir.algebra.solutions import is_time
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints, power_of_two, table_of
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.expressions import Vectorized
from quadweir.kernel.relation import Delta, Operator, in_order, no_change
from quadweir.kernel.staticrelations import FixedRelation, ShardShare, combined
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE, CircularTable
from quadweir.terms import Variable


class _OnRows(Operator):
    """An operator whose rows are those of its one input."""

    def __init__(self, source: Operator) -> None:
        self.source = source
        self.variables = source.variables
        self.always = source.always
        self.timed = source.timed
        self.tables = source.tables

    def step(self, inputs: list[Delta]) -> Delta:
        return inputs[0]

    def column(self, variable: Variable, rows: Ints) -> Ints:
        return self.source.column(variable, rows)

    def identity(self, rows: Ints) -> np.ndarray:
        return self.source.identity(rows)

    def spans(self) -> tuple[int, ...]:
        return self.source.spans()

    def present(self) -> Delta:
        return self.step([self.source.present()])


@final
class Filter(_OnRows):
    """The rows for which a condition is true.

    Linear: yes. State: none. Forgets: nothing to forget.
    """

    def __init__(self, source: Operator, condition: Expression, dictionary: Dictionary) -> None:
        super().__init__(source)
        self.condition = condition
        self.always = source.always | (bound_by(condition) & frozenset(source.variables))
        self._condition = Vectorized(condition, dictionary)

    def step(self, inputs: list[Delta]) -> Delta:
        (delta,) = inputs
        if not len(delta.t):
            return delta
        # A row that is retracted has the values that it had when it was added, and passes as then.
        columns = {
            variable: self.source.column(variable, delta.row)
            for variable in self._condition.variables
            if variable in self.source.variables
        }
        for variable in self._condition.variables:
            columns.setdefault(variable, ints(len(delta.t)))
        return delta.pick(self._condition.truth(columns, len(delta.t)))


@final
class RowFilter(_OnRows):
    """The rows that a test on row numbers lets through.

    Linear: yes. State: none. Forgets: nothing to forget.
    """

    def __init__(self, source: Operator, test: Callable[[Ints], np.ndarray]) -> None:
        super().__init__(source)
        self._test = test

    def step(self, inputs: list[Delta]) -> Delta:
        (delta,) = inputs
        return delta.pick(self._test(delta.row)) if len(delta.t) else delta


@final
class Extend(_OnRows):
    """One more column, computed when it is read.

    Linear: yes. State: none. Forgets: nothing to forget.
    """

    def __init__(
        self, source: Operator, variable: Variable, expression: Expression, dictionary: Dictionary
    ) -> None:
        super().__init__(source)
        self.variable = variable
        self.expression = expression
        self.variables = (*source.variables, variable)
        match expression:
            case Constant():
                self.always = source.always | {variable}
            case VariableExpression(variable=other) if other in source.always:
                self.always = source.always | {variable}
            case _:
                pass
        self._expression = Vectorized(expression, dictionary)
        # What was read last in this step: in a chain of BINDs, each may read the one before several
        # times, and the first would be computed exponentially often.
        self._last: tuple[Ints, Ints] | None = None

    def column(self, variable: Variable, rows: Ints) -> Ints:
        if variable != self.variable:
            return self.source.column(variable, rows)
        if self._last is None or self._last[0] is not rows:
            self._last = (rows, self._computed(rows))
        return self._last[1]

    def settle(self) -> None:
        self._last = None

    def _computed(self, rows: Ints) -> Ints:
        columns = {
            each: self.source.column(each, rows)
            if each in self.source.variables
            else ints(len(rows))
            for each in self._expression.variables
        }
        return self._expression.values(columns, len(rows))


@final
class Project(_OnRows):
    """Some of the columns; the others are hidden.

    Linear: yes. State: none. Forgets: nothing to forget.
    """

    def __init__(self, source: Operator, variables: Sequence[Variable]) -> None:
        super().__init__(source)
        kept = tuple(v for v in variables if v in source.variables)
        times = tuple(v for v in source.variables if is_time(v))
        self.variables = kept + times
        self.always = source.always & frozenset(self.variables)

    def column(self, variable: Variable, rows: Ints) -> Ints:
        if variable not in self.variables:
            return ints(len(rows))
        return self.source.column(variable, rows)


@final
class Rename(_OnRows):
    """The same rows, with other names for the variables.

    Linear: yes. State: none. Forgets: nothing to forget.

    Args:
        source: The rows.
        names: For each variable of the source its name here.
    """

    def __init__(self, source: Operator, names: Mapping[Variable, Variable]) -> None:
        super().__init__(source)
        self.variables = tuple(names[each] for each in source.variables)
        self.always = frozenset(names[each] for each in source.always)
        self.table = source.table
        self._theirs = {own: theirs for theirs, own in names.items()}

    def column(self, variable: Variable, rows: Ints) -> Ints:
        return self.source.column(self._theirs[variable], rows)


@final
class Union(Operator):
    """The rows of all inputs.

    A row's number is its number in its table, times a power of two, plus the number of that table.
    An input that is a union itself, as in a chain of OPTIONALs, adds its tables to the count. If its
    numbers were multiplied again, they would grow exponentially with the length of the chain, and with them
    the room in joins above.

    Linear: yes. State: none. Forgets: nothing to forget.
    """

    def __init__(self, sources: Sequence[Operator]) -> None:
        self.sources = tuple(sources)
        self.variables = tuple(dict.fromkeys(v for each in sources for v in each.variables))
        first, *rest = (each.always for each in sources)
        self.always = first.intersection(*rest)
        self.timed = all(each.timed for each in sources)
        counts = [each.tables for each in sources]
        self.tables = sum(counts)
        self._stride = power_of_two(self.tables)
        self._strides = np.array([power_of_two(count) for count in counts], dtype=np.int64)
        self._firsts = np.cumsum([0, *counts], dtype=np.int64)[:-1]
        # The input that a table belongs to; some numbers are left over.
        self._input_of = np.full(self._stride, -1, dtype=np.int64)
        self._input_of[: self.tables] = np.repeat(np.arange(len(counts)), counts)
        self._fixed = [number for number, each in enumerate(sources) if each.fixed]
        self._reports_fixed = True
        self._width = 1 + max(each.identity(ints(0)).shape[1] for each in sources)

    def _numbered(self, rows: Ints, sources: Ints | int) -> Ints:
        """Give the numbers that rows of the inputs have here."""
        stride = self._strides[sources]
        found: Ints = rows // stride * self._stride + self._firsts[sources] + (rows & (stride - 1))
        return found

    def _parts(self, rows: Ints) -> Iterator[tuple[int, np.ndarray, Ints]]:
        """Yield for each input with rows among these its number, their places, and its own numbers."""
        table = rows & (self._stride - 1)
        source = self._input_of[table]
        # Most inputs have none. To ask them all the same would ask each input of a chain twice for
        # each time that the one above is asked.
        for number in np.flatnonzero(np.bincount(source + 1)[1:]).tolist():
            here = np.flatnonzero(source == number)
            own = rows[here] // self._stride * self._strides[number]
            yield number, here, own + (table[here] - self._firsts[number])

    def fixed_total(self) -> int:
        return sum(self.sources[number].fixed_total() for number in self._fixed)

    def fixed_rows(self) -> Ints:
        parts = [
            self._numbered(self.sources[number].fixed_rows(), number) for number in self._fixed
        ]
        return np.concatenate([ints(0), *parts])

    def are_fixed(self, rows: Ints) -> np.ndarray:
        return np.isin(self._input_of[rows & (self._stride - 1)], self._fixed)

    def leave_out_fixed(self) -> None:
        self._reports_fixed = False

    def reads(self, place: int) -> bool:
        return self._reports_fixed or place not in self._fixed

    def step(self, inputs: list[Delta]) -> Delta:
        merged, source = in_order(inputs)
        return merged._replace(row=self._numbered(merged.row, source))

    def column(self, variable: Variable, rows: Ints) -> Ints:
        found = ints(len(rows))
        for number, here, own in self._parts(rows):
            source = self.sources[number]
            if variable in source.variables:
                found[here] = source.column(variable, own)
        return found

    def identity(self, rows: Ints) -> np.ndarray:
        found = np.full((len(rows), self._width), -1, dtype=np.int64)
        for number, here, own in self._parts(rows):
            each = self.sources[number].identity(own)
            found[here, 0] = number
            found[here, 1 : 1 + each.shape[1]] = each
        return found

    def present(self) -> Delta:
        return self.step([each.present() for each in self.sources])

    def spans(self) -> tuple[int, ...]:
        return tuple(span for each in self.sources for span in each.spans())


@final
class Static(Operator):
    """A relation that is always there: static data, VALUES, the one empty solution.

    Linear: yes, it never changes.
    State: its rows.
    Forgets: nothing; it is as large as the data it was made from.

    Args:
        relation: The rows.
        dictionary: The shard's dictionary.
        given: What `layout` of the same relation returned elsewhere, with a dictionary that knows
            its terms; empty if it has to be made.
        share: Which of the rows this shard has, and the variable that says so; None for all.

    `fixed_total` counts the rows of all shards: operators are chosen by it, and not by how many are
    here, so that they are the same in all shards.
    """

    def __init__(
        self,
        relation: FixedRelation,
        dictionary: Dictionary,
        given: Mapping[str, Ints],
        share: tuple[Variable, ShardShare] | None = None,
    ) -> None:
        self.variables = variables = relation.variables
        self._total = relation.count
        self.digest = relation.digest
        if share is not None:
            key, own = share
            which = f"{own.number} of {own.count} by {key}"
            self.digest = combined([relation.digest, which.encode()])
        self.timed = self.fixed = True
        width = FIRST_VALUE + len(variables)
        if given:
            cells, self._bound, rows = given["cells"], given["bound"], int(given["rows"][0])
        else:
            # Operators are chosen by what is bound: they are the same in all shards.
            self._bound = relation.bound
            here = relation if share is None else relation.part(*share)
            values, rows = here.numbers(dictionary), here.count
            cells = table_of(max(1, rows), width)
            cells[:, ENTER] = ALWAYS
            cells[:, LEAVE] = FOREVER
            cells[:rows, FIRST_VALUE:] = values
        self.table: CircularTable = CircularTable.of(cells, width, rows)
        self.always = frozenset(v for v, each in zip(variables, self._bound, strict=True) if each)
        self._places = {variable: place for place, variable in enumerate(variables)}
        self._reported = False

    def layout(self) -> dict[str, Ints]:
        rows = np.array([self.table.held], dtype=np.int64)
        return {"cells": self.table.cells, "bound": self._bound, "rows": rows}

    def fixed_total(self) -> int:
        return self._total

    def fixed_rows(self) -> Ints:
        return np.arange(self.table.held, dtype=np.int64)

    def are_fixed(self, rows: Ints) -> np.ndarray:
        return np.ones(len(rows), dtype=bool)

    def leave_out_fixed(self) -> None:
        self._reported = True

    def step(self, inputs: list[Delta]) -> Delta:
        if self._reported:
            return no_change()
        self._reported = True
        rows = np.arange(self.table.tail, dtype=np.int64)
        cells = self.table.cells[: len(rows)]
        return Delta(
            np.ascontiguousarray(cells[:, ENTER]),
            np.ones_like(rows),
            rows,
            np.ascontiguousarray(cells[:, LEAVE]),
        )

    def column(self, variable: Variable, rows: Ints) -> Ints:
        found: Ints = self.table.cells[rows, FIRST_VALUE + self._places[variable]]
        return found

    def span(self) -> int:
        return power_of_two(self.table.capacity)

    def held(self) -> int:
        return self.table.held

    # The rows themselves are made again from the static data.

    def arrays(self) -> dict[str, Ints]:
        return {"given": np.array([self._reported], dtype=np.int64)}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._reported = bool(arrays["given"][0])
