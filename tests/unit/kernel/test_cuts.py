"""Long steps are cut in time: the answers are the same, and eager joins hold little besides windows."""

from __future__ import annotations

import random

import pytest

from properties.test_kernel import by_the_kernel
from quadweir.kernel.arrivals import CHUNK
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.testing import MemoryStream, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed

JOIN = (
    "SELECT ?x ?y ?z { STREAM <urn:s> [RANGE 40ms] { ?x <urn:p> ?y } "
    "STREAM <urn:s> [RANGE 25ms] { ?z <urn:q> ?x } }"
)
GROUPED = "SELECT ?x (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 40ms] { ?x <urn:p> ?y } } GROUP BY ?x"


def feed(count: int, *, delay: int) -> list[Element]:
    """Elements in the order of arrival, each at most `delay` late."""
    dice = random.Random(3)
    stream = MemoryStream("urn:s")
    for number in range(count):
        what = f"<urn:a{dice.randrange(12)}>"
        triple = f"{what} <urn:p> {number}" if number % 2 else f"<urn:b{number}> <urn:q> {what}"
        stream.add(number, f"{triple} .")
    return sorted(stream, key=lambda each: each.event_time + dice.randrange(delay + 1))


@pytest.mark.parametrize("text", [JOIN, GROUPED], ids=["eager", "in order"])
@pytest.mark.parametrize("delay", [0, 9])
@pytest.mark.parametrize("chunk", [1, 7, CHUNK])
def test_where_a_step_is_cut_changes_no_answer(text: str, delay: int, chunk: int) -> None:
    query = optimize(parse(text)).query
    arrived = feed(300, delay=delay)
    expected = Oracle(query, delay_ms=delay).answers(arrived)
    assert expected
    found, late = by_the_kernel(query, arrived, [], delay_ms=delay, steps=[300], chunk=chunk)
    assert late == 0
    assert diff_answers(expected, found) == ""


def test_an_eager_join_holds_no_more_for_a_longer_step() -> None:
    query = optimize(parse(JOIN)).query

    def places(count: int) -> int:
        shard = Shard.of(query)
        shard.chunk = 32
        assert shard.program.eager
        ShardFeed(shard).push(feed(count, delay=0))
        return max(leaf.table.capacity for _, leaf in shard.dataflow.leaves)

    assert places(4_000) == places(400)
