"""Answers as events: what is kept, what is new, and the last report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.errors import DataError, UsageError
from quadweir.service.answerring import AnswerBlock, AnswerPlace
from quadweir.service.problems import NotFoundError
from quadweir.service.subscriptions import (
    BEGIN,
    Event,
    EventBundle,
    EventHub,
    Subscription,
    json_text,
)
from quadweir.times import parse_time

if TYPE_CHECKING:
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.overview import NetworkSample
    from quadweir.service.servednetwork import ServedNetwork
    from quadweir.service.settings import ServiceLimits

START: Final = "start"
_PIECE_BYTES: Final = 256 * 2**10
_PARTS: Final = 3
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


def event_id(network: int, place: AnswerPlace) -> str:
    """Return the id of an answer.

    >>> event_id(1, AnswerPlace(12, 3))
    '1.12.3'
    """
    return f"{network}.{place.batch}.{place.number}"


def read_id(text: str) -> tuple[int, AnswerPlace] | None:
    """Read the id of an answer; None if it is none.

    >>> read_id("1.12.3")
    (1, AnswerPlace(batch=12, number=3))
    """
    parts = text.split(".")
    if len(parts) != _PARTS or not all(_NUMBER.fullmatch(each) for each in parts):
        return None
    network, batch, number = map(int, parts)
    return network, AnswerPlace(batch, number)


def topic_of(query: str) -> str:
    """Return the topic of the answers of a query."""
    return f"answers:{query}"


@final
class AnswerDesk:
    """Answers requests about answers.

    Args:
        pool: the networks.
        hub: passes events to subscribers.
        limits: how much requests may ask for.
    """

    def __init__(self, pool: NetworkPool, hub: EventHub, limits: ServiceLimits) -> None:
        self._pool = pool
        self._hub = hub
        self._limits = limits

    def publish(self, network: ServedNetwork, block: AnswerBlock) -> None:
        """Pass new answers to subscribers; in the event loop."""
        for query, lines in block.answers.items():
            topic = topic_of(query)
            if self._hub.has(topic):
                bundle = EventBundle(
                    Event(
                        event_id(network.number, AnswerPlace(block.batch, number)), "answer", line
                    )
                    for number, line in enumerate(lines, start=1)
                )
                self._hub.publish(topic, bundle, _number(network, block.sequence))

    def end(self, queries: Iterable[str], reason: str) -> None:
        """Tell subscribers that queries give no more answers; from any thread."""
        names = tuple(queries)
        event = Event("", "end", json_text({"reason": reason}))

        def tell() -> None:
            for name in names:
                self._hub.end(topic_of(name), event)

        self._hub.run(tell)

    def end_stopped(self, samples: Iterable[NetworkSample]) -> None:
        """Tell subscribers about queries that were stopped because they failed."""
        for sample in samples:
            for status in sample.status.values():
                if status.state == "stopped" and self._hub.has(topic_of(status.id)):
                    self.end([status.id], f"the query was stopped: {status.reason}")

    # --- in the event loop ---

    def subscribe(self, query: str, since: str | None) -> Subscription:
        """Add a subscriber.

        Its first event says where it begins, so that it can resume before it has an answer.

        Args:
            query: the name of the query.
            since: the id of the last answer that it has, `start`, or an instant; None for only
                what is new.

        Raises:
            NotFoundError: there is no such query.
            UsageError: `since` is none of these.
            PressureError: there are too many subscribers.
        """
        home = self._pool.home_of(query)
        at = read_since(since or self.latest(query))
        subscription = self._hub.subscribe(
            topic_of(query),
            most_bytes=self._limits.waiting_bytes,
            most=self._limits.subscribers,
        )
        subscription.begin(self._kept(subscription, query, at))
        stopped = home.query(query)
        if stopped is not None and stopped.stopped is not None:
            reason = json_text({"reason": f"the query was stopped: {stopped.stopped}"})
            subscription.end(EventBundle([Event("", "end", reason)]))
        return subscription

    def _kept(self, own: Subscription, query: str, since: Since) -> Iterator[EventBundle]:
        """Yield what is kept for a subscriber, in pieces; note in the end what it knows."""
        try:
            begin = since.place or event_id(self._pool.home_of(query).number, AnswerPlace(0, 0))
            yield EventBundle([Event(begin, BEGIN, "{}")])
            while True:
                events, own.after = self._after(query, since, _PIECE_BYTES)
                if self._is_lost(query, since):
                    kept = events[0].id if events else None
                    gap = json_text({"from": since.place, "kept_from": kept})
                    yield EventBundle([Event("", "gap", gap), *events])
                    since = Since(events[-1].id if events else self.latest(query), since.earliest)
                elif events:
                    yield EventBundle(events)
                    since = Since(events[-1].id, since.earliest)
                else:
                    return
        except NotFoundError:
            # It was removed meanwhile, which its subscribers are told.
            return

    def _after(
        self, query: str, since: Since, most_bytes: int | None = None
    ) -> tuple[list[Event], int]:
        """Return answers that are kept, and the number of the last block."""
        home = self._pool.home_of(query)
        place = _place_in(home, since)
        found, last = home.ring_of(query).after(
            query, place, earliest=since.earliest, most_bytes=most_bytes
        )
        events = [Event(event_id(home.number, at), "answer", line) for at, line in found]
        return events, _number(home, last)

    def _is_lost(self, query: str, since: Since) -> bool:
        """Whether answers after a place may no longer be kept."""
        if since.place is None:
            return False
        home = self._pool.home_of(query)
        place = _place_in(home, since)
        return place is None or place.batch <= home.ring_of(query).lost

    # --- from any thread ---

    def after(self, query: str, place: str) -> list[Event]:
        """Return the answers of a query that are kept after a place.

        Raises:
            NotFoundError: there is no such query.
        """
        return self._after(query, read_since(place))[0]

    def latest(self, query: str) -> str:
        """Return a place after all answers that a query has given.

        Raises:
            NotFoundError: there is no such query.
        """
        home = self._pool.home_of(query)
        return event_id(home.number, AnswerPlace(home.ring_of(query).last_batch + 1, 0))

    # --- the last report ---

    def report(self, query: str) -> dict[str, Any]:
        """Return the answers of the last report, as SPARQL's JSON results or as triples.

        Raises:
            NotFoundError: there is no such query.
        """
        home = self._pool.home_of(query)
        last = [json.loads(line) for line in home.ring_of(query).last_report(query)]
        t = last[0]["t"] if last else None
        known = home.query(query)
        if known is not None and known.construct is not None:
            triples = [line for each in last if each["sign"] == "+" for line in each[rows.TRIPLES]]
            return {"triples": list(dict.fromkeys(triples)), "report": {"t": t}}
        variables = list(known.variables) if known is not None else []
        bound = [each[rows.BINDINGS] for each in last if each["sign"] == "+"]
        if variables == ["boolean"] and bound:
            return {"head": {}, "boolean": _is_true(bound[-1]), "report": {"t": t}}
        return {"head": {"vars": variables}, "results": {"bindings": bound}, "report": {"t": t}}


def _place_in(network: ServedNetwork, since: Since) -> AnswerPlace | None:
    """Return the place of an answer if it is one of this network."""
    known = read_id(since.place) if since.place is not None else None
    return known[1] if known is not None and known[0] == network.number else None


def _number(network: ServedNetwork, sequence: int) -> int:
    """Return a number of a block that only grows, also when a query moves to a newer network."""
    return (network.number << 48) + sequence


def _is_true(row: Mapping[str, Mapping[str, str]]) -> bool:
    return row.get("boolean", {}).get("value") == "true"


@final
@dataclass(frozen=True, slots=True)
class Since:
    """Where a subscriber begins: after an answer, at a report instant, or with all that is kept."""

    place: str | None = None
    earliest: int | None = None


def read_since(text: str) -> Since:
    """Read where a subscriber begins.

    >>> read_since("1.12.3"), read_since("1970-01-01T00:00:01Z").earliest
    (Since(place='1.12.3', earliest=None), 1000)

    Raises:
        UsageError: it is no place.
    """
    if text == START:
        return Since()
    if read_id(text) is not None:
        return Since(text)
    try:
        return Since(earliest=parse_time(text))
    except DataError:
        raise UsageError(
            f"answers cannot begin from {text[:60]!r}",
            hint="Write start, the id of an answer, or an instant: 2026-03-03T07:58:00Z or "
            "milliseconds since 1970.",
        ) from None
