"""Members of a template in a shard: what is let in, whose answers they are, who comes and goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.errors import InternalError
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.shard import Shard
from quadweir.plan.program import program_of
from quadweir.sharing import Shaped, TemplateMember, shape_of, template_of
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad

LIKES = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 100ms] { <urn:user/$> <urn:likes> ?x } }"
PAIRS = """SELECT ?a ?c WHERE { STREAM <urn:s> [RANGE $ms] { ?a <urn:p> ?b }
STREAM <urn:t> [RANGE $ms] { ?b <urn:q> ?c } }"""
COUNTS = """SELECT ?b (COUNT(*) AS ?n) WHERE { STREAM <urn:s> [RANGE $ms] { ?a <urn:p> ?b } }
GROUP BY ?b"""


def shaped(text: str, value: object) -> Shaped:
    return shape_of(parse(text.replace("$", str(value)), dialect="cqels"))


def members(
    text: str, *values: object, first: int = 0, since: int = ALWAYS
) -> list[TemplateMember]:
    return [shaped(text, value).member(first + n, since) for n, value in enumerate(values)]


def shard(text: str, *values: object, static: Sequence[Quad] = ()) -> Shard:
    """A shard whose members differ in a value, numbered from 0."""
    template = template_of(shaped(text, 1).shape, members(text, *values))
    return Shard(program_of(template.query, template=template), static=Dataset.of(static))


def match(t: int, *rows: tuple[str, ...]) -> MatchColumns:
    times = np.full(len(rows), t, dtype=np.int64)
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return MatchColumns(times, np.arange(len(rows), dtype=np.int64), columns)


def test_a_match_that_nobody_asks_for_is_not_kept() -> None:
    text = """SELECT ?x WHERE { STREAM <urn:s> [RANGE 9ms] { <urn:user/$> <urn:p> ?x }
      STREAM <urn:t> [RANGE 9ms] { ?x <urn:q> ?y } }"""
    many = shard(text, *range(100))
    rows = [(f"<urn:user/{n}>", f"<urn:thing/{n}>") for n in range(95, 200)]
    many.step(Events({0: match(1, *rows)}), 1)
    assert many.held() == 5
    # Nor is it in the dictionary: a hundred constants, and five things.
    assert len(many.dictionary) == 105


def test_every_query_that_asks_has_its_answer() -> None:
    many = shard(LIKES, 1, 2, 1, 3)
    rows = [("<urn:user/1>", "<urn:x>"), ("<urn:user/3>", "<urn:y>")]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    found = zip(answers.query.tolist(), answers.values[0].to_pylist(), strict=True)
    assert sorted(found) == [(0, "<urn:x>"), (2, "<urn:x>"), (3, "<urn:y>")]
    # A shape names its variables by their order; who writes the answers gives them their names.
    assert answers.table().column_names == ["query", "t", "sign", "v0"]


def test_the_router_looks_at_the_age_of_the_oldest_part() -> None:
    many = shard(PAIRS, 5, 20, 6)
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 9)
    # Five milliseconds later: a window of five does not hold it any more (W1).
    answers = many.step(Events({1: match(15, ("<urn:2>", "<urn:3>"))}), 14)
    assert Counter(answers.query.tolist()) == {1: 1, 2: 1}
    assert answers.t.tolist() == [15, 15]


def test_with_several_windows_each_must_hold_its_parts() -> None:
    text = PAIRS.replace("$", "#", 1)
    template = template_of(
        shaped(PAIRS, 1).shape,
        [
            shaped(text.replace("#", str(one)), other).member(number, ALWAYS)
            for number, (one, other) in enumerate([(9, 2), (2, 9), (9, 9), (3, 1)])
        ],
    )
    many = Shard(program_of(template.query, template=template))
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 9)
    assert many.step(Events({1: match(15, ("<urn:2>", "<urn:3>"))}), 14).query.tolist() == [0, 2]
    answers = many.step(Events({0: match(17, ("<urn:4>", "<urn:2>"))}), 16)
    assert sorted(answers.query.tolist()) == [1, 2]


def test_a_member_sees_what_is_later_than_its_joining() -> None:
    many = shard(PAIRS, 50)
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 9)
    many.change_members(members(PAIRS, 90, first=7, since=10), [])
    answers = many.step(Events({1: match(20, ("<urn:2>", "<urn:3>"))}), 19)
    assert answers.query.tolist() == [0]
    many.step(Events({0: match(60, ("<urn:1>", "<urn:2>"))}), 59)
    answers = many.step(Events({1: match(120, ("<urn:2>", "<urn:4>"))}), 119)
    # Its window is longer than that of the template so far.
    assert answers.query.tolist() == [7]


def test_a_member_that_left_gets_nothing_and_may_be_replaced() -> None:
    many = shard(LIKES, 1, 2)
    many.change_members([], [0])
    event = Events({0: match(1, ("<urn:user/1>", "<urn:x>"), ("<urn:user/2>", "<urn:x>"))})
    assert many.step(event, 1).query.tolist() == [1]
    many.change_members(members(LIKES, 1, first=1, since=1), [1])
    event = Events({0: match(2, ("<urn:user/1>", "<urn:x>"), ("<urn:user/2>", "<urn:x>"))})
    assert many.step(event, 2).query.tolist() == [1]
    with pytest.raises(InternalError, match="no member 5"):
        many.change_members([], [5])
    with pytest.raises(InternalError, match="another template"):
        many.change_members([TemplateMember(9, (), (), ALWAYS)], [])


def test_constants_are_forgotten_when_their_last_member_leaves() -> None:
    many = shard(LIKES, *range(50), 7)
    assert len(many.dictionary) == 50
    many.change_members([], range(1, 50))
    assert len(many.dictionary) == 2
    many.change_members([], [0, 50])
    assert len(many.dictionary) == 0


def test_members_give_their_memory_back() -> None:
    many = shard(LIKES)
    router = many._router
    assert router is not None
    many.change_members(members(LIKES, *range(5_000)), [])
    full = router.nbytes
    assert full < 5_000 * 400
    many.change_members([], range(10, 5_000))
    assert router.nbytes * 10 < full
    rows = [(f"<urn:user/{n}>", "<urn:x>") for n in range(100)]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    assert sorted(answers.query.tolist()) == list(range(10))


def test_static_patterns_are_solved_once_for_all_members() -> None:
    text = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 9ms] { ?u <urn:p> ?x } ?u <urn:is> <urn:n/$> }"
    static = tuple(
        Quad(IRI(f"urn:u/{n}"), IRI("urn:is"), IRI(f"urn:n/{n % 50}")) for n in range(1000)
    )
    many = shard(text, 3, 4, static=static)
    rows = [(f"<urn:u/{n}>", "<urn:x>") for n in range(1000)]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    assert Counter(answers.query.tolist()) == {0: 20, 1: 20}
    many.change_members(members(text, 5, first=2, since=1), [0])
    answers = many.step(Events({0: match(2, *rows)}), 2)
    assert Counter(answers.query.tolist()) == {1: 20, 2: 20}


def test_one_filter_finds_members_by_either_side_once() -> None:
    text = """SELECT ?s ?o WHERE { STREAM <urn:s> [RANGE 9ms] { ?s ?p ?o
      FILTER(?s = <urn:$> || ?o = <urn:$>) } }"""
    many = shard(text, 1, 2, 3)
    rows = [
        ("<urn:1>", "<urn:p>", "<urn:2>"),
        ("<urn:3>", "<urn:p>", "<urn:3>"),
        ("<urn:4>", "<urn:1>", "<urn:5>"),
    ]
    answers = many.step(Events({0: match(1, *rows)}), 1)
    assert sorted(answers.query.tolist()) == [0, 1, 2]


def test_counts_of_windows_of_many_lengths_are_kept_in_one_network() -> None:
    many = shard(COUNTS, 5, 20)
    found = []
    for t in (10, 14, 16):
        answers = many.step(Events({0: match(t, ("<urn:1>", "<urn:2>"))}), t)
        counts = answers.values[1].to_pylist()
        found += zip(answers.query.tolist(), answers.t.tolist(), counts, strict=True)
    one, two, three = (f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in (1, 2, 3))
    assert found == [
        (0, 10, one),
        (1, 10, one),
        (0, 14, two),
        (1, 14, two),
        (0, 15, one),
        (0, 16, two),
        (1, 16, three),
    ]


def test_windows_grow_and_shrink_with_their_members_in_any_order_of_arrival() -> None:
    many = shard(COUNTS, 5)
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 3)
    many.change_members(members(COUNTS, 100, first=1, since=10), [])
    # Earlier than the new member's time, then later.
    events = [match(8, ("<urn:1>", "<urn:2>")), match(11, ("<urn:1>", "<urn:2>"))]
    for event in events:
        many.step(Events({0: event}), 4)
    many.change_members([], [1])
    many.change_members(members(COUNTS, 7, first=2, since=11), [])
    many.step(Events({0: match(12, ("<urn:1>", "<urn:2>"))}), 11)
    answers = many.step(Events(), 200)
    assert [(q, t) for q, t in zip(answers.query.tolist(), answers.t.tolist(), strict=True)] == [
        (0, 12),
        (2, 12),
        (0, 13),
        (0, 15),
        (0, 16),
    ]
    assert many.held() == 0


def test_members_that_joined_apart_become_one_class() -> None:
    many = shard(COUNTS, 5)
    router = many._router
    assert router is not None
    for t in range(1, 30):
        many.step(Events({0: match(t, ("<urn:1>", "<urn:2>"))}), t)
        many.change_members(members(COUNTS, 5, first=t, since=t), [])
        assert router.classes < 9
    left = many.snapshot()
    again = shard(COUNTS)
    sinces = [(0, ALWAYS), *((t, t) for t in range(1, 30))]
    again.change_members(
        [each for n, t in sinces for each in members(COUNTS, 5, first=n, since=t)], []
    )
    again.restore(left)
    event = Events({0: match(30, ("<urn:1>", "<urn:2>"))})
    expected, found = many.step(event, 60), again.step(event, 60)
    assert (
        expected.table().sort_by("query").to_pylist() == found.table().sort_by("query").to_pylist()
    )
    at_30 = found.table().filter(pa.compute.field("t") == 30)
    counts = dict(zip(at_30["query"].to_pylist(), at_30["v1"].to_pylist(), strict=True))
    # Those that joined up to 24 have five elements in their window of 5 ms already.
    assert sorted(counts) == [25, 26, 27, 28, 29]
    many.step(Events({0: match(90, ("<urn:1>", "<urn:2>"))}), 90)
    assert router.classes == 1


def test_state_is_restored_with_the_members_of_now() -> None:
    many = shard(COUNTS, 5, 20)
    many.step(Events({0: match(10, ("<urn:1>", "<urn:2>"))}), 10)
    left = many.snapshot()
    many.change_members(members(COUNTS, 30, first=3, since=10), [0])
    many.step(Events({0: match(12, ("<urn:1>", "<urn:2>"))}), 12)
    deltas = [many.delta()]

    again = shard(COUNTS)
    again.change_members(
        [*members(COUNTS, 20, first=1), *members(COUNTS, 30, first=3, since=10)], []
    )
    again.restore(left, deltas)
    event = Events({0: match(14, ("<urn:1>", "<urn:2>"))})
    expected, found = many.step(event, 40), again.step(event, 40)
    assert expected.table().to_pylist() == found.table().to_pylist()
    assert set(found.query.tolist()) == {1, 3}
    assert many.snapshot() == again.snapshot()


def test_a_snapshot_has_no_constants_of_members() -> None:
    few, many = shard(LIKES, 1), shard(LIKES, *range(2_000))
    assert len(many.snapshot()) < len(few.snapshot()) + 1_000
