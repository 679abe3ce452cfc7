"""Algebra to SPARQLStream text.

A window that stands alone is written with bare patterns, as are windows that make up the default
graph. Other windows are matched by GRAPH blocks under their streams' names; then no pattern may
stand outside of all blocks, since it would see the windows instead of static data.
"""

from __future__ import annotations

from typing import assert_never

from quadweir.algebra.patterns import WindowPattern
from quadweir.algebra.query import AskForm, DescribeForm
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    NowScope,
    PastScope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.syntax.write_csparql import CsparqlWriter, reads_default
from quadweir.syntax.write_windows import WindowWriter
from quadweir.terms import Variable

_UNITS = (("HOURS", 3_600_000), ("MINUTES", 60_000), ("S", 1000), ("MS", 1))


class SparqlStreamWriter(CsparqlWriter):
    """Writes SPARQLStream, whose windows reach back from NOW."""

    title = "SPARQLStream"
    content = Content.GRAPH

    def report(self) -> Report:
        stepped = any(is_stepped(window.scope) for window in self.query.windows)
        policy = ReportPolicy.ON_CLOSE if stepped else ReportPolicy.ON_CHANGE
        return Report(policy=policy, non_empty_only=True)

    def check(self) -> None:
        WindowWriter.check(self)
        query = self.query
        if query.tick.every_ms is not None:
            self.warn("tick", "SPARQLStream has no COMPUTED EVERY; the windows decide", query)
        if query.name is not None:
            self.warn("name", f"SPARQLStream queries have no name; {query.name} is lost", query)
        if query.output is not OutputOperator.RSTREAM and isinstance(
            query.form, AskForm | DescribeForm
        ):
            self.warn(
                "output", f"SPARQLStream cannot ask for {query.output.name} of this form", query
            )
        for window in query.windows:
            self.lose_event_time(window)

    def heading(self) -> list[str]:
        return []

    def output_word(self) -> str:
        output = self.query.output
        return "" if output is OutputOperator.RSTREAM else output.name

    def window_clauses(self) -> list[str]:
        query = self.query
        merged = set(query.default_graph_windows)
        apart = [window for window in query.windows if window.name not in merged]
        if apart and not self.alone and (merged or reads_default(query.pattern)):
            raise self.refused(
                f"SPARQLStream cannot keep {apart[0].name} apart: patterns outside of GRAPH blocks "
                "match all windows",
                apart[0],
            )
        clauses = []
        for window in query.windows:
            if isinstance(window.stream, Variable):
                raise self.refused(
                    f"SPARQLStream has no variable such as {window.stream} for streams", window
                )
            clause = f"FROM NAMED STREAM {self.iri(window.stream)} [{self._scope(window)}]"
            if clause not in clauses:
                clauses.append(clause)
        return clauses

    def window(self, pattern: WindowPattern) -> list[str]:
        if isinstance(pattern.window, Variable):
            raise self.refused(
                f"SPARQLStream has no variable such as {pattern.window} for windows", pattern
            )
        return super().window(pattern)

    def _scope(self, window: Window) -> str:
        scope = window.scope
        match scope:
            case TimeScope():
                return f"NOW - {_amount(scope.range_ms)}{_slide(scope.step_ms)}"
            case PastScope():
                end = f" TO NOW - {_amount(scope.to_ms)}" if scope.to_ms else ""
                return f"NOW - {_amount(scope.from_ms)}{end}{_slide(scope.step_ms)}"
            case NowScope():
                return "NOW"
            case CountScope() | AllScope():
                raise self.refused(
                    f"SPARQLStream has windows of time only, unlike {window.name}", window
                )
            case _:
                assert_never(scope)


def _amount(ms: int) -> str:
    """Write a duration as an amount and a unit.

    >>> _amount(90_000), _amount(7_200_000), _amount(250)
    ('90 S', '2 HOURS', '250 MS')
    """
    unit, size = next((unit, size) for unit, size in _UNITS if ms % size == 0)
    return f"{ms // size} {unit}"


def _slide(step_ms: int | None) -> str:
    return "" if step_ms is None else f" SLIDE {_amount(step_ms)}"
