"""The oracle and our own evaluator share no code; at every report instant they must agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from properties.dense import Feed, dense_questions, feeds, static_data
from properties.strategies import ALLOW, EVERYTHING, MONOTONIC
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.evaluate import Solutions, evaluate
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator
from quadweir.syntax import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer, Element, Oracle, diff_answers
from quadweir.testing.contents import OpenWindow


def by_our_evaluator(query: ContinuousQuery, feed: Feed, static: list[Quad]) -> list[Answer]:
    """Answer with the evaluator of the algebra, over the contents that the oracle reports on."""
    found = []
    for t in Oracle(query, static=static).run(feed).reports:
        contents = {window.name: _content(query, window.name, feed, t) for window in query.windows}
        answer = evaluate(query, Dataset.of(static), windows=contents)
        assert isinstance(answer, Solutions)
        for row in answer.rows:
            found.append(Answer.of(t, "+", {variable.name: row[variable] for variable in row}))
    return found


def _content(query: ContinuousQuery, name: IRI, feed: Feed, t: int) -> tuple[Element, ...]:
    window = query.window(name)
    assert isinstance(window.stream, IRI)
    mine = [element for element in feed if element.stream == window.stream.value]
    mine.sort(key=lambda element: (element.event_time, element.position))
    return OpenWindow(window, window.stream, tuple(mine)).content(t)


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@pytest.mark.parametrize(
    "kinds",
    [(EVERYTHING - {"path"}) | {"times"}, MONOTONIC | {"path"}],
    ids=["operators", "paths"],
)
@given(data=st.data(), feed=feeds(), static=static_data())
def test_the_oracle_agrees_with_our_evaluator(
    dialect: str, kinds: frozenset[str], data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    question = data.draw(dense_questions(dialect, kinds=kinds, slices=True))
    query = parse(question.text(dialect), dialect=dialect, allow=ALLOW)
    query = replace(query, output=OutputOperator.RSTREAM)
    expected = Oracle(query, static=static).answers(feed)
    found = by_our_evaluator(query, feed, static)
    assert diff_answers(expected, found) == ""
    if "ORDER BY" in question.tail:
        assert found == expected


@given(data=st.data(), feed=feeds(), static=static_data())
def test_what_comes_and_what_goes_adds_up(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    """ISTREAM minus DSTREAM up to a report is RSTREAM at that report, for solutions and
    derivations."""
    question = data.draw(dense_questions("cqels", kinds=EVERYTHING | {"times"}))
    text = question.text("cqels")
    query = parse(text, dialect="cqels", allow=ALLOW)
    runs = {
        output: Oracle(replace(query, output=output), static=static).run(feed)
        for output in OutputOperator
    }
    held: Counter[object] = Counter()
    for t in runs[OutputOperator.RSTREAM].reports:
        at = {
            output: Counter(answer.solution for answer in run.answers if answer.t == t)
            for output, run in runs.items()
        }
        held.update(at[OutputOperator.ISTREAM])
        held.subtract(at[OutputOperator.DSTREAM])
        assert +held == at[OutputOperator.RSTREAM]
        assert min(held.values(), default=0) >= 0


@given(data=st.data(), feed=feeds(), static=static_data(), delay=st.integers(1, 20))
def test_any_order_of_arrival_within_the_delay_gives_the_same_answers(
    data: st.DataObject, feed: Feed, static: list[Quad], delay: int
) -> None:
    text = data.draw(dense_questions("rspql", slices=True)).text("rspql")
    query = parse(text, dialect="rspql", allow=ALLOW)
    # An element that is delayed by less than the allowed delay is not late.
    late_by = data.draw(st.lists(st.integers(0, delay - 1), min_size=len(feed), max_size=len(feed)))
    pairs = zip(feed, late_by, strict=True)
    arrived = [each for each, _ in sorted(pairs, key=lambda pair: pair[0].event_time + pair[1])]
    found = Oracle(query, static=static, delay_ms=delay).run(arrived)
    assert found.late == []
    assert found.answers == Oracle(query, static=static).answers(feed)
