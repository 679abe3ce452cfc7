"""Windows over a number of elements: a match goes when enough elements have come after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from quadweir.kernel.arrays import FOREVER, Ints, ints
from quadweir.kernel.clocks import CountClock
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, in_order
from quadweir.kernel.tables import ENTER, FIRST_VALUE, LEAVE
from quadweir.kernel.window import Leaf, Matches, no_matches
from quadweir.terms import Variable


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

    def row_arrays(self) -> list[tuple[tuple[str, ...], int]]:
        waiting = ("values", "time", "position")
        return [*super().row_arrays(), (("counted",), 1), (waiting, 0)]

    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        for numbers in self.terms(arrays):
            self.dictionary.hold(numbers.ravel())
        self._take_waiting(arrays)
        left = np.column_stack((arrays["left"], ints(len(arrays["left"]))))
        # In the order in which they go; they may come from several shards.
        cells = arrays["cells"][np.argsort(arrays["cells"][:, -1], kind="stable")]
        self._again = np.concatenate((left, cells))
