"""Windows: matches of one triple pattern enter with their element and leave with it.

When that is, the clock of the window says (`clocks.py`). A leaf holds the matches of one
pattern in one window, in the order in which they come and go: a circular array (paper 001,
section 3.3). Arrivals may be out of order as long as they are not late; they wait in sorted runs
until time has come to their instant.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np

from quadweir.kernel.arrays import FOREVER, Ints, ints, power_of_two
from quadweir.kernel.clocks import CountClock, TimeClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator, in_order, no_change
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE, CircularTable
from quadweir.terms import Variable


class Matches(NamedTuple):
    """Matches of one triple pattern: the element's time and position, and what is bound."""

    time: Ints
    position: Ints
    values: np.ndarray  # one row for each match, one column a variable

    def pick(self, places: np.ndarray) -> Matches:
        return Matches(self.time[places], self.position[places], self.values[places])


def no_matches(width: int) -> Matches:
    """Nothing has matched."""
    return Matches(ints(0), ints(0), np.zeros((0, width), dtype=np.int64))


class Leaf(Operator):
    """The matches of one pattern in one window.

    Linear: no, matches leave by themselves.
    State: the matches in the window, and those that wait for their instant; where reports are further
        apart than changes, those that the last report saw and that have left since.
    Forgets: a match once the watermark has passed the instant at which it is gone, or with the first
        report after that.

    `table` is probed by joins as it is: when a match comes, when it goes, then its values.
    """

    def __init__(self, variables: tuple[Variable, ...], dictionary: Dictionary, extra: int) -> None:
        self.variables = variables
        self.always = frozenset(variables)
        self.dictionary = dictionary
        self.width = len(variables)
        self.table: CircularTable = CircularTable(FIRST_VALUE + self.width + extra)
        self._places = {variable: place for place, variable in enumerate(variables)}
        self._gone = 0  # the rows before this one have left
        # [enter, leave, values...] of rows that the last report saw and that have left since.
        self._left = np.zeros((0, FIRST_VALUE + self.width), dtype=np.int64)

    def run(self, inputs: list[Delta], through: int, admitted: int) -> Delta:
        return self.advance(through, admitted)

    def column(self, variable: Variable, rows: Ints) -> Ints:
        found = ints(len(rows))
        place = self._places.get(variable)
        if place is not None:
            self.table.read(rows, FIRST_VALUE + place, found)
        return found

    def span(self) -> int:
        return power_of_two(self.table.capacity)

    @abstractmethod
    def hear(self, matches: Matches) -> None:
        """Take matches that have arrived, in any order; none may be late."""

    @abstractmethod
    def advance(self, through: int, admitted: int = FOREVER) -> Delta:
        """Go on to an instant and give what comes and goes until then, in order of time.

        An eager leaf also gives what comes later, as far as it has arrived and is `admitted`.
        """

    def remember(self, report: int) -> None:
        """Keep what the last report saw and what has left since, until the next report.

        Only where static data becomes another is it looked at: the next report is then compared with
        what that one would have been. To be called before `settle`, where not every instant at which
        something leaves is a report.
        """
        if self._gone == self.table.head and not len(self._left):
            return
        left = np.concatenate((self._left, self._leaving()))
        kept = left[(left[:, ENTER] <= report) & (left[:, LEAVE] > report)]
        self.dictionary.hold(kept[:, FIRST_VALUE:].ravel())
        self.dictionary.drop(self._left[:, FIRST_VALUE:].ravel())
        self._left = kept

    def _leaving(self) -> np.ndarray:
        """Give [enter, leave, values...] of what has left in this step."""
        rows = self.table.places(np.arange(self.table.head, self._gone, dtype=np.int64))
        found: np.ndarray = self.table.cells[rows, : FIRST_VALUE + self.width]
        return found

    def settle(self) -> None:
        if self._gone > self.table.head:
            self.dictionary.drop(self._leaving()[:, FIRST_VALUE:].ravel())
            self.table.forget(self._gone)

    def held(self) -> int:
        return self.table.held + len(self._left)

    def arrays(self) -> dict[str, Ints]:
        gone = np.array([self._gone], dtype=np.int64)
        return {**self.table.arrays(), "gone": gone, "left": self._left}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self.table.restore(arrays)
        self._gone = int(arrays["gone"][0])
        self._left = arrays["left"]

    @abstractmethod
    def terms(self, arrays: Mapping[str, Ints]) -> list[Ints]:
        """Give the parts of what `arrays` gave that are numbers of terms; they can be written to."""

    @abstractmethod
    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        """Take what a leaf of the same window held, as if it came now.

        Args:
            arrays: What `arrays` gave there, with the numbers that terms have here.
        """

    def _held_values(self, arrays: Mapping[str, Ints]) -> list[Ints]:
        values = slice(FIRST_VALUE, FIRST_VALUE + self.width)
        return [arrays["cells"][:, values], arrays["left"][:, values]]

    def _append(
        self,
        enter: Ints,
        leave: Ints,
        values: np.ndarray,
        *extra: Ints,
    ) -> Ints:
        cells = np.empty((len(enter), self.table.width), dtype=np.int64)
        cells[:, ENTER] = enter
        cells[:, LEAVE] = leave
        cells[:, FIRST_VALUE : FIRST_VALUE + self.width] = values
        for place, column in enumerate(extra):
            cells[:, FIRST_VALUE + self.width + place] = column
        return self.table.append(cells)


