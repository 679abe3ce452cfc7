"""One aggregate of a query: its argument, what DISTINCT leaves of it, and what adds it up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from quadweir.algebra.expressions import AggregateCall, VariableExpression
from quadweir.algebra.patterns import is_hidden
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.concatenation import Concatenation
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.expressions import Vectorized
from quadweir.kernel.extremes import Extreme
from quadweir.kernel.oneway import (
    OneWay,
    part,
    plain,
    prefixed,
)
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.sums import RESULT_WIDTH, Counter, Sum


class GroupedCall:
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
        self.keeps_terms = self.accumulator.keeps_terms
        """Whether its results are terms of its values."""
        # COUNT(DISTINCT *) distinguishes solutions by their visible variables.
        self._visible = tuple(each for each in source.variables if not is_hidden(each))
        width = len(self._visible) if call.argument is None else 1
        self._seen = OneWay(1 + width) if distinct else None
        self._gone: list[Ints] = []

    @property
    def is_total(self) -> bool:
        """Whether no single value is kept."""
        return self._seen is None and not self.keeps_terms

    def _values(self, rows: Ints) -> Ints:
        """Return the argument's values; 0 where it is an error."""
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
        """Return the results, three cells each, at the changes where `last` is 1."""
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
        """Return the result of a group without rows, the only group there is."""
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
