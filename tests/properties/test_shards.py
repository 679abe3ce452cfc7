"""Shards and stages of generated queries give the oracle's answers (P1): any cut, order, restart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from properties.dense import (
    DISTINCT_ALL,
    Feed,
    arrivals,
    dense_questions,
    feeds,
    static_data,
)
from properties.strategies import (
    ALLOW,
    EVERYTHING,
    STREAMS,
    Question,
    Triples,
    windowed,
    windowings,
)
from quadweir.algebra.query import DescribeForm
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import TimeScope
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
    _check(question, dialect, data, feed, static)


# Joins of two windows: what they give goes on to a second stage.
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data(), feed=feeds(names=2), static=static_data())
def test_stages_count_distinct_solutions_as_the_oracle_does(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    ends = st.sampled_from(["?a", "?b", "?c"])
    lines = [f"{data.draw(ends)} :p{data.draw(st.integers(0, 1))} {data.draw(ends)}" for _ in "ab"]
    head, tail = data.draw(st.sampled_from(DISTINCT_ALL))
    question = Question(
        head=head,
        tail=tail,
        parts=tuple(Triples((line,), number) for number, line in enumerate(lines)),
        scopes=tuple(TimeScope(range_ms=length) for length in (10, 5)),
        streams=tuple(STREAMS),
    )
    _check(question, "cqels", data, feed, static)


def _check(
    question: Question, dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    assume(not isinstance(query.form, DescribeForm))
    query = replace(query, output=data.draw(st.sampled_from(list(OutputOperator))))
    query = windowed(query, data.draw(windowings()))
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
