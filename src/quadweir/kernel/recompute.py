"""What has no incremental operator: the query is evaluated again at its reports.

The contents of the windows are still kept up to date by leaves, so that a report costs what the
windows hold, not what the streams have brought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.analyze import compares_derivations
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import solve
from quadweir.algebra.expressions import FunctionCall
from quadweir.algebra.moments import from_epoch_ms
from quadweir.algebra.query import AskForm, ContinuousQuery
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import time_variable
from quadweir.algebra.traverse import walk
from quadweir.algebra.values import FALSE, TRUE
from quadweir.kernel.arrays import Ints
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator
from quadweir.kernel.spellings import ZERO
from quadweir.plan.nodes import GRAPH_NAME, Source
from quadweir.terms import IRI, BlankNode, Quad, Variable


@final
@dataclass(frozen=True, slots=True)
class _Held:
    """A triple in a window, or in a named graph of it, as an element of its own."""

    stream: str
    event_time: int
    quads: tuple[Quad, ...]


@final
class Recomputed:
    """A query's solutions by evaluation from scratch.

    Linear: no.
    State: the triples in the windows; where derivations are compared, which of them the last report
        saw.
    Forgets: a triple when its window does.
    """

    def __init__(
        self,
        query: ContinuousQuery,
        dataset: Dataset,
        leaves: Sequence[tuple[Source, Operator]],
        variables: tuple[Variable, ...],
        dictionary: Dictionary,
    ) -> None:
        self.query = query
        self.dataset = dataset
        self.leaves = leaves
        self.variables = variables
        self.dictionary = dictionary
        # Row to triple, for each leaf.
        self._held: list[dict[int, _Held]] = [{} for _ in leaves]
        self._deltas: list[Delta] = []
        self._done: list[int] = []
        self.derivations = compares_derivations(query)
        """Whether two reports are compared by what their solutions were made of (A2)."""
        # For each leaf the rows that the last report saw; None before the first one.
        self._seen: list[set[int]] | None = None

    def is_silent_when_empty(self) -> bool:
        """Return whether empty windows give no solutions, at any instant."""
        if any(
            isinstance(each, FunctionCall) and each.function == "NOW"
            for each in walk(self.query.pattern)
        ):
            return False
        return not len(self._evaluated(0, [{} for _ in self.leaves]))

    def take(self, deltas: list[Delta]) -> None:
        """Take the changes of this step; `make` looks at them as far as time has come."""
        self._deltas = deltas
        self._done = [0] * len(deltas)

    def finish(self) -> None:
        """Look at the changes that no report has looked at."""
        for place in range(len(self._deltas)):
            self._catch_up(place, len(self._deltas[place].t))

    def make(self, t: int, _solutions: np.ndarray) -> np.ndarray:
        """Return the rows of the report at an instant."""
        for place in range(len(self.leaves)):
            self._catch_up(place, int(np.searchsorted(self._deltas[place].t, t, side="right")))
        return self._evaluated(t, self._held)

    def stayed(self, t: int) -> np.ndarray:
        """Return those rows of the report at an instant that the report before was made of too.

        To be called once for each report, after `make`. Where derivations are compared, the pattern
        is monotonic: the same elements always make the same solutions. So the derivations that two
        reports share are those over the elements that both of them saw, and to evaluate the query
        over these finds what they lead to. How a solution came about need not be recorded.
        """
        before, held = self._seen, self._held
        self._seen = [set(each) for each in held]
        if before is None:
            # What static data leads to without any element is new with the first report.
            return np.zeros((0, len(self.variables)), dtype=np.int64)
        both = [
            {row: each for row, each in now.items() if row in seen}
            for now, seen in zip(held, before, strict=True)
        ]
        return self._evaluated(t, both)

    def _evaluated(self, t: int, held: Sequence[Mapping[int, _Held]]) -> np.ndarray:
        """Evaluate the query over what the windows hold, or over a part of it."""
        contents: dict[IRI, list[_Held]] = {}
        graphs: dict[IRI, list[_Held]] = {}
        for (source, leaf), triples in zip(self.leaves, held, strict=True):
            window = self.query.windows[source.window]
            into = graphs if GRAPH_NAME in leaf.variables else contents
            into.setdefault(window.name, []).extend(triples.values())
        context = Context(now=from_epoch_ms(t))
        bag = solve(self.query, self.dataset, windows=contents, graphs=graphs, context=context)
        number = self.dictionary.number
        if isinstance(self.query.form, AskForm):
            return np.array([[number(TRUE if bag else FALSE)]], dtype=np.int64)
        rows = np.zeros((len(bag), len(self.variables)), dtype=np.int64)
        for place, solution in enumerate(bag):
            for column, variable in enumerate(self.variables):
                if variable in solution:
                    rows[place, column] = number(solution[variable])
        return rows

    def _catch_up(self, place: int, until: int) -> None:
        start, delta = self._done[place], self._deltas[place]
        if until <= start:
            return
        source, leaf = self.leaves[place]
        held = self._held[place]
        part = delta.pick(np.arange(start, until))
        subject, predicate, end = leaf.variables[:3]
        columns = (subject, predicate, end, GRAPH_NAME, time_variable(subject))
        values = leaf.columns(columns, part.row)
        for sign, row, (s, p, o, g, time) in zip(part.sign, part.row, values, strict=True):
            if sign < 0:
                del held[int(row)]
                continue
            term = self.dictionary.term
            graph = _resource(term(int(g))) if g else None
            quad = Quad(_resource(term(int(s))), _iri(term(int(p))), term(int(o)), graph)
            held[int(row)] = _Held(source.stream, int(time) - ZERO, (quad,))
        self._done[place] = until

    def arrays(self) -> dict[str, NDArray[Any]]:
        found = {f"held.{place}": _rows(held) for place, held in enumerate(self._held)}
        if self._seen is not None:
            # What has left since is ignored: the next report cannot have it.
            found |= {
                f"seen.{place}": _rows(seen & self._held[place].keys())
                for place, seen in enumerate(self._seen)
            }
        return found

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        for place in range(len(self.leaves)):
            self._held[place] = {}
            rows: Ints = arrays[f"held.{place}"]
            ones = np.ones_like(rows)
            self._deltas = [Delta(rows, ones, rows, rows)] * (place + 1)
            self._done = [0] * (place + 1)
            self._catch_up(place, len(rows))
        self._seen = None
        if "seen.0" in arrays:
            self._seen = [
                set(arrays[f"seen.{place}"].tolist()) for place in range(len(self.leaves))
            ]


def _rows(numbers: Iterable[int]) -> Ints:
    return np.array(sorted(numbers), dtype=np.int64)


def _resource(term: object) -> IRI | BlankNode:
    assert isinstance(term, IRI | BlankNode)
    return term


def _iri(term: object) -> IRI:
    assert isinstance(term, IRI)
    return term
