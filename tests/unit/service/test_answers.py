"""Subscribers begin where they want, get each answer once, and need little memory for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from quadweir.errors import UsageError
from quadweir.service.answerring import AnswerBlock, AnswerRing
from quadweir.service.answers import AnswerDesk, read_since
from quadweir.service.problems import NotFoundError, PressureError
from quadweir.service.settings import ServiceLimits
from quadweir.service.subscriptions import EventBundle, EventHub, Subscription


@dataclass
class Home:
    """What the desk knows of a network."""

    ring: AnswerRing
    number: int = 1

    def ring_of(self, _query: str) -> AnswerRing:
        return self.ring

    def query(self, _query: str) -> None:
        return None


class Pool:
    def __init__(self) -> None:
        self.homes: dict[str, Home] = {}

    def home_of(self, query: str) -> Home:
        if query not in self.homes:
            raise NotFoundError(f"there is no query {query}")
        return self.homes[query]


class World:
    """A desk over one ring; `add` gives answers as a batch of a network does."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.hub = EventHub()
        self.pool = Pool()
        self.desk = AnswerDesk(self.pool, self.hub, ServiceLimits(subscribers=3))  # type: ignore[arg-type]
        self.ring = AnswerRing(folder, most_bytes=most_bytes, tell=self._tell)
        self.pool.homes["q"] = Home(self.ring)
        self.batch = -1
        self.t = 0

    def _tell(self, block: AnswerBlock) -> None:
        self.desk.publish(self.pool.homes["q"], block)  # type: ignore[arg-type]

    def add(self, count: int, size: int = 0) -> None:
        self.batch += 1
        lines = []
        for _ in range(count):
            self.t += 1
            head = f'{{"query":"q","t":{self.t},"sign":"+"'
            lines.append(f'{head},"bindings":{{"x":{json.dumps("y" * size)}}}}}')
        self.ring.add(lines, self.batch)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path, 3_000_000)
    yield found
    found.ring.close()


def times(bundles: list[EventBundle]) -> list[int]:
    events = [event for bundle in bundles for event in bundle.events]
    return [json.loads(each.data)["t"] for each in events if each.kind == "answer"]


def kinds(bundles: list[EventBundle]) -> set[str]:
    return {event.kind for bundle in bundles for event in bundle.events}


async def rest(subscription: Subscription, count: int) -> list[EventBundle]:
    found: list[EventBundle] = []
    async for each in subscription.bundles(30):
        if each is not None:
            found.append(each)
        if len(times(found)) >= count:
            break
    return found


def test_what_is_kept_comes_in_pieces_and_what_is_new_after_it(world: World) -> None:
    async def run() -> list[int]:
        for _ in range(20):
            world.add(100, 1_000)
        found = world.desk.subscribe("q", "start")
        bundles: list[EventBundle] = []
        async for each in found.bundles(30):
            assert each is not None
            assert each.size < 400_000
            bundles.append(each)
            # Answers go on coming while the subscriber reads.
            if len(bundles) < 30:
                world.add(1)
            elif len(times(bundles)) == world.t:
                break
        return times(bundles)

    assert asyncio.run(run()) == list(range(1, 2_030))


def test_a_subscriber_that_asks_for_nothing_old_gets_what_is_new(world: World) -> None:
    async def run() -> list[int]:
        world.add(5)
        found = world.desk.subscribe("q", None)
        world.add(2)
        return times(await rest(found, 2))

    assert asyncio.run(run()) == [6, 7]


def test_it_begins_after_an_answer_or_at_an_instant(world: World) -> None:
    async def run(since: str) -> list[int]:
        return times(await rest(world.desk.subscribe("q", since), 2))

    world.add(3)
    world.add(2)
    assert asyncio.run(run("1.0.3")) == [4, 5]
    assert asyncio.run(run("4")) == [4, 5]


@pytest.mark.parametrize("since", ["1.0.1", "7.3.1"])
def test_what_is_no_longer_kept_is_said_once(tmp_path: Path, since: str) -> None:
    async def run() -> list[EventBundle]:
        world = World(tmp_path, 10_000)
        for _ in range(100):
            world.add(5, 100)
        found = await rest(world.desk.subscribe("q", since), 20)
        world.ring.close()
        return found

    found = asyncio.run(run())
    gaps = [each for bundle in found for each in bundle.events if each.kind == "gap"]
    assert len(gaps) == 1
    seen = times(found)
    assert seen == list(range(seen[0], 501))
    assert json.loads(gaps[0].data)["from"] == since


def test_a_query_that_leaves_meanwhile_ends_its_subscribers(world: World) -> None:
    async def run() -> set[str]:
        world.hub.attach(asyncio.get_running_loop())
        world.add(400, 1_000)
        found = world.desk.subscribe("q", "start")
        bundles: list[Any] = []
        async for each in found.bundles(30):
            bundles.append(each)
            if world.pool.homes.pop("q", None) is not None:
                world.desk.end(["q"], "the query was removed")
                await asyncio.sleep(0)
        assert world.hub.count == 0
        return kinds(bundles)

    assert asyncio.run(run()) == {"begin", "end"}


def test_there_are_only_so_many_subscribers(world: World) -> None:
    async def run() -> None:
        found = [world.desk.subscribe("q", "start") for _ in range(3)]
        with pytest.raises(PressureError) as caught:
            world.desk.subscribe("q", None)
        assert caught.value.retry_after_s > 0
        found[0].close()
        found[0].close()
        world.desk.subscribe("q", None)

    asyncio.run(run())


def test_a_place_that_is_none_is_refused() -> None:
    for text in ("yesterday", "1.2", "1.2.x", "１.2.3", f"1.{'9' * 5_000}.1", "9" * 5_000):
        with pytest.raises(UsageError):
            read_since(text)
