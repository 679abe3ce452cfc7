"""At which instants a query reports (R1 to R3, E3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import numpy as np

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import ReportPolicy
from quadweir.algebra.windows import PastScope, TimeScope
from quadweir.errors import LimitError
from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints
from quadweir.kernel.clocks import CountClock, TimeClock
from quadweir.kernel.network import Source

# More closes than this within one step mean a window that hops by far less than time goes on.
MAX_CLOSES = 10_000_000


def reports_on_close(query: ContinuousQuery) -> bool:
    """Tell whether a query reports at instants of its own rather than when something changes."""
    return query.tick.every_ms is not None or query.report.policy is ReportPolicy.ON_CLOSE


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
            self._steps = [(query.tick.every_ms, 0)]
        else:
            for source in sources:
                match query.windows[source.window].scope:
                    case (
                        TimeScope(step_ms=int(step), origin_ms=origin)
                        | PastScope(step_ms=int(step), origin_ms=origin)
                    ):
                        self._steps.append((step, origin))
                    case _:
                        if source in clocks and clocks[source].scope.step is not None:
                            self._counted.append(source)
        self._steps = sorted(set(self._steps))
        self.first = FOREVER
        self._last: dict[Source, int] = {}
        self._past = ALWAYS  # closes until here were given
        self._ended = False

    def hear(self, source: Source, first: int, last: int) -> None:
        """Take the earliest and the latest time of elements that have arrived."""
        self.first = min(self.first, first)
        self._last[source] = max(last, self._last.get(source, last))

    def advance(self, through: int) -> Ints:
        """List the closes until an instant, in order; all there are if it is FOREVER."""
        if self.first == FOREVER or self._ended:
            return ints(0)
        end = through
        if through >= FOREVER:
            end = self._end()
            self._ended = True
        start = max(self._past + 1, self.first)
        found = [self._multiples(step, origin, start, end, through) for step, origin in self._steps]
        found += [self._clocks[source].looks for source in self._counted]
        closes = np.unique(np.concatenate(found)) if found else ints(0)
        closes = closes[closes >= self.first]
        if through >= FOREVER and len(closes):
            # The first close at which everything is over is the last report.
            closes = closes[: int(np.searchsorted(closes, end)) + 1]
        self._past = through
        return closes

    def _multiples(self, step: int, origin: int, start: int, end: int, through: int) -> Ints:
        first = origin + max(1, -((origin - start) // step)) * step
        # At the end of all streams one more, unless a close falls on the end.
        beyond = max(first, origin + -((origin - end) // step) * step)
        last = beyond if through >= FOREVER else end
        if (last - first) // step > MAX_CLOSES:
            raise LimitError(
                f"more than {MAX_CLOSES} reports at once",
                hint="Give the window a longer step, or bring time forward in smaller strides.",
            )
        return np.arange(first, last + 1, step, dtype=np.int64)

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
