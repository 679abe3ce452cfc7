"""The window options of a run change the algebra, or are refused with a hint."""

from __future__ import annotations

import pytest

from quadweir.algebra.render import render
from quadweir.algebra.streams import ReportPolicy
from quadweir.algebra.windowing import ReportOn, Windowing, with_windowing
from quadweir.algebra.windows import TimeScope
from quadweir.errors import UsageError
from quadweir.syntax import parse
from rendered_trees import read_query

STEPPED = "SELECT ?s { STREAM <urn:s> [RANGE 10s SLIDE 5s] { ?s ?p ?o } }"
SLIDING = "SELECT ?s { STREAM <urn:s> [RANGE 10s] { ?s ?p ?o } }"
COUNTED = (
    "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [TRIPLES 5 STEP 5] "
    "{ WINDOW <urn:w> { ?s ?p ?o } }"
)
PAST = (
    "SELECT ?s FROM NAMED WINDOW <urn:w> ON <urn:s> [FROM NOW-10s TO NOW-5s STEP 5s] "
    "{ WINDOW <urn:w> { ?s ?p ?o } }"
)
EVERY = "REGISTER QUERY q COMPUTED EVERY 3s AS SELECT ?s FROM STREAM <urn:s> [RANGE 10s STEP 5s] { ?s ?p ?o }"


def test_R4_a_run_chooses_when_to_report():
    query = parse(STEPPED)
    assert query.report.policy is ReportPolicy.ON_CLOSE
    changing = with_windowing(query, Windowing(report=ReportOn.CONTENT_CHANGE))
    assert changing.report.policy is ReportPolicy.ON_CHANGE
    assert changing.windows[0].scope == TimeScope(range_ms=10_000, step_ms=5_000, while_open=True)
    closing = with_windowing(query, Windowing(report=ReportOn.WINDOW_CLOSE))
    assert closing == query


def test_the_tree_states_where_windows_begin():
    asked = Windowing(start_ms=7, full=True, report=ReportOn.CONTENT_CHANGE)
    query = with_windowing(parse(STEPPED), asked)
    assert "(range 10000ms step 5000ms origin 7ms full while-open)" in render(query)
    assert read_query(render(query)) == query
    assert render(query) != render(parse(STEPPED))


def test_what_is_not_asked_for_stays():
    query = parse(STEPPED)
    assert with_windowing(query, Windowing()) == query


def test_windows_in_the_past_have_a_beginning_too():
    query = with_windowing(parse(PAST), Windowing(start_ms=7))
    assert query.windows[0].scope.origin_ms == 7


@pytest.mark.parametrize(
    ("text", "asked", "says"),
    [
        (SLIDING, Windowing(start_ms=1), "so none has a beginning"),
        (COUNTED, Windowing(full=True), "so none has a beginning"),
        (SLIDING, Windowing(report=ReportOn.WINDOW_CLOSE), "so none closes"),
        (COUNTED, Windowing(report=ReportOn.CONTENT_CHANGE), "report while they are open"),
        (PAST, Windowing(report=ReportOn.CONTENT_CHANGE), "report while they are open"),
        (PAST, Windowing(full=True), "in the past"),
        (EVERY, Windowing(report=ReportOn.WINDOW_CLOSE), "COMPUTED EVERY"),
    ],
)
def test_what_no_window_can_do_is_refused(text: str, asked: Windowing, says: str) -> None:
    with pytest.raises(UsageError, match=says) as found:
        with_windowing(parse(text), asked)
    assert found.value.hint
