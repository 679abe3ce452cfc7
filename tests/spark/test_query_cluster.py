"""A query on a standalone cluster of one master and two workers, one of which is killed."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers import REPO, until
from cluster_query import QUERY
from quadweir.sources.streamfiles import Element
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, write_batches, written
from standalone import Standalone
from streaming import quads

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BATCHES, SIZE = 8, 20
STATIC = quads("c0 r d0 . c1 r d1 . c2 r d0")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    with Standalone(tmp_path) as found:
        yield found


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


def test_a_worker_is_killed_and_the_answers_are_the_same(
    cluster: Standalone, tmp_path: Path
) -> None:
    workers = [cluster.add_worker() for _ in range(2)]
    feed = make_feed()
    (tmp_path / "static.nt").write_text("".join(f"{quad}\n" for quad in STATIC))
    # What comes after the kill is computed without the worker, however late the kill is.
    later = len(feed) // 2
    following = write_batches(tmp_path / "in", feed[:later], SIZE)
    out = tmp_path / "out"
    with (tmp_path / "driver.log").open("ab") as log:
        driver = subprocess.Popen(
            [sys.executable, REPO / "tests" / "cluster_query.py", tmp_path, cluster.url],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def some_are_done() -> bool:
        assert driver.poll() is None, (tmp_path / "driver.log").read_text()
        return len(list(out.glob("0*"))) >= 2

    try:
        until(some_are_done, "two batches of answers")
        cluster.kill(workers[0])
        write_batches(tmp_path / "in", [*feed[later:], LAST], SIZE, first=following)
        (tmp_path / "lost").touch()
        assert driver.wait(600) == 0, (tmp_path / "driver.log").read_text()
    finally:
        cluster.kill(driver)
    expected = Oracle(QUERY, static=STATIC).answers(feed)
    assert expected
    assert diff_answers(expected, written(out)) == ""
