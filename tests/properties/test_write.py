"""Written queries can be read back: in their own dialect as the same tree, in another with the same
answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from properties.dense import Feed, dense_questions, feeds, static_data
from properties.strategies import ALLOW, Question, queries, questions
from quadweir.errors import UnsupportedError
from quadweir.syntax import parse
from quadweir.syntax.write import TARGETS, declared_prefixes, write
from quadweir.terms import Quad
from quadweir.testing import Oracle, diff_answers
from same_names import same_names


@pytest.mark.parametrize("dialect", TARGETS)
@given(data=st.data())
def test_a_query_written_in_its_own_dialect_is_the_same_tree(
    dialect: str, data: st.DataObject
) -> None:
    text = data.draw(queries(dialect, slices=True, construct=True, min_windows=1))
    query = parse(text, dialect=dialect, allow=ALLOW)
    written = write(query, dialect, prefixes=declared_prefixes(text))
    assert written.warnings == ()
    again = parse(written.text, dialect=dialect, allow=ALLOW)
    assert same_names(again) == same_names(query)


@given(data=st.data())
def test_a_plain_query_written_in_any_dialect_is_the_same_tree(data: st.DataObject) -> None:
    text = data.draw(queries("sparql", slices=True, construct=True))
    query = parse(text, dialect="sparql", allow=ALLOW)
    for dialect in TARGETS:
        again = parse(write(query, dialect).text, dialect=dialect, allow=ALLOW)
        assert replace(same_names(again), output=query.output) == same_names(query)


# Changes of the windows or the pattern, which change answers at the same instants.
DEEP = {"merged-default-graph", "step", "count-unit", "unused-window", "window-variable"}


@pytest.mark.parametrize("source", TARGETS)
@pytest.mark.parametrize("target", TARGETS)
@settings(
    max_examples=settings().max_examples // 3,
    # C-SPARQL cannot express many windows of SPARQLStream.
    suppress_health_check=[HealthCheck.filter_too_much],
)
@given(data=st.data(), feed=feeds(), static=static_data())
def test_a_translation_answers_alike_but_for_what_it_warns_of(
    source: str, target: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    text = data.draw(dense_questions(source, slices=True)).text(source)
    query = parse(text, dialect=source, allow=ALLOW)
    try:
        written = write(query, target)
    except UnsupportedError:
        assume(False)
        raise
    lost = {warning.aspect for warning in written.warnings}
    assume(not lost & DEEP)
    again = parse(written.text, dialect=target, allow=ALLOW)
    # Restore exactly the parts that the warnings name as lost.
    content = {window.stream: window.content for window in query.windows}
    if "content" in lost:
        windows = tuple(replace(w, content=content[w.stream]) for w in again.windows)
        again = replace(again, windows=windows)
    if lost & {"report", "empty-windows"}:
        again = replace(again, report=query.report)
    if "tick" in lost:
        again = replace(again, tick=query.tick)
    if "output" in lost:
        again = replace(again, output=query.output)
    expected = Oracle(query, static=static).answers(feed)
    assert diff_answers(expected, Oracle(again, static=static).answers(feed)) == ""


@given(questions("common", min_windows=1, max_windows=1))
def test_nothing_is_written_that_cannot_be_read(question: Question) -> None:
    query = parse(question.text("rspql"), dialect="rspql", allow=ALLOW)
    for dialect in TARGETS:
        parse(write(query, dialect).text, dialect=dialect, allow=ALLOW)
