"""Watch a live mapping: the number of records, and the windows of its stream joins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.commands.joinview import JoinReport, read_reports, tables_of
from quadweir.runtime.spark.progress import is_batch

if TYPE_CHECKING:
    from rich.console import RenderableType

    from quadweir.commands.board import Board

_SECONDS_BETWEEN_LINES: Final = 10.0
_RATE_SECONDS: Final = 10.0


@final
class MapView:
    """Shows the status of a mapping on a board; without a terminal, a line at intervals.

    Args:
        board: the board to show it on.
        clock: seconds that only grow; tests pass their own.
    """

    def __init__(self, board: Board, clock: Callable[[], float] = time.monotonic) -> None:
        self._board = board
        self._clock = clock
        self._next_line = clock()
        self._shown: list[str] = []
        self._last = -1
        self._records = self._batches = self._batch_ms = 0
        self._history = [(clock(), 0)]
        self._joins: list[JoinReport] = []

    def update(self, progress: Iterable[Any], bad_records: int) -> None:
        """Add Spark's reports of batches and show them; reports that were added before are
        ignored.
        """
        for report in progress:
            if report.batchId > self._last and is_batch(report):
                self._last = report.batchId
                self._batches += 1
                self._records += report.numInputRows
                self._batch_ms = report.batchDuration
                self._joins = read_reports(json.loads(report.json)) or self._joins
        if not self._batches:
            return
        if self._history[-1][1] != self._records:
            self._history.append((self._clock(), self._records))
        line = self._line(bad_records)
        if self._board.is_drawn:
            self._board.draw(_drawn(line, self._joins))
            return
        lines = [line, *(each.line() for each in self._joins)]
        if lines != self._shown and self._clock() >= self._next_line:
            self._next_line = self._clock() + _SECONDS_BETWEEN_LINES
            self._shown = lines
            for each in lines:
                self._board.say(each, style="dim")

    def _line(self, bad_records: int) -> str:
        bad = f", {bad_records:,} could not be used" if bad_records else ""
        return (
            f"{self._records:,} records ({self._rate():,.0f}/s){bad}, {self._batches:,} batches, "
            f"the last took {self._batch_ms:,} ms"
        )

    def _rate(self) -> float:
        now = self._clock()
        while len(self._history) > 2 and self._history[1][0] < now - _RATE_SECONDS:
            del self._history[0]
        began, first = self._history[0]
        return (self._records - first) / max(now - began, 1e-3)


def _drawn(line: str, joins: list[JoinReport]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    return Group(Text(line), *tables_of(joins))
