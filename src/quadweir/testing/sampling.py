"""The oracle beside a query that goes on: some of its reports, computed once more from scratch."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import NowScope, PastScope, TimeScope
from quadweir.errors import UsageError
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, BlankNode, Quad, parse_term
from quadweir.testing.answers import Answer, diff_answers
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from quadweir.sinks.start import Batch, Sink

_MOST: Final = 20
"""So many reports are computed anew at a time."""


def reach_ms(query: ContinuousQuery) -> int:
    """Tell how far before a report the elements lie that it and the one before it look at.

    Raises:
        UsageError: a window has no such bound.
    """
    found = [query.tick.every_ms or 0]
    for window in query.windows:
        match window.scope:
            case TimeScope(range_ms=size, step_ms=step) | PastScope(from_ms=size, step_ms=step):
                found.append(size + (step or 0))
            case NowScope():
                found.append(1)
            case _:
                raise UsageError(
                    "reports of a run that goes on are checked over windows of time only",
                    hint="Leave --verify out, or check a recorded run, without --live.",
                    span=window.span,
                )
    return 2 * max(found)


@final
@dataclass
class Sampled:
    """Keeps what a query read of late and answered, and compares reports with the oracle's.

    Attributes:
        oracle: computes reports; its query has windows of time only.
        folder: where the query's input is written (`runtime.recording`).
        resumed: whether windows may hold what was read before.
    """

    oracle: Oracle
    folder: Path
    resumed: bool = False
    reports: int = 0
    """How many were compared."""
    different: list[str] = field(default_factory=list)
    """How those that differ do."""

    def __post_init__(self) -> None:
        self._reach = reach_ms(self.oracle.query)
        self._elements: dict[tuple[str, int, int], dict[Quad, None]] = {}
        self._answers: dict[int, list[Answer]] = defaultdict(list)
        self._checked: int | None = None
        self._first: tuple[str, int, int] | None = None
        self._lock = threading.Lock()
        self._dice = random.Random(0)

    def take(self, answers: list[Answer], through: int | None) -> None:
        """Take what a batch read and answered.

        Args:
            answers: its answers.
            through: the instant until which all was known before the batch; what is not later is
                late.
        """
        import pyarrow.parquet as pq

        with self._lock:
            for file in sorted(self.folder.glob("*.parquet")):
                for row in pq.read_table(file).to_pylist():
                    if through is None or row[rows.EVENT_TIME] > through:
                        self._add(row)
                file.unlink()
            for answer in answers:
                self._answers[answer.t].append(answer)

    def _add(self, row: dict[str, Any]) -> None:
        subject, predicate, end = (parse_term(row[name]) for name in rows.TERMS[:3])
        assert isinstance(subject, IRI | BlankNode)
        assert isinstance(predicate, IRI)
        key = (row[rows.STREAM], row[rows.EVENT_TIME], row[rows.POSITION])
        self._elements.setdefault(key, {})[Quad(subject, predicate, end)] = None
        if self._first is None or key[1] < self._first[1]:
            self._first = key

    def check(self, through: int | None) -> None:
        """Compare some of the reports since the last time, as far as all is known."""
        with self._lock:
            if through is None or self._first is None:
                return
            if self._checked is None:
                self._checked = self._first[1] + (self._reach if self.resumed else -1)
            if through <= self._checked:
                return
            begin = self._checked + 1
            known = [
                Element(*key, tuple(quads))
                for key, quads in self._elements.items()
                # The first of all tells since when there are reports.
                if begin - self._reach < key[1] <= through or key == self._first
            ]
            sampled = self.oracle.sample(known, begin, through, most=_MOST, dice=self._dice)
            for t, expected in sampled.items():
                difference = diff_answers(expected, self._answers.get(t, []))
                self.reports += 1
                if difference:
                    self.different.append(difference)
            self._checked = through
            self._forget(through)

    def _forget(self, through: int) -> None:
        for key in [
            k for k in self._elements if k[1] <= through - self._reach and k != self._first
        ]:
            del self._elements[key]
        for t in [t for t in self._answers if t <= through]:
            del self._answers[t]


@final
@dataclass(frozen=True)
class SampledSink:
    """Hands batches to a sink and to a `Sampled`."""

    sink: Sink
    sampled: Sampled
    through: Callable[[], int | None]
    """Gives the instant until which all was known after the batch before."""

    def prepare(self) -> None:
        self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        through = self.through()
        kept = frame.persist()
        try:
            answers = answers_from_rows(kept.collect())
            self.sink.write(kept, batch)
        finally:
            kept.unpersist()
        self.sampled.take(answers, through)
