"""Checks a live query with the oracle: some of its reports are computed again from scratch."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.sinks.base import Sink
from quadweir.testing.answers import Answer, diff_answers
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.oracle import Oracle
from quadweir.testing.recorded import RecordedElements, reach_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Batch

_MOST: Final = 20
"""How many reports are computed again at a time."""


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
        self._recorded = RecordedElements(self.folder)
        self._answers: dict[int, list[Answer]] = defaultdict(list)
        self._checked: int | None = None
        self._lock = threading.Lock()
        self._dice = random.Random(0)

    def take(self, answers: list[Answer], through: int | None) -> None:
        """Take what a batch read and answered.

        Args:
            answers: its answers.
            through: the watermark before the batch; what is not later is
                late.
        """
        with self._lock:
            self._recorded.take(through)
            for answer in answers:
                self._answers[answer.t].append(answer)

    def check(self, through: int | None) -> None:
        """Compare some of the complete reports since the last time."""
        with self._lock:
            if through is None or (self._checked is not None and through <= self._checked):
                return
            elements = self._recorded.elements()
            if not elements:
                return
            first = min(elements, key=lambda each: each[1])
            if self._checked is None:
                self._checked = first[1] + (self._reach if self.resumed else -1)
            if through <= self._checked:
                return
            begin = self._checked + 1
            known = [
                element
                for key, element in elements.items()
                # The very first element decides when reports begin.
                if begin - self._reach < key[1] <= through or key == first
            ]
            sampled = self.oracle.sample(known, begin, through, most=_MOST, dice=self._dice)
            for t, expected in sampled.items():
                difference = diff_answers(expected, self._answers.get(t, []))
                self.reports += 1
                if difference:
                    self.different.append(difference)
            self._checked = through
            self._recorded.forget(through - self._reach, but=first)
            for t in [t for t in self._answers if t <= through]:
                del self._answers[t]


@final
@dataclass(frozen=True)
class SampledSink(Sink):
    """Hands batches to a sink and to a `Sampled`."""

    sink: Sink
    sampled: Sampled
    through: Callable[[], int | None]
    """Returns the watermark after the batch before."""

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
