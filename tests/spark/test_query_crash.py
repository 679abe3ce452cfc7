"""A Kafka-fed query whose Python workers and driver are killed gives every answer once (P2)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brokers import REPO, KafkaBroker, until
from crashing_query import QUERY
from quadweir.sources.streamfiles import Element
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.answers import answers_from_json
from spark_queries import written
from streaming import quads

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(1200)]

ELEMENTS = 240


def make_feed() -> list[Element]:
    dice = random.Random(3)
    found = []
    for position in range(ELEMENTS):
        if position % 2:
            text, name = f"a{dice.randrange(9)} p b{dice.randrange(9)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(9)} q c{dice.randrange(9)}", "urn:t"
        found.append(Element(name, 1000 + 2 * position, position, quads(text)))
    return found


def timed_lines(feed: list[Element], stream: str) -> list[str | bytes | None]:
    return [
        f"{each.event_time} {quad}" for each in feed if each.stream == stream for quad in each.quads
    ]


def answered(out: Path) -> int:
    return len(written(out / "answers"))


def run(out: Path, *where: str) -> subprocess.Popen[bytes]:
    """Start the driver as the leader of a process group, so that its JVM can be killed with it."""
    with (out / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPO / "tests" / "crashing_query.py", out, *where],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )


def python_workers(session: int) -> list[int]:
    """The processes of a session that run Spark's Python workers, the daemon left out."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            numbers = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # The daemon makes a process group of its own, but stays in the session.
        parent, own_session = int(numbers[1]), int(numbers[3])
        if own_session == session and any(b"pyspark.daemon" in word for word in words):
            found.append((int(folder.name), parent))
    daemons = {number for number, _ in found}
    return [number for number, parent in found if parent in daemons]


def shard_processes(driver: int) -> list[int]:
    """The worker processes of a driver."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == driver and b"quadweir.runtime.host.worker" in words:
            found.append(int(folder.name))
    return found


@pytest.mark.parametrize(
    ("shards_in", "workers_of"), [("driver", shard_processes), ("executors", python_workers)]
)
def test_workers_and_then_the_driver_are_killed(
    spark: SparkSession,
    kafka: KafkaBroker,
    tmp_path: Path,
    shards_in: str,
    workers_of: Callable[[int], list[int]],
) -> None:
    feed = make_feed()
    expected = Oracle(QUERY).answers(feed)
    topics = kafka.topic(), kafka.topic()
    to = kafka.topic()
    # How many answers to let pass before the first kill: one falls amid a batch or between two.
    first = random.Random(f"kills {shards_in}").randrange(10)

    def send(part: list[Element]) -> None:
        for topic, stream in zip(topics, ("urn:s", "urn:t"), strict=True):
            kafka.produce(spark, topic, timed_lines(part, stream))

    def start(how: str) -> subprocess.Popen[bytes]:
        return run(tmp_path, how, shards_in, kafka.address, *topics, to)

    def goes_on(beyond: int) -> bool:
        """Whether answers come, or the driver has ended, which only a killed worker may make it."""
        return driver.poll() is not None or answered(tmp_path) > beyond

    # Each part is sent only after the kill before it: there is always something left to answer.
    third = ELEMENTS // 3
    send(feed[:third])
    driver = start("live")
    try:
        until(lambda: goes_on(first), "first answers")
        assert driver.poll() is None, (tmp_path / "log").read_text()
        workers = workers_of(driver.pid)
        assert workers
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        seen = answered(tmp_path)
        send(feed[third : 2 * third])
        until(lambda: goes_on(seen), "more answers")
        # A local run does not repeat a task that fails: it ends, and a new one goes on. Worker
        # processes are replaced.
        if driver.poll() is not None and shards_in == "executors":
            driver = start("live")
            until(lambda: goes_on(seen), "answers after the workers' end")
        assert driver.poll() is None, (tmp_path / "log").read_text()
        workers = shard_processes(driver.pid)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers), "their end")
        assert seen < answered(tmp_path) < len(expected)
        send(feed[2 * third :])
        driver = start("rest")
        assert driver.wait(600) == 0, (tmp_path / "log").read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert diff_answers(expected, written(tmp_path / "answers")) == ""
    messages = {row.key: row.value for row in kafka.consume(spark, to).collect()}
    assert diff_answers(expected, answers_from_json(messages.values())) == ""
    assert all(key.startswith("crashing|") for key in messages)