def _by_instants(run: np.ndarray) -> np.ndarray:
    """Sort matches by when they come, and of those that come together by when they go.

    Both grow with the element's time, but a hopping window may have several of one time alike.
    """
    enter, leave = run[:, ENTER], run[:, LEAVE]
    # Nearly always they are in order.
    if np.all(enter[1:] >= enter[:-1]) and np.all(leave[1:] >= leave[:-1]):
        return run
    return run[np.lexsort((leave, enter))]


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
        # Runs of [enter, leave, values...], each sorted by the instant of entering.
        self._runs: list[np.ndarray] = []

    @property
    def is_endless(self) -> bool:
        """Whether nothing ever leaves the window (W5)."""
        return self.clock.until_ms is None

    def remember(self, report: int) -> None:
        if self.retain:
            super().remember(report)

    def hear(self, matches: Matches) -> None:
        if not len(matches.time):
            return
        enter, leave = self.clock.interval(matches.time)
        run = np.column_stack((enter, leave, matches.values))
        if self.clock.step_ms is not None:
            # A hopping window may never look at an element that falls between two scopes.
            run = run[enter < leave]
        self.dictionary.hold(run[:, FIRST_VALUE:].ravel())
        self._runs.append(run if self.eager else _by_instants(run))

    def advance(self, through: int, admitted: int = FOREVER) -> Delta:
        # At the end of all streams too, what stays for ever stays (E3).
        through = min(through, FOREVER - 1)
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
        # What arrived out of order may leave a little late: nobody sees it, since every match
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
        return {**super().arrays(), "waiting": waiting}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        super().restore(arrays)
        waiting = arrays["waiting"]
        self._runs = [waiting] if len(waiting) else []

    def terms(self, arrays: Mapping[str, Ints]) -> list[Ints]:
        return [*self._held_values(arrays), arrays["waiting"][:, FIRST_VALUE:]]

    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        run = np.concatenate((arrays["left"], arrays["cells"], arrays["waiting"]))
        self.dictionary.hold(run[:, FIRST_VALUE:].ravel())
        self._runs = [run if self.eager else _by_instants(run)]


