"""What a shard is given in a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints
from quadweir.kernel.clocks import Elements


@final
@dataclass(frozen=True)
class MatchColumns:
    """Matches of one leaf's pattern, as columns: times, positions, and a column for each variable.

    Columns are Arrow strings in canonical spelling (dictionary-encoded or not), or arrays of
    numbers of the shard's own dictionary.
    """

    time: Ints
    position: Ints
    columns: Sequence[pa.Array | Ints]

    def pick(self, which: NDArray[np.bool_]) -> MatchColumns:
        """Keep the matches where a mask is true."""
        if which.all():
            return self
        mask = pa.array(which)
        columns = [
            each[which] if isinstance(each, np.ndarray) else each.filter(mask)
            for each in self.columns
        ]
        return MatchColumns(self.time[which], self.position[which], columns)


@final
@dataclass(frozen=True)
class Changes:
    """Signed rows of a relation in order of time, as the stage before sends them.

    Attributes:
        t: when each change happens.
        sign: +1 where the row comes, -1 where it goes.
        columns: Arrow strings in canonical spelling, null where a variable is not bound.
        reports: the instants at which the query reports; None where its own changes tell.
    """

    t: Ints
    sign: Ints
    columns: Sequence[pa.Array]
    reports: Ints | None

    def split(self, at: int) -> tuple[Changes, Changes]:
        """Part what happens until an instant from what comes later."""
        cut = int(np.searchsorted(self.t, at, side="right"))
        first = last = None
        if self.reports is not None:
            first, last = self.reports[self.reports <= at], self.reports[self.reports > at]
        return (
            Changes(self.t[:cut], self.sign[:cut], [each[:cut] for each in self.columns], first),
            Changes(self.t[cut:], self.sign[cut:], [each[cut:] for each in self.columns], last),
        )


@final
@dataclass(frozen=True)
class Events:
    """What has arrived since the last step; none of it may be late.

    Attributes:
        matches: for each leaf, by its place in `Shard.leaves`, what matched it.
        elements: for each source of a count window, by its place in `Shard.sources`, all elements.
        seen: for each source the earliest and the latest time of elements that arrived.
        changes: what the stage before gave, in a second stage; there is nothing else then.
        before: all that it would have given until now, if that is not what it gave.
    """

    matches: Mapping[int, MatchColumns] = field(default_factory=dict)
    elements: Mapping[int, Elements] = field(default_factory=dict)
    seen: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    changes: Changes | None = None
    before: Changes | None = None

    def later(self, since: int) -> Events:
        """What is later than an instant.

        Only `seen` may be too early: its first time is then the next instant.
        """
        matches = {n: each.pick(each.time > since) for n, each in self.matches.items()}
        elements = {
            n: Elements(*(column[each.time > since] for column in each))
            for n, each in self.elements.items()
        }
        return replace(
            self,
            matches={n: each for n, each in matches.items() if len(each.time)},
            elements={n: each for n, each in elements.items() if len(each.time)},
            seen={
                n: (max(first, since + 1), last)
                for n, (first, last) in self.seen.items()
                if last > since
            },
        )


@final
@dataclass(frozen=True)
class Recorded:
    """A step as it was taken: how many there were before it, and what it was given."""

    number: int
    events: Events
    through: int
