"""Answers as events: what is kept, what is new, and the last report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.errors import DataError, UsageError
from quadweir.service.answerring import AnswerBlock, AnswerPlace
from quadweir.service.problems import PressureError
from quadweir.service.subscriptions import BEGIN, Event, EventBundle, EventHub, Subscription
from quadweir.times import parse_time

if TYPE_CHECKING:
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.overview import NetworkSample
    from quadweir.service.servednetwork import ServedNetwork
    from quadweir.service.settings import ServiceLimits

START: Final = "start"
_PARTS: Final = 3


def json_text(table: Any) -> str:
    """Return JSON on one line."""
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


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
    if len(parts) != _PARTS or not all(each.isascii() and each.isdigit() for each in parts):
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

    def subscribe(self, query: str, since: str | None) -> tuple[Subscription, EventBundle]:
        """Add a subscriber; return what it gets at once, too.

        The first event says where it begins, so that it can resume before it has an answer.

        Args:
            query: the name of the query.
            since: the id of the last answer that it has, `start`, or an instant; None for only
                what is new.

        Raises:
            NotFoundError: there is no such query.
            UsageError: `since` is none of these.
            PressureError: there are too many subscribers.
        """
        if self._hub.count >= self._limits.subscribers:
            raise PressureError(
                f"there are {self._limits.subscribers:,} subscribers already", retry_after_s=10
            )
        home = self._pool.home_of(query)
        kept, last = self.kept(home, query, since)
        subscription = self._hub.subscribe(topic_of(query), most_bytes=self._limits.waiting_bytes)
        subscription.after = _number(home, last)
        stopped = home.query(query)
        if stopped is not None and stopped.stopped is not None:
            reason = json_text({"reason": f"the query was stopped: {stopped.stopped}"})
            kept = [*kept, Event("", "end", reason)]
            subscription.end()
        begin = since
        if begin is None:
            begin = self.latest(query)
        elif read_id(begin) is None:
            begin = event_id(home.number, AnswerPlace(0, 0))
        return subscription, EventBundle([Event(begin, BEGIN, "{}"), *kept])

    def kept(self, home: ServedNetwork, query: str, since: str | None) -> tuple[list[Event], int]:
        """Return answers that are kept, and the number of the last block."""
        number, ring = home.number, home.ring_of(query)
        if since is None:
            _, last = ring.after(query, AnswerPlace(ring.last_batch + 1, 0))
            return [], last
        known = read_id(since)
        place = known[1] if known is not None and known[0] == number else None
        found, last = ring.after(query, place)
        if known is None and since != START:
            earliest = _instant(since)
            found = [each for each in found if json.loads(each[1])["t"] >= earliest]
        events = [Event(event_id(number, at), "answer", line) for at, line in found]
        if known is not None and (place is None or place.batch <= ring.lost):
            kept = events[0].id if events else None
            gap = json_text({"from": since, "kept_from": kept})
            events.insert(0, Event("", "gap", gap))
        return events, last

    # --- from any thread ---

    def after(self, query: str, place: str) -> list[Event]:
        """Return the answers of a query that are kept after a place.

        Raises:
            NotFoundError: there is no such query.
        """
        return self.kept(self._pool.home_of(query), query, place)[0]

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
        found, _ = home.ring.after(query, None)
        answers = [json.loads(line) for _, line in found]
        t = max((each["t"] for each in answers), default=None)
        last = [each for each in answers if each["t"] == t]
        known = home.query(query)
        if known is not None and known.construct is not None:
            triples = [line for each in last if each["sign"] == "+" for line in each[rows.TRIPLES]]
            return {"triples": list(dict.fromkeys(triples)), "report": {"t": t}}
        variables = list(known.variables) if known is not None else []
        bound = [each[rows.BINDINGS] for each in last if each["sign"] == "+"]
        if variables == ["boolean"] and bound:
            return {"head": {}, "boolean": _is_true(bound[-1]), "report": {"t": t}}
        return {"head": {"vars": variables}, "results": {"bindings": bound}, "report": {"t": t}}


def _number(network: ServedNetwork, sequence: int) -> int:
    """Return a number of a block that only grows, also when a query moves to a newer network."""
    return (network.number << 48) + sequence


def _is_true(row: Mapping[str, Mapping[str, str]]) -> bool:
    return row.get("boolean", {}).get("value") == "true"


def _instant(text: str) -> int:
    try:
        return parse_time(text)
    except DataError:
        raise UsageError(
            f"answers cannot begin from {text[:60]!r}",
            hint="Write start, the id of an answer, or an instant: 2026-03-03T07:58:00Z or "
            "milliseconds since 1970.",
        ) from None
