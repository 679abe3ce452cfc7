"""ORDER BY and LIMIT over solutions that are kept in order.

A report that is made as a whole would look at all solutions again (`answers.Whole`). If the order
depends on variables alone, the solutions are kept in a sorted list instead. A change moves one
entry, and only a change near the front makes a new report.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import total_ordering
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.expressions import VariableExpression
from quadweir.algebra.patterns import OrderBy, Pattern, Project, Slice
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.values import order_key
from quadweir.kernel.answers import AnswerMaker, Rows, no_rows
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.oneway import COUNT, FIRST_KEY, OneWay
from quadweir.kernel.relation import Delta, Operator
from quadweir.plan.nodes import Report
from quadweir.terms import Term, Variable

_Row: TypeAlias = tuple[int, ...]
_Key: TypeAlias = tuple[Any, ...]
_NOBODY: Final = -1
"""The place of a variable that a report does not bind."""
_FAR: Final = 1 << 62
_LITERAL: Final = 3
"""How the keys of literals begin; next comes their kind, 0 for numbers (`order_key`)."""


@final
@dataclass(frozen=True)
class Ranking:
    """The order and the part of the solutions that is reported, by places in their rows.

    Attributes:
        keys: what they are sorted by, and whether in descending order.
        ties: what decides between equal ones: the spelling of these (A4).
        shown: the places of the answer's variables; -1 where one is not bound.
        offset: how many are skipped.
        limit: how many are reported at most; None for all.
    """

    keys: tuple[tuple[int, bool], ...]
    ties: tuple[int, ...]
    shown: tuple[int, ...]
    offset: int = 0
    limit: int | None = None

    @staticmethod
    def of(query: ContinuousQuery, report: Report) -> Ranking | None:
        """Return the order of a report; None if variables alone do not decide it."""
        order, project, cut = _parts(report.modifiers)
        if not isinstance(query.form, SelectForm) or (order is None and cut is None):
            return None
        if len(report.modifiers) != sum(each is not None for each in (order, project, cut)):
            return None
        places = {variable: place for place, variable in enumerate(report.modified)}
        keys: list[tuple[int, bool]] = []
        for each in order.keys if order is not None else ():
            if not isinstance(each.expression, VariableExpression):
                return None
            place = places.get(each.expression.variable)
            # A variable that no solution binds makes no difference.
            if place is not None:
                keys.append((place, each.descending))
        given = places
        if project is not None:
            given = {each: places[each] for each in project.variables if each in places}
        return Ranking(
            tuple(keys),
            tuple(places[each] for each in query.form.variables if each in places),
            tuple(given.get(each, _NOBODY) for each in report.columns),
            cut.offset if cut is not None else 0,
            cut.limit if cut is not None else None,
        )

    @property
    def end(self) -> int | None:
        """How many solutions, from the first on, decide a report; None for all."""
        return None if self.limit is None else self.offset + self.limit


def _parts(
    modifiers: Sequence[Pattern],
) -> tuple[OrderBy | None, Project | None, Slice | None]:
    """Return the modifiers that there are, if they come in this order."""
    rest = list(modifiers)
    order = rest.pop(0) if rest and isinstance(rest[0], OrderBy) else None
    project = rest.pop(0) if rest and isinstance(rest[0], Project) else None
    cut = rest.pop(0) if rest and isinstance(rest[0], Slice) else None
    assert order is None or isinstance(order, OrderBy)
    assert project is None or isinstance(project, Project)
    assert cut is None or isinstance(cut, Slice)
    return order, project, cut


@final
class Ranked(AnswerMaker):
    """Reports of the first solutions in an order.

    Linear: no.
    State: each different solution with its count; the report before. The order is made of them.
    Forgets: a solution when its last equal goes.
    """

    def __init__(
        self,
        root: Operator,
        variables: tuple[Variable, ...],
        ranking: Ranking,
        output: OutputOperator,
        dictionary: Dictionary,
    ) -> None:
        self._root = root
        self._variables = variables
        self._ranking = ranking
        self._output = output
        self._dictionary = dictionary
        self._index = OneWay(len(variables))
        self._before: list[_Row] = []
        self._known: dict[int, tuple[_Key, _Key, str]] = {}
        self._clear()

    def _clear(self) -> None:
        # Sorted; each entry is made of keys and ties, and at last of its row.
        self._order: list[_Key] = []
        self._entries: dict[_Row, _Key] = {}
        self._counts: dict[_Row, int] = {}
        # How far into the order the last report looked; a change behind that changes nothing.
        self._reach = 0

    def step(self, delta: Delta, reports: Ints) -> Rows:
        keys = self._root.columns(self._variables, delta.row)
        _, became = self._index.transitions(keys, delta.sign)
        self._dictionary.hold(keys[became > 0].ravel())
        self._dictionary.drop(keys[became < 0].ravel())
        self._known.clear()
        rows: list[_Row] = list(map(tuple, keys.tolist()))
        signs: list[int] = delta.sign.tolist()
        width = len(self._ranking.shown)
        first = before = self._before
        times: list[int] = []
        values: list[_Row] = []
        start, now = 0, before
        cuts = np.searchsorted(delta.t, reports, side="right").tolist()
        # After a restore nothing was reported yet.
        is_new = not self._reach
        for report, cut in zip(reports.tolist(), cuts, strict=True):
            nearest = self._take(rows, signs, start, cut)
            if is_new or nearest < self._reach:
                before, now = now, self._front()
                is_new = False
                changed = True
            else:
                changed = False
            start = cut
            match self._output:
                case OutputOperator.RSTREAM:
                    found = now
                case OutputOperator.ISTREAM:
                    found = _minus(now, before) if changed else []
                case OutputOperator.DSTREAM:
                    found = _minus(before, now) if changed else []
            if found:
                times += [report] * len(found)
                values += found
        nearest = self._take(rows, signs, start, len(rows))
        if nearest < self._reach:
            self._reach = 0
        self._hold(now, first)
        if not times:
            return no_rows(width)
        t = np.array(times, dtype=np.int64)
        sign = -1 if self._output is OutputOperator.DSTREAM else 1
        return Rows(
            t,
            np.full(len(t), sign, dtype=np.int64),
            np.array(values, dtype=np.int64).reshape(len(t), width),
        )

    def _take(self, rows: list[_Row], signs: list[int], start: int, end: int) -> int:
        """Take changes; return the place of the first entry that one of them moved or counted."""
        order, entries, counts = self._order, self._entries, self._counts
        nearest = 2 * _FAR
        for at in range(start, end):
            row = rows[at]
            count = counts.get(row, 0)
            left = count + signs[at]
            entry = entries.get(row)
            if entry is None:
                entry = self._entry(row)
                entries[row] = entry
            place = bisect_left(order, entry)
            if place < nearest:
                nearest = place
            if not left:
                del order[place], entries[row], counts[row]
                continue
            if not count:
                order.insert(place, entry)
            counts[row] = left
        return nearest

    def _entry(self, row: _Row) -> _Key:
        """Return what sorts a solution."""
        parts: list[Any] = []
        for place, descending in self._ranking.keys:
            parts.append(self._facts(row[place])[descending])
        parts += [self._facts(row[place])[2] for place in self._ranking.ties]
        parts.append(row)
        return tuple(parts)

    def _facts(self, number: int) -> tuple[_Key, _Key, str]:
        """Return the keys of a term, ascending and descending, and its spelling."""
        found = self._known.get(number)
        if found is None:
            term: Term | None = self._dictionary.term(number) if number else None
            key = order_key(term)
            spelled = "" if term is None else str(term)
            self._known[number] = found = (key, _descending(key), spelled)
        return found

    def _front(self) -> list[_Row]:
        """Return the rows of a report, and note how far it looked."""
        ranking, counts = self._ranking, self._counts
        end = ranking.end
        found: list[_Row] = []
        looked = 0
        for entry in self._order:
            if end is not None and len(found) >= end:
                break
            row: _Row = entry[-1]
            shown = tuple(row[place] if place >= 0 else 0 for place in ranking.shown)
            found += [shown] * counts[row]
            looked += 1
        # If all were looked at, a solution behind them would be reported, too.
        is_full = end is not None and len(found) >= end
        self._reach = max(looked, 1) if is_full else _FAR
        return found[ranking.offset : end]

    def _hold(self, now: list[_Row], before: list[_Row]) -> None:
        """Hold the terms of the last report instead of those of the one before."""
        if now is before:
            return
        self._dictionary.hold(_numbers(now))
        self._dictionary.drop(_numbers(before))
        self._before = now

    def held(self) -> int:
        return len(self._before) + self._index.size

    def arrays(self) -> dict[str, NDArray[Any]]:
        width = len(self._ranking.shown)
        before = np.array(self._before, dtype=np.int64).reshape(len(self._before), width)
        return {"before": before} | self._index.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._before = list(map(tuple, arrays["before"].tolist()))
        self._index.restore(arrays)
        self._clear()
        self._known.clear()
        live = self._index.live()
        cells = self._index.cells[live]
        width = len(self._variables)
        rows = list(map(tuple, cells[:, FIRST_KEY : FIRST_KEY + width].tolist()))
        for row, count in zip(rows, cells[:, COUNT].tolist(), strict=True):
            self._counts[row] = count
            self._entries[row] = self._entry(row)
        self._order = sorted(self._entries.values())


def _numbers(rows: list[_Row]) -> Ints:
    return np.array(rows, dtype=np.int64).ravel()


def _minus(rows: list[_Row], others: list[_Row]) -> list[_Row]:
    """Return the rows that others do not have, each as often as there are more of it, in order."""
    left = Counter(others)
    found = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
        else:
            found.append(row)
    return found


@final
@total_ordering
class _Down:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and bool(self.value == other.value)

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _descending(key: _Key) -> _Key:
    """Return a key that sorts the other way round; numbers are compared as fast as before.

    >>> from quadweir.algebra.values import order_key
    >>> from quadweir.terms import IRI, Literal
    >>> terms = [IRI("urn:a"), IRI("urn:b"), Literal("x"), None]
    >>> up = sorted(terms, key=order_key)
    >>> up == sorted(terms, key=lambda each: _descending(order_key(each)))[::-1]
    True
    """
    if key[0] != _LITERAL:
        return (-key[0], _Down(key[1:]))
    kind = key[1]
    if kind:
        return (-_LITERAL, -kind, _Down(key[2:]))
    _, _, is_number, value = key
    # Minus would round a decimal.
    negated = value.copy_negate() if isinstance(value, Decimal) else -value
    return (-_LITERAL, 0, -is_number, negated)
