"""Several templates in one network: what runs once, and what is left when a template goes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import InternalError, LimitError, StateError
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.build import Builder
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.heads import HeadSpec
from quadweir.kernel.multijoin import Join
from quadweir.kernel.relation import Delta
from quadweir.kernel.sharedshard import SharedShard
from quadweir.optimize import optimize
from quadweir.plan.common import can_share
from quadweir.plan.program import program_of
from quadweir.sharing import shape_of, template_of
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
RENAMED = (
    "{ STREAM <urn:t> [RANGE $ms] { ?y <urn:q> ?z } ?z <urn:is> ?w "
    "STREAM <urn:s> [RANGE $ms] { ?x <urn:p> ?y } }"
)
NAMED = "SELECT ?b WHERE { STREAM <urn:s> [RANGE $ms] { <urn:a> <urn:p> ?b } }"
KNOWN = BODY.replace("} }", "} ?c <urn:is> ?d }")


def head(
    text: str, length: int, number: int, since: int = ALWAYS, static: Dataset | None = None
) -> HeadSpec:
    query = optimize(parse(text.replace("$", str(length)), dialect="cqels")).query
    shaped = shape_of(query)
    program = program_of(shaped.shape.query, template=template_of(shaped.shape))
    return HeadSpec(shaped.shape.name, program, [shaped.member(number, since)], static)


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
    shard.add(head(PAIRS, 20, 0))
    shard.add(head(OTHERS, 5, 1))
    assert (joins(shard), len(shard.leaves), len(shard.heads)) == (1, 2, 2)
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    event = events(shard, 14, {"urn:q": ("<urn:2>", "<urn:3>")})
    assert answered(shard, event, 13) == {0: 1, 1: 1}
    event = events(shard, 16, {"urn:q": ("<urn:2>", "<urn:1>")})
    # Too old for the one, and refused by its filter.
    assert answered(shard, event, 15) == {0: 1}


def test_aggregates_share_the_join_below() -> None:
    shard = SharedShard()
    shard.add(head(COUNTS, 20, 0))
    shard.add(head(GREATEST, 5, 1))
    assert joins(shard) == 1
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    assert answered(shard, events(shard, 10, given), 12) == {0: 1, 1: 1}
    assert all(shard.held().values())
    shard.step(Events(), 100)
    assert [*shard.held().values()] == [0, 0]


def test_a_template_that_comes_late_reads_what_runs_and_sees_what_is_later() -> None:
    shard = SharedShard()
    shard.add(head(PAIRS, 50, 0))
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    shard.add(head(OTHERS, 90, 1, since=10))
    # It joins the same matches with others.
    known = f"SELECT ?a ?c WHERE {KNOWN}"
    shard.add(head(known, 90, 2, since=10))
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
    shard.add(head(PAIRS, 20, 0))
    size, operators = len(shard.dictionary), len(shard._dataflow.operators)
    shard.add(head(COUNTS, 20, 1))
    shard.add(head(OTHERS, 20, 2))
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


def test_state_is_restored_whoever_comes_first() -> None:
    static = Dataset.of([Quad(IRI(f"urn:{n}"), IRI("urn:is"), IRI("urn:x")) for n in range(9)])
    known, other = f"SELECT ?a ?c WHERE {KNOWN}", f"SELECT ?x ?w WHERE {RENAMED}"
    heads = [
        head(COUNTS, 20, 0),
        head(known, 20, 1, static=static),
        head(PAIRS, 20, 2),
        head(other, 20, 3, static=static),
    ]
    shard, again = SharedShard(), SharedShard()
    for each in heads:
        shard.add(each)
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    shard.step(events(shard, 10, given), 12)
    again.restore(heads[::-1], shard.snapshot())
    for each in (shard, again):
        event = events(each, 15, {"urn:q": ("<urn:2>", "<urn:5>")})
        assert answered(each, event, 15) == {0: 1, 1: 1, 2: 1, 3: 1}
    assert len(again.dictionary) == len(shard.dictionary)
    assert again.held() == shard.held()


def test_a_snapshot_of_other_static_data_or_templates_is_refused() -> None:
    static = Dataset.of([Quad(IRI("urn:3"), IRI("urn:is"), IRI("urn:x"))])
    known = f"SELECT ?a ?c WHERE {KNOWN}"
    shard = SharedShard()
    shard.add(head(known, 20, 1, static=static))
    left = shard.snapshot()
    with pytest.raises(StateError, match="static data"):
        SharedShard().restore([head(known, 20, 1, static=Dataset())], left)
    with pytest.raises(StateError, match="other templates"):
        SharedShard().restore([head(PAIRS, 20, 1)], left)


def test_a_template_that_fails_goes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SharedShard()
    for each in (head(COUNTS, 20, 0), head(PAIRS, 20, 1), head(GREATEST, 20, 2)):
        shard.add(each)
    size = len(shard._dataflow.operators)
    (bad,) = (each for each in shard._heads[shard.heads[2]].own if isinstance(each, Aggregate))

    def fails(*_: object) -> Delta:
        raise LimitError("too much")

    monkeypatch.setattr(bad, "step", fails)
    name = shard.heads[2]
    given = {"urn:p": ("<urn:1>", "<urn:2>"), "urn:q": ("<urn:2>", "<urn:3>")}
    assert answered(shard, events(shard, 10, given), 12) == {0: 1, 1: 1}
    assert {each: str(why) for each, why in shard.failed.items()} == {name: "too much"}
    assert len(shard.heads) == 2
    assert len(shard._dataflow.operators) < size
    event = events(shard, 15, {"urn:q": ("<urn:2>", "<urn:4>")})
    assert answered(shard, event, 15) == {0: 1, 1: 1}
    assert shard.failed == {}


def test_what_fails_below_stops_all_templates_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SharedShard()
    other = PAIRS.replace("urn:p", "urn:o")
    for each in (head(COUNTS, 20, 0), head(PAIRS, 20, 1), head(other, 20, 2)):
        shard.add(each)

    def fails(*_: object) -> Delta:
        raise ValueError("broken")

    for each, readers in shard._readers.items():
        if isinstance(each, Join) and len(readers) == 1 and not shard._heads[readers[0]].own:
            monkeypatch.setattr(each, "step", fails)
    given = {
        "urn:p": ("<urn:1>", "<urn:2>"),
        "urn:o": ("<urn:1>", "<urn:2>"),
        "urn:q": ("<urn:2>", "<urn:3>"),
    }
    found = answered(shard, events(shard, 10, given), 12)
    assert len(shard.failed) == 2
    assert found == {0: 1}


def test_a_template_that_cannot_be_added_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SharedShard()
    shard.add(head(PAIRS, 20, 0))
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    size, operators = len(shard.dictionary), len(shard._dataflow.operators)

    def fails(*_: object) -> None:
        raise LimitError("no room")

    for kind, name in ((Builder, "_route"), (Aggregate, "settle")):
        with monkeypatch.context() as patched, pytest.raises(LimitError, match="no room"):
            patched.setattr(kind, name, fails)
            shard.add(head(COUNTS, 90, 1))
    with pytest.raises(InternalError, match="another template"):
        shard.add(head(OTHERS, 90, 1)._replace(members=head(NAMED, 5, 1).members))
    assert (len(shard.dictionary), len(shard._dataflow.operators)) == (size, operators)
    assert shard.heads == (head(PAIRS, 20, 0).name,)
    event = events(shard, 20, {"urn:q": ("<urn:2>", "<urn:3>")})
    assert answered(shard, event, 19) == {0: 1}


def test_a_template_pays_for_what_it_shares_by_the_length_of_its_windows() -> None:
    shard = SharedShard()
    shard.add(head(PAIRS, 30, 0))
    shard.add(head(OTHERS, 10, 1))
    shard.step(events(shard, 10, {"urn:p": ("<urn:1>", "<urn:2>")}), 9)
    for number in range(8):
        event = events(shard, 10, {"urn:q": (f"<urn:{number + 5}>", "<urn:3>")})
        shard.step(event, 9)
    first, second = shard.held().values()
    assert (first, second) == (7, 2), "of nine mappings"
    assert len(shard.microseconds()) == 2


def test_a_template_whose_members_join_at_one_instant_cannot_share() -> None:
    query = parse(
        "SELECT ?a WHERE { STREAM <urn:s> [RANGE 5ms] { ?a <urn:p> ?b } } LIMIT 1", dialect="cqels"
    )
    shaped = shape_of(query)
    program = program_of(shaped.shape.query, template=template_of(shaped.shape))
    assert not can_share(program)
    with pytest.raises(InternalError):
        SharedShard().add(HeadSpec("limit", program))
