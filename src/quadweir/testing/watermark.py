"""Late elements (S4): the watermarks of streams, and of the query that reads them.

There are two clocks. Event times make the watermark; the time of arrival says only which streams
have fallen idle. Without a set time no stream is ever idle, and arrival times are not needed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, final

from quadweir.sources.streamfiles import Element

_Source = TypeVar("_Source", bound=Hashable)


@final
@dataclass(frozen=True, slots=True)
class ArrivedElement:
    """An element together with the instant at which it arrived, in milliseconds on any clock.

    >>> from quadweir.terms import IRI, Quad
    >>> quad = Quad(IRI("urn:a"), IRI("urn:p"), IRI("urn:b"))
    >>> ArrivedElement(Element("urn:s", 5, 0, (quad,)), at_ms=1000).at_ms
    1000
    """

    element: Element
    at_ms: int


@final
class Watermark(Generic[_Source]):
    """The watermark of a query, moved on by arrivals, and by streams that fall idle between them.

    A stream is idle at an instant of arrival if it was last heard of more than its set time before;
    one that was never heard of counts from the first arrival of all. The watermark is the lowest of
    the streams that are not idle, and never goes back. While all are idle it stays where it is.

    >>> mark = Watermark(["a", "b"], delay_ms=0, idle_ms={"b": 100})
    >>> [mark.is_late(*each) for each in (("b", 1, 0), ("a", 50, 10), ("a", 30, 90))]
    [False, False, False]
    >>> mark.is_late("a", 30, 101)
    True
    """

    def __init__(
        self, sources: Iterable[_Source], *, delay_ms: int, idle_ms: Mapping[_Source, int]
    ) -> None:
        self._sources = tuple(sources)
        self._delay_ms = delay_ms
        self._idle_ms = idle_ms
        self._highest: dict[_Source, int] = {}
        # When each stream was last heard of.
        self._heard: dict[_Source, int] = {}
        self._now: int | None = None
        self._at: int | None = None

    def is_late(self, source: _Source, time: int, arrived: int | None = None) -> bool:
        """Add an element; return whether the watermark was past it when it arrived."""
        if arrived is not None:
            self._turn(arrived)
            self._heard[source] = arrived
        highest = self._highest.get(source)
        passed = self._at is not None and time <= self._at
        # The elements of a stream's newest instant are one tick (W7), which is not over before a
        # later one is seen: without delay, too, they come together. But a stream that was idle may
        # find that the watermark has passed its newest instant.
        if passed and not time == highest == self._at:
            return True
        self._highest[source] = time if highest is None else max(time, highest)
        self._move(self._active(arrived))
        return False

    def _turn(self, arrived: int) -> None:
        """Move the clock of arrival on, past every instant at which a stream falls idle."""
        if self._now is None:
            self._heard = dict.fromkeys(self._sources, arrived)
        elif arrived < self._now:
            raise ValueError(f"an element arrives at {arrived}, after one that came at {self._now}")
        self._now = arrived
        for end in sorted({self._heard[each] + ms for each, ms in self._idle_ms.items()}):
            if end < arrived:
                self._move(self._active(end + 1))

    def _active(self, instant: int | None) -> tuple[_Source, ...]:
        """The streams that are not idle at an instant of arrival."""
        if instant is None:
            return self._sources
        return tuple(
            source
            for source in self._sources
            if source not in self._idle_ms or instant - self._heard[source] <= self._idle_ms[source]
        )

    def _move(self, active: tuple[_Source, ...]) -> None:
        if not active or any(source not in self._highest for source in active):
            return
        lowest = min(self._highest[source] for source in active) - self._delay_ms
        self._at = lowest if self._at is None else max(self._at, lowest)
