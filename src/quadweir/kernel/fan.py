"""The router inside a dataflow where every row goes to every class: nothing is kept for each class.

Which of the rows a class has follows from its length alone. So the state does not grow with the number
of classes: ten thousand window lengths cost as much memory as the longest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.arrays import ALWAYS, FOREVER, Ints, ints, power_of_two
from quadweir.kernel.clocks import TimeClock
from quadweir.kernel.relation import Delta, Operator, in_order, no_change
from quadweir.kernel.spellings import ZERO
from quadweir.plan.nodes import CLASS
from quadweir.terms import Variable

# A row is a row of the core and the place of a class.
_BITS: Final = 21
# Columns of a row of the core: the time of its oldest part, when it came, its number.
_OLDEST: Final = 0
_CAME: Final = 1
_ROW: Final = 2
# So many sorted runs of rows are not merged.
_RUNS: Final = 8


class _Classes(NamedTuple):
    """Classes as columns: their numbers, places, lengths and instants."""

    number: Ints
    place: Ints
    length: Ints
    since: Ints

    def pick(self, which: NDArray[np.bool_]) -> _Classes:
        return _Classes(*(each[which] for each in self))

    def and_also(self, others: _Classes) -> _Classes:
        return _Classes(*(np.concatenate(both) for both in zip(self, others, strict=True)))


_NONE: Final = _Classes(ints(0), ints(0), ints(0), ints(0))


@final
class Fan(Operator):
    """One row for each class whose window holds a row of the core, all of whose parts lie in one window.

    Linear: yes.
    State: the rows of the core in order of their oldest part. A class that comes has the rows that
        are there, if they are later than its instant.
    Forgets: a row when it has left the longest window.

    What stands above reads its rows in the step in which they come or go, and at no other time.

    Args:
        source: The core, over the longest window.
        clock: When that window looks at its content.
        window: The place of that window among the open ones.
        times: The variables of the times of parts.
        variables: What its rows bind.
    """

    parameters: tuple[Variable, ...] = ()

    def __init__(
        self,
        source: Operator,
        clock: TimeClock,
        window: int,
        times: tuple[Variable, ...],
        variables: tuple[Variable, ...],
    ) -> None:
        self.source = source
        self.variables = variables
        self.always = (source.always & frozenset(variables)) | {CLASS}
        self._clock = clock
        self._window = window
        self._times = times
        self._classes = _NONE
        self._leaving = _NONE
        self._numbers = ints(16)  # of the class at each place
        self._free = list(range(15, -1, -1))
        # Runs of rows of the core, each sorted by the oldest part.
        self._runs: list[Ints] = []
        self._through = ALWAYS
        # What classes have that came since the last step.
        self._caught_up: list[Delta] = []

    # --- classes ---

    def come(self, keys: Ints, classes: Ints, ranges: Ints, since: Ints) -> None:
        """Take new classes."""
        while len(self._free) < len(classes):
            size = len(self._numbers)
            self._numbers = np.concatenate((self._numbers, ints(size)))
            self._free[:0] = range(2 * size - 1, size - 1, -1)
        places = np.array([self._free.pop() for _ in range(len(classes))], dtype=np.int64)
        self._numbers[places] = classes
        new = _Classes(classes, places, ranges[:, self._window], since)
        self._classes = self._classes.and_also(new)
        if len(since):
            self._catch_up(new)

    def _catch_up(self, new: _Classes) -> None:
        """Give classes the rows that are there and later than their instants."""
        earliest = int(new.since.min())
        for run in self._runs:
            rows = run[np.searchsorted(run[:, _OLDEST], earliest, side="right") :].copy()
            if len(rows):
                rows[:, _CAME] = self._through
                self._caught_up.append(self._given(rows, new))

    @property
    def catches_up(self) -> bool:
        """Whether classes that came have rows that are there already."""
        return bool(self._caught_up)

    def go(self, keys: Ints, classes: Ints) -> None:
        """Take all rows of some classes away in the next step."""
        gone = np.isin(self._classes.number, classes)
        self._leaving = self._leaving.and_also(self._classes.pick(gone))
        self._classes = self._classes.pick(~gone)

    def forget_classes(self) -> None:
        """Give rows to nobody, until classes come."""
        self._free += [*self._classes.place.tolist(), *self._leaving.place.tolist()]
        self._classes = self._leaving = _NONE

    @property
    def nbytes(self) -> int:
        """The bytes that classes take."""
        return self._numbers.nbytes + sum(each.nbytes for each in self._classes)

    # --- changes ---

    def run(self, inputs: list[Delta], through: int, admitted: int) -> Delta:
        (delta,) = inputs
        through = min(through, FOREVER - 1)
        parts, self._caught_up = self._caught_up, []
        if len(self._leaving.place):
            parts.append(self._taken_away())
        came = np.flatnonzero(delta.sign > 0)
        if len(came):
            parts.append(self._come(delta.pick(came)))
        last = self._last_close(through)
        gone = self._gone(self._classes, self._last_close(self._through), last)
        if len(gone.t):
            parts.append(gone)
        self._through = through
        self._forget(last)
        if not parts:
            return no_change()
        return in_order(parts)[0] if len(parts) > 1 else parts[0]

    def _last_close(self, instant: int) -> int:
        """The last instant at which the window looks, up to an instant."""
        step, first = self._clock.step_ms, self._clock.first_close_ms
        if step is None:
            return instant
        return first + (instant - first) // step * step if instant >= first else ALWAYS

    def _come(self, delta: Delta) -> Delta:
        oldest = np.full(len(delta.t), FOREVER, dtype=np.int64)
        for variable in self._times:
            time = self.source.column(variable, delta.row)
            # 0 where a row has no such part.
            oldest = np.minimum(oldest, np.where(time == 0, FOREVER, time - ZERO))
        rows = np.column_stack((oldest, delta.t, delta.row))
        self._runs.append(rows[np.argsort(oldest, kind="stable")])
        if len(self._runs) > _RUNS:
            together = np.concatenate(self._runs)
            order = np.argsort(together[:, _OLDEST], kind="stable")
            self._runs = [together[order]]
        return self._given(rows, self._classes)

    def _given(self, rows: Ints, classes: _Classes) -> Delta:
        """Give rows of the core to all classes that admit them."""
        count = len(classes.place)
        at = np.repeat(np.arange(len(rows)), count)
        return self._changes(rows[at], np.tile(np.arange(count), len(rows)), classes, 1)

    def _changes(self, rows: Ints, at: Ints, classes: _Classes, sign: int) -> Delta:
        """Give the changes of rows of the core for classes; a row that never came is left out."""
        oldest, came, row = rows[:, _OLDEST], rows[:, _CAME], rows[:, _ROW]
        leave = self._clock.leaves(oldest, classes.length[at])
        fits = (leave > came) & (oldest > classes.since[at])
        if not fits.all():
            oldest, came, row, leave, at = (each[fits] for each in (oldest, came, row, leave, at))
        t = came if sign > 0 else leave
        found = (row << _BITS) | classes.place[at]
        return Delta(t, np.full(len(t), sign, dtype=np.int64), found, leave)

    def _gone(self, classes: _Classes, after: int, until: int) -> Delta:
        """Find what leaves the windows of classes between two instants at which they look."""
        parts = []
        for run in self._runs:
            oldest = np.ascontiguousarray(run[:, _OLDEST])
            first = np.searchsorted(oldest, after - classes.length, side="right")
            last = np.searchsorted(oldest, until - classes.length, side="right")
            counts = last - first
            at = np.repeat(np.arange(len(counts)), counts)
            places = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts - first, counts)
            if len(at):
                parts.append(self._changes(run[places], at, classes, -1))
        if not parts:
            return no_change()
        found = Delta(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        return found.pick(np.argsort(found.t, kind="stable"))

    def _taken_away(self) -> Delta:
        """Take away what classes without members have, at the instant of the last step."""
        found = self._gone(self._leaving, self._last_close(self._through), FOREVER)
        return found._replace(t=np.full(len(found.t), self._through, dtype=np.int64))

    def _forget(self, last: int) -> None:
        longest = int(self._classes.length.max(initial=0))
        kept = []
        for run in self._runs:
            cut = int(np.searchsorted(run[:, _OLDEST], last - longest, side="right"))
            if cut < len(run):
                kept.append(run[cut:])
        self._runs = kept

    # --- rows ---

    def column(self, variable: Variable, rows: Ints) -> Ints:
        if variable == CLASS:
            return self._numbers[rows & ((1 << _BITS) - 1)] + ZERO
        return self.source.column(variable, rows >> _BITS)

    def identity(self, rows: Ints) -> np.ndarray:
        numbers = self._numbers[rows & ((1 << _BITS) - 1)]
        return np.column_stack((self.source.identity(rows >> _BITS), numbers))

    def span(self) -> int:
        spans = self.source.spans()
        return (power_of_two(len(spans)) * max(spans)) << _BITS

    def settle(self) -> None:
        self._free += self._leaving.place.tolist()
        self._leaving = _NONE

    def held(self) -> int:
        return sum(map(len, self._runs))

    def arrays(self) -> dict[str, Ints]:
        rows = np.concatenate([np.zeros((0, 3), dtype=np.int64), *self._runs])
        order = np.argsort(rows[:, _OLDEST], kind="stable")
        return {"rows": rows[order], "through": np.array([self._through], dtype=np.int64)}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        rows = np.asarray(arrays["rows"]).reshape(-1, 3)
        self._runs = [rows] if len(rows) else []
        self._through = int(arrays["through"][0])
