"""Classes of members: those with the same window lengths that joined at the same instant.

What an old member cannot see leaves the windows in the end. From then on it has the same content as
any older member with the same lengths, and both are of one class. So queries that come one after the
other cost, after the length of their windows, as much as if they had come together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from quadweir.kernel.arrays import ALWAYS, Ints, ints
from quadweir.kernel.oneway import COUNT, FIRST_KEY, OneWay


class ClassRows(NamedTuple):
    """Classes as columns: their numbers, lengths and instants."""

    numbers: Ints
    ranges: Ints
    since: Ints


@final
class Classes:
    """Numbers for classes; a number never comes again.

    State: the lengths and instants of all classes that have members, with their numbers.
    Forgets: a class when its last member leaves.
    """

    def __init__(self, windows: int) -> None:
        self._windows = windows
        # The oldest class of certain lengths has the key ALWAYS. Its last cell is the instant up to
        # which members belong to it.
        self._index = OneWay(windows + 1, extra=2)
        self._number = self._index.first_extra
        self._until = self._number + 1
        self._next = 0

    def __len__(self) -> int:
        return len(self._index.live())

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self._index.nbytes

    def _keys(self, ranges: Ints, since: Ints) -> Ints:
        keys = np.column_stack((ranges, np.full(len(since), ALWAYS, dtype=np.int64)))
        oldest = self._index.find(keys)
        is_old = (oldest >= 0) & (since <= self._index.cells[oldest, self._until])
        keys[:, -1] = np.where(is_old, ALWAYS, since)
        return keys

    def come(self, ranges: Ints, since: Ints) -> Ints:
        """Count members, and return the number of the class of each."""
        entries, became = self._index.transitions(
            self._keys(ranges, since), np.ones(len(since), dtype=np.int64)
        )
        fresh = entries[became > 0]
        self._index.cells[fresh, self._number] = self._next + np.arange(len(fresh))
        self._index.cells[fresh, self._until] = ALWAYS
        self._next += len(fresh)
        return self._index.cells[entries, self._number]

    def go(self, ranges: Ints, since: Ints) -> None:
        """Count members that leave."""
        self._index.add(self._keys(ranges, since), np.full(len(since), -1, dtype=np.int64))
        self._index.pack()

    def merge(self, is_over: Callable[[Ints, Ints], NDArray[np.bool_]]) -> dict[int, int]:
        """Make one class of those with the same lengths and, by now, the same content.

        Args:
            is_over: Returns, for lengths and instants, where nothing up to that instant is in a
                window of that length any more.

        Returns:
            The numbers of classes that are gone, each with that of the class its members are of.
        """
        index = self._index
        live = index.live()
        keys = index.cells[live, FIRST_KEY : self._number]
        live = live[(keys[:, -1] > ALWAYS) & is_over(keys[:, :-1], keys[:, -1])]
        if not len(live):
            return {}
        cells = index.cells[live].copy()
        cells = cells[np.argsort(cells[:, self._number - 1], kind="stable")]
        own = cells[:, FIRST_KEY : self._number]
        index.add(own, -cells[:, COUNT])
        oldest = own.copy()
        oldest[:, -1] = ALWAYS
        gone: dict[int, int] = {}
        for key, cell in zip(oldest, cells, strict=True):
            entries, became = index.transitions(key.reshape(1, -1), cell[COUNT].reshape(1))
            entry = int(entries[0])
            number = int(cell[self._number])
            if became[0] > 0:
                index.cells[entry, self._number] = number
            else:
                gone[number] = int(index.cells[entry, self._number])
            index.cells[entry, self._until] = cell[self._number - 1]
        return gone

    def arrays(self) -> dict[str, Ints]:
        """Return the classes with their numbers, for `restore`."""
        cells = self._index.cells[self._index.live()]
        return {
            "classes": cells[:, FIRST_KEY:],
            "next": np.array([self._next], dtype=np.int64),
        }

    def restore(
        self, arrays: Mapping[str, Ints], ranges: Ints, since: Ints
    ) -> tuple[Ints, ClassRows]:
        """Take the numbers that classes had, and return that of the class of each member.

        A class that is new has a new number. One that has no member now is forgotten; such classes
        are returned, too.
        """
        stored = np.asarray(arrays["classes"]).reshape(-1, self._windows + 3)
        keys, rest = stored[:, : self._windows + 1], stored[:, self._windows + 1 :]
        self._index = OneWay(self._windows + 1, extra=2)
        self._next = int(arrays["next"][0])
        entries = self._index.add(keys, np.ones(len(stored), dtype=np.int64))
        self._index.cells[entries, self._number :] = rest
        found = self.come(ranges, since) if len(since) else ints(0)
        _, became = self._index.transitions(keys, np.full(len(stored), -1, dtype=np.int64))
        gone = became < 0
        return found, ClassRows(rest[gone, 0], keys[gone, :-1], keys[gone, -1])
