"""A query on a standalone cluster whose executors come and go while it runs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers import REPO, until
from cluster_query import QUERY
from elastic_query import SHARDS
from quadweir.sources.streamfiles import Element
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, write_batches, written
from standalone import Standalone
from streaming import quads

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

STATIC = quads("c0 r d0 . c1 r d1 . c2 r d0")
SIZE, MOST = 10, 200


class Feed:
    """Batches of statements, as many as a test wants."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._dice, self._next = folder, random.Random(5), 0
        self.elements: list[Element] = []

    def push(self) -> None:
        more = []
        for position in range(len(self.elements), len(self.elements) + SIZE):
            if position % 2:
                text, name = f"a{self._dice.randrange(9)} p b{self._dice.randrange(9)}", "urn:s"
            else:
                text, name = f"b{self._dice.randrange(9)} q c{self._dice.randrange(4)}", "urn:t"
            more.append(Element(name, 1000 + 2 * position, position, quads(text)))
        self.elements += more
        self._next = write_batches(self._folder / "in", more, SIZE, first=self._next)

    def end(self) -> None:
        write_batches(self._folder / "in", [LAST], 1, first=self._next)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    with Standalone(tmp_path) as found:
        yield found


def test_executors_join_and_leave_and_the_answers_are_the_same(
    cluster: Standalone, tmp_path: Path
) -> None:
    (tmp_path / "static.nt").write_text("".join(f"{quad}\n" for quad in STATIC))
    feed = Feed(tmp_path)
    feed.push()
    first = cluster.add_worker()
    log = tmp_path / "driver.log"
    with log.open("ab") as out:
        driver = subprocess.Popen(
            [sys.executable, REPO / "tests" / "elastic_query.py", tmp_path, cluster.url],
            stdout=out,
            stderr=out,
            start_new_session=True,
        )

    def seen() -> dict[str, Any]:
        assert driver.poll() is None, log.read_text()
        lines = (tmp_path / "seen").read_text().splitlines() if (tmp_path / "seen").exists() else []
        return json.loads(lines[-1]) if lines else {}

    def fed_until(done: Callable[[dict[str, Any]], object], what: str) -> int:
        """Send a batch after each batch, until the metrics say what is waited for."""
        for count in range(MOST):
            before = seen()
            if before and done(before):
                return count
            feed.push()
            until(lambda before=before: seen().get("batches") != before.get("batches"), what)
        raise AssertionError(f"{what}: {seen()}")

    try:
        fed_until(lambda now: sum(now["executor_shards"].values()) == SHARDS, "shards")
        cluster.add_worker()
        took = fed_until(
            lambda now: sorted(now["executor_shards"].values()) in ([2, 4], [3, 3]),
            "shards that move",
        )
        print(f"an executor that joined had shards after {took} batches: {seen()}")
        cluster.kill(first)
        took = fed_until(lambda now: now["executors_lost"] == 1, "the loss of an executor")
        print(f"after a loss, {took} batches: {seen()}")
        assert sum(seen()["executor_shards"].values()) == SHARDS
        feed.end()
        (tmp_path / "stop").touch()
        assert driver.wait(300) == 0, log.read_text()
    finally:
        cluster.kill(driver)
    expected = Oracle(QUERY, static=STATIC).answers(feed.elements)
    assert expected
    assert diff_answers(expected, written(tmp_path / "out")) == ""
