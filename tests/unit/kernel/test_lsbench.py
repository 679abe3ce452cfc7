"""LSBench's twelve queries in three dialects: the kernel's answers are the oracle's.

What is compiled is compiled before: `warm_up` leaves nothing to be compiled while a stream runs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import small_lsbench
from quadweir.algebra.dataset import Dataset
from quadweir.kernel.shard import Shard
from quadweir.kernel.warm import compiled, warm_up
from quadweir.optimize import optimize
from quadweir.sources.streamfiles import Element
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static

QUERIES = Path(__file__).parents[3] / "src/quadweir/bench/queries/lsbench"


@cache
def data() -> tuple[tuple[Element, ...], tuple[Quad, ...]]:
    static = (*small_lsbench.static(), *small_lsbench.static_by_name())
    return tuple(small_lsbench.feed(posts=16)), static


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    warm_up()


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@pytest.mark.parametrize("number", range(1, 13))
def test_the_kernel_answers_as_the_oracle_does(number: int, dialect: str) -> None:
    text = (QUERIES / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")
    query = parse(text)
    feed, static = data()
    expected = Oracle(query, static=static).answers(feed)
    forms = compiled()
    shard = Shard.of(optimize(query).query, static=Dataset.of(scoped_static(static)))
    assert shard.program.why_not is None, "recomputed"
    fed = ShardFeed(shard)
    found = []
    for start in range(0, len(feed), 7):
        found += as_answers(fed.push(feed[start : start + 7]), query)
    found += as_answers(fed.finish(), query)
    assert expected
    assert diff_answers(expected, found) == ""
    assert compiled() == forms, "something was compiled while the stream ran"
