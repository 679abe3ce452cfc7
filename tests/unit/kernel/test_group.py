"""Groups of queries: what is shared, what is let in, whose answers they are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import InternalError, PlanError, StateError
from quadweir.kernel.group import Group
from quadweir.kernel.shard import Events, MatchColumns, Shard
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad

LIKES = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 100ms] { <urn:user/$> <urn:likes> ?x } }"
PAIRS = """SELECT ?a ?c WHERE { STREAM <urn:s> [RANGE $ms] { ?a <urn:p> ?b }
STREAM <urn:t> [RANGE $ms] { ?b <urn:q> ?c } }"""


def group(text: str, *values: object, static: tuple[Quad, ...] = ()) -> Group:
    texts = [text.replace("$", str(value)) for value in values]
    return Group([parse(each, dialect="cqels") for each in texts], static=Dataset.of(static))


def match(t: int, *rows: tuple[str, ...]) -> MatchColumns:
    times = np.full(len(rows), t, dtype=np.int64)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return MatchColumns(times, np.arange(len(rows), dtype=np.int64), columns)


def test_a_match_that_nobody_asks_for_is_not_kept() -> None:
    text = """SELECT ?x WHERE { STREAM <urn:s> [RANGE 9ms] { <urn:user/$> <urn:p> ?x }
      STREAM <urn:t> [RANGE 9ms] { ?x <urn:q> ?y } }"""
    many = group(text, *range(100))
    assert len(many.shards) == 1
    rows = [(f"<urn:user/{n}>", f"<urn:thing/{n}>") for n in range(95, 200)]
    many.step(Events({0: match(1, *rows)}), 1)
    assert many.held() == 5
    # Nor is it in the dictionary: a hundred constants, and five things.
    assert len(many.shards[0].dictionary) == 105


def test_every_query_that_asks_has_its_answer() -> None:
    many = group(LIKES, 1, 2, 1, 3)
    rows = [("<urn:user/1>", "<urn:x>"), ("<urn:user/3>", "<urn:y>")]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    found = zip(answers.query.tolist(), answers.values[0].to_pylist(), strict=True)
    assert sorted(found) == [(0, "<urn:x>"), (2, "<urn:x>"), (3, "<urn:y>")]
    assert answers.table().column_names == ["query", "t", "sign", "x"]


def test_the_router_looks_at_the_age_of_the_oldest_part() -> None:
    many = group(PAIRS, 5, 20, 6)
    assert len(many.shards) == 1
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 9)
    # Five milliseconds later: a window of five does not hold it any more (W1).
    answers = many.step(Events({1: match(15, ("<urn:2>", "<urn:3>"))}), 14)
    assert Counter(answers.query.tolist()) == {1: 1, 2: 1}
    assert answers.t.tolist() == [15, 15]


def test_a_group_of_one_is_a_shard() -> None:
    one = group(LIKES, 7)
    (shard,) = one.shards
    assert shard.program.template is None
    assert (one.leaves, one.sources) == (shard.leaves, shard.sources)
    assert one.step(Events({0: match(1, ("<urn:x>",))}), 1).query.tolist() == [0]
    alone = Shard.of(parse(LIKES.replace("$", "7"), dialect="cqels"))
    alone.restore(one.snapshot(), [])


def test_static_patterns_are_solved_for_the_constants_asked_for() -> None:
    text = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 9ms] { ?u <urn:p> ?x } ?u <urn:is> <urn:n/$> }"
    static = tuple(
        Quad(IRI(f"urn:u/{n}"), IRI("urn:is"), IRI(f"urn:n/{n % 50}")) for n in range(1000)
    )
    many = group(text, 3, 4, static=static)
    assert len(many.shards) == 1
    assert many.held() == 40  # of a thousand
    rows = [(f"<urn:u/{n}>", "<urn:x>") for n in range(1000)]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    assert Counter(answers.query.tolist()) == {0: 20, 1: 20}


def test_what_cannot_be_shared_has_its_own_shard_and_hears_the_same_streams() -> None:
    text = "SELECT (COUNT(*) AS ?n) WHERE { STREAM <urn:s> [RANGE 9ms] { ?x <urn:p> <urn:$> } }"
    many = group(text, "a", "b", "a")
    assert len(many.shards) == 2
    assert len(many.sources) == 1
    # One element: it matches the pattern of two queries, and tells that the window has changed.
    matches = {
        place: match(1, ("<urn:x>",) if plan.pattern is not None else ())
        for place, plan in enumerate(many.leaves)
        if plan.pattern is None or plan.pattern.object == IRI("urn:a")
    }
    assert len(matches) == 2 < len(many.leaves)
    events = Events(matches, seen={0: (1, 1)})
    answers = many.step(events, 2)
    counts = zip(answers.query.tolist(), answers.values[0].to_pylist(), strict=True)
    ones = [query for query, count in counts if count.startswith('"1"')]
    assert sorted(ones) == [0, 2]


def test_state_of_a_group_with_other_members_is_refused() -> None:
    left = group(LIKES, 1, 2).snapshot()
    group(LIKES, 1, 2).restore(left)
    with pytest.raises(StateError, match="another query"):
        group(LIKES, 1, 3).restore(left)
    with pytest.raises(StateError, match="another query"):
        group(LIKES, 1, 2, 3).restore(left)


def test_state_of_a_group_of_several_shards_goes_together() -> None:
    text = """SELECT ?n WHERE { STREAM <urn:s> [RANGE 9ms] { ?x <urn:p> ?n FILTER(?n > $) }
      STREAM <urn:t> [RANGE 9ms] { ?x <urn:q> ?y } }"""
    many = group(text, 1, 2)
    assert len(many.shards) == 2
    many.step(
        Events({0: match(1, ("<urn:x>", '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'))}), 1
    )
    again = group(text, 1, 2)
    again.restore(None, [many.delta()])
    assert again.held() == many.held() > 0
    group(text, 1, 2).restore(many.snapshot())
    with pytest.raises(InternalError):
        many.restore(None)
    with pytest.raises(StateError):
        group(text, 1, 3).restore(many.snapshot())


def test_queries_of_one_group_select_the_same_variables() -> None:
    texts = [LIKES.replace("$", "1"), LIKES.replace("$", "1").replace("?x", "?y")]
    with pytest.raises(PlanError, match="different variables"):
        Group([parse(text, dialect="cqels") for text in texts])
    with pytest.raises(InternalError):
        Group([])
