"""A query whose driver or Python worker is killed gives every answer once (semantics P2)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers import REPO, until
from crashing_query import QUERY
from quadweir.sources.streamfiles import Element
from quadweir.testing import Answer, Oracle, diff_answers
from quadweir.testing.answers import answers_from_json
from spark_queries import LAST, write_batches
from streaming import quads

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

BATCHES, SIZE = 8, 20


def make_feed() -> list[Element]:
    dice = random.Random(3)
    found = []
    for position in range(BATCHES * SIZE):
        if position % 2:
            text, name = f"a{dice.randrange(9)} p b{dice.randrange(9)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(9)} q c{dice.randrange(9)}", "urn:t"
        found.append(Element(name, 1000 + 2 * position, position, quads(text)))
    return found


def run(out: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Start the driver as the leader of a process group, so that its JVM can be killed with it."""
    with (out / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPO / "tests" / "crashing_query.py", out, folder],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )


def when_some_batches_are_done(
    driver: subprocess.Popen[bytes], out: Path, act: Callable[[], None]
) -> None:
    def done() -> bool:
        assert driver.poll() is None, f"ended too early:\n{(out / 'log').read_text()}"
        return len(list((out / "answers").glob("0*"))) >= 2

    until(done, "two batches of answers")
    act()


def answers(out: Path) -> list[Answer]:
    files = sorted((out / "answers").glob("0*.jsonl"))
    return [one for file in files for one in answers_from_json(file.read_text().splitlines())]


def finish(driver: subprocess.Popen[bytes], out: Path) -> None:
    assert driver.wait(600) == 0, (out / "log").read_text()


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


def test_a_driver_that_is_killed(tmp_path: Path) -> None:
    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], SIZE)
    driver = run(tmp_path, tmp_path / "in")
    try:
        when_some_batches_are_done(driver, tmp_path, lambda: os.killpg(driver.pid, signal.SIGKILL))
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    expected = Oracle(QUERY).answers(feed)
    assert 0 < len(answers(tmp_path)) < len(expected), "the run was to be killed in its midst"
    finish(run(tmp_path, tmp_path / "in"), tmp_path)
    assert diff_answers(expected, answers(tmp_path)) == ""


def test_python_workers_that_are_killed(tmp_path: Path) -> None:
    feed = make_feed()
    write_batches(tmp_path / "in", [*feed, LAST], SIZE)
    driver = run(tmp_path, tmp_path / "in")
    killed: list[int] = []

    def kill() -> None:
        for worker in python_workers(driver.pid):
            os.kill(worker, signal.SIGKILL)
            killed.append(worker)

    try:
        when_some_batches_are_done(driver, tmp_path, kill)
        assert killed
        # A local run does not repeat a task that fails: it ends, and a new one goes on.
        if driver.wait(600) != 0:
            finish(run(tmp_path, tmp_path / "in"), tmp_path)
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert diff_answers(Oracle(QUERY).answers(feed), answers(tmp_path)) == ""
