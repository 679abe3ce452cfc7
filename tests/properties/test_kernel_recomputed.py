"""Queries that are recomputed at each report, over bags: what is new and what is gone (A2)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from properties.dense import Feed, arrivals, dense_questions, feeds, static_data
from properties.strategies import (
    ALLOW,
    EVERYTHING,
    GRAPHS,
    STREAMS,
    Block,
    Line,
    Part,
    Question,
    Triples,
    scopes,
    some_graphs,
)
from properties.test_kernel import STEPS, by_the_kernel
from properties.test_kernel_state import run
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.algebra.windows import Content
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.shards import scoped_static

_MATCHES = ["?a :p0 ?b", "?a ?v ?b", "?b :p1 ?c", "?a :p2 ?c", "?a :p0 ?d"]
# An EXISTS is a join of its own only where it stands alone.
_TESTS = [
    ("FILTER(EXISTS", " || isNumeric(?b))"),
    ("FILTER(?a = :s0 || NOT EXISTS", ")"),
    ("FILTER(!(EXISTS", " && ?a != ?b))"),
    ("FILTER(IF(NOT EXISTS", ", ?a != :s1, isIRI(?b)))"),
    ("BIND(EXISTS", " AS ?n)"),
    ("BIND(IF(NOT EXISTS", ", ?b, 0) AS ?n)"),
]
_CUTS = ["LIMIT 2", "ORDER BY DESC(?b) LIMIT 1", "ORDER BY ?a OFFSET 1"]
_VOLATILE = [
    "BIND(SECONDS(NOW()) > 0.009 AS ?n)",
    "FILTER(SECONDS(NOW()) > 0.005)",
    "FILTER(timestamp(?a, :p0, ?b) > 8)",
    "BIND(timestamp(?a, ?v, ?b) AS ?n)",
]
_HEADS = ["SELECT ?a ?b ?c", "SELECT ?a", "SELECT ?a ?n", "SELECT ?n", "SELECT DISTINCT ?b"]


@st.composite
def _matched(draw: st.DrawFn, windows: int, *, only_static: bool = False) -> Part:
    """Triples of a window, of static data or of a static graph."""
    lines = draw(st.lists(st.sampled_from(_MATCHES), min_size=1, max_size=2, unique=True))
    if not only_static and draw(st.booleans()):
        return Triples(tuple(lines), draw(st.integers(0, windows - 1)))
    if draw(st.booleans()):
        return Block(f"GRAPH <{draw(st.sampled_from(GRAPHS))}>", ((Triples(tuple(lines)),),))
    return Triples(tuple(lines))


@st.composite
def _anew(draw: st.DrawFn, windows: int) -> Part:
    """Something that has no incremental operator; most of it reads no window."""
    only_static = draw(st.integers(0, 3)) > 0
    inner = draw(_matched(windows, only_static=only_static))
    kinds = ["test", "test", "minus", "optional", "cut", "graph", "line"]
    kind = draw(st.sampled_from(kinds))
    match kind:
        case "test":
            before, after = draw(st.sampled_from(_TESTS))
            return Block(before, ((inner,),), after)
        case "minus" | "optional":
            word = draw(st.sampled_from(["FILTER EXISTS", "FILTER NOT EXISTS"]))
            right = draw(_matched(windows, only_static=only_static))
            return Block(word, ((inner, Block(kind.upper(), ((right,),))),))
        case "cut":
            inner = draw(_matched(windows))
            return Block("SELECT ?a ?b", ((inner,),), draw(st.sampled_from(_CUTS)))
        case "graph":
            return Block(
                f"GRAPH <{draw(st.sampled_from(GRAPHS))}>", ((Triples(("?a ?v ?b",), 0),),)
            )
        case _:
            return Line(draw(st.sampled_from(_VOLATILE)))


@st.composite
def _questions(draw: st.DrawFn, dialect: str) -> Question:
    windows = draw(st.integers(1, 2))
    parts: list[Part] = [Triples(("?a :p0 ?b",) if draw(st.booleans()) else ("?a ?v ?b",), 0)]
    if draw(st.booleans()):
        parts.append(draw(_matched(windows)))
    parts.append(draw(_anew(windows)))
    if draw(st.integers(0, 3)) == 0:
        parts = [Block("UNION", (tuple(parts), (draw(_matched(windows)),)))]
    return Question(
        head=draw(st.sampled_from(_HEADS)),
        tail="",
        parts=tuple(parts),
        scopes=tuple(draw(scopes(dialect)) for _ in range(windows)),
        streams=tuple(STREAMS[:windows]),
        graphs=draw(some_graphs),
        default=draw(some_graphs),
    )


@st.composite
def _queries(
    draw: st.DrawFn, dialect: str, questions: st.SearchStrategy[Question]
) -> ContinuousQuery:
    """A query over bags that says what is new, or what is gone."""
    text = draw(questions).text(dialect)
    query = parse(text, dialect=dialect, allow=ALLOW, content=Content.BAG)
    output = draw(st.sampled_from([OutputOperator.ISTREAM, OutputOperator.DSTREAM]))
    return replace(query, output=output)


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_what_has_no_operator_gives_the_answers_of_the_oracle(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    query = data.draw(_queries(dialect, _questions(dialect)))
    optimized = optimize(query).query
    made = Shard.of(optimized, static=Dataset.of(scoped_static(static)), streams=STREAMS)
    assume(made.program.why_not is not None)
    delay = data.draw(st.integers(0, 8))
    arrived = data.draw(arrivals(feed, delay))
    expected = Oracle(query, static=static, delay_ms=delay).run(arrived).answers
    for restarts in (False, True):
        steps = data.draw(STEPS)
        found, _ = by_the_kernel(
            optimized, arrived, static, delay_ms=delay, steps=steps, restarts=restarts
        )
        assert diff_answers(expected, found) == ""


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_what_has_no_operator_is_taken_up_again_from_bytes(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    query = data.draw(_queries(dialect, _questions(dialect)))
    in_order = sorted(feed, key=lambda element: element.event_time)
    expected = Oracle(query, static=static, delay_ms=0).run(in_order).answers
    found = run(
        optimize(query).query,
        in_order,
        static,
        steps=data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)),
        snapshot_every=data.draw(st.integers(1, 5)),
        restart_after=data.draw(st.frozensets(st.integers(1, 12), min_size=1)),
    )
    assert diff_answers(expected, found) == ""


# EXISTS and paths of no steps are tried apart, as in test_kernel.py.
@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_any_query_can_be_evaluated_anew(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    dense = dense_questions(dialect, kinds=EVERYTHING - {"path"}, slices=True)
    query = data.draw(_queries(dialect, dense))
    expected = Oracle(query, static=static, delay_ms=0).run(feed).answers
    found, _ = by_the_kernel(
        optimize(query).query,
        feed,
        static,
        steps=data.draw(STEPS),
        restarts=data.draw(st.booleans()),
        incremental=False,
    )
    assert diff_answers(expected, found) == ""
