"""Functions that users register: incremental equals evaluated from scratch equals the oracle (P3)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.dense import Feed, feeds, static_data
from properties.strategies import STREAMS, Line, Part, Question, Triples, scopes
from properties.test_kernel import STEPS, by_the_kernel
from quadweir import IRI, register
from quadweir.functions import REGISTERED
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers

NAMES = [f"urn:f:{name}" for name in ("half", "last", "same", "named", "odd")]


@pytest.fixture(autouse=True, scope="module")
def _functions() -> Iterator[None]:
    """Numbers, texts, truths and terms in and out; some have no value for some arguments."""

    def half(number: float) -> float:
        return number / 2

    def last(text: str, count: int = 1) -> str:
        return text[-count:]

    def same(one: str, other: str) -> bool:
        return one == other

    def named(text: str) -> IRI | None:
        return IRI(f"http://example.org/s{text[-1]}") if text[-1] in "012" else None

    def odd(number: int) -> int:
        if number % 2 == 0:
            raise ValueError("even")
        return number

    for name, code in zip(NAMES, (half, last, same, named, odd), strict=True):
        register(name, code)
    yield
    for name in NAMES:
        REGISTERED.remove(name)


variables = st.sampled_from(["?a", "?b", "?c"])


def calls(depth: int = 1) -> st.SearchStrategy[str]:
    """Calls of the functions, within one another too."""
    inner = variables | st.sampled_from(["1", "2.5", '"x1"'])
    if depth > 0:
        inner = inner | calls(depth - 1)
    return st.one_of(
        st.builds("<urn:f:half>({})".format, inner),
        st.builds("<urn:f:last>({})".format, inner),
        st.builds("<urn:f:last>({}, 2)".format, inner),
        st.builds("<urn:f:same>({}, {})".format, inner, inner),
        st.builds("<urn:f:named>({})".format, inner),
        st.builds("<urn:f:odd>({})".format, inner),
    )


lines = st.one_of(
    st.builds("FILTER(<urn:f:half>({}) < {})".format, variables, st.sampled_from(["1", "2"])),
    st.builds("FILTER(<urn:f:same>(<urn:f:last>({}), <urn:f:last>({})))".format, variables, variables),
    st.builds("FILTER(!{})".format, calls()),
    st.builds("FILTER(COALESCE({}, true))".format, calls()),
).map(Line)  # fmt: skip
HEADS = ("SELECT ?a ?b ?n", "SELECT DISTINCT ?n", "SELECT ?a (COUNT(?n) AS ?m) (MAX(?n) AS ?x)")


@st.composite
def questions(draw: st.DrawFn) -> Question:
    windows = draw(st.integers(1, 2))
    second: Part = Triples(("?b :p1 ?c",) if draw(st.booleans()) else ("?a :p1 ?c",), windows - 1)
    parts = [Triples(("?a ?v ?b",), 0), *draw(st.lists(lines, max_size=1)), second]
    parts.append(Line(f"BIND({draw(calls())} AS ?n)"))
    parts += draw(st.lists(lines, max_size=1))
    head = draw(st.sampled_from(HEADS))
    return Question(
        head=head,
        tail="GROUP BY ?a" if "COUNT" in head else "",
        parts=tuple(parts),
        scopes=tuple(draw(scopes("cqels")) for _ in range(windows)),
        streams=tuple(STREAMS[:windows]),
    )


@given(data=st.data(), question=questions(), feed=feeds(), static=static_data())
def test_registered_functions_incremental_recomputed_and_in_the_oracle(
    data: st.DataObject, question: Question, feed: Feed, static: list[Quad]
) -> None:
    query = parse(question.text("cqels"), dialect="cqels")
    arrived = sorted(feed, key=lambda each: each.event_time)
    expected = Oracle(query, static=static).run(arrived).answers
    for incremental in (True, False):
        found, _ = by_the_kernel(
            optimize(query).query,
            arrived,
            static,
            steps=data.draw(STEPS),
            restarts=data.draw(st.booleans()),
            incremental=incremental,
        )
        assert diff_answers(expected, found) == ""
