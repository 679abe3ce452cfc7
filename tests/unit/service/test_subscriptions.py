"""Subscribers: they get events once and in order; slow ones are dropped."""

from __future__ import annotations

import asyncio
import json

from quadweir.service.subscriptions import Event, EventBundle, EventHub, Subscription


def bundle(*numbers: int) -> EventBundle:
    return EventBundle(Event(f"1.0.{each}", "answer", f'{{"t":{each}}}') for each in numbers)


async def taken(subscription: Subscription) -> list[str]:
    return [
        event.data
        async for each in subscription.bundles(5)
        for event in (each.events if each is not None else ())
    ]


def test_forms_of_an_event() -> None:
    event = Event("1.2.3", "answer", '{"t":5}')
    assert event.sse == b'id: 1.2.3\nevent: answer\ndata: {"t":5}\n\n'
    assert json.loads(event.message) == {"id": "1.2.3", "event": "answer", "data": {"t": 5}}
    assert json.loads(event.line) == {"id": "1.2.3", "t": 5}
    assert json.loads(Event("", "end", "{}").line) == {"event": "end"}


def test_a_subscriber_gets_what_it_does_not_know_yet() -> None:
    async def run() -> list[str]:
        hub = EventHub()
        found = hub.subscribe("a")
        found.after = 2
        for number in (1, 2, 3):
            hub.publish("a", bundle(number), number)
        hub.publish("b", bundle(9), 9)
        hub.end("a", Event("", "end", '{"reason":"gone"}'))
        assert hub.count == 0
        return await taken(found)

    assert asyncio.run(run()) == ['{"t":3}', '{"reason":"gone"}']


def test_a_slow_subscriber_is_dropped_and_the_others_go_on() -> None:
    async def run() -> None:
        hub = EventHub()
        slow, fast = hub.subscribe("a", most_bytes=1_000), hub.subscribe("a")
        for number in range(1, 100):
            hub.publish("a", bundle(number), number)
        assert slow.dropped is not None
        assert "too slow" in slow.dropped
        assert await taken(slow) == []
        assert hub.count == 1
        hub.end("a", Event("", "end", "{}"))
        assert len(await taken(fast)) == 100

    asyncio.run(run())


def test_one_large_bundle_is_not_too_much() -> None:
    async def run() -> None:
        found = EventHub().subscribe("a", most_bytes=10)
        found.offer(bundle(*range(50)))
        found.end()
        assert len(await taken(found)) == 50

    asyncio.run(run())


def test_without_events_there_are_signs_of_life() -> None:
    async def run() -> None:
        found = EventHub().subscribe("a")
        async for each in found.bundles(0.001):
            assert each is None
            found.end()

    asyncio.run(run())
