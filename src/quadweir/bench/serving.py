"""`quadweir bench serve`: how many subscribers, pushes and registrations the service takes.

The first two sections need no Spark: they measure the service itself. Processor time is that of the
service's process, without the clients, which are processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.measure import machine
from quadweir.client import Client
from quadweir.service.access import Access
from quadweir.service.server import ServiceServer
from quadweir.service.service import OVERVIEW, LiveService
from quadweir.service.settings import ServedApplication, ServiceSettings
from quadweir.service.subscriptions import Event, EventBundle

_PER_SECOND: Final = 100
_BATCH_S: Final = 0.2
_BODY: Final = 1_000
_PUSHERS: Final = 2
# How many subscribers read the times of their events; the others count them. Reading all of them would
# take longer than sending them.
_TIMED: Final = 20
# A client of its own process, so that its time is not that of the service.
_LISTENER: Final = """
import asyncio, json, sys, time
try:
    import uvloop as loops
except ImportError:
    loops = asyncio

HEAD = b"GET /overview/events HTTP/1.1\\r\\nHost: localhost\\r\\nAccept: text/event-stream\\r\\n\\r\\n"
MARK = b"event: answer"


class Listener(asyncio.Protocol):
    def __init__(self, wanted, late, over):
        self.wanted, self.late, self.over, self.found, self.rest = wanted, late, over, 0, b""

    def connection_made(self, transport):
        self.transport = transport
        transport.write(HEAD)

    def data_received(self, data):
        now = time.time()
        data = self.rest + data
        if self.late is None:
            self.found += data.count(MARK)
            self.rest = data[1 - len(MARK):]
        else:
            *lines, self.rest = data.split(b"\\n")
            for line in lines:
                # Not those of the overview, which come until the last subscriber is there.
                if line.startswith(b"data:") and "at" in (event := json.loads(line[5:])):
                    self.found += 1
                    self.late.append(now - event["at"])
        if self.found >= self.wanted:
            self.over.release()
            self.transport.close()

    def connection_lost(self, error):
        if self.found < self.wanted:
            sys.exit("a subscriber was dropped")


