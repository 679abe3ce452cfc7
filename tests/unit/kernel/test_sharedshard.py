"""Several templates in one network: what runs once, and what is left when a template goes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import InternalError, StateError
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.heads import can_share
from quadweir.kernel.multijoin import Join
from quadweir.kernel.sharedshard import SharedShard
from quadweir.optimize import optimize
from quadweir.plan.program import Program, program_of
from quadweir.sharing import TemplateMember, shape_of, template_of
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad

BODY = (
    "{ STREAM <urn:s> [RANGE $ms] { ?a <urn:p> ?b } STREAM <urn:t> [RANGE $ms] { ?b <urn:q> ?c } }"
)
PAIRS = f"SELECT ?a ?c WHERE {BODY}"
OTHERS = (
    "SELECT ?x ?z WHERE { STREAM <urn:t> [RANGE $ms] { ?y <urn:q> ?z } "
    "STREAM <urn:s> [RANGE $ms] { ?x <urn:p> ?y } FILTER(?x != ?z) }"
)
COUNTS = f"SELECT ?a (COUNT(*) AS ?n) WHERE {BODY} GROUP BY ?a"
GREATEST = f"SELECT ?c (MAX(?a) AS ?n) WHERE {BODY} GROUP BY ?c"
KNOWN = BODY.replace("} }", "} ?c <urn:is> ?d }")


def head(
    text: str, length: int, number: int, since: int = ALWAYS
) -> tuple[str, Program, list[TemplateMember]]:
    query = optimize(parse(text.replace("$", str(length)), dialect="cqels")).query
    shaped = shape_of(query)
    program = program_of(shaped.shape.query, template=template_of(shaped.shape))
    return shaped.shape.name, program, [shaped.member(number, since)]


def joins(shard: SharedShard) -> int:
    return sum(isinstance(each, Join) for each, _ in shard._dataflow.operators)


def match(t: int, *rows: tuple[str, ...]) -> MatchColumns:
    times = np.full(len(rows), t, dtype=np.int64)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return MatchColumns(times, np.arange(len(rows), dtype=np.int64), columns)


def events(shard: SharedShard, t: int, given: Mapping[str, tuple[str, str]]) -> Events:
    """A match for each predicate."""
    found = {
        place: match(t, given[leaf.pattern.predicate.value])
        for place, leaf in enumerate(shard.leaves)
        if leaf.pattern is not None
        and isinstance(leaf.pattern.predicate, IRI)
        and leaf.pattern.predicate.value in given
    }
    return Events(found)


def answered(shard: SharedShard, event: Events, through: int) -> dict[int, int]:
    """How many answers each member got."""
    found: dict[int, int] = {}
    for answers in shard.step(event, through).values():
        assert answers.query is not None
        for number in answers.query.tolist():
            found[number] = found.get(number, 0) + 1
    return found


def test_equal_joins_of_two_shapes_run_once() -> None:
    shard = SharedShard()
    shard.add(*head(PAIRS, 20, 0))
    shard.add(*head(OTHERS, 5, 1))
    assert (joins(shard), len(shard.leaves), len(shard.heads)) == (1, 2, 2)
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    event = events(shard, 14, {"urn:q": ("<urn:2>", "<urn:3>")})
    assert answered(shard, event, 13) == {0: 1, 1: 1}
    event = events(shard, 16, {"urn:q": ("<urn:2>", "<urn:1>")})
    # Too old for the one, and refused by its filter.
    assert answered(shard, event, 15) == {0: 1}


def test_aggregates_share_the_join_below() -> None:
    shard = SharedShard()
    shard.add(*head(COUNTS, 20, 0))
    shard.add(*head(GREATEST, 5, 1))
    assert joins(shard) == 1
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    assert answered(shard, events(shard, 10, given), 12) == {0: 1, 1: 1}
    assert shard.held() > 0
    shard.step(Events(), 100)
    assert shard.held() == 0


def test_a_template_that_comes_late_reads_what_runs_and_sees_what_is_later() -> None:
    shard = SharedShard()
    shard.add(*head(PAIRS, 50, 0))
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    shard.add(*head(OTHERS, 90, 1, since=10))
    # It joins the same matches with others.
    known = f"SELECT ?a ?c WHERE {KNOWN}"
    shard.add(*head(known, 90, 2, since=10))
    assert (joins(shard), len(shard.leaves)) == (2, 2)
    event = events(shard, 20, {"urn:q": ("<urn:2>", "<urn:3>")})
    assert answered(shard, event, 19) == {0: 1}
    event = events(shard, 30, {"urn:p": ("<urn:4>", "<urn:2>")})
    assert answered(shard, event, 29) == {0: 1, 1: 1}
    assert answered(shard, Events(), 70) == {}
    event = events(shard, 100, {"urn:q": ("<urn:2>", "<urn:5>")})
    assert answered(shard, event, 99) == {1: 1}


def test_what_only_one_template_used_goes_with_it() -> None:
    shard = SharedShard()
    shard.add(*head(PAIRS, 20, 0))
    size, operators = len(shard.dictionary), len(shard._dataflow.operators)
    shard.add(*head(COUNTS, 20, 1))
    shard.add(*head(OTHERS, 20, 2))
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    shard.step(events(shard, 10, given), 12)
    for name in shard.heads[1:]:
        shard.remove(name)
    assert (joins(shard), len(shard._dataflow.operators)) == (1, operators)
    assert len(shard.dictionary) == 3
    event = events(shard, 15, {"urn:q": ("<urn:2>", "<urn:4>")})
    assert answered(shard, event, 15) == {0: 1}
    shard.step(Events(), 100)
    assert len(shard.dictionary) == size
    shard.remove(shard.heads[0])
    assert (len(shard._dataflow.operators), shard.common, len(shard.dictionary)) == (0, 0, 0)


def test_state_is_restored_with_the_templates_of_now() -> None:
    static = Dataset.of([Quad(IRI(f"urn:{n}"), IRI("urn:is"), IRI("urn:x")) for n in range(9)])
    known = f"SELECT ?a ?c WHERE {KNOWN}"
    shard = SharedShard(static=static)
    shard.add(*head(COUNTS, 20, 0))
    shard.add(*head(known, 20, 1))
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    shard.step(events(shard, 10, given), 12)
    left = shard.snapshot()
    shard.remove(shard.heads[0])
    shard.add(*head(PAIRS, 20, 2, since=10))
    shard.step(events(shard, 13, {"urn:p": ("<urn:4>", "<urn:2>")}), 13)
    deltas = [shard.delta()]

    again = SharedShard(static=static)
    again.restore([head(PAIRS, 20, 2, since=10), head(known, 20, 1)], left, deltas)
    for each in (shard, again):
        event = events(each, 15, {"urn:q": ("<urn:2>", "<urn:5>")})
        assert answered(each, event, 15) == {1: 2, 2: 1}
    assert len(again.dictionary) == len(shard.dictionary)
    other = SharedShard(static=Dataset())
    with pytest.raises(StateError, match="static data"):
        other.restore([head(known, 20, 1)], left)


def test_a_template_whose_members_join_at_one_instant_cannot_share() -> None:
    query = parse(
        "SELECT ?a WHERE { STREAM <urn:s> [RANGE 5ms] { ?a <urn:p> ?b } } LIMIT 1", dialect="cqels"
    )
    shaped = shape_of(query)
    program = program_of(shaped.shape.query, template=template_of(shaped.shape))
    assert not can_share(program)
    with pytest.raises(InternalError):
        SharedShard().add("limit", program)
