"""Shards and stages: whatever the cut, the oracle's answers (P1, P3)."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

import small_lsbench
from quadweir.runtime import hosting
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Oracle, diff_answers
from query_hosts import Host

QUERIES = Path(__file__).parents[3] / "src/quadweir/bench/queries/lsbench"
DELAY_MS = 400


@pytest.fixture(autouse=True)
def no_copies():
    hosting._COPIES.clear()
    yield
    hosting._COPIES.clear()


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


@pytest.mark.parametrize("dialect", ["cqels", "csparql", "rspql"])
@pytest.mark.parametrize("number", range(1, 13))
def test_shards_batches_disorder_and_restarts_change_no_answer(number, dialect):
    text = (QUERIES / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")
    wanted = expected(text)
    assert wanted
    runs = [(2, 100, False), (5, 23, True)] if dialect == "cqels" else [(2, 37, True)]
    for shards, size, restarts in runs:
        run = host(text, shards, delay_ms=DELAY_MS)
        elements = arrivals(DELAY_MS)
        for start in range(0, len(elements), size):
            if restarts:
                hosting._COPIES.clear()
            run.push(elements[start : start + size], tasks=2)
        run.finish()
        assert run.late == 0
        assert diff_answers(wanted, run.answers) == ""
