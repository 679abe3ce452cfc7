"""Algebra to RSP-QL text."""

from __future__ import annotations

from typing import assert_never

from quadweir.algebra.patterns import BasicPattern, WindowPattern
from quadweir.algebra.query import ConstructForm, SelectForm
from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator, Report
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    Scope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.syntax.write_sparql import indented
from quadweir.syntax.write_windows import WindowWriter, iso_duration


class RspqlWriter(WindowWriter):
    """Writes RSP-QL, which can say almost all that the algebra can."""

    title = "RSP-QL"
    content = Content.GRAPH

    def report(self) -> Report:
        stepped = any(is_stepped(window.scope) for window in self.query.windows)
        return ON_CLOSE if stepped else ON_CHANGE

    def check(self) -> None:
        super().check()
        self.lose_described()

    def heading(self) -> list[str]:
        every = self.query.tick.every_ms
        name = self.query.name
        if name is None and every is not None:
            self.warn("name", "only registered queries are computed by the clock; this is now q")
            name = "q"
        if name is None:
            if self.output_word() and not isinstance(self.query.form, SelectForm | ConstructForm):
                self.warn("output", f"without a name, RSP-QL cannot ask for {self._operator()}")
            return []
        computed = "" if every is None else f" COMPUTED EVERY {iso_duration(every)}"
        return [f"REGISTER {self._operator()} {self.register_name(name)}{computed} AS"]

    def output_word(self) -> str:
        registered = self.query.name is not None or self.query.tick.every_ms is not None
        if registered or self.query.output is OutputOperator.RSTREAM:
            return ""
        return self._operator()

    def _operator(self) -> str:
        return self.query.output.name

    def window_clauses(self) -> list[str]:
        return [self._clause(window) for window in self.query.windows]

    def _clause(self, window: Window) -> str:
        event_time = f" @{self.iri(window.event_time)}" if window.event_time is not None else ""
        return (
            f"FROM NAMED WINDOW {self.iri(window.name)} ON {self.term(window.stream)} "
            f"[{_scope(window.scope)}{event_time}]"
        )

    def window(self, pattern: WindowPattern) -> list[str]:
        return self.block(f"WINDOW {self.term(pattern.window)}", pattern.input)

    def in_window(self, window: Window, pattern: BasicPattern) -> list[str]:
        return [f"WINDOW {self.iri(window.name)} {{", *indented(self.triples(pattern)), "}"]


def _scope(scope: Scope) -> str:
    match scope:
        case TimeScope():
            return f"RANGE {iso_duration(scope.range_ms)}{_step(scope.step_ms, scope.range_ms)}"
        case CountScope():
            word = "ELEMENTS" if scope.unit is CountUnit.ELEMENTS else "TRIPLES"
            step = "" if scope.step is None else f" STEP {scope.step}"
            return f"{word} {scope.size}{step}"
        case NowScope():
            return "NOW"
        case AllScope():
            return "ALL"
        case PastScope():
            start, end = iso_duration(scope.from_ms), iso_duration(scope.to_ms)
            step = _step(scope.step_ms, None)
            return f"FROM NOW-{start} TO NOW-{end}{step}"
        case _:
            assert_never(scope)


def _step(step_ms: int | None, range_ms: int | None) -> str:
    if step_ms is None:
        return ""
    return " TUMBLING" if step_ms == range_ms else f" STEP {iso_duration(step_ms)}"
