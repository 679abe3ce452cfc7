"""Relation to stream: what of the solutions goes out at a report (A2 to A5).

Three ways lead from changes to answers. Where ISTREAM or DSTREAM ask for differences, the changes
between two reports are added up, and what is left of them is the answer. Where RSTREAM asks for
all, the solutions are kept with their counts. Where a report has to be seen as a whole (ORDER BY,
LIMIT, ASK, values that change by themselves), it is made again from the solutions and compared with
the one before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.oneway import COUNT, FIRST_KEY, OneWay
from quadweir.kernel.relation import Delta, Operator
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class Answers:
    """Answers as columns: the report instant, the sign, and what each variable is bound to.

    `values` are spellings, one Arrow column for each variable, null where it is not bound. `query`
    says, in a group, whose answers they are.
    """

    variables: tuple[Variable, ...]
    t: Ints
    sign: Ints
    values: tuple[pa.Array, ...]
    query: Ints | None = None

    def __len__(self) -> int:
        return len(self.t)

    def table(self) -> pa.Table:
        """Return them as one Arrow table."""
        names = ["t", "sign", *(variable.name for variable in self.variables)]
        columns = [pa.array(self.t), pa.array(self.sign), *self.values]
        if self.query is not None:
            names, columns = ["query", *names], [pa.array(self.query), *columns]
        return pa.table(columns, names=names)


@final
@dataclass(frozen=True)
class Rows:
    """Answers before they are spelled: instants, signs and dictionary numbers."""

    t: Ints
    sign: Ints
    values: np.ndarray
    query: Ints | None = None


def no_rows(width: int) -> Rows:
    """No answers."""
    return Rows(ints(0), ints(0), np.zeros((0, width), dtype=np.int64))


class AnswerMaker(ABC):
    """What makes answers of the changes of a query's solutions.

    In: the changes of the solutions, and the instants of reports.
    Out: rows of answers.
    State: what later reports are compared with or made of. Forgets: each says what.
    """

    only_changes: bool = False
    """Whether a report without a change has no answers."""

    @abstractmethod
    def step(self, delta: Delta, reports: Ints) -> Rows:
        """Take changes in order of time, and the instants at which there is a report."""

    def catch_up(self, delta: Delta) -> None:
        """Take changes that belong to the last report, and that no report shows.

        Only what is kept from report to report changes; where changes are all that counts, there is
        nothing to do.
        """

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned."""

    def held(self) -> int:
        return 0


@final
class Eager(AnswerMaker):
    """Every solution goes out as it comes (E1)."""

    def __init__(self, root: Operator, variables: tuple[Variable, ...]) -> None:
        self._root = root
        self._variables = variables

    def step(self, delta: Delta, reports: Ints) -> Rows:
        came = delta.sign > 0
        rows = delta.row[came]
        values = self._root.columns(self._variables, rows)
        return Rows(delta.t[came], np.ones_like(rows), values)


