"""A query on a standalone cluster of one master and two workers, one of which is killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers import REPO, answers, until
from cluster_query import QUERY
from quadweir.runtime.spark.java import ensure_java
from quadweir.sources.streamfiles import Element
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, write_batches, written
from streaming import quads

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BATCHES, SIZE = 8, 20
STATIC = quads("c0 r d0 . c1 r d1 . c2 r d0")


def start(log: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a part of Spark as the leader of a session, so that what it starts goes with it."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        **ensure_java().environment(),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with log.open("ab") as file:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *words],
            stdout=file,
            stderr=file,
            start_new_session=True,
            env=environment,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    log = tmp_path / "spark.log"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    parts = [start(log, f"{deploy}.master.Master", *here, "--port", str(port))]
    try:
        until(lambda: answers(port), "the master")
        for number in range(2):
            own = ("--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"w{number}"))
            parts.append(start(log, f"{deploy}.worker.Worker", *here, *own, url))
        until(lambda: log.read_text().count("Successfully registered with master") == 2, "workers")
        yield url, parts[1:]
    finally:
        for part in parts:
            kill(part)


def make_feed() -> list[Element]:
    dice = random.Random(5)
    found = []
    for position in range(BATCHES * SIZE):
        if position % 2:
            text, name = f"a{dice.randrange(9)} p b{dice.randrange(9)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(9)} q c{dice.randrange(4)}", "urn:t"
        found.append(Element(name, 1000 + 2 * position, position, quads(text)))
    return found


def test_a_worker_is_killed_and_the_answers_are_the_same(cluster, tmp_path: Path) -> None:
    url, workers = cluster
    feed = make_feed()
    (tmp_path / "static.nt").write_text("".join(f"{quad}\n" for quad in STATIC))
    # What comes after the kill is computed without the worker, however late the kill is.
    later = len(feed) // 2
    following = write_batches(tmp_path / "in", feed[:later], SIZE)
    out = tmp_path / "out"
    with (tmp_path / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, REPO / "tests" / "cluster_query.py", tmp_path, url],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def some_are_done() -> bool:
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()
        return len(list(out.glob("0*"))) >= 2

    try:
        until(some_are_done, "two batches of answers")
        kill(workers[0])
        write_batches(tmp_path / "in", [*feed[later:], LAST], SIZE, first=following)
        (tmp_path / "lost").touch()
        assert driver.wait(600) == 0, (tmp_path / "driver.log").read_text()
    finally:
        kill(driver)
    expected = Oracle(QUERY, static=STATIC).answers(feed)
    assert expected
    assert diff_answers(expected, written(out)) == ""
