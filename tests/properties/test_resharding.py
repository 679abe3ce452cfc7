"""Shards whose state is divided again while nothing runs give the oracle's answers (P1, P2)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING, windowed, windowings
from quadweir.algebra.query import DescribeForm
from quadweir.algebra.streams import OutputOperator
from quadweir.runtime.shard import journal
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from worker_hosts import WorkerHost


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_shards_that_are_divided_again_give_the_answers_of_the_oracle(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=EVERYTHING - {"path"}, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    assume(not isinstance(query.form, DescribeForm))
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    query = windowed(query, data.draw(windowings()))
    delay = data.draw(st.integers(0, 12))
    arrived = data.draw(arrivals(feed, delay, late=False))
    size = data.draw(st.integers(1, 7) | st.just(1_000))
    longest = data.draw(st.sampled_from([1, 2, 4, 50]))
    counts = st.sampled_from([1, 2, 3, 5])
    streams = sorted({each.stream for each in feed})
    with (
        TemporaryDirectory() as folder,
        mock.patch.object(journal, "LONGEST_LOG", longest),
        WorkerHost(
            query,
            Path(folder),
            static=static,
            streams=streams,
            shards=data.draw(counts),
            delay_ms=delay,
            processes=1,
        ) as host,
    ):
        for start in range(0, len(arrived), size):
            host.push(arrived[start : start + size])
            how = data.draw(st.sampled_from(["goes on", "is divided", "is divided", "is lost"]))
            if how == "is divided":
                host.reshard(data.draw(counts))
            if how == "is lost":
                host.lose()
        host.finish()
    assert diff_answers(Oracle(query, static=static).answers(feed), host.answers) == ""
