"""Shared equals separate (P4): a query gives the same answers alone and in a group."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import ALLOW, MONOTONIC, NEGATION
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.kernel.answers import Answers
from quadweir.kernel.group import Group
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, diff_answers
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
    ("SELECT ?a ?t", "{W} {{ ?a :p0 $A }} BIND(NOW() AS ?t)", ""),
]


@st.composite
def members(draw: st.DrawFn) -> tuple[str, list[str]]:
    """One to six queries of one shape: constants and window lengths differ."""
    dialect = draw(st.sampled_from(sorted(_WINDOWS)))
    declared, first, second = _WINDOWS[dialect]
    head, body, tail = draw(st.sampled_from(_SHAPES))
    body = body.format(W=first, V=second)
    head = head.format()
    text = f"PREFIX : <http://example.org/> {head} {declared} WHERE {{ {body} }} {tail}"
    found = []
    for _ in range(draw(st.integers(1, 6))):
        values = {
            "$A": draw(st.sampled_from([":s0", ":s1", ":s2", "2"] if "$A" not in head else [":s1"]))
            if not re.search(r"\$A [:?]", text)
            else draw(st.sampled_from([":s0", ":s1", ":s2", ":s3"])),
            "$B": draw(st.sampled_from([":s0", ":s1", "1"])),
            "$P": draw(st.sampled_from([":p0", ":p1", ":p2"])),
            "$R": draw(st.sampled_from(["3", "5", "9", "15"])),
            "$S": draw(st.sampled_from(["4", "8"])),
        }
        own = text
        for name, value in values.items():
            own = own.replace(name, value)
        found.append(own)
    return dialect, found


def of_query(answers: Answers, number: int, query: ContinuousQuery) -> list[Answer]:
    assert answers.query is not None
    own = answers.query == number
    mask = pa.array(own)
    values = tuple(column.filter(mask) for column in answers.values)
    return as_answers(Answers(answers.variables, answers.t[own], answers.sign[own], values), query)


def check(
    queries: list[ContinuousQuery],
    arrived: Feed,
    static: list[Quad],
    steps: list[int],
    *,
    delay_ms: int,
    restarts: bool = False,
) -> None:
    """Compare a group with a shard for each query; all of them read the same streams."""
    data = Dataset.of(scoped_static(static))
    streams = sorted({element.stream for element in arrived})

    def group() -> Group:
        return Group(queries, static=data, streams=streams)

    found: list[Answers] = []
    fed = ShardFeed(group(), delay_ms=delay_ms)
    snapshot: bytes | None = None
    deltas: list[bytes] = []
    start = turn = 0
    while start < len(arrived):
        size = steps[turn % len(steps)]
        found.append(fed.push(arrived[start : start + size]))
        start, turn = start + size, turn + 1
        if restarts:
            deltas.append(fed.shard.delta())
            if turn % 3 == 0:
                snapshot, deltas = fed.shard.snapshot(), []
            if turn % 2 == 0:
                fed.shard = group()
                fed.shard.restore(snapshot, deltas)
    found.append(fed.finish())
    for number, query in enumerate(queries):
        alone = ShardFeed(Shard.of(query, static=data, streams=streams), delay_ms=delay_ms)
        expected = as_answers(alone.push(arrived), query) + as_answers(alone.finish(), query)
        assert alone.late == fed.late
        shared = [answer for each in found for answer in of_query(each, number, query)]
        assert diff_answers(expected, shared) == "", number


@given(data=st.data(), feed=feeds(), static=static_data())
def test_a_query_answers_the_same_alone_and_in_a_group(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    dialect, texts = data.draw(members())
    output = data.draw(st.sampled_from([*OutputOperator, OutputOperator.ISTREAM]))
    queries = [
        optimize(replace(parse(text, dialect=dialect, allow=ALLOW), output=output)).query
        for text in texts
    ]
    steps = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    delay = data.draw(st.integers(0, 8))
    arrived = data.draw(arrivals(feed, delay))
    restarts = data.draw(st.booleans())
    check(queries, arrived, static, steps, delay_ms=delay, restarts=restarts)


@given(data=st.data(), feed=feeds(), static=static_data())
def test_any_question_with_other_constants_and_lengths(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    dialect = data.draw(st.sampled_from(["rspql", "csparql", "cqels"]))
    kinds = MONOTONIC | NEGATION | {"optional", "subselect", "graph", "named"}
    text = data.draw(dense_questions(dialect, kinds=kinds, slices=True)).text(dialect)
    output = data.draw(st.sampled_from(list(OutputOperator)))
    queries = []
    for _ in range(data.draw(st.integers(2, 4))):
        names = data.draw(st.permutations([":s0", ":s1", ":s2"]))
        length = data.draw(st.integers(1, 9))
        own = re.sub(r":s([012])\b", lambda match, names=names: names[int(match[1])], text)  # type: ignore[misc]
        own = re.sub(r"RANGE \d+ms\]", f"RANGE {length}ms]", own)
        query = parse(own, dialect=dialect, allow=ALLOW)
        queries.append(optimize(replace(query, output=output)).query)
    steps = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    delay = data.draw(st.integers(0, 8))
    check(queries, data.draw(arrivals(feed, delay)), static, steps, delay_ms=delay)