async def main(port, subscribers, wanted, timed):
    late, over, step = [], asyncio.Semaphore(0), max(1, subscribers // timed)
    loop = asyncio.get_running_loop()
    for n in range(subscribers):
        own = late if n % step == 0 else None
        await loop.create_connection(lambda: Listener(wanted, own, over), "127.0.0.1", port)
    for n in range(subscribers):
        await over.acquire()
    late.sort()
    print(json.dumps({"p50": late[len(late) // 2], "p99": late[int(len(late) * 0.99)]}))

loops.run(main(*map(int, sys.argv[1:])))
"""
_PUSHER: Final = """
import sys, time
from quadweir.client import Client

url, bodies, lines = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
body = "\\n".join(f'<urn:s{n}> <urn:p> "{n}" .' for n in range(lines))
with Client(url) as client:
    for _ in range(bodies):
        client.push("urn:s", body, content_type="application/n-triples")
"""


@final
@dataclass(frozen=True, slots=True)
class ServeSize:
    """How much is measured: subscribers, seconds of answers, pushed triples, queries of a call."""

    subscribers: int = 1_000
    seconds: int = 10
    triples: int = 500_000
    queries: int = 10_000


QUICK: Final = ServeSize(50, 1, 20_000, 100)


@contextmanager
def _served(spark: Any = None) -> Iterator[tuple[LiveService, ServiceServer]]:
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
        settings = ServiceSettings(data=Path(folder), port=0)
        service = LiveService(spark, ServedApplication(shards=2), settings)
        try:
            with ServiceServer(service, Access()) as server:
                service.start()
                yield service, server
        finally:
            service.stop()


def subscribers(size: ServeSize) -> Iterator[Measurement]:
    """Answers of one query, as server-sent events to many subscribers."""
    batches = int(size.seconds / _BATCH_S)
    each = int(_PER_SECOND * _BATCH_S)
    with _served() as (service, server):
        listening = subprocess.Popen(
            [sys.executable, "-c", _LISTENER]
            + [str(n) for n in (server.port, size.subscribers, batches * each, _TIMED)],
            stdout=subprocess.PIPE,
        )
        while service.hub.count < size.subscribers:
            if listening.poll() is not None:
                raise RuntimeError("the subscribers have gone")
            time.sleep(0.05)
        # From here on only the events below are sent.
        service.end_overview()
        began, spent = time.monotonic(), time.process_time()
        for batch in range(batches):
            events = [_answer(batch, number) for number in range(each)]
            service.hub.run(lambda events=events: _publish(service, events))  # type: ignore[misc]
            time.sleep(max(0.0, began + (batch + 1) * _BATCH_S - time.monotonic()))
        out, _ = listening.communicate()
        took = time.monotonic() - began
        spent = time.process_time() - spent
    late = json.loads(out)
    sent = batches * each * size.subscribers
    yield Measurement("events sent to all subscribers", sent / took, "events/s")
    yield Measurement(
        "processor time of the service for a second of answers", spent / size.seconds, "s"
    )
    yield Measurement("delivery, half of the events", late["p50"] * 1000, "ms")
    yield Measurement("delivery, 99 % of the events", late["p99"] * 1000, "ms", at_most=200)


def _answer(batch: int, number: int) -> Event:
    bindings = {
        "sensor": {"type": "uri", "value": f"http://example.org/sensor/{number}"},
        "speed": {"type": "literal", "value": f"{batch % 120}.5"},
    }
    data = {"at": time.time(), "t": batch, "sign": "+", "bindings": bindings}
    return Event(f"1.{batch}.{number}", "answer", json.dumps(data))


def _publish(service: LiveService, events: Sequence[Event]) -> None:
    service.hub.publish(OVERVIEW, EventBundle(events))


def pushing(size: ServeSize) -> Iterator[Measurement]:
    """Triples that clients push in bodies of a thousand, each on disk before its answer."""
    bodies = size.triples // _BODY // _PUSHERS
    with _served() as (service, server):
        with Client(server.url) as client:
            client.declare("urn:s")
        command = [sys.executable, "-c", _PUSHER, server.url, str(bodies), str(_BODY)]
        began, spent = time.monotonic(), time.process_time()
        clients = [subprocess.Popen(command) for _ in range(_PUSHERS)]
        # Wait for all of them, even if one failed.
        codes = [each.wait() for each in clients]
        if any(codes):
            raise RuntimeError("a push failed")
        took, spent = time.monotonic() - began, time.process_time() - spent
        pushed = bodies * _BODY * _PUSHERS
        assert service.streams.pushed("urn:s") == {
            **(service.streams.pushed("urn:s") or {}),
            "records": bodies * _PUSHERS,
        }
    yield Measurement("triples pushed and on disk", pushed / took, "triples/s", at_least=50_000)
    yield Measurement(
        "triples for a second of the service's processor time", pushed / spent, "triples"
    )


def registering(size: ServeSize) -> Iterator[Measurement]:
    """Queries of one template that are registered in one call."""
    from quadweir.runtime.spark.session import build

    spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
    text = "SELECT ?x {{ STREAM <urn:s> [RANGE 1m] {{ ?x <urn:p> <urn:o{n}> }} }}"
    try:
        with _served(spark) as (_, server), Client(server.url, timeout=900) as client:
            client.declare("urn:s")
            client.register("first", text.format(n="0"))
            queries: Mapping[str, str] = {f"q{n}": text.format(n=n) for n in range(size.queries)}
            began, spent = time.monotonic(), time.process_time()
            found = client.register_all(queries)
            took, spent = time.monotonic() - began, time.process_time() - spent
            assert len(found["registered"]) == size.queries
    finally:
        spark.stop()
    yield Measurement(f"{size.queries:,} queries in one call", took, "s")
    yield Measurement("processor time of the driver for it", spent, "s")


SECTIONS: Final[Mapping[str, Callable[[ServeSize], Iterator[Measurement]]]] = {
    "subscribers": subscribers,
    "pushing": pushing,
    "registering": registering,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: ServeSize | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections."""
    chosen = size or ServeSize()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in sections:
        on_step(name)
        found[name] = [each.as_json() for each in SECTIONS[name](chosen)]
    return {
        "benchmark": "serve",
        "machine": machine(),
        "input": {name: getattr(chosen, name) for name in ServeSize.__slots__},
        "sections": found,
    }
