"""Shared equals separate (P4): a query gives the same answers alone and in a group.

Queries come and go while the group runs. Each gives the answers that it gives alone over the
elements later than the instant at which it joined (J1). With backfill it also sees what windows hold
already (J5). Static data that is read again and is the same changes no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import ALLOW, MONOTONIC, NEGATION
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, diff_answers
from quadweir.testing.groups import QueryGroup
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static

# In place of $A, $B come constants of each query's own, in place of $R, $S window lengths.
_WINDOWS = {
    "cqels": ("", "STREAM :stream0 [RANGE $Rms]", "STREAM :stream1 [RANGE $Sms]"),
    "rspql": (
        "FROM NAMED WINDOW :w0 ON STREAM :stream0 [RANGE $Rms] "
        "FROM NAMED WINDOW :w1 ON STREAM :stream1 [RANGE $Sms]",
        "WINDOW :w0",
        "WINDOW :w1",
    ),
}
_WINDOWS["stepped"] = (
    "FROM NAMED WINDOW :w0 ON STREAM :stream0 [RANGE $Rms STEP 4ms] "
    "FROM NAMED WINDOW :w1 ON STREAM :stream1 [RANGE $Sms STEP 3ms]",
    "WINDOW :w0",
    "WINDOW :w1",
)
_SHAPES = [
    ("SELECT ?b", "{W} {{ $A :p0 ?b }}", ""),
    ("SELECT ?a", "{W} {{ ?a :p0 $A }}", ""),
    ("SELECT ?a ?b", "{W} {{ ?a $P ?b }}", ""),
    ("SELECT ?a ?b ?c", "{W} {{ ?a :p0 ?b }} {V} {{ ?b :p1 ?c }}", ""),
    ("SELECT ?a ?b ?c", "{W} {{ ?a :p0 ?b . ?b :p1 ?d . ?d ?v $A }} {V} {{ ?b :p1 ?c }}", ""),
    ("SELECT ?b", "{W} {{ $A :p0 ?b . $A :p1 ?c }} {V} {{ ?b ?v $B }}", ""),
    ("SELECT ?a ?c", "{W} {{ ?a :p0 ?b }} ?b :p1 $A . $A ?v ?c", ""),
    ("SELECT ?a ?c", "{W} {{ ?a :p0|:p1 $A }} OPTIONAL {{ ?a :p2 ?c }} FILTER(?a != $B)", ""),
    ("SELECT DISTINCT ?a", "{W} {{ ?a :p0 ?b . ?b ?v $A }}", ""),
    ("SELECT ?a (COUNT(*) AS ?n)", "{W} {{ ?a ?v $A }}", "GROUP BY ?a"),
    ("SELECT ?a (MAX(?b) AS ?n)", "{W} {{ ?a :p0 ?b }} {V} {{ ?a ?v $A }}", "GROUP BY ?a"),
    ("SELECT (COUNT(*) AS ?n)", "{W} {{ ?a :p0 $A }}", ""),
    ("SELECT ?a ?c", "{W} {{ ?a :p0 $A }} OPTIONAL {{ {V} {{ ?a :p1 ?c }} }}", ""),
    ("SELECT ?a ?c", "{W} {{ ?a :p0 ?b }} OPTIONAL {{ {V} {{ ?a $P ?c }} }}", ""),
    ("SELECT ?a", "{W} {{ ?a :p0 $A }} MINUS {{ {V} {{ ?a :p1 $B }} }}", ""),
    ("SELECT ?a", "{W} {{ ?a ?v $A }} FILTER NOT EXISTS {{ {V} {{ ?a :p1 ?z }} }}", ""),
    ("SELECT ?a", "{{ {W} {{ ?a :p0 $A }} }} UNION {{ {V} {{ ?a $P :s1 }} }}", ""),
    (
        "SELECT ?a ?n",
        "{W} {{ ?a :p0 ?b }} {{ SELECT ?a (COUNT(*) AS ?n) WHERE {{ {V} {{ ?a ?v $A }} }} GROUP BY ?a }}",
        "",
    ),
    ("SELECT ?b", "{W} {{ $A ?v ?b }} {{ SELECT DISTINCT ?b WHERE {{ ?b :p0 $B }} }}", ""),
    ("SELECT ?a ?b", "{W} {{ ?a :p0 ?b . ?b ?v $A }}", "ORDER BY ?b ?a"),
    ("SELECT ?a ?b", "{W} {{ ?a :p0 ?b . ?b ?v $A }}", "ORDER BY ?b ?a LIMIT 2"),
    ("CONSTRUCT {{ $A :knows ?b }}", "{W} {{ $A :p0 ?b }}", ""),
    ("ASK", "{W} {{ ?a ?v $A }}", ""),
    ("SELECT ?x", "{W} {{ $A :p0+ ?x }}", ""),
    ("SELECT ?a ?b", "{W} {{ ?a ?v ?b FILTER(?a = $A || ?b = $A) }}", ""),
    ("SELECT ?v", "{W} {{ ?a ?v ?b }} FILTER(?a = $A)", ""),
    ("SELECT ?v (COUNT(*) AS ?n)", "{W} {{ ?a ?v ?b FILTER(?b = $A || ?a = $A) }}", "GROUP BY ?v"),
    ("SELECT ?a ?b ?c", "{W} {{ ?a ?v ?b FILTER(?a = $A || ?b = $A) }} {V} {{ ?b :p1 ?c }}", ""),
    ("SELECT ?b (COUNT(*) AS ?n)", "{W} {{ ?a :p0 ?b }} {V} {{ ?b :p1 ?c }}", "GROUP BY ?b"),
    ("SELECT DISTINCT ?a", "{W} {{ ?a :p0 ?b }} {V} {{ ?b ?v $A }}", ""),
    # These join the same patterns as one above.
    ("SELECT ?y", "{V} {{ ?y :p1 ?z }} {W} {{ ?x :p0 ?y }} FILTER(?x != ?z)", ""),
    ("SELECT DISTINCT ?z", "{W} {{ ?x :p0 ?y }} {V} {{ ?y :p1 ?z }}", ""),
    ("SELECT ?c (MAX(?b) AS ?n)", "{V} {{ ?b :p1 ?c }} {W} {{ ?a :p0 ?b }}", "GROUP BY ?c"),
    ("SELECT ?a ?b", "{W} {{ ?a :p0 ?b }} {V} {{ ?b :p1 ?c }} ?c :p2 ?d", ""),
    ("SELECT ?a ?t", "{W} {{ ?a :p0 $A }} BIND(NOW() AS ?t)", ""),
]


@st.composite
def families(draw: st.DrawFn) -> Callable[[], ContinuousQuery]:
    """Draws queries of one shape: constants and window lengths differ."""
    dialect = draw(st.sampled_from(sorted(_WINDOWS)))
    declared, first, second = _WINDOWS[dialect]
    head, body, tail = draw(st.sampled_from(_SHAPES))
    body = body.format(W=first, V=second)
    head = head.format()
    text = f"PREFIX : <http://example.org/> {head} {declared} WHERE {{ {body} }} {tail}"
    output = draw(st.sampled_from([*OutputOperator, OutputOperator.ISTREAM]))

    def query() -> ContinuousQuery:
        values = {
            "$A": draw(st.sampled_from([":s0", ":s1", ":s2", "2"] if "$A" not in head else [":s1"]))
            if not re.search(r"\$A [:?]|= \$A", text)
            else draw(st.sampled_from([":s0", ":s1", ":s2", ":s3"])),
            "$B": draw(st.sampled_from([":s0", ":s1", "1"])),
            "$P": draw(st.sampled_from([":p0", ":p1", ":p2"])),
            "$R": draw(st.sampled_from(["3", "5", "9", "15"])),
            "$S": draw(st.sampled_from(["4", "8"])),
        }
        own = text
        for name, value in values.items():
            own = own.replace(name, value)
        parsed = parse(own, dialect="rspql" if dialect == "stepped" else dialect, allow=ALLOW)
        return optimize(replace(parsed, output=output)).query

    return query


@dataclass(frozen=True)
class Turn:
    """What happens between two steps."""

    size: int
    added: int
    removed: int
    saved: bool
    restarted: bool
    backfilled: bool = False
    reloaded: bool = False


TURNS = st.lists(
    st.builds(
        Turn,
        size=st.integers(1, 4),
        added=st.sampled_from([0, 0, 1, 1, 3]),
        removed=st.sampled_from([0, 0, 1]),
        saved=st.booleans(),
        restarted=st.sampled_from([False, False, True]),
        backfilled=st.booleans(),
        reloaded=st.sampled_from([False, False, True]),
    ),
    min_size=1,
    max_size=5,
)


def check(
    first: list[ContinuousQuery],
    draw_query: Callable[[], ContinuousQuery],
    arrived: Feed,
    static: list[Quad],
    turns: list[Turn],
    *,
    delay_ms: int,
    together: bool = False,
) -> None:
    """Compare queries in a group with each alone; all of them read the same streams."""
    data = Dataset.of(scoped_static(static))
    streams = sorted({element.stream for element in arrived})
    group = QueryGroup(static=data, streams=streams, delay_ms=delay_ms, together=together)
    queries = dict(enumerate(first))
    group.change(queries, [])
    left: dict[int, int] = {}
    snapshots, deltas = group.saved(), []
    start = turn = 0
    while start < len(arrived):
        now = turns[turn % len(turns)]
        group.push(arrived[start : start + now.size])
        deltas.append(group.deltas())
        start, turn = start + now.size, turn + 1
        if now.saved:
            snapshots, deltas = group.saved(), []
        running = [number for number in queries if number not in left]
        removed = running[: now.removed] if turn < 20 else []
        added = {len(queries) + n: draw_query() for n in range(now.added if turn < 6 else 0)}
        group.change(added, removed, backfilled=added if now.backfilled else ())
        if now.backfilled:
            # What they see of before is in the state from now on, and in none of before.
            snapshots, deltas = group.saved(), []
        if now.reloaded:
            group.reload()
            snapshots, deltas = group.saved(), []
        queries |= added
        left |= {number: len(group.answers[number]) for number in removed}
        if now.restarted:
            group.restart(snapshots, deltas)
    group.finish()
    for number, query in queries.items():
        alone = Shard.of(query, static=data, streams=streams)
        elements = sorted(
            ((time, e) for time, e in group.taken if time > group.since[number]),
            key=lambda each: (each[0], each[1].stream, each[1].position),
        )
        feed = ShardFeed(alone, delay_ms=0)
        answers = as_answers(feed.push_all(elements), query) + as_answers(feed.finish(), query)
        expected: list[Answer] = [each for each in answers if each.t > group.joined[number]]
        found = group.answers[number]
        if number in left:
            # It gave no answer after it had left, and none that it should not have given.
            assert len(found) == left[number], number
            rest = list(expected)
            for answer in found:
                assert answer in rest, (number, answer)
                rest.remove(answer)
        else:
            assert diff_answers(expected, found) == "", number


@given(data=st.data(), feed=feeds(), static=static_data(), turns=TURNS)
def test_a_query_answers_the_same_alone_and_in_a_group(
    data: st.DataObject, feed: Feed, static: list[Quad], turns: list[Turn]
) -> None:
    query = data.draw(families())
    first = [query() for _ in range(data.draw(st.integers(1, 4)))]
    delay = data.draw(st.integers(0, 8))
    check(first, query, data.draw(arrivals(feed, delay)), static, turns, delay_ms=delay)


@given(data=st.data(), feed=feeds(), static=static_data(), turns=TURNS)
def test_any_question_with_other_constants_and_lengths(
    data: st.DataObject, feed: Feed, static: list[Quad], turns: list[Turn]
) -> None:
    dialect = data.draw(st.sampled_from(["rspql", "csparql", "cqels"]))
    kinds = MONOTONIC | NEGATION | {"optional", "subselect", "graph", "named"}
    text = data.draw(dense_questions(dialect, kinds=kinds, slices=True)).text(dialect)
    output = data.draw(st.sampled_from(list(OutputOperator)))

    def query() -> ContinuousQuery:
        names = data.draw(st.permutations([":s0", ":s1", ":s2"]))
        length = data.draw(st.integers(1, 9))
        own = re.sub(r":s([012])\b", lambda match: names[int(match[1])], text)
        own = re.sub(r"RANGE \d+ms( STEP|\])", rf"RANGE {length}ms\1", own)
        parsed = parse(own, dialect=dialect, allow=ALLOW)
        return optimize(replace(parsed, output=output)).query

    first = [query() for _ in range(data.draw(st.integers(1, 3)))]
    delay = data.draw(st.integers(0, 8))
    check(first, query, data.draw(arrivals(feed, delay)), static, turns, delay_ms=delay)


@given(data=st.data(), feed=feeds(), static=static_data(), turns=TURNS)
def test_queries_of_several_shapes_share_a_network(
    data: st.DataObject, feed: Feed, static: list[Quad], turns: list[Turn]
) -> None:
    shapes = [data.draw(families()) for _ in range(data.draw(st.integers(2, 3)))]

    def query() -> ContinuousQuery:
        return data.draw(st.sampled_from(shapes))()

    first = [query() for _ in range(data.draw(st.integers(1, 4)))]
    delay = data.draw(st.integers(0, 8))
    arrived = data.draw(arrivals(feed, delay))
    check(first, query, arrived, static, turns, delay_ms=delay, together=True)