@final
class Differences(AnswerMaker):
    """ISTREAM and DSTREAM: what the changes since the report before add up to.

    Linear: yes.
    State: the changes since the last report.
    Forgets: them with the next report.
    """

    only_changes = True

    def __init__(
        self,
        root: Operator,
        variables: tuple[Variable, ...],
        dictionary: Dictionary,
        *,
        derivations: bool,
        goes: bool,
    ) -> None:
        self._root = root
        self._variables = variables
        self._dictionary = dictionary
        self.derivations = derivations
        self._goes = goes
        # [sign, values..., identity...] of changes that no report has seen.
        self._carried: np.ndarray | None = None

    def step(self, delta: Delta, reports: Ints) -> Rows:
        width = len(self._variables)
        parts = [delta.sign.reshape(-1, 1), self._root.columns(self._variables, delta.row)]
        if self.derivations:
            parts.append(self._root.identity(delta.row))
        changes = np.hstack(parts)
        # Changes belong to the first report that is not before them.
        report = np.searchsorted(reports, delta.t)
        if self._carried is not None and len(self._carried):
            carried = self._carried
            changes = np.concatenate((carried, changes))
            report = np.concatenate((ints(len(carried)), report))
            self._dictionary.drop(carried[:, 1 : 1 + width].ravel())
        waits = report == len(reports)
        self._carried = changes[waits]
        self._dictionary.hold(self._carried[:, 1 : 1 + width].ravel())
        changes, report = changes[~waits], report[~waits]
        if not len(changes):
            return no_rows(width)
        compared = changes[:, 1 + width :] if self.derivations else changes[:, 1:]
        keys = np.column_stack((report, compared))
        index = OneWay(keys.shape[1], capacity=len(keys))
        entries = index.add(keys, changes[:, 0])
        net = index.cells[entries, COUNT]
        _, first = np.unique(entries, return_index=True)
        net = -net[first] if self._goes else net[first]
        first, net = first[net > 0], net[net > 0]
        order = np.argsort(report[first], kind="stable")
        first, net = first[order], net[order]
        places = np.repeat(first, net)
        sign = -1 if self._goes else 1
        return Rows(
            reports[report[places]],
            np.full(len(places), sign, dtype=np.int64),
            changes[places, 1 : 1 + width],
        )

    def held(self) -> int:
        return 0 if self._carried is None else len(self._carried)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {} if self._carried is None else {"carried": self._carried}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._carried = arrays.get("carried")


@final
class Passed(AnswerMaker):
    """All changes, for a second stage; what comes and goes between two reports is left out.

    Linear: yes.
    State: none.
    Forgets: nothing to forget.
    """

    def __init__(self, root: Operator, variables: tuple[Variable, ...], *, reports: bool) -> None:
        self._root = root
        self._variables = variables
        self._reports = reports

    def step(self, delta: Delta, reports: Ints) -> Rows:
        t, values = delta.t, self._root.columns(self._variables, delta.row)
        if self._reports and len(reports):
            # They are looked at with the first report that is not before them.
            later = np.searchsorted(reports, t)
            t = np.where(later < len(reports), reports[np.minimum(later, len(reports) - 1)], t)
        keys = np.column_stack((t, values))
        index = OneWay(keys.shape[1], capacity=len(keys))
        entries = index.add(keys, delta.sign)
        _, first = np.unique(entries, return_index=True)
        net = index.cells[entries[first], COUNT]
        first, net = first[net != 0], net[net != 0]
        order = np.argsort(t[first] * 2 + (net > 0), kind="stable")
        first, net = first[order], net[order]
        places = np.repeat(first, np.abs(net))
        return Rows(t[places], np.repeat(np.sign(net), np.abs(net)), values[places])


class _Kept:
    """The solutions of now, with their counts."""

    def __init__(
        self, root: Operator, variables: tuple[Variable, ...], dictionary: Dictionary
    ) -> None:
        self.root = root
        self.variables = variables
        self.dictionary = dictionary
        self.index = OneWay(len(variables))

    def take(self, delta: Delta) -> None:
        keys = self.root.columns(self.variables, delta.row)
        _, became = self.index.transitions(keys, delta.sign)
        self.dictionary.hold(keys[became > 0].ravel())
        self.dictionary.drop(keys[became < 0].ravel())

    def solutions(self) -> np.ndarray:
        live = self.index.live()
        cells = self.index.cells[live]
        width = len(self.variables)
        repeated = np.repeat(np.arange(len(live)), cells[:, COUNT])
        found: np.ndarray = cells[repeated, FIRST_KEY : FIRST_KEY + width]
        return found


@final
class Everything(AnswerMaker):
    """RSTREAM: all solutions at every report.

    Linear: no, what is there is reported again and again.
    State: each different solution with its count.
    Forgets: a solution when its last equal goes.
    """

    def __init__(
        self, root: Operator, variables: tuple[Variable, ...], dictionary: Dictionary
    ) -> None:
        self._kept = _Kept(root, variables, dictionary)

    def step(self, delta: Delta, reports: Ints) -> Rows:
        times, values = [], []
        cuts = np.searchsorted(delta.t, reports, side="right")
        start = 0
        now: np.ndarray | None = None
        for report, cut in zip(reports, cuts, strict=True):
            if cut > start or now is None:
                self._kept.take(delta.pick(np.arange(start, cut)))
                start = int(cut)
                now = self._kept.solutions()
            if len(now):
                times.append(np.full(len(now), report, dtype=np.int64))
                values.append(now)
        self._kept.take(delta.pick(np.arange(start, len(delta.t))))
        if not times:
            return no_rows(len(self._kept.variables))
        t = np.concatenate(times)
        return Rows(t, np.ones_like(t), np.concatenate(values))

    def catch_up(self, delta: Delta) -> None:
        self._kept.take(delta)

    def held(self) -> int:
        return self._kept.index.size

    def arrays(self) -> dict[str, NDArray[Any]]:
        return dict(self._kept.index.arrays())

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._kept.index.restore(arrays)


