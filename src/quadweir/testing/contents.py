"""Windows as sets of elements: the content of each at an instant, and the instants.

Slow and obvious on purpose: every content is gathered from the whole stream, by the words of the
rules W1 to W10 and R1 to R3 of the semantics page.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TypeAlias, assert_never, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import ReportPolicy
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.errors import LimitError
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI
from quadweir.testing.elements import distinct_triples

HeldElements: TypeAlias = tuple[Element, ...]


@final
@dataclass(frozen=True)
class OpenWindow:
    """A window of a query over one stream, with all of the stream's elements in order.

    A window whose stream is a variable is opened once for each stream. `elements` are sorted by
    event time and position; their `event_time` is the one that this window goes by (S2).
    `has_graphs` says whether the query looks into its named graphs (W11).
    """

    window: Window
    stream: IRI
    elements: HeldElements
    has_graphs: bool = False

    def content(self, t: int) -> HeldElements:
        """The elements that count at a report instant t.

        A stepped window counts as of its own latest close (R2); before the first it is empty.
        """
        if is_stepped(self.window.scope):
            close = self.latest_close(t)
            return () if close is None else self._in_scope(close)
        return self._in_scope(t)

    def fingerprint(self, t: int) -> frozenset[object]:
        """A value that differs if and only if the content has changed (R1, W8)."""
        content = self.content(t)
        if self.window.content is Content.BAG:
            return frozenset(element.position for element in content if element.quads)
        found = {triple for element in content for triple in distinct_triples(element)}
        if self.has_graphs:
            found.update(quad for element in content for quad in element.quads)
        return frozenset(found)

    def latest_close(self, t: int) -> int | None:
        """Find the latest close instant not after t."""
        match self.window.scope:
            case (
                TimeScope(step_ms=int(step), first_close_ms=first)
                | PastScope(step_ms=int(step), first_close_ms=first)
            ):
                return first + (t - first) // step * step if t >= first else None
            case CountScope():
                return max((close for close in self.count_closes if close <= t), default=None)
            case _:
                return None

    def next_close(self, t: int) -> int | None:
        """Find the first close instant of a stepped time window that is not before t."""
        match self.window.scope:
            case (
                TimeScope(step_ms=int(step), first_close_ms=first)
                | PastScope(step_ms=int(step), first_close_ms=first)
            ):
                return first + max(0, -((first - t) // step)) * step
            case _:
                return None

    @cached_property
    def count_closes(self) -> list[int]:
        """The instants at which a stepped count window is evaluated (W4, W7).

        One instant is one tick: it closes if the running count passes a multiple of the step in
        it, however many multiples those are.
        """
        scope = self.window.scope
        if not isinstance(scope, CountScope) or scope.step is None:
            return []
        closes = []
        count = 0
        for t, together in groupby(self.elements, key=lambda element: element.event_time):
            before = count
            count += sum(_size(element, scope.unit) for element in together)
            if count // scope.step > before // scope.step:
                closes.append(t)
        return closes

    def changes(self) -> Iterator[int]:
        """The instants at which the content can change; there may be additional ones."""
        scope = self.window.scope
        if isinstance(scope, CountScope):
            yield from self.count_closes if scope.step is not None else self.times()
            return
        for time in self.times():
            for instant in (self._enters(time), self._leaves(time)):
                if instant is not None:
                    yield self._looked_at(instant)

    def times(self) -> list[int]:
        return [element.event_time for element in self.elements]

    def empty_from(self) -> int | None:
        """Find the instant from which the window is empty for good; None if it never was filled.

        Count and ALL windows never empty and are not waited for (E3): they give None too.
        """
        if not self.elements:
            return None
        leaves = self._leaves(self.elements[-1].event_time)
        if leaves is None:
            return None
        return self._looked_at(leaves)

    def _looked_at(self, instant: int) -> int:
        """The first instant from this one on at which the window is evaluated."""
        close = self.next_close(instant) if is_stepped(self.window.scope) else None
        return instant if close is None else close

    def _in_scope(self, t: int) -> HeldElements:
        scope: Scope = self.window.scope
        match scope:
            case TimeScope(while_open=True):
                close = self.next_close(t)
                assert close is not None
                return self._between(close - scope.range_ms, t)
            case TimeScope():
                return self._between(t - scope.range_ms, t)
            case PastScope():
                return self._between(t - scope.from_ms, t - scope.to_ms)
            case NowScope():
                return self._between(t - 1, t)
            case AllScope():
                return tuple(element for element in self.elements if element.event_time <= t)
            case CountScope():
                return self._last(scope, t)
            case _:
                assert_never(scope)

    def _between(self, after: int, until: int) -> HeldElements:
        return tuple(element for element in self.elements if after < element.event_time <= until)

    def _last(self, scope: CountScope, t: int) -> HeldElements:
        """Gather the newest elements until they make up the size; the last one counts whole (S1)."""
        found: list[Element] = []
        count = 0
        for element in reversed(self.elements):
            if element.event_time > t:
                continue
            if count >= scope.size:
                break
            found.append(element)
            count += _size(element, scope.unit)
        return tuple(reversed(found))

    def _enters(self, time: int) -> int:
        scope = self.window.scope
        return time + scope.to_ms if isinstance(scope, PastScope) else time

    def _leaves(self, time: int) -> int | None:
        match self.window.scope:
            case TimeScope(while_open=True, range_ms=length):
                t = time
                while (close := self.next_close(t)) is not None and close - length < time:
                    t = close + 1
                return t
            case TimeScope(range_ms=length) | PastScope(from_ms=length):
                return time + length
            case NowScope():
                return time + 1
            case _:
                return None


def _size(element: Element, unit: CountUnit) -> int:
    return 1 if unit is CountUnit.ELEMENTS else len(distinct_triples(element))


def report_instants(
    query: ContinuousQuery, windows: Sequence[OpenWindow], *, limit: int
) -> Iterator[int]:
    """The report instants of a bounded replay in order (R1 to R3, E3).

    Raises:
        LimitError: if there are more than `limit`.
    """
    if query.tick.every_ms is not None or query.report.policy is ReportPolicy.ON_CLOSE:
        instants = _closes(query, windows)
    else:
        instants = _changes(windows)
    count = 0
    for t in instants:
        if query.report.non_empty_only and not any(window.content(t) for window in windows):
            continue
        count += 1
        if count > limit:
            raise LimitError(
                f"the query reports more than {limit} times",
                hint="Take a shorter stretch of the streams, a longer step, or a higher limit.",
            )
        yield t


def _changes(windows: Sequence[OpenWindow]) -> Iterator[int]:
    before: list[frozenset[object]] = [frozenset() for _ in windows]
    for t in sorted({instant for window in windows for instant in window.changes()}):
        now = [window.fingerprint(t) for window in windows]
        if now != before:
            yield t
        before = now


def _closes(query: ContinuousQuery, windows: Sequence[OpenWindow]) -> Iterator[int]:
    """Merge the close instants of all windows, or walk the ticks of COMPUTED EVERY.

    The first is the first that is not before the earliest element: earlier ones go back to 1970
    and find nothing. The last is the first that comes after all elements and finds every window
    empty but ALL and count windows (E3).
    """
    times = [time for window in windows for time in window.times()]
    if not times:
        return
    empty = [instant for window in windows if (instant := window.empty_from()) is not None]
    end = max(*times, *empty) if empty else max(times)
    walks: list[Iterator[int]] = []
    if query.tick.every_ms is not None:
        every = query.tick.every_ms
        walks.append(_multiples(every, every, min(times), end))
    else:
        for window in windows:
            match window.window.scope:
                case (
                    TimeScope(step_ms=int(step), first_close_ms=first)
                    | PastScope(step_ms=int(step), first_close_ms=first)
                ):
                    walks.append(_multiples(step, first, min(times), end))
                case _:
                    walks.append(iter(window.count_closes))
    last: int | None = None
    past_end = False
    for t in heapq.merge(*walks):
        if t == last:
            continue
        if past_end:
            return
        past_end = t >= end
        last = t
        yield t


def _multiples(step: int, first: int, start: int, end: int) -> Iterator[int]:
    """Walk first + k * step, k >= 0, from the first not before `start` to the first not before `end`."""
    t = first + max(0, -((first - start) // step)) * step
    while True:
        yield t
        if t >= end:
            return
        t += step
