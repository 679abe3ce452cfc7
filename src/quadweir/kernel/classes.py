"""Classes of members: those with the same window lengths that joined at the same instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from quadweir.kernel.arrays import Ints
from quadweir.kernel.oneway import FIRST_KEY, OneWay


@final
class Classes:
    """Numbers for classes; a number never comes again.

    State: the lengths and instants of all classes that have members, with their numbers.
    Forgets: a class when its last member leaves.
    """

    def __init__(self, windows: int) -> None:
        self._windows = windows
        self._index = OneWay(windows + 1, extra=1)
        self._next = 0

    def __len__(self) -> int:
        return len(self._index.live())

    def come(self, ranges: Ints, since: Ints) -> Ints:
        """Count members, and return the number of the class of each."""
        entries, became = self._index.transitions(
            np.column_stack((ranges, since)), np.ones(len(since), dtype=np.int64)
        )
        place = self._index.first_extra
        fresh = entries[became > 0]
        self._index.cells[fresh, place] = self._next + np.arange(len(fresh))
        self._next += len(fresh)
        return self._index.cells[entries, place]

    def go(self, ranges: Ints, since: Ints) -> None:
        """Count members that leave."""
        less = np.full(len(since), -1, dtype=np.int64)
        self._index.add(np.column_stack((ranges, since)), less)
        self._index.pack()

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return self._index.nbytes

    def arrays(self) -> dict[str, Ints]:
        """Return the classes with their numbers, for `restore`."""
        cells = self._index.cells[self._index.live()]
        numbers = cells[:, self._index.first_extra]
        keys = cells[:, FIRST_KEY : self._index.first_extra]
        return {
            "classes": np.column_stack((numbers, keys)),
            "next": np.array([self._next], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, Ints], ranges: Ints, since: Ints) -> Ints:
        """Take the numbers that classes had, and return that of the class of each member.

        A class without a member now is forgotten, and one that is new has a new number.
        """
        stored = np.asarray(arrays["classes"]).reshape(-1, self._windows + 2)
        self._index = OneWay(self._windows + 1, extra=1)
        self._next = int(arrays["next"][0])
        entries = self._index.add(stored[:, 1:], np.ones(len(stored), dtype=np.int64))
        self._index.cells[entries, self._index.first_extra] = stored[:, 0]
        found = self.come(ranges, since)
        self._index.add(stored[:, 1:], np.full(len(stored), -1, dtype=np.int64))
        return found
