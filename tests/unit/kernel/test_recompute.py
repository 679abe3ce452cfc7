"""Queries without incremental operators: what two of their reports are compared by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.shard import Shard
from quadweir.kernel.takeover import take_over
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Element, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import quads, stream

WINDOW = "STREAM <urn:s> [RANGE 10ms] { ?x <urn:p> ?y }"
STATIC = "(EXISTS { ?x <urn:r> ?z } || ?x = <urn:b>)"
ASKED = f"SELECT ?x {{ {WINDOW} FILTER{STATIC} }}"


def shard_of(text: str, output: OutputOperator, static: tuple[Quad, ...]) -> Shard:
    query = replace(parse(text, dialect="cqels"), output=output)
    shard = Shard.of(query, static=Dataset.of(static))
    assert shard.program.why_not is not None
    return shard


def answers(
    text: str,
    feed: list[Element],
    static: str,
    output: OutputOperator = OutputOperator.ISTREAM,
    *,
    restarts: bool = False,
) -> list[tuple[int, str]]:
    fed = ShardFeed(shard_of(text, output, quads(static)))
    found: list[Answer] = []
    for element in feed:
        found += as_answers(fed.push([element]), fed.shard.query)
        if restarts:
            fresh = shard_of(text, output, quads(static))
            fresh.restore(fed.shard.snapshot())
            fed.shard = fresh
    found += as_answers(fed.finish(), fed.shard.query)
    return [(each.t, str(dict(each.solution)["x"])) for each in found]


@pytest.mark.parametrize("restarts", [False, True])
def test_A2_an_equal_solution_of_a_new_element_is_new_and_that_of_the_old_is_gone(
    restarts: bool,
) -> None:
    # The second a arrives just as the first expires.
    feed = stream((1, "a p 1"), (11, "a p 1"))
    found = answers(ASKED, feed, "a r c", restarts=restarts)
    assert found == [(1, "<urn:a>"), (11, "<urn:a>")]
    found = answers(ASKED, feed, "a r c", OutputOperator.DSTREAM, restarts=restarts)
    assert found == [(11, "<urn:a>"), (21, "<urn:a>")]


def test_A2_between_reports_on_close_elements_come_that_no_report_has_seen() -> None:
    asked = ASKED.replace("RANGE 10ms", "RANGE 10ms SLIDE 5ms")
    feed = stream((1, "a p 1"), (6, "a p 1"), (7, "c p 1"), (11, "a p 1"))
    for restarts in (False, True):
        found = answers(asked, feed, "a r c", restarts=restarts)
        assert found == [(5, "<urn:a>"), (10, "<urn:a>"), (15, "<urn:a>")]


def test_A2_what_rests_on_no_element_is_new_once() -> None:
    asked = f"SELECT ?x {{ {{ {WINDOW} FILTER{STATIC} }} UNION {{ ?x <urn:r> ?y }} }}"
    feed = stream((1, "b p 1"), (2, "b p 1"))
    for restarts in (False, True):
        found = answers(asked, feed, "d r c", restarts=restarts)
        assert sorted(found) == [(1, "<urn:b>"), (1, "<urn:d>"), (2, "<urn:b>")]
        assert answers(asked, feed, "d r c", OutputOperator.DSTREAM, restarts=restarts) == [
            (11, "<urn:b>"),
            (12, "<urn:b>"),
        ]


def test_A2_above_an_exists_over_a_window_solutions_are_compared() -> None:
    # The first a stays there for the second, which says nothing that was not said.
    asked = ASKED.replace("EXISTS { ?x <urn:r> ?z }", f"EXISTS {{ {WINDOW} }}")
    feed = stream((1, "a p 1"), (11, "a p 1"))
    assert answers(asked, feed, "") == [(1, "<urn:a>")]


@pytest.mark.parametrize("output", [OutputOperator.ISTREAM, OutputOperator.DSTREAM])
@pytest.mark.parametrize("window", ["RANGE 10ms", "RANGE 10ms SLIDE 5ms", "TRIPLES 3"])
def test_other_static_data_can_take_the_place_of_the_old(
    output: OutputOperator, window: str
) -> None:
    """The next report is compared with what the last would have been over the new data."""
    asked = ASKED.replace("RANGE 10ms", window)
    feed = stream(*((3 * n, f"{'abcd'[n % 4]} p 1") for n in range(1, 30)))
    for cut in range(1, 12):
        old, always = (
            ShardFeed(shard_of(asked, output, quads(each))) for each in ("a r c", "c r c . d r e")
        )
        for each in (old, always):
            each.push(feed[:cut])
        snapshot = old.shard.snapshot()
        old.shard = shard_of(asked, output, quads("c r c . d r e"))
        take_over(old.shard, snapshot)
        found, expected = (
            [
                answer
                for part in (each.push(feed[cut:]), each.finish())
                for answer in as_answers(part, each.shard.query)
            ]
            for each in (old, always)
        )
        assert expected
        assert found == expected


CUT = """SELECT ?x ?y FROM STREAM <urn:s> [RANGE 10ms STEP 5ms] FROM <urn:g>
    WHERE { ?x <urn:p> ?y . { SELECT ?x { ?x <urn:p> ?z } ORDER BY ?x LIMIT 1 } }"""
EITHER = """SELECT ?x ?y FROM <urn:g> FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE 10ms STEP 5ms]
    WHERE { WINDOW <urn:w> { ?x <urn:p> ?y } FILTER(EXISTS { ?x <urn:r> ?z } || ?x = <urn:b>) }"""
NAMED = EITHER.replace("FROM <urn:g>", "FROM NAMED <urn:g>").replace(
    "{ ?x <urn:r> ?z }", "{ GRAPH ?g { ?x <urn:r> ?z } }"
)


@pytest.mark.parametrize("text", [CUT, EITHER, NAMED], ids=["merged", "outside", "named"])
def test_A1_from_chooses_graphs_of_what_is_evaluated_at_every_report(text: str) -> None:
    static = (*quads("a r c . a p 2", "g"), *quads("b r c . b p 2", "h"), *quads("c r d"))
    feed = stream((1, "a p 1 . b p 1"), (6, "c p 1"))
    query = parse(text, allow=("FROM",))
    shard = Shard.of(query, static=Dataset.of(static))
    assert shard.program.why_not is not None
    fed = ShardFeed(shard)
    found = as_answers(fed.push(feed), query) + as_answers(fed.finish(), query)
    expected = Oracle(query, static=static).answers(feed)
    assert expected
    assert diff_answers(expected, found) == ""
