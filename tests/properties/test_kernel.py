"""Incremental equals recomputed (P3): a kernel shard and the oracle give the same answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING, MONOTONIC
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.shapes import is_eager
from quadweir.kernel.shard import CHUNK, Shard
from quadweir.kernel.warm import compiled, warm_up
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static


def by_the_kernel(
    query: ContinuousQuery,
    arrived: Feed,
    static: list[Quad],
    *,
    delay_ms: int = 0,
    steps: list[int],
    chunk: int = CHUNK,
    restarts: bool = False,
    incremental: bool = True,
) -> tuple[list[Answer], int]:
    """Feed a shard in steps of the given sizes, over and over; nothing is compiled meanwhile.

    Gives the answers, and how many elements were late.
    """
    warmed()
    forms = compiled()

    def make() -> Shard:
        shard = Shard(
            query,
            static=Dataset.of(scoped_static(static)),
            streams=sorted({element.stream for element in arrived}),
            incremental=incremental,
        )
        shard.chunk = chunk
        return shard

    shard = make()
    feed = ShardFeed(shard, delay_ms=delay_ms)
    found: list[Answer] = []
    start = turn = 0
    while start < len(arrived):
        size = steps[turn % len(steps)]
        found += as_answers(feed.push(arrived[start : start + size]), query)
        start += size
        turn += 1
        if restarts:
            fresh = make()
            fresh.restore_arrays(feed.shard.arrays())
            feed.shard = fresh
    found += as_answers(feed.finish(), query)
    assert compiled() == forms, "something was compiled while the stream ran"
    return found, feed.late


@cache
def warmed() -> None:
    """Compile, once."""
    warm_up()


# From one element at a time to all at once.
STEPS = st.lists(st.integers(1, 5) | st.just(1_000), min_size=1, max_size=3)
# A step is cut after a match, after a few, or not at all.
CHUNKS = st.integers(1, 4) | st.just(CHUNK)


# With values put into a path of no steps, Oxigraph finds no match at nodes that the graph lacks; by
# the specification of EXISTS there is one. So EXISTS and paths are tried apart.
@pytest.mark.parametrize(
    "kinds", [EVERYTHING - {"path"}, EVERYTHING - {"exists"}], ids=["operators", "paths"]
)
@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_the_kernel_gives_the_answers_of_the_oracle(
    dialect: str, kinds: frozenset[str], data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=kinds, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    delay = data.draw(st.integers(0, 8))
    arrived = data.draw(arrivals(feed, delay))
    steps = data.draw(STEPS)
    expected = Oracle(query, static=static, delay_ms=delay).run(arrived)
    found, late = by_the_kernel(
        optimize(query).query,
        arrived,
        static,
        delay_ms=delay,
        steps=steps,
        chunk=data.draw(CHUNKS),
        restarts=data.draw(st.booleans()),
    )
    assert late == len(expected.late)
    assert diff_answers(expected.answers, found) == ""


# Of the questions drawn, one in five or so is eager.
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_eager_answers_are_those_of_the_oracle(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    """E1: answers that leave as soon as their parts have arrived, in whatever order."""
    question = data.draw(dense_questions("cqels", kinds=MONOTONIC, aggregates=False))
    query = parse(question.text("cqels"), dialect="cqels", allow=ALLOW)
    query = replace(query, output=OutputOperator.ISTREAM)
    assume(is_eager(query))
    delay = data.draw(st.integers(0, 8))
    arrived = data.draw(arrivals(feed, delay))
    steps = data.draw(STEPS)
    expected = Oracle(query, static=static, delay_ms=delay).run(arrived)
    found, late = by_the_kernel(
        optimize(query).query,
        arrived,
        static,
        delay_ms=delay,
        steps=steps,
        chunk=data.draw(CHUNKS),
        restarts=data.draw(st.booleans()),
    )
    assert late == len(expected.late)
    assert diff_answers(expected.answers, found) == ""
