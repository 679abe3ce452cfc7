"""Windows: matches of one triple pattern enter with their element and leave with it.

When that is, the clock of the window says (`clocks.py`). A leaf holds the matches of one
pattern in one window, in the order in which they come and go: a circular array (paper 001,
section 3.3). Arrivals may be out of order as long as they are not late; they wait in sorted runs
until time has come to their instant.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from quadweir.kernel.arrays import FOREVER, Ints, ints, power_of_two
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.relation import Delta, Operator
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


class HasLength(Protocol):
    """What holds the matches of a window of some length."""

    def set_length(self, length_ms: int) -> None:
        """Set how long matches stay from now on."""


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

        An eager leaf also returns what comes later, as far as it has arrived and is `admitted`.
        """

    def present(self) -> Delta:
        rows = np.arange(self._gone, self.table.tail, dtype=np.int64)
        cells = self.table.cells[self.table.places(rows)]
        enter, leave = (np.ascontiguousarray(cells[:, column]) for column in (ENTER, LEAVE))
        return Delta(enter, np.ones_like(rows), rows, leave)

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
        """Return [enter, leave, values...] of what has left in this step."""
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
        """Return the parts of what `arrays` returned that are numbers of terms; they can be written to."""

    def row_arrays(self) -> list[tuple[tuple[str, ...], int]]:
        """Return the names of what `arrays` returned that has rows, and where the values begin.

        Arrays that are named together have a row each for the same match; the first has the values.
        """
        return [(("cells",), FIRST_VALUE), (("left",), FIRST_VALUE)]

    @abstractmethod
    def hear_again(self, arrays: Mapping[str, Ints]) -> None:
        """Take what a leaf of the same window held, as if it came now.

        Args:
            arrays: What `arrays` returned there, with the numbers that terms have here.
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
