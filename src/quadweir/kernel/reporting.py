"""At which instants a shard reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from quadweir.algebra.query import AskForm
from quadweir.kernel.arrays import ALWAYS, Ints, ints
from quadweir.kernel.clocks import CountClock
from quadweir.kernel.events import Events
from quadweir.kernel.instants import Closes
from quadweir.kernel.relation import Delta
from quadweir.plan.nodes import Source
from quadweir.plan.program import Program


@final
class Reporter:
    """Finds the report instants of each step.

    State: how many rows or solutions there are, the last report, and when windows close.
    Forgets: closes that were reported.

    Args:
        program: What the shard runs.
        clocks: The clocks of its count windows.
        silent_when_empty: Whether a report without solutions has no answers.
        only_changes: Whether a report without a change has no answers.

    Attributes:
        closes: When windows close; None if reports follow the changes.
        tracked: The number of rows in all windows, or of solutions where empty reports count.
        last: The last report.
        given: The reports that the stage before has found for this step; None if there is none.
    """

    def __init__(
        self,
        program: Program,
        clocks: Mapping[Source, CountClock],
        *,
        silent_when_empty: bool,
        only_changes: bool,
    ) -> None:
        self._program = program
        self._query = query = program.query
        self._non_empty = query.report.non_empty_only
        is_silent = silent_when_empty and not isinstance(query.form, AskForm)
        self._needs_rows = self._non_empty or is_silent
        self._only_changes = only_changes
        self.closes = (
            Closes(query, program.sources, clocks)
            if program.report.on_close and program.received is None
            else None
        )
        self.tracked = 0
        self.last = ALWAYS
        self.given: Ints | None = None

    @property
    def outlives_changes(self) -> bool:
        """Whether something may leave a window without a report at that instant."""
        return self.closes is not None or self._non_empty

    def set_lengths(self, lengths: Mapping[int, int]) -> None:
        """Take the lengths of open windows, by the places of windows in the query."""
        if self.closes is not None:
            self.closes.set_lengths(lengths)

    def hear(self, events: Events) -> None:
        """Take the times of elements that have arrived."""
        self.given = events.changes.reports if events.changes is not None else None
        if self.closes is not None:
            for place, (first, last) in events.seen.items():
                self.closes.hear(self._program.sources[place], first, last)

    def advance(
        self, found: list[Delta], tracked: list[Delta], through: int, *, first: bool
    ) -> Ints:
        """Return the reports up to an instant.

        Args:
            found: The changes of the solutions; of the contents of windows if solutions are
                recomputed.
            tracked: The changes of what reports depend on.
            through: The instant up to which everything is known.
            first: Whether this is the first step.
        """
        reports = self._reports(found, tracked, through, first=first)
        self.last = int(reports[-1]) if len(reports) else self.last
        return reports

    def _reports(
        self, found: list[Delta], tracked: list[Delta], through: int, *, first: bool
    ) -> Ints:
        if self._program.eager:
            return ints(0)
        if self.given is not None:
            self.tracked += sum(
                int(each.sign.sum()) for each in (tracked if self._non_empty else found)
            )
            return self.given
        if not self._query.windows:
            # A plain SPARQL query: one report.
            return ints(1 if first else 0)
        if self.closes is None:
            changes = [each.t for each in tracked or found]
            reports = np.unique(np.concatenate(changes))
            reports = reports[reports > ALWAYS]
            if not self._non_empty:
                return reports
        counted = tracked if self._non_empty else found
        t = np.concatenate([each.t for each in counted])
        order = np.argsort(t, kind="stable")
        t, signs = t[order], np.concatenate([each.sign for each in counted])[order]
        counts = np.concatenate(([0], np.cumsum(signs))) + self.tracked
        self.tracked = int(counts[-1])
        if self.closes is not None:
            changed = np.unique(t)
            there = np.append(counts[0], counts[np.searchsorted(t, changed, side="right")]) > 0
            reports = self.closes.advance(through, changed, self._answers_at(there))
        if self._non_empty:
            reports = reports[counts[np.searchsorted(t, reports, side="right")] > 0]
        return reports

    def catch_up(self, found: list[Delta], tracked: list[Delta]) -> None:
        """Count changes that no report shows, because they belong to what was reported already."""
        counted = tracked if self._non_empty else found
        self.tracked += sum(int(each.sign.sum()) for each in counted)

    def _answers_at(self, there: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return where every close has answers, given where there are contents or solutions."""
        if self._only_changes:
            return np.zeros_like(there)
        return there if self._needs_rows else np.ones_like(there)

    def take_over(self, other: Reporter, sources: Mapping[Source, Source], through: int) -> None:
        """Go on where the reports of another plan were.

        Args:
            other: What reported there.
            sources: For each source, the one that it was there.
            through: The instant up to which all was reported.
        """
        self.last = other.last
        if self.closes is not None:
            self.closes.take_over(other.closes, sources, through)

    def start_again(self, *, reports_known: bool) -> None:
        """Prepare for a step in which solutions come once more, up to the last report.

        Args:
            reports_known: Whether reports are known before the solutions are.
        """
        self.tracked = 0
        if reports_known:
            # Of all reports the last is enough: the next is compared with it.
            self.given = np.array([self.last] if self.last > ALWAYS else [], dtype=np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return when windows close, for `restore`; `tracked` and `last` are the shard's to keep."""
        return {} if self.closes is None else self.closes.arrays(self._program.sources)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `arrays` returned."""
        if self.closes is not None:
            self.closes.restore(arrays, self._program.sources)
