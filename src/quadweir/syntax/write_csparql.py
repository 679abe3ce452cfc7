"""Algebra to C-SPARQL text.

A window that stands alone becomes a FROM STREAM, as do windows that make up the default graph.
Other windows become named streams, whose content a GRAPH block matches alone; so that bare
patterns still mean static data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from quadweir.algebra.analyze import windows_with_graphs
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import BasicPattern, Graph, Pattern, Service, WindowPattern
from quadweir.algebra.query import ConstructForm, ContinuousQuery, DescribeForm
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy
from quadweir.algebra.traverse import children
from quadweir.algebra.windows import (
    AllScope,
    Content,
    CountScope,
    CountUnit,
    NowScope,
    PastScope,
    TimeScope,
    Window,
)
from quadweir.syntax.write_sparql import SparqlWriter
from quadweir.syntax.write_windows import WindowWriter, short_duration
from quadweir.terms import IRI, Variable

_FALLBACK_STEP_MS: Final = 1000


class CsparqlWriter(WindowWriter):
    """Writes C-SPARQL, whose windows always step and merge unless they are named."""

    title = "C-SPARQL"
    content = Content.GRAPH

    def __init__(self, query: ContinuousQuery, prefixes: Mapping[str, str] | None = None) -> None:
        super().__init__(query, prefixes)
        self.alone = _stands_alone(query)
        self._named = self._choose_named()

    def report(self) -> Report:
        return Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True)

    def check(self) -> None:
        super().check()
        query = self.query
        if query.output is not OutputOperator.RSTREAM:
            self.warn("output", f"C-SPARQL always puts out RSTREAM, not {query.output.name}", query)
        for window in query.windows:
            self.lose_event_time(window)

    def heading(self) -> list[str]:
        every = self.query.tick.every_ms
        name = self.query.name
        if name is None and every is None:
            return []
        if name is None:
            self.warn("name", "C-SPARQL computes only registered queries; this one is now named q")
        # REGISTER comes before the prefixes, so the name is written out.
        written = self.register_name(name or "q", prefixed=False)
        kind = "STREAM" if isinstance(self.query.form, ConstructForm) else "QUERY"
        computed = "" if every is None else f" COMPUTED EVERY {short_duration(every)}"
        return [f"REGISTER {kind} {written}{computed} AS"]

    def joined(self, prologue: list[str], heading: list[str], body: list[str]) -> list[str]:
        # C-SPARQL's own engine wants REGISTER first.
        return [*heading, *prologue, *body]

    # --- windows ----------------------------------------------------------------------------------

    def _choose_named(self) -> dict[IRI, Window]:
        """Pick the windows that become named streams: one for each stream."""
        if self.alone:
            return {}
        merged = set(self.query.default_graph_windows)
        chosen: dict[IRI, Window] = {}
        for window in self.query.windows:
            if window.name in merged or isinstance(window.stream, Variable):
                continue
            known = chosen.setdefault(window.stream, window)
            if known.scope != window.scope:
                raise self.refused(
                    f"{self.title} cannot keep two windows over {window.stream} apart: {known.name} "
                    f"and {window.name}",
                    window,
                )
        return chosen

    def window_clauses(self) -> list[str]:
        clauses = []
        for window in self.query.windows:
            if isinstance(window.stream, Variable):
                raise self.refused(
                    f"C-SPARQL has no variable such as {window.stream} for streams", window
                )
            merged = self.alone or window.name in self.query.default_graph_windows
            word = "FROM STREAM" if merged else "FROM NAMED STREAM"
            clause = f"{word} {self.iri(window.stream)} [{self._scope(window)}]"
            if clause not in clauses:
                clauses.append(clause)
        return clauses

    def _scope(self, window: Window) -> str:
        scope = window.scope
        match scope:
            case TimeScope():
                length = short_duration(scope.range_ms)
                if scope.step_ms == scope.range_ms:
                    return f"RANGE {length} TUMBLING"
                step = scope.step_ms or self._made_up_step(window)
                return f"RANGE {length} STEP {short_duration(step)}"
            case CountScope():
                if scope.unit is CountUnit.ELEMENTS:
                    self.warn(
                        "count-unit", f"{window.name} counts elements, C-SPARQL triples", window
                    )
                if scope.step == scope.size:
                    return f"RANGE TRIPLES {scope.size}"
                if scope.step is None:
                    self.warn(
                        "step", f"{window.name} has no step; in C-SPARQL it steps by 1", window
                    )
                return f"RANGE TRIPLES {scope.size} STEP {scope.step or 1}"
            case NowScope():
                self.warn(
                    "step", f"{window.name} has no step; in C-SPARQL it steps by 1 ms", window
                )
                return "RANGE 1ms TUMBLING"
            case AllScope():
                raise self.refused(
                    f"C-SPARQL has no windows without end, such as {window.name}", window
                )
            case PastScope():
                raise self.refused(
                    f"C-SPARQL has no windows that end before now, such as {window.name}", window
                )
            case _:
                assert_never(scope)

    def _made_up_step(self, window: Window) -> int:
        """Take the shortest range of the query, as a step that misses nothing."""
        ranges = [w.scope.range_ms for w in self.query.windows if isinstance(w.scope, TimeScope)]
        step = min(ranges, default=_FALLBACK_STEP_MS)
        self.warn(
            "step",
            f"C-SPARQL windows need a step; {window.name} has none and is given "
            f"{short_duration(step)}, the shortest range",
            window,
        )
        return step

    def window(self, pattern: WindowPattern) -> list[str]:
        if self.alone:
            # The window is the default graph.
            inner = self.group(pattern.input)
            bare = isinstance(pattern.input, BasicPattern)
            return inner if bare else ["{", *(f"  {line}" for line in inner), "}"]
        if isinstance(pattern.window, Variable):
            if any(each.name != each.stream for each in self.windows_named(pattern.window)):
                self.warn(
                    "window-variable",
                    f"{pattern.window} will be bound to the names of streams, not of windows",
                    pattern,
                )
            return self.block(f"GRAPH {self.term(pattern.window)}", pattern.input)
        (window,) = self.windows_named(pattern.window)
        return self.block(f"GRAPH {self.term(window.stream)}", pattern.input)

    def is_bare(self, pattern: Pattern) -> bool:
        if self.alone and isinstance(pattern, WindowPattern):
            pattern = pattern.input
        return SparqlWriter.is_bare(self, pattern)

    def leaf(self, pattern: BasicPattern) -> list[str]:
        return self.triples(pattern)


def _stands_alone(query: ContinuousQuery) -> bool:
    """Whether a query has one window, under a name of its own, and reads nothing else by default."""
    if len(query.windows) != 1 or query.default_graphs or query.default_graph_windows:
        return False
    if isinstance(query.form, DescribeForm):
        return False  # its default graph, which is static, is described too
    if windows_with_graphs(query):
        return False  # outside of a block GRAPH would name static data
    window = query.windows[0]
    if window.name == window.stream or isinstance(window.stream, Variable):
        return False
    return all(
        isinstance(name, IRI) for name in _window_names(query.pattern)
    ) and not reads_default(query.pattern)


def _window_names(node: Node) -> list[IRI | Variable]:
    found = [node.window] if isinstance(node, WindowPattern) else []
    for child in children(node):
        found += _window_names(child)
    return found


def reads_default(node: Node) -> bool:
    """Whether some pattern is matched outside of all blocks."""
    if isinstance(node, WindowPattern | Graph | Service):
        return False
    if isinstance(node, BasicPattern):
        return bool(node.patterns)
    return any(reads_default(child) for child in children(node))
