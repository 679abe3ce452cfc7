"""Shards and stages of generated queries give the oracle's answers (P1): any cut, order, restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING
from quadweir.algebra.query import DescribeForm
from quadweir.algebra.streams import OutputOperator
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from query_hosts import Host


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_shards_give_the_answers_of_the_oracle(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=EVERYTHING - {"path"}, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    assume(not isinstance(query.form, DescribeForm))
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    delay = data.draw(st.integers(0, 12))
    arrived = data.draw(arrivals(feed, delay, late=False))
    shards = data.draw(st.sampled_from([2, 3, 5]))
    is_mapped = data.draw(st.booleans())
    size = data.draw(st.integers(1, 7) | st.just(1_000))
    restarts, tasks = data.draw(st.booleans()), data.draw(st.integers(1, 3))
    with TemporaryDirectory() as folder:
        host = Host(
            query,
            static=static,
            streams=sorted({each.stream for each in feed}),
            shards=shards,
            delay_ms=delay,
            direct=True,
            folder=Path(folder) if is_mapped else None,
        )
        assume(host.shards > 1)
        for start in range(0, len(arrived), size):
            host.push(arrived[start : start + size], tasks=tasks)
            if restarts:
                host.restart()
        host.finish()
    assert host.late == 0
    assert diff_answers(Oracle(query, static=static).answers(feed), host.answers) == ""
