"""Other ways to answer the same questions: what a peer must do, and some that come with us.

A peer is given a question and its static data, is fed batches of elements in the order of time, and
hands over its answers when it has all of them. `docs/reference/bench-lsbench.md` tells how to add
one, for example an engine on the JVM (`peer_process.py`).
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyoxigraph as ox

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import TimeScope
from quadweir.bench.tables import as_quads, write_batches
from quadweir.bench.workloads import STATIC_GRAPH, Question, lsbench
from quadweir.errors import UnsupportedError
from quadweir.syntax.read import parse
from quadweir.terms import IRI
from quadweir.testing import Answer
from quadweir.testing.elements import from_oxigraph
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.oxigraph_terms import to_oxigraph_quad

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Peer(ABC):
    """Something that answers continuous queries.

    Attributes:
        name: what the report calls it.
        dialect: the dialect of the questions that it wants.
    """

    name: str
    dialect: str = "cqels"

    @abstractmethod
    def start(self, question: Question, static: pa.Table | None) -> None:
        """Take a question and its static triples.

        Raises:
            UnsupportedError: it cannot answer this question.
        """

    @abstractmethod
    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        """Take the next elements of the streams, by their IRIs; time never goes back."""

    @abstractmethod
    def collect(self) -> list[Answer]:
        """End the streams, and give all answers."""

    def stop(self) -> None:  # noqa: B027 - most have nothing to give back
        """Give back what it holds; also called after an error."""


# --- re-evaluation ----------------------------------------------------------------------------

_REGISTER: Final = re.compile(r"^\s*(REGISTER\s.*|FROM\s.*)$", re.MULTILINE)


@final
class Reevaluation(Peer):
    """Answers C-SPARQL's way: at every close the whole query, by pyoxigraph over the windows' content.

    The store is kept from close to close: elements are put in as they arrive and taken out as they
    leave; only the evaluation starts anew.
    """

    name = "re-evaluation with pyoxigraph"
    dialect = "csparql"

    def start(self, question: Question, static: pa.Table | None) -> None:
        query = parse(question.text, dialect="csparql", allow=("FROM",))
        self._ranges, self._step = _windows(query)
        self._sparql = _REGISTER.sub("", question.text)
        self._store = ox.Store()
        self._static: set[ox.Quad] = set()
        if static is not None and STATIC_GRAPH in question.text:
            quads = [to_oxigraph_quad(quad) for quad in as_quads(static)]
            self._store.bulk_extend(quads)
            self._static = set(quads)
        self._inside: dict[str, deque[tuple[int, ox.Quad]]] = {iri: deque() for iri in self._ranges}
        self._counts: dict[ox.Quad, int] = {}
        self._waiting: dict[str, deque[tuple[int, ox.Quad]]] = {
            iri: deque() for iri in self._ranges
        }
        self._close: int | None = None
        self._answers: list[Answer] = []

    def feed(self, batch: Mapping[str, pa.Table]) -> None:
        latest = None
        for iri, table in batch.items():
            times = table.column("time").to_pylist()
            quads = map(to_oxigraph_quad, as_quads(table))
            self._waiting[iri].extend(zip(times, quads, strict=True))
            if times:
                latest = max(times[-1], latest if latest is not None else times[-1])
                if self._close is None:
                    # The first close after the first element.
                    self._close = -(-times[0] // self._step) * self._step
        while latest is not None and self._close is not None and self._close < latest:
            self._report()

    def collect(self) -> list[Answer]:
        # Until all windows are empty; closes that see nothing are not reported.
        while any(self._waiting.values()) or any(self._inside.values()):
            self._report()
        return self._answers

    def _report(self) -> None:
        close = self._close
        assert close is not None
        for iri, length in self._ranges.items():
            waiting, inside = self._waiting[iri], self._inside[iri]
            while waiting and waiting[0][0] <= close:
                time, quad = waiting.popleft()
                inside.append((time, quad))
                self._enter(quad)
            while inside and inside[0][0] <= close - length:
                self._leave(inside.popleft()[1])
        if any(self._inside.values()):
            found: Any = self._store.query(self._sparql)
            names = [variable.value for variable in found.variables]
            for solution in found:
                bound = {name: solution[name] for name in names if solution[name] is not None}
                terms = {name: from_oxigraph(term) for name, term in bound.items()}
                self._answers.append(Answer.of(close, "+", terms))
            self._close = close + self._step
        else:
            ahead = [each[0][0] for each in self._waiting.values() if each]
            after = min(ahead, default=close + self._step)
            self._close = max(close + self._step, -(-after // self._step) * self._step)

    def _enter(self, quad: ox.Quad) -> None:
        self._counts[quad] = self._counts.get(quad, 0) + 1
        self._store.add(quad)

    def _leave(self, quad: ox.Quad) -> None:
        left = self._counts[quad] - 1
        if left:
            self._counts[quad] = left
            return
        del self._counts[quad]
        if quad not in self._static:
            self._store.remove(quad)


def _windows(query: ContinuousQuery) -> tuple[dict[str, int], int]:
    """The ranges of the windows by stream, and their common step, in milliseconds."""
    ranges: dict[str, int] = {}
    steps = set()
    for window in query.windows:
        scope = window.scope
        stream = window.stream
        if not isinstance(scope, TimeScope) or scope.step_ms is None or not isinstance(stream, IRI):
            raise UnsupportedError("re-evaluation needs time windows with a step")
        ranges[stream.value] = scope.length_ms
        steps.add(scope.step_ms)
    if len(steps) != 1:
        raise UnsupportedError("re-evaluation needs windows that close together")
    return ranges, steps.pop()
