"""A shard that is stopped and taken up again anywhere gives the answers of one that runs on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laid_out import LaidOut
from properties.dense import Feed, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static


def run(
    query: ContinuousQuery,
    feed: Feed,
    static: list[Quad],
    *,
    steps: list[int],
    snapshot_every: int,
    restart_after: frozenset[int],
    laid_out: LaidOut | None = None,
) -> list[Answer]:
    """Feed a shard in steps; after some of them, go on with one made of what it left as bytes."""

    streams = sorted({element.stream for element in feed})

    def make() -> Shard:
        if laid_out is not None:
            return Shard.of(query, static=laid_out, streams=streams)
        # The order in which static data is read does not matter.
        quads = static if not restart_after else static[::-1]
        return Shard.of(query, static=Dataset.of(scoped_static(quads)), streams=streams)

    fed = ShardFeed(make())
    snapshot: bytes | None = None
    deltas: list[bytes] = []
    found: list[Answer] = []
    start = turn = 0
    while start < len(feed):
        size = steps[turn % len(steps)]
        found += as_answers(fed.push(feed[start : start + size]), query)
        start += size
        deltas.append(fed.shard.delta())
        turn += 1
        if turn % snapshot_every == 0:
            snapshot, deltas = fed.shard.snapshot(), []
        if turn in restart_after:
            fed.shard = make()
            fed.shard.restore(snapshot, deltas)
    return found + as_answers(fed.finish(), query)


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_a_restart_changes_no_answer(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=EVERYTHING, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    query = optimize(query).query
    in_order = sorted(feed, key=lambda element: element.event_time)
    steps = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    restarts = data.draw(st.frozensets(st.integers(1, 12), min_size=1))
    every = data.draw(st.integers(1, 13))
    expected = run(
        query, in_order, static, steps=steps, snapshot_every=99, restart_after=frozenset()
    )
    with TemporaryDirectory() as folder:
        for static_source in (None, LaidOut.of(query, static, Path(folder))):
            found = run(
                query,
                in_order,
                static,
                steps=steps,
                snapshot_every=every,
                restart_after=restarts,
                laid_out=static_source,
            )
            assert diff_answers(expected, found) == ""