@final
class Whole(AnswerMaker):
    """Reports that are made as a whole and then compared with the one before (A4).

    Linear: no.
    State: each different solution with its count; the report before.
    Forgets: a solution when its last equal goes.

    `make` turns the solutions of a report instant into its rows; `kept` says which solutions are
    to be kept up to date for it, if any. Reports are compared by what is in them, unless `stayed`
    says which rows of a report the one before was made of too (A2).
    """

    def __init__(
        self,
        kept: tuple[Operator, tuple[Variable, ...]] | None,
        make: Callable[[int, np.ndarray], np.ndarray],
        width: int,
        output: OutputOperator,
        dictionary: Dictionary,
        *,
        always_anew: bool = False,
        stayed: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self._kept = _Kept(*kept, dictionary) if kept is not None else None
        self._make = make
        self._width = width
        self._output = output
        self._dictionary = dictionary
        self._always_anew = always_anew
        self._stayed = stayed if output is not OutputOperator.RSTREAM else None
        self._before = np.zeros((0, width), dtype=np.int64)

    def step(self, delta: Delta, reports: Ints) -> Rows:
        times: list[Ints] = []
        values: list[np.ndarray] = []
        cuts = np.searchsorted(delta.t, reports, side="right")
        start = 0
        now: np.ndarray | None = None
        for report, cut in zip(reports, cuts, strict=True):
            if cut > start or now is None or self._always_anew:
                now = self._make(int(report), self._solutions(delta, start, int(cut)))
                self._dictionary.hold(now.ravel())
                self._dictionary.drop(self._before.ravel())
                before, self._before = self._before, now
                start = int(cut)
            else:
                before = now
            stayed = self._stayed(int(report)) if self._stayed is not None else None
            match self._output:
                case OutputOperator.RSTREAM:
                    rows = now
                case OutputOperator.ISTREAM:
                    rows = _minus(now, before if stayed is None else stayed)
                case OutputOperator.DSTREAM:
                    rows = _minus(before, now if stayed is None else stayed)
            if len(rows):
                times.append(np.full(len(rows), report, dtype=np.int64))
                values.append(rows)
        if self._kept is not None:
            self._kept.take(delta.pick(np.arange(start, len(delta.t))))
        if not times:
            return no_rows(self._width)
        t = np.concatenate(times)
        sign = -1 if self._output is OutputOperator.DSTREAM else 1
        return Rows(t, np.full(len(t), sign, dtype=np.int64), np.concatenate(values))

    def _solutions(self, delta: Delta, start: int, cut: int) -> np.ndarray:
        if self._kept is None:
            return np.zeros((0, 0), dtype=np.int64)
        self._kept.take(delta.pick(np.arange(start, cut)))
        return self._kept.solutions()

    def held(self) -> int:
        return len(self._before) + (self._kept.index.size if self._kept is not None else 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {"before": self._before}
        if self._kept is not None:
            found |= self._kept.index.arrays()
        return found

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._before = arrays["before"]
        if self._kept is not None:
            self._kept.index.restore(arrays)


def _minus(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The rows that others do not have, each as often as there are more of it, in their order."""
    left = Counter(map(tuple, others.tolist()))
    kept = []
    for place, row in enumerate(map(tuple, rows.tolist())):
        if left[row] > 0:
            left[row] -= 1
        else:
            kept.append(place)
    return rows[np.array(kept, dtype=np.int64)] if kept else rows[:0]
