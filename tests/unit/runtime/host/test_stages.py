"""Shards and stages: whatever the cut, the oracle's answers (P1, P3)."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import small_lsbench
from quadweir.kernel import instants
from quadweir.runtime.host import stateprocessor
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Oracle, diff_answers
from query_hosts import Host, run_bounded
from streaming import stream

QUERIES = Path(__file__).parents[4] / "src/quadweir/bench/queries/lsbench"
DELAY_MS = 400


@pytest.fixture(autouse=True)
def no_copies():
    stateprocessor._COPIES.clear()
    yield
    stateprocessor._COPIES.clear()


@cache
def feed() -> tuple[Element, ...]:
    return tuple(small_lsbench.feed(posts=16))


@cache
def static() -> tuple[Quad, ...]:
    return (*small_lsbench.static(), *small_lsbench.static_by_name())


@cache
def expected(text: str) -> list[Answer]:
    return Oracle(parse(text, allow=("FROM",)), static=static()).answers(feed())


def host(text: str, shards: int, *, delay_ms: int = 0) -> Host:
    streams = sorted({each.stream for each in feed()})
    return Host(text, static=static(), streams=streams, shards=shards, delay_ms=delay_ms)


def arrivals(delay_ms: int) -> list[Element]:
    """The elements in an order of arrival that is within the delay."""
    dice = random.Random(delay_ms)
    return sorted(feed(), key=lambda each: each.event_time + dice.randrange(delay_ms // 2))


COUNTED = """SELECT ?x ?z {
  STREAM <urn:s> [TRIPLES 5] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 20ms] { ?y <urn:q> ?z } }"""
GROUPED = """SELECT ?z (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 15ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 20ms] { ?y <urn:q> ?z } }
GROUP BY ?z"""


STEPPED = """SELECT %s ?z (COUNT(*) AS ?n)
FROM NAMED WINDOW <urn:v> ON <urn:s> [RANGE PT0.03S STEP PT0.01S]
FROM NAMED WINDOW <urn:w> ON <urn:t> [RANGE PT0.03S STEP PT0.01S]
{ WINDOW <urn:v> { ?x <urn:p> ?y } WINDOW <urn:w> { ?y <urn:q> ?z } } GROUP BY ?z"""


@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_two_stages_skip_closes_without_content(monkeypatch, output):
    """A jump of years in event time is answered like a short one."""
    monkeypatch.setattr(instants, "MAX_CLOSES", 1_000)

    def feed_with(gap: int) -> list[Element]:
        return [
            *stream((1000, "a p b"), (gap, "a p b")),
            *stream((1003, "b q c"), (gap + 4, "b q d"), name="t"),
        ]

    text, far = STEPPED % output, 10**9
    wanted = Oracle(text).answers(feed_with(2000))
    assert {each.t > 1500 for each in wanted} == {False, True}
    found = run_bounded(text, feed_with(far), tasks=1, shards=2)
    shifted = [replace(each, t=each.t - far + 2000 if each.t > 1500 else each.t) for each in found]
    assert diff_answers(wanted, shifted) == ""


@pytest.mark.parametrize("text", [COUNTED, GROUPED])
@pytest.mark.parametrize("tasks", [1, 3])
def test_files_read_by_several_tasks_give_the_answers_of_the_oracle(text, tasks):
    """Each task sees other times and other parts of elements; the answers are the same."""
    elements = [
        *stream(*[(1000 + 7 * n, f"a{n % 3} p b{n % 2} . a{n % 3} o b") for n in range(20)]),
        *stream(*[(1003 + 5 * n, f"b{n % 2} q c{n % 4}") for n in range(24)], name="t"),
    ]
    # Each statement is there twice, the second time far behind the first.
    pieces = [replace(each, quads=(quad,)) for each in elements for quad in each.quads] * 2
    found = run_bounded(text, pieces, tasks=tasks, shards=2)
    wanted = Oracle(text).answers(elements)
    assert wanted
    assert diff_answers(wanted, found) == ""


def test_a_second_stage_counts_solutions_that_differ_in_any_variable():
    """COUNT(DISTINCT *) needs every column, also those that nothing else looks at."""
    text = """SELECT ?a (COUNT(DISTINCT *) AS ?n) {
      STREAM <urn:s> [RANGE 10ms] { ?a <urn:p> ?b } STREAM <urn:t> [RANGE 10ms] { ?b <urn:r> ?c }
    } GROUP BY ?a"""
    elements = [
        *stream((1, "a p b1 . a p b2")),
        *stream((2, "b1 r c1 . b1 r c2 . b2 r c1"), name="t"),
    ]
    run = Host(text, shards=2)
    assert len(run.spec.plan.stages) == 2
    run.push(elements)
    run.finish()
    wanted = Oracle(text).answers(elements)
    assert any('"3"' in str(answer) for answer in wanted)
    assert diff_answers(wanted, run.answers) == ""


@pytest.mark.parametrize("dialect", ["cqels", "csparql", "rspql"])
@pytest.mark.parametrize("number", range(1, 13))
def test_shards_batches_disorder_and_restarts_change_no_answer(number, dialect):
    text = (QUERIES / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")
    wanted = expected(text)
    assert wanted
    runs = [(2, 37, True)]
    if dialect == "cqels":
        runs = [(1, len(feed()), False), (2, 100, False), (5, 23, True), (2, 1, True)]
    for shards, size, restarts in runs:
        run = host(text, shards, delay_ms=DELAY_MS)
        elements = arrivals(DELAY_MS)
        for start in range(0, len(elements), size):
            if restarts:
                run.restart()
            run.push(elements[start : start + size], tasks=2)
        run.finish()
        assert run.late == 0
        assert diff_answers(wanted, run.answers) == ""
