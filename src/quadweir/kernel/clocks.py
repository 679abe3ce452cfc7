"""When elements come into the content of a window and when they are gone (W1 to W6, W9 and W10 of the semantics page).

Every scope is a rule that assigns both instants to each element. Of most windows they follow from its time; a
count window has to hear of all elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, assert_never, final

import numpy as np

from quadweir.algebra.windows import (
    AllScope,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
)
from quadweir.kernel.arrays import FOREVER, Ints, ints


class Elements(NamedTuple):
    """The elements of a stream, whether they match anything or not."""

    time: Ints
    position: Ints
    size: Ints  # how many different triples


def _next_close(instant: Ints, step: int | None, first: int) -> Ints:
    """Find the close that is not before each instant; without steps, the instant itself."""
    if step is None:
        return instant
    return first + np.maximum(0, -((first - instant) // step)) * step


@final
@dataclass(frozen=True)
class TimeClock:
    """Time, hopping, NOW, ALL and past windows: both instants follow from the element's time."""

    after_ms: int
    until_ms: int | None
    step_ms: int | None = None
    first_close_ms: int = 0
    while_open: bool = False

    @staticmethod
    def of(scope: Scope) -> TimeClock:
        match scope:
            case TimeScope():
                return TimeClock(
                    0, scope.range_ms, scope.step_ms, scope.first_close_ms, scope.while_open
                )
            case PastScope():
                return TimeClock(scope.to_ms, scope.from_ms, scope.step_ms, scope.first_close_ms)
            case NowScope():
                return TimeClock(0, 1)
            case AllScope():
                return TimeClock(0, None)
            case CountScope():
                raise TypeError("a count window has no clock of this kind")
            case _:
                assert_never(scope)

    def interval(self, time: Ints) -> tuple[Ints, Ints]:
        """Return for each element when it comes and when it is gone.

        An element that no window of a hopping scope holds is gone before it comes.
        """
        if self.until_ms is None:
            return time + self.after_ms, np.full(len(time), FOREVER, dtype=np.int64)
        leave = self.leaves(time, self.until_ms)
        if not self.while_open:
            return _next_close(time + self.after_ms, self.step_ms, self.first_close_ms), leave
        assert self.step_ms is not None
        # The last window that holds it is the one before; after that one's close it is gone.
        last = np.where(leave > self.first_close_ms, leave - self.step_ms + 1, time)
        return time, last

    def leaves(self, time: Ints, length: Ints | int) -> Ints:
        """Return when each element is gone, if the window has a certain length."""
        return _next_close(time + length, self.step_ms, self.first_close_ms)


@final
class CountClock:
    """Count windows: an element comes when the window is looked at, and goes when enough followed.

    It has to hear of all elements of the stream. Each gets its place in the running count; it is
    out of the content at the first look that finds `size` triples (or elements) after it (W4).

    State: the running count; the elements of one step.
    Forgets: each step.
    """

    def __init__(self, scope: CountScope) -> None:
        self.scope = scope
        self.count = 0
        self._waiting: list[Elements] = []
        # The looks of this step, and the running count at each.
        self.looks = ints(0)
        self.counts = ints(0)
        self._positions = ints(0)
        self._places = ints(0)

    def hear(self, elements: Elements) -> None:
        """Take elements that have arrived, in any order."""
        if len(elements.time):
            self._waiting.append(elements)

    def advance(self, through: int) -> None:
        """Go on to an instant: count what came until then."""
        self._waiting, ready = _split(self._waiting, through)
        order = np.lexsort((ready.position, ready.time))
        time, position, size = ready.time[order], ready.position[order], ready.size[order]
        again = (time[1:] == time[:-1]) & (position[1:] == position[:-1])
        if again.any():
            # An element that arrived in pieces is one all the same.
            first = np.flatnonzero(np.append(True, ~again))
            time, position, size = time[first], position[first], np.add.reduceat(size, first)
        if self.scope.unit is CountUnit.ELEMENTS:
            size = np.ones(len(size), dtype=np.int64)
        places = self.count + np.cumsum(size)
        last = np.flatnonzero(np.append(time[1:] != time[:-1], True)) if len(time) else ints(0)
        looks, counts = time[last], places[last]
        if self.scope.step is not None:
            before = np.concatenate(([self.count], counts[:-1])).astype(np.int64)[: len(counts)]
            seen = counts // self.scope.step > before // self.scope.step
            looks, counts = looks[seen], counts[seen]
        if len(places):
            self.count = int(places[-1])
        self.looks, self.counts = looks, counts
        by_position = np.argsort(position, kind="stable")
        self._positions = position[by_position]
        self._places = places[by_position]

    def place(self, position: Ints) -> Ints:
        """Return the running count at which elements of this step stand."""
        return self._places[np.searchsorted(self._positions, position)]

    def look_at(self, count: Ints) -> Ints:
        """Return the instant of the first look that finds so many elements; FOREVER without one."""
        found = np.searchsorted(self.counts, count)
        looks = np.append(self.looks, FOREVER)
        return looks[found]

    def arrays(self) -> dict[str, Ints]:
        waiting = _together(self._waiting)
        return {"count": np.array([self.count]), **waiting._asdict()}

    def restore(self, arrays: Mapping[str, Ints]) -> None:
        self.count = int(arrays["count"][0])
        waiting = Elements(arrays["time"], arrays["position"], arrays["size"])
        self._waiting = [waiting] if len(waiting.time) else []


def _together(parts: list[Elements]) -> Elements:
    if not parts:
        return Elements(ints(0), ints(0), ints(0))
    return Elements(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _split(parts: list[Elements], through: int) -> tuple[list[Elements], Elements]:
    """Part what came until `through` from what has to wait."""
    together = _together(parts)
    ready = together.time <= through
    waiting = Elements(*(each[~ready] for each in together))
    return [waiting] if len(waiting.time) else [], Elements(*(each[ready] for each in together))
