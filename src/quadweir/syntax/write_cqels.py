"""Algebra to CQELS-QL 1.x text."""

from __future__ import annotations

from typing import assert_never

from quadweir.algebra.patterns import BasicPattern, WindowPattern
from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator, Report
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.syntax.write_sparql import indented
from quadweir.syntax.write_windows import WindowWriter, short_duration
from quadweir.terms import Variable


class CqelsWriter(WindowWriter):
    """Writes CQELS-QL, whose windows stand where they are used."""

    title = "CQELS-QL"
    content = Content.BAG

    def report(self) -> Report:
        # A count window loses its step here, so it is none that closes.
        stepped = all(
            is_stepped(window.scope) and not isinstance(window.scope, CountScope)
            for window in self.query.windows
        )
        return ON_CLOSE if stepped else ON_CHANGE

    def check(self) -> None:
        super().check()
        self.lose_described()
        query = self.query
        if query.output is not OutputOperator.ISTREAM:
            self.warn("output", f"CQELS-QL always puts out ISTREAM, not {query.output.name}", query)
        if query.tick.every_ms is not None:
            self.warn("tick", "CQELS-QL has no COMPUTED EVERY; the windows decide", query)
        if query.name is not None:
            self.warn("name", f"CQELS-QL queries have no name; {query.name} is lost", query)
        for window in query.windows:
            self.lose_event_time(window)
        self.lose_unread()

    def window(self, pattern: WindowPattern) -> list[str]:
        if isinstance(pattern.window, Variable):
            raise self.refused(
                f"CQELS-QL has no variable such as {pattern.window} for windows", pattern
            )
        (window,) = self.windows_named(pattern.window)
        return self.block(self._heading(window), pattern.input)

    def in_window(self, window: Window, pattern: BasicPattern) -> list[str]:
        return [f"{self._heading(window)} {{", *indented(self.triples(pattern)), "}"]

    def _heading(self, window: Window) -> str:
        return f"STREAM {self.term(window.stream)} [{self._scope(window)}]"

    def _scope(self, window: Window) -> str:
        scope = window.scope
        match scope:
            case TimeScope():
                step = ""
                if scope.step_ms is not None:
                    tumbling = scope.step_ms == scope.range_ms
                    step = " TUMBLING" if tumbling else f" SLIDE {short_duration(scope.step_ms)}"
                return f"RANGE {short_duration(scope.range_ms)}{step}"
            case CountScope():
                if scope.step is not None:
                    self.warn(
                        "step", f"CQELS-QL's count windows have no step: {window.name}", window
                    )
                if scope.unit is CountUnit.ELEMENTS:
                    self.warn(
                        "count-unit", f"{window.name} counts elements, CQELS-QL triples", window
                    )
                return f"TRIPLES {scope.size}"
            case NowScope():
                return "NOW"
            case AllScope():
                return "ALL"
            case PastScope():
                raise self.refused(
                    f"CQELS-QL has no windows that end before now, such as {window.name}", window
                )
            case _:
                assert_never(scope)
