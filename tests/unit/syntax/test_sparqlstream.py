"""SPARQLStream: windows that reach back from NOW, and what they are merged into."""

from __future__ import annotations

import pytest

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy
from quadweir.algebra.windows import Content, NowScope, PastScope, Scope, TimeScope
from quadweir.errors import QuerySyntaxError
from quadweir.terms import IRI
from trees import asked, tree

EX = "http://example.org/"


def streamed(windows: str, where: str = "{ ?a :p ?b }") -> ContinuousQuery:
    return asked(f"SELECT * {windows} {where}", "sparqlstream")


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("NOW", NowScope()),
        ("NOW - 10 S", TimeScope(range_ms=10_000)),
        ("NOW-10s", TimeScope(range_ms=10_000)),
        ("NOW - 10 S SLIDE 5 S", TimeScope(range_ms=10_000, step_ms=5_000)),
        ("NOW - 10 MINUTES STEP 1 MINUTE", TimeScope(range_ms=600_000, step_ms=60_000)),
        ("NOW - 3 HOURS TO NOW - 0 HOURS", TimeScope(range_ms=10_800_000)),
        ("NOW - 3 HOURS TO NOW", TimeScope(range_ms=10_800_000)),
        (
            "NOW - 3 HOURS TO NOW - 2 HOURS SLIDE 1 HOURS",
            PastScope(from_ms=10_800_000, to_ms=7_200_000, step_ms=3_600_000),
        ),
        ("FROM NOW - 9 MS TO NOW - 4 MS", PastScope(from_ms=9, to_ms=4)),
        # Times are whole milliseconds.
        ("NOW SLIDE 2 HOURS", TimeScope(range_ms=1, step_ms=7_200_000)),
    ],
)
def test_scopes(text: str, scope: Scope) -> None:
    (window,) = streamed(f"FROM NAMED STREAM :s [{text}]").windows
    assert (window.scope, window.stream, window.content) == (scope, IRI(f"{EX}s"), Content.GRAPH)


@pytest.mark.parametrize(
    "text", ["NOW - 5 S TO NOW - 5 S", "NOW TO NOW - 5 S", "NOW - 5 S SLIDE 0 S", "RANGE 5s"]
)
def test_windows_that_hold_nothing_are_refused(text: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        streamed(f"FROM NAMED STREAM :s [{text}]")
    assert caught.value.span is not None


def test_reports_and_output() -> None:
    on_change = streamed("FROM NAMED STREAM :s [NOW - 1 S]")
    assert on_change.report == Report(policy=ReportPolicy.ON_CHANGE, non_empty_only=True)
    assert on_change.output is OutputOperator.RSTREAM
    on_close = streamed(
        "FROM NAMED STREAM :s [NOW - 1 S] FROM NAMED STREAM :t [NOW - 1 S SLIDE 1 S]"
    )
    assert on_close.report == Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True)
    for word in ("ISTREAM", "DSTREAM", "RSTREAM"):
        for form in ("SELECT {} *", "CONSTRUCT {} {{ ?a :p 1 }}"):
            text = f"{form.format(word)} FROM NAMED STREAM :s [NOW - 1 S] {{ ?a :p ?b }}"
            assert asked(text).output is OutputOperator[word]


def test_one_window_is_the_default_graph() -> None:
    query = streamed("FROM NAMED STREAM :s [NOW - 1 S]")
    assert query.default_graph_windows == ()
    assert query.pattern == tree(
        "(project (?a ?b) (window <urn:quadweir:window:1> (bgp (triple ?a :p ?b))))"
    )


def test_windows_are_merged_and_can_be_asked_for_by_name() -> None:
    clauses = "FROM NAMED STREAM :s [NOW - 1 S] FROM NAMED STREAM :t [NOW - 2 S]"
    merged = streamed(clauses)
    assert merged.default_graph_windows == tuple(window.name for window in merged.windows)
    apart = streamed(clauses, "{ GRAPH :s { ?a :p ?b } GRAPH :t { ?b :p ?c } }")
    assert [window.name for window in apart.windows] == [IRI(f"{EX}s"), IRI(f"{EX}t")]
    assert apart.default_graph_windows == ()
    both = streamed(clauses, "{ GRAPH :s { ?a :p ?b } ?b :p ?c }")
    assert len(both.default_graph_windows) == 2


def test_graph_cannot_distinguish_two_windows_over_one_stream() -> None:
    clauses = "FROM NAMED STREAM :s [NOW - 1 S] FROM NAMED STREAM :s [NOW - 2 S]"
    assert len(streamed(clauses).windows) == 2
    with pytest.raises(QuerySyntaxError, match="two windows"):
        streamed(clauses, "{ GRAPH :s { ?a :p ?b } }")
