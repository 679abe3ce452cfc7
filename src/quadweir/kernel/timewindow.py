"""Windows over time: when a match comes and goes follows from the time of its element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, in_order, no_change
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE
from quadweir.kernel.window import Leaf, Matches
from quadweir.terms import Variable


def _by_instants(run: np.ndarray) -> np.ndarray:
    """Sort matches by when they come, and of those that come together by when they go.

    Both grow with the element's time, but a hopping window may have several of one time alike.
    """
    enter, leave = run[:, ENTER], run[:, LEAVE]
    # Nearly always they are in order.
    if np.all(enter[1:] >= enter[:-1]) and np.all(leave[1:] >= leave[:-1]):
        return run
    return run[np.lexsort((leave, enter))]


class _Length(NamedTuple):
    """How long matches after some time stay, and until when at least."""

    after: int
    clock: TimeClock
    until: int


@final
class TimedLeaf(Leaf):
    """A leaf whose matches' instants follow from their elements' times.

    An eager leaf (E1) hands matches on as they arrive, whatever their order.

    If it need not `retain` them (`retention`), matches are let go of as soon as they were handed on: by
    an eager leaf as if they left, by a leaf of which nothing ever leaves without a word.
    """

    def __init__(
        self,
        variables: tuple[Variable, ...],
        clock: TimeClock,
        dictionary: Dictionary,
        *,
        eager: bool = False,
    ) -> None:
        super().__init__(variables, dictionary, 0)
        self.timed = True
        self.clock = clock
        self.eager = eager
        self.retain = True
        # If lengths change: from which time on each counts, and until when its matches stay at
        # least. So what comes later never leaves sooner.
        self._lengths = [_Length(ALWAYS, clock, ALWAYS)]
        self._latest = ALWAYS
        self.is_open = False
        # Runs of [enter, leave, values...], each sorted by the instant of entering.
        self._runs: list[np.ndarray] = []

    @property
    def is_endless(self) -> bool:
        """Whether nothing ever leaves the window (W5)."""
        return self.clock.until_ms is None

    def remember(self, report: int) -> None:
        if self.retain:
            super().remember(report)

    def set_length(self, length_ms: int) -> None:
        """Set how long matches stay that are later than all that have come."""
        last = self._lengths[-1]
        if last.clock.until_ms == length_ms:
            return
        clock = replace(last.clock, until_ms=length_ms)
        if last.after == self._latest:
            self._lengths[-1] = last._replace(clock=clock)
            return
        time = np.array([self._latest], dtype=np.int64)
        until = max(last.until, int(last.clock.interval(time)[1][0]))
        self._lengths.append(_Length(self._latest, clock, until))

    def _interval(self, time: Ints) -> tuple[Ints, Ints]:
        if not self.is_open:
            return self.clock.interval(time)
        self._latest = max(self._latest, int(time.max()))
        enter, leave = self._lengths[0].clock.interval(time)
        leave = np.maximum(leave, self._lengths[0].until)
        for after, clock, until in self._lengths[1:]:
            own = np.maximum(clock.interval(time)[1], until)
            leave = np.where(time > after, own, leave)
        return enter, leave

    def hear(self, matches: Matches) -> None:
        if not len(matches.time):
            return
        enter, leave = self._interval(matches.time)
        run = np.column_stack((enter, leave, matches.values))
        if self.clock.step_ms is not None:
            # A hopping window may never look at an element that falls between two scopes.
            run = run[enter < leave]
        self.dictionary.hold(run[:, FIRST_VALUE:].ravel())
        self._runs.append(run if self.eager else _by_instants(run))

    def advance(self, through: int, admitted: int = FOREVER) -> Delta:
        # Rows that never leave stay even at the end of all streams (E3).
        through = min(through, FOREVER - 1)
        while len(self._lengths) > 1 and self._lengths[1].after <= through:
            del self._lengths[0]  # nothing that early comes any more
        if self.eager:
            return self._advance_eagerly(through, admitted)
        return self._advance_in_order(through)

    def _advance_eagerly(self, through: int, admitted: int) -> Delta:
        table = self.table
        parts = []
        run = self._arrived(admitted)
        if len(run):
            rows = table.append(run)
            came = np.ascontiguousarray(run[:, ENTER])
            parts.append(Delta(came, np.ones_like(rows), rows, np.ascontiguousarray(run[:, LEAVE])))
        # What arrived out of order may leave a little late: this does not show, since every match
        # of a join is checked for a common instant.
        gone = self._count_gone_first(through) if self.retain else table.tail - self._gone
        if gone:
            rows = np.arange(self._gone, self._gone + gone, dtype=np.int64)
            leave = table.cells[table.places(rows), LEAVE]
            parts.append(Delta(leave, -np.ones_like(rows), rows, leave))
            self._gone += gone
        if not parts:
            return no_change()
        return Delta(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _arrived(self, admitted: int) -> np.ndarray:
        """Take what has arrived and comes until an instant, in the order of arrival."""
        arrived, self._runs = self._runs, []
        if admitted < FOREVER:
            here = [run[:, ENTER] <= admitted for run in arrived]
            self._runs = [
                run[~now] for run, now in zip(arrived, here, strict=True) if not now.all()
            ]
            arrived = [run[now] for run, now in zip(arrived, here, strict=True)]
        if not arrived:
            return np.zeros((0, self.table.width), dtype=np.int64)
        return np.concatenate(arrived) if len(arrived) > 1 else arrived[0]

    def _advance_in_order(self, through: int) -> Delta:
        table = self.table
        came = self._ready(through)
        first = self._gone
        parts = []
        if len(came):
            rows = table.append(came)
            enter = np.ascontiguousarray(came[:, ENTER])
            leave = np.ascontiguousarray(came[:, LEAVE])
            parts.append(Delta(enter, np.ones_like(rows), rows, leave))
        # Both instants grow with the element's time, so the rows go in the order they came in.
        gone = self._count_gone(through)
        if gone:
            rows = np.arange(first, first + gone, dtype=np.int64)
            leave = table.cells[table.places(rows), LEAVE]
            parts.append(Delta(leave, -np.ones_like(rows), rows, leave))
            self._gone += gone
        if not self.retain:
            self._gone = table.tail
        if not parts:
            return no_change()
        return in_order(parts)[0] if len(parts) > 1 else parts[0]

    def _count_gone_first(self, through: int) -> int:
        """Count the rows that have left up to the first that has not, in growing blocks."""
        table, first, size = self.table, self._gone, 64
        while first < table.tail:
            rows = np.arange(first, min(first + size, table.tail), dtype=np.int64)
            stays = table.cells[table.places(rows), LEAVE] > through
            if stays.any():
                return first + int(np.argmax(stays)) - self._gone
            first += len(rows)
            size *= 2
        return first - self._gone

    def _count_gone(self, through: int) -> int:
        """Count the rows that have left by halving: they are sorted."""
        table = self.table
        low, high = self._gone, table.tail
        while low < high:
            middle = (low + high) // 2
            if table.cells[middle % table.capacity, LEAVE] <= through:
                low = middle + 1
            else:
                high = middle
        return low - self._gone

    def _ready(self, through: int) -> np.ndarray:
        ready, waiting = [], []
        for run in self._runs:
            cut = int(np.searchsorted(run[:, ENTER], through, side="right"))
            if cut:
                ready.append(run[:cut])
            if cut < len(run):
                waiting.append(run[cut:])
        self._runs = waiting
        if not ready:
            return np.zeros((0, self.table.width), dtype=np.int64)
        if len(ready) == 1:
            return ready[0]
        return _by_instants(np.concatenate(ready))

    def held(self) -> int:
        return super().held() + sum(len(run) for run in self._runs)

    def arrays(self) -> dict[str, Ints]:
        runs = self._runs or [np.zeros((0, self.table.width), dtype=np.int64)]
        waiting = np.concatenate(runs)
        if not self.eager:
            waiting = _by_instants(waiting)
        found = {**super().arrays(), "waiting": waiting}
        if self.is_open:
            lengths = [(each.after, each.clock.until_ms, each.until) for each in self._lengths]
            found["lengths"] = np.array([(self._latest, 0, 0), *lengths], dtype=np.int64)
        return found

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        super().restore(arrays)
        waiting = arrays["waiting"]
        self._runs = [waiting] if len(waiting) else []
        self._restore_lengths(arrays)

    def _restore_lengths(self, arrays: Mapping[str, Ints]) -> None:
        if not self.is_open:
            return
        (self._latest, *_), *lengths = np.asarray(arrays["lengths"]).tolist()
        self._lengths = [
            _Length(after, replace(self.clock, until_ms=length), until)
            for after, length, until in lengths
        ]

    def terms(self, arrays: Mapping[str, Ints]) -> list[Ints]:
        return [*self._held_values(arrays), arrays["waiting"][:, FIRST_VALUE:]]

    def row_arrays(self) -> list[tuple[tuple[str, ...], int]]:
        return [*super().row_arrays(), (("waiting",), FIRST_VALUE)]

    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        run = np.concatenate((arrays["left"], arrays["cells"], arrays["waiting"]))
        self.dictionary.hold(run[:, FIRST_VALUE:].ravel())
        self._runs = [run if self.eager else _by_instants(run)]
        self._restore_lengths(arrays)
