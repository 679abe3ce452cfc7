"""Who listens to answers and other events, and what each of them has not been sent yet.

Everything here runs in the event loop of the service, but for `EventHub.tell`. A subscriber that does
not keep up is dropped, with a reason: its queue must not grow for ever.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, final

from quadweir.service.problems import PressureError

MOST_BYTES: Final = 2**20
"""How many bytes may wait for one subscriber."""
BEGIN: Final = "begin"
"""The kind of the first event: its id says where the others begin."""
TOO_SLOW: Final = "the subscriber is too slow: more than {:,} bytes wait for it"


def json_text(table: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


@final
@dataclass(frozen=True)
class Event:
    """One event: its id, its kind and its data, which is JSON."""

    id: str
    kind: str
    data: str

    @cached_property
    def sse(self) -> bytes:
        """The event as a server-sent event."""
        head = f"id: {self.id}\n" if self.id else ""
        return f"{head}event: {self.kind}\ndata: {self.data}\n\n".encode("utf-8", "replace")

    @cached_property
    def message(self) -> str:
        """The event as a message of a WebSocket."""
        return f'{{"id":"{self.id}","event":"{self.kind}","data":{self.data}}}'

    @cached_property
    def line(self) -> bytes:
        """The event as a line of JSON; data is an object."""
        rest = self.data[1:] if self.data == "{}" else f",{self.data[1:]}"
        head = f'{{"id":"{self.id}"' if self.kind == "answer" else f'{{"event":"{self.kind}"'
        return f"{head}{rest}\n".encode("utf-8", "replace")


@final
class EventBundle:
    """Events that leave together, spelled once for all subscribers."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = tuple(events)

    @cached_property
    def sse(self) -> bytes:
        """All of them as server-sent events."""
        return b"".join(each.sse for each in self.events)

    @cached_property
    def lines(self) -> bytes:
        """All of them as lines of JSON, without the event that says where they begin."""
        return b"".join(each.line for each in self.events if each.kind != BEGIN)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """All of them as messages of a WebSocket."""
        return tuple(each.message for each in self.events)

    @cached_property
    def size(self) -> int:
        """About how many bytes they are."""
        return sum(len(each.data) + 64 for each in self.events)


@final
class Subscription:
    """What one subscriber has not been sent yet.

    A subscriber first gets what is kept for it, piece by piece as it reads, so that a thousand that
    begin far back need no memory. Until then new events do not wait for it: they are kept, too.

    Args:
        most_bytes: how many bytes may wait.
        leave: called once when the subscriber leaves.

    Attributes:
        after: it knows everything up to this number of the source.
        dropped: why it was dropped.
    """

    def __init__(
        self,
        *,
        most_bytes: int = MOST_BYTES,
        leave: Callable[[Subscription], None] = lambda _own: None,
    ) -> None:
        self._kept: Iterator[EventBundle] | None = None
        self._most_bytes = most_bytes
        self._leave = leave
        self._waiting: deque[EventBundle] = deque()
        self._bytes = 0
        self._has_news = asyncio.Event()
        self._is_over = False
        self.after = 0
        self.dropped: str | None = None

    def begin(self, kept: Iterator[EventBundle]) -> None:
        """Give the subscriber first what is kept.

        Args:
            kept: yields it; when it ends, `after` says what the subscriber knows.
        """
        self._kept = kept

    def offer(self, bundle: EventBundle) -> None:
        """Add events; if too many wait, drop the subscriber."""
        if self._is_over or self._kept is not None:
            return
        # One bundle may always wait, however large it is.
        if self._waiting and self._bytes + bundle.size > self._most_bytes:
            self.dropped = TOO_SLOW.format(self._most_bytes)
            self._waiting.clear()
            self.end()
            return
        self._waiting.append(bundle)
        self._bytes += bundle.size
        self._has_news.set()

    def end(self, last: EventBundle | None = None) -> None:
        """Let the subscriber have what waits, and no more but `last`."""
        if last is not None and not self._is_over:
            self._waiting.append(last)
            self._bytes += last.size
        self._is_over = True
        self._has_news.set()
        self.close()

    def also(self, leave: Callable[[], None]) -> None:
        """Call something else, too, when the subscriber leaves."""
        first = self._leave

        def both(own: Subscription) -> None:
            first(own)
            leave()

        self._leave = both

    def close(self) -> None:
        """Leave; the subscriber is gone."""
        leave, self._leave = self._leave, lambda _own: None
        leave(self)

    def kept(self) -> Iterator[EventBundle]:
        """Yield what is kept; from its end on, new events wait for the subscriber."""
        if self._kept is not None:
            yield from self._kept
            self._kept = None

    async def bundles(self, beat_s: float) -> AsyncIterator[EventBundle | None]:
        """Yield what is kept, events as they come, and None when there were none for some time."""
        for bundle in self.kept():
            yield bundle
        while True:
            while self._waiting:
                bundle = self._waiting.popleft()
                self._bytes -= bundle.size
                yield bundle
            if self._is_over:
                return
            self._has_news.clear()
            try:
                async with asyncio.timeout(beat_s):
                    await self._has_news.wait()
            except TimeoutError:
                yield None


@final
class EventHub:
    """Passes events of named topics to their subscribers."""

    def __init__(self) -> None:
        self._topics: dict[str, set[Subscription]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._count = 0

    @property
    def count(self) -> int:
        """How many subscribers there are."""
        return self._count

    def attach(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Use an event loop; None when it ends."""
        self._loop = loop

    def run(self, action: Callable[[], None]) -> None:
        """Run something in the event loop soon; from any thread."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(action)

    def has(self, topic: str) -> bool:
        """Whether a topic has subscribers."""
        return topic in self._topics

    def subscribe(
        self, topic: str, *, most_bytes: int = MOST_BYTES, most: int | None = None
    ) -> Subscription:
        """Add a subscriber to a topic.

        Args:
            topic: the topic.
            most_bytes: how many bytes may wait for the subscriber.
            most: how many subscribers there may be.

        Raises:
            PressureError: there are as many.
        """
        if most is not None and self._count >= most:
            raise PressureError(f"there are {most:,} subscribers already", retry_after_s=10)
        self._count += 1

        def leave(own: Subscription) -> None:
            self._count -= 1
            others = self._topics.get(topic)
            if others is not None:
                others.discard(own)
                if not others:
                    del self._topics[topic]

        found = Subscription(most_bytes=most_bytes, leave=leave)
        self._topics.setdefault(topic, set()).add(found)
        return found

    def publish(self, topic: str, bundle: EventBundle, number: int = 0) -> None:
        """Pass events to the subscribers of a topic that do not know them yet.

        Args:
            topic: the topic.
            bundle: the events.
            number: their number in the source; 0 if they have none.
        """
        for each in tuple(self._topics.get(topic, ())):
            if not number or number > each.after:
                each.offer(bundle)

    def end(self, topic: str, last: Event) -> None:
        """Pass a last event to all subscribers of a topic, and let them go."""
        bundle = EventBundle([last])
        for each in tuple(self._topics.get(topic, ())):
            each.end(bundle)

    def let_all_go(self) -> None:
        """Let all subscribers have what waits, and go; they may come again."""
        for each in [own for topic in self._topics.values() for own in topic]:
            each.end()
