"""What nothing asks for again is not held: not in windows that go on for ever, nor in any other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from properties.test_kernel import by_the_kernel
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.plan.bounds import find_endless
from quadweir.syntax import parse
from quadweir.testing import MemoryStream, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, scoped_static
from streaming import quads

LONE = "SELECT ?x ?y { STREAM <urn:s> [%s] { ?x <urn:p> ?y } FILTER (?y != 7) }"
EITHER = (
    "SELECT ?x { { STREAM <urn:s> [%s] { ?x <urn:p> ?y } } "
    "UNION { STREAM <urn:s> [%s] { ?y <urn:p> ?x } } }"
)
WITH_STATIC = "SELECT ?x ?z { STREAM <urn:s> [%s] { ?x <urn:p> ?y } ?x <urn:knows> ?z }"
WITHOUT_STATIC = (
    "SELECT ?x { STREAM <urn:s> [%s] { ?x <urn:p> ?y } MINUS { ?x <urn:knows> <urn:n1> } }"
)
TOTALS = "SELECT (COUNT(*) AS ?n) (SUM(?y) AS ?m) { STREAM <urn:s> [%s] { ?x <urn:p> ?y } }"
PAIR = "SELECT ?x { STREAM <urn:s> [%s] { ?x <urn:p> ?y } STREAM <urn:s> [%s] { ?x <urn:q> ?y } }"
LARGEST = "SELECT (MAX(?y) AS ?n) { STREAM <urn:s> [%s] { ?x <urn:p> ?y } }"
RECOMPUTED = (
    "SELECT ?x { STREAM <urn:s> [%s] { ?x <urn:p> ?y } "
    "FILTER (EXISTS { ?x <urn:knows> <urn:n1> } || ?y = 1) }"
)
STATIC = list(quads("a1 knows n1 . a1 knows n2 . a3 knows n1"))


def shard_of(text: str, scope: str) -> Shard:
    query = optimize(parse(text.replace("%s", scope))).query
    return Shard.of(query, static=Dataset.of(scoped_static(STATIC)))


def feed(count: int) -> list:
    stream = MemoryStream("urn:s")
    for number in range(count):
        stream.add(1000 + number, f"<urn:a{number % 5}> <urn:p> {number % 9} .")
    return list(stream)


@pytest.mark.parametrize("text", [LONE, EITHER, WITH_STATIC, TOTALS])
def test_of_windows_that_go_on_for_ever_nothing_is_held(text: str) -> None:
    shard = shard_of(text, "ALL")
    assert not find_endless(shard.program, in_stages=False)
    fed = ShardFeed(shard)
    elements = feed(900)
    held = []
    for start in range(0, 900, 300):
        fed.push(elements[start : start + 300])
        held.append((shard.held(), len(shard.dictionary), len(shard.snapshot()) // 500))
    assert held[0] == held[1] == held[2]


@pytest.mark.parametrize("text", [PAIR, LARGEST, RECOMPUTED])
def test_what_is_asked_for_again_is_held_and_told_of(text: str) -> None:
    assert find_endless(shard_of(text, "ALL").program, in_stages=False)
    assert not find_endless(shard_of(text, "RANGE 5ms").program, in_stages=False)


def test_each_answer_of_a_lone_pattern_leaves_nothing_behind() -> None:
    shard = shard_of(LONE, "RANGE 1h")
    assert shard.program.eager
    ShardFeed(shard).push(feed(500))
    assert shard.held() == 0
    pair = shard_of(PAIR, "RANGE 1h")
    ShardFeed(pair).push(feed(500))
    assert pair.held() >= 500


@pytest.mark.parametrize("scope", ["ALL", "RANGE 20ms", "NOW"])
@pytest.mark.parametrize("output", list(OutputOperator))
@pytest.mark.parametrize("text", [LONE, EITHER, WITH_STATIC, WITHOUT_STATIC, TOTALS, LARGEST])
def test_answers_are_those_of_the_oracle(text: str, output: OutputOperator, scope: str) -> None:
    query = replace(parse(text.replace("%s", scope)), output=output)
    elements = feed(40)
    expected = Oracle(query, static=STATIC).answers(elements)
    for size in (1, 7, 40):
        for restarts in (False, True):
            found, _ = by_the_kernel(
                optimize(query).query, elements, STATIC, steps=[size], restarts=restarts
            )
            assert diff_answers(expected, found) == ""
