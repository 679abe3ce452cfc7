"""At which instants a query reports (R1 to R3, E3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import PastScope, TimeScope
from quadweir.errors import LimitError
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.clocks import CountClock, TimeClock
from quadweir.plan.nodes import Source

# More reports with answers than this within one step are refused.
MAX_CLOSES = 10_000_000
# Up to so many closes are gone through one by one.
FEW_CLOSES = 100_000


def next_close(instant: int, step: int, first: int) -> int:
    """Find the close of a window that is not before an instant; `first` is its first close."""
    return first + max(0, -((first - instant) // step)) * step


def _busy_multiples(
    first: int, last: int, step: int, changed: Ints, answers_at: NDArray[np.bool_]
) -> Ints:
    """List the closes from the first to the last at which there is something to say."""
    inside = changed[(changed > first) & (changed <= last)]
    edges = np.concatenate(([first], inside))
    # The first close after each change, and the very last: at the end of all streams that is the end.
    closes = first + -((first - edges) // step) * step
    closes = np.unique(np.append(closes, first + (last - first) // step * step))
    has_answers = answers_at[np.searchsorted(changed, closes, side="right")]
    until = np.append(closes[1:], last + 1)
    counts = np.where(has_answers, -((closes - until) // step), 1)
    total = int(counts.sum())
    if total > MAX_CLOSES:
        raise LimitError(
            f"more than {MAX_CLOSES} reports with answers at once",
            hint="Give the window a longer step, or bring time forward in smaller strides.",
        )
    nth = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.repeat(closes, counts) + nth * step
    return found[found <= last]


@final
class Closes:
    """The report instants of a query that reports on close, or every so often.

    They begin with the first that is not before the earliest element, and after the end of all
    streams they go on until every window is empty but ALL and count windows (E3).
    """

    def __init__(
        self,
        query: ContinuousQuery,
        sources: Sequence[Source],
        clocks: Mapping[Source, CountClock],
    ) -> None:
        self._clocks = clocks
        self._timed = {
            source: TimeClock.of(query.windows[source.window].scope)
            for source in sources
            if source not in clocks
        }
        self._steps: list[tuple[int, int]] = []
        self._counted: list[Source] = []
        if query.tick.every_ms is not None:
            self._steps = [(query.tick.every_ms, query.tick.every_ms)]
        else:
            for source in sources:
                match query.windows[source.window].scope:
                    case (
                        TimeScope(step_ms=int(step), first_close_ms=first)
                        | PastScope(step_ms=int(step), first_close_ms=first)
                    ):
                        self._steps.append((step, first))
                    case _:
                        if source in clocks and clocks[source].scope.step is not None:
                            self._counted.append(source)
        self._steps = sorted(set(self._steps))
        self.first = FOREVER
        self._last: dict[Source, int] = {}
        self._past = ALWAYS  # closes until here were given
        self._ended = False

    def set_lengths(self, lengths: Mapping[int, int]) -> None:
        """Take the lengths of open windows, by the places of windows in the query."""
        for source, clock in self._timed.items():
            if source.window in lengths:
                self._timed[source] = replace(clock, until_ms=lengths[source.window])

    def hear(self, source: Source, first: int, last: int) -> None:
        """Take the earliest and the latest time of elements that have arrived."""
        self.first = min(self.first, first)
        self._last[source] = max(last, self._last.get(source, last))

    def advance(self, through: int, changed: Ints, answers_at: NDArray[np.bool_]) -> Ints:
        """List the closes until an instant, in order; all there are if it is FOREVER.

        Where there are very many, closes at which nothing is to be said are left out.

        Args:
            through: The instant.
            changed: The instants at which solutions or contents change, in order, each once.
            answers_at: For the time before the first of them, and from each of them on: whether every
                close brings answers. Where not, only the first close after a change counts.
        """
        if self.first == FOREVER or self._ended:
            return ints(0)
        end = through
        if through >= FOREVER:
            end = self._end()
            self._ended = True
        start = max(self._past + 1, self.first)
        found = [
            self._multiples(step, first, start, end, through, (changed, answers_at))
            for step, first in self._steps
        ]
        found += [self._clocks[source].looks for source in self._counted]
        closes = np.unique(np.concatenate(found)) if found else ints(0)
        closes = closes[closes >= self.first]
        if through >= FOREVER and len(closes):
            # The first close at which everything is over is the last report.
            closes = closes[: int(np.searchsorted(closes, end)) + 1]
        self._past = through
        return closes

    def _multiples(
        self,
        step: int,
        first_close: int,
        start: int,
        end: int,
        through: int,
        busy: tuple[Ints, NDArray[np.bool_]],
    ) -> Ints:
        first = next_close(start, step, first_close)
        # At the end of all streams one more, unless a close falls on the end.
        last = max(first, next_close(end, step, first_close)) if through >= FOREVER else end
        if (last - first) // step <= FEW_CLOSES:
            return np.arange(first, last + 1, step, dtype=np.int64)
        return _busy_multiples(first, last, step, *busy)

    def _end(self) -> int:
        """Find the instant from which nothing is left to report."""
        end = max(self._last.values())
        for source, last in self._last.items():
            if source in self._timed:
                at = np.array([last], dtype=np.int64)
                leave = int(self._timed[source].interval(at)[1][0])
                if leave < FOREVER:
                    end = max(end, leave)
        return end

    def arrays(self, sources: Sequence[Source]) -> dict[str, Ints]:
        last = [self._last.get(source, ALWAYS) for source in sources]
        return {
            "closes": np.array([self.first, self._past, self._ended, *last], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, Ints], sources: Sequence[Source]) -> None:
        self.first, self._past, ended, *last = (int(each) for each in arrays["closes"])
        self._ended = bool(ended)
        self._last = {
            source: each for source, each in zip(sources, last, strict=True) if each > ALWAYS
        }

    def take_over(self, other: Closes | None, sources: Mapping[Source, Source], past: int) -> None:
        """Go on where the closes of another plan were; it may have reported on change.

        Args:
            other: The closes of the other plan.
            sources: For each source, the one that it was there.
            past: The instant up to which all was reported.
        """
        self._past = past
        if other is None:
            # Whatever came before, came before the closes that are still to be reported.
            self.first = past + 1 if past > ALWAYS else FOREVER
            self._last = dict.fromkeys(self._timed, past) if past > ALWAYS else {}
            return
        self.first, self._ended = other.first, other._ended
        self._last = {
            source: other._last[then] for source, then in sources.items() if then in other._last
        }
