"""Rows that come and go, to feed operators of the kernel, and what is to come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from hypothesis import strategies as st

from quadweir.kernel.arrays import FOREVER, Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.tables import SlotTable
from quadweir.terms import Term, Variable

Row: TypeAlias = tuple[Term | None, ...]
# When, +1 or -1, the name of the row, and what it binds.
Change: TypeAlias = tuple[int, int, int, Row]


class Rows(Operator):
    """A table of given rows, whose numbers are used again."""

    def __init__(self, variables: Sequence[str], dictionary: Dictionary) -> None:
        self.variables = tuple(Variable(name) for name in variables)
        self.always = frozenset()
        self._dictionary = dictionary
        self._table = SlotTable(len(variables), 2)
        self.row_of: dict[int, int] = {}

    def feed(self, changes: Iterable[Change]) -> Delta:
        """Turn changes by name into changes by row."""
        t, sign, row = [], [], []
        for when, which, name, values in changes:
            if which > 0:
                taken = self._table.take(1)
                self.row_of[name] = int(taken[0])
                texts = ["" if value is None else str(value) for value in values]
                self._table.cells[taken] = self._dictionary.numbers(texts)
                self._dictionary.hold(self._table.cells[taken])
                row.append(self.row_of[name])
            else:
                row.append(self.row_of.pop(name))
                self._table.release(np.array(row[-1:]))
            t.append(when)
            sign.append(which)
        count = len(t)
        leave = np.full(count, FOREVER)
        return Delta(*(np.array(each, dtype=np.int64) for each in (t, sign, row, leave)))

    def step(self, inputs: list[Delta]) -> Delta:
        (delta,) = inputs
        return delta

    def column(self, variable: Variable, rows: Ints) -> Ints:
        return self._table.cells[rows, self.variables.index(variable)]

    def span(self) -> int:
        return self._table.capacity

    def settle(self) -> None:
        gone = self._table.settle()
        self._dictionary.drop(self._table.cells[gone])

    def arrays(self) -> dict[str, Ints]:
        return self._table.arrays()

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self._table.restore(arrays)


def histories(row: st.SearchStrategy[Row], size: int = 40) -> st.SearchStrategy[list[Change]]:
    """Make changes in order of time, several of which may share an instant."""
    steps = st.lists(
        st.tuples(st.integers(0, 2), st.integers(-6, 5), row), min_size=0, max_size=size
    )
    return steps.map(_history)


def _history(steps: list[tuple[int, int, Row]]) -> list[Change]:
    changes: list[Change] = []
    live: dict[int, Row] = {}
    t = 0
    for gap, choice, values in steps:
        t += gap // 2
        if choice < 0 and live:
            name = list(live)[choice % len(live)]
            changes.append((t, -1, name, live.pop(name)))
        else:
            changes.append((t, 1, len(changes), values))
            live[len(changes) - 1] = values
    # At last all goes, so that what is left behind is seen.
    changes.extend((t + 1, -1, name, values) for name, values in live.items())
    return changes


def cut(changes: list[Change], size: int) -> list[list[Change]]:
    """Cut a history into steps of about `size` changes; an instant is never cut."""
    parts: list[list[Change]] = [[]]
    for change in changes:
        if len(parts[-1]) >= size and parts[-1][-1][0] != change[0]:
            parts.append([])
        parts[-1].append(change)
    return parts


def terms_of(operator: Operator, delta: Delta, dictionary: Dictionary) -> list[Row]:
    """Give what each change's row binds, variable by variable."""
    columns = operator.columns(operator.variables, delta.row)
    return [
        tuple(dictionary.term(number) if number else None for number in row)
        for row in columns.tolist()
    ]


class Follower:
    """Adds up the changes of an operator, and checks them instant by instant.

    Rows that `repeats` may bind the same as others, which go when they come.
    """

    def __init__(
        self,
        expected: Mapping[int, Counter[Row]],
        initial: Counter[Row],
        *,
        repeats: bool = False,
    ) -> None:
        self.expected = expected
        self.repeats = repeats
        self.now: Counter[Row] = Counter()
        self.initial = initial
        self.reached: int | None = None

    def take(self, operator: Operator, delta: Delta, dictionary: Dictionary) -> None:
        """Take one step's changes, all of whose instants are complete."""
        rows = terms_of(operator, delta, dictionary)
        assert delta.t.tolist() == sorted(delta.t.tolist())
        assert len(delta.sign) == len(delta.row) == len(delta.leave) == len(delta.t)
        changes = list(zip(delta.t.tolist(), delta.sign.tolist(), rows, strict=True))
        for t in sorted({change[0] for change in changes}):
            came = Counter(row for when, sign, row in changes if when == t and sign > 0)
            went = Counter(row for when, sign, row in changes if when == t and sign < 0)
            assert self.repeats or not came & went, "a row came and went in one instant"
            self.now = self.now + came
            assert not went - self.now, "a row went that was not there"
            self.now = self.now - went
            assert self.now == self.expected.get(t, self.initial), t


def contents(changes: list[Change]) -> dict[int, list[Row]]:
    """Give the rows that are there at the end of each instant."""
    live: dict[int, Row] = {}
    found: dict[int, list[Row]] = {}
    for t, sign, name, values in changes:
        if sign > 0:
            live[name] = values
        else:
            del live[name]
        found[t] = list(live.values())
    return found


def follow(
    make: Callable[[Dictionary], tuple[Rows, Operator]],
    changes: list[Change],
    model: Callable[[list[Row]], Counter[Row]],
    size: int,
    *,
    restart: bool,
) -> tuple[Operator, Dictionary]:
    """Run an operator of one input over a history and compare it with a model at every instant."""
    expected = {t: model(rows) for t, rows in contents(changes).items()}
    dictionary = Dictionary()
    rows, operator = make(dictionary)
    follower = Follower(expected, model([]))
    for part in cut(changes, size):
        delta = operator.step([rows.step([rows.feed(part)])])
        follower.take(operator, delta, dictionary)
        if part:
            assert follower.now == expected[part[-1][0]]
        operator.settle()
        rows.settle()
        dictionary.settle()
        if restart:
            stored = [each.arrays() for each in (dictionary, rows, operator)]
            names = rows.row_of
            dictionary = Dictionary()
            rows, operator = make(dictionary)
            rows.row_of = names
            dictionary.restore(stored[0])
            rows.restore(stored[1])
            operator.restore(stored[2])
    return operator, dictionary