@final
class CountedLeaf(Leaf):
    """A leaf of a count window. The clock is the window's and is advanced before its leaves."""

    def __init__(
        self, variables: tuple[Variable, ...], clock: CountClock, dictionary: Dictionary
    ) -> None:
        super().__init__(variables, dictionary, 1)
        self.clock = clock
        self._waiting: list[Matches] = []  # not counted yet
        # Counted, but not looked at yet: [place, values...].
        self._counted = np.zeros((0, 1 + self.width), dtype=np.int64)
        # What comes again with the next step: rows as in the table, those first that have left.
        self._again = np.zeros((0, self.table.width), dtype=np.int64)
        self._goes = ints(0)  # when each row goes that goes in this step

    def hear(self, matches: Matches) -> None:
        if len(matches.time):
            self.dictionary.hold(matches.values.ravel())
            self._waiting.append(matches)

    def advance(self, through: int, admitted: int = FOREVER) -> Delta:
        again = self._come_again()
        self._count(through)
        clock, table, size = self.clock, self.table, self.clock.scope.size
        place = self._counted[:, 0]
        enter = clock.look_at(place)
        seen = enter < FOREVER
        came, self._counted = self._counted[seen], self._counted[~seen]
        enter, place = enter[seen], place[seen]
        leave = clock.look_at(place + size)
        # A burst of more than the window's size goes by unseen.
        passing = leave <= enter
        self.dictionary.drop(came[passing, 1:].ravel())
        enter, place, came = enter[~passing], place[~passing], came[~passing]
        unknown = np.full(len(enter), FOREVER, dtype=np.int64)
        rows = self._append(enter, unknown, came[:, 1:], place)
        parts = [*again, Delta(enter, np.ones_like(rows), rows, unknown)]
        held = np.arange(self._gone, table.tail, dtype=np.int64)
        goes = clock.look_at(table.cells[table.places(held), FIRST_VALUE + self.width] + size)
        gone = int(np.searchsorted(goes, FOREVER))
        rows = held[:gone]
        parts.append(Delta(goes[:gone], -np.ones_like(rows), rows, goes[:gone]))
        self._gone += gone
        self._goes = np.concatenate((self._goes, goes[:gone]))
        return in_order(parts)[0]

    def _come_again(self) -> list[Delta]:
        cells, self._again = self._again, self._again[:0]
        leave = cells[:, LEAVE].copy()
        self._goes = leave[leave < FOREVER]
        if not len(cells):
            return []
        cells[:, LEAVE] = FOREVER  # as it is for all that come
        rows = self.table.append(cells)
        gone = len(self._goes)
        self._gone += gone
        return [
            Delta(cells[:, ENTER].copy(), np.ones_like(rows), rows, cells[:, LEAVE].copy()),
            Delta(self._goes, np.full(gone, -1, dtype=np.int64), rows[:gone], self._goes),
        ]

    def _leaving(self) -> np.ndarray:
        found = super()._leaving()
        found[:, LEAVE] = self._goes
        return found

    def _count(self, through: int) -> None:
        ready, waiting = [self._counted], []
        for matches in self._waiting:
            now = matches.time <= through
            if now.any():
                counted = matches.pick(now)
                place = self.clock.place(counted.position)
                ready.append(np.column_stack((place, counted.values)))
            if not now.all():
                waiting.append(matches.pick(~now))
        self._waiting = waiting
        together = np.concatenate(ready)
        self._counted = together[np.argsort(together[:, 0], kind="stable")]

    def held(self) -> int:
        waiting = sum(len(matches.time) for matches in self._waiting)
        return super().held() + len(self._counted) + waiting

    def arrays(self) -> dict[str, Ints]:
        waiting = self._waiting or [no_matches(self.width)]
        return {
            **super().arrays(),
            "counted": self._counted,
            "time": np.concatenate([each.time for each in waiting]),
            "position": np.concatenate([each.position for each in waiting]),
            "values": np.concatenate([each.values for each in waiting]),
        }

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        super().restore(arrays)
        self._take_waiting(arrays)

    def _take_waiting(self, arrays: Mapping[str, Ints]) -> None:
        self._counted = arrays["counted"]
        self._waiting = []
        if len(arrays["time"]):
            self._waiting = [Matches(arrays["time"], arrays["position"], arrays["values"])]

    def terms(self, arrays: Mapping[str, Ints]) -> list[Ints]:
        return [*self._held_values(arrays), arrays["counted"][:, 1:], arrays["values"]]

    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        for numbers in self.terms(arrays):
            self.dictionary.hold(numbers.ravel())
        self._take_waiting(arrays)
        left = np.column_stack((arrays["left"], ints(len(arrays["left"]))))
        self._again = np.concatenate((left, arrays["cells"]))
