"""The additions of C-SPARQL to SPARQL: REGISTER ... COMPUTED EVERY, FROM [NAMED] STREAM.

Defaults (rules W8, R2, R3, A1 and A2 of the semantics page): windows are graphs merged into the
default graph, a query reports when a window closes and some window is not empty, and puts out
RSTREAM. A named stream's window is a named graph under the stream's name.

A default graph that is nothing but one window could be written with a WINDOW block around each
basic pattern in RSP-QL, and is given that form, so that one question has one algebra.
"""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from quadweir.algebra.patterns import BasicPattern, Graph, Pattern, Union, WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy, Tick
from quadweir.algebra.windows import Content, TimeScope, Window
from quadweir.algebra.windows import Scope as WindowScope
from quadweir.syntax.build import Scoped
from quadweir.syntax.build_terms import Branch, trees, words
from quadweir.syntax.build_windows import WindowBuilder
from quadweir.terms import IRI, Variable


class CsparqlBuilder(WindowBuilder):
    """Builds C-SPARQL queries."""

    default_content = Content.GRAPH
    in_window = False  # whether what is read stands in the block of a window

    def register(self, tree: Branch) -> None:
        self.read_name(tree)

    def window_clause(self, tree: Branch) -> None:
        named = "NAMED" in words(tree)
        (token,) = (
            child
            for child in tree.children
            if isinstance(child, Token) and child.type in ("IRIREF", "PNAME")
        )
        stream = self.name(token)
        (scope_tree,) = trees(tree)
        window = Window(
            name=stream if named else self.next_name(),
            stream=stream,
            scope=self._scope(scope_tree),
            content=self.window_content,
            span=self.span(tree),
        )
        if named and any(each.name == stream for each in self.windows):
            raise self.error(
                f"the stream {stream} is a named graph twice",
                token,
                hint="One window can be named after a stream; make the other a FROM STREAM.",
            )
        if not named and any(
            (each.stream, each.scope) == (stream, window.scope) and each.name != stream
            for each in self.windows
        ):
            return  # merging a graph with itself changes nothing
        self.windows.append(window)

    def _scope(self, tree: Branch) -> WindowScope:
        if tree.data == "count_scope":
            scope = self.count_scope(tree)
            # C-SPARQL's count windows tumble (W4).
            return replace(scope, step=scope.step or scope.size)
        range_ms, *_ = self.durations(tree)
        step_ms = self.step_ms(tree, range_ms)
        if step_ms is None:
            raise self.error(
                "a C-SPARQL window has a RANGE only",
                tree,
                hint="C-SPARQL windows need STEP or TUMBLING. In CQELS 2 a RANGE alone means "
                "TUMBLING; name the dialect cqels2 if this is one of its queries.",
            )
        return TimeScope(range_ms=range_ms, step_ms=step_ms, span=self.span(tree))

    # --- where patterns are matched -----------------------------------------------------------

    def unnamed(self) -> list[IRI]:
        """The windows that are merged into the default graph."""
        return [window.name for window in self.windows if window.name != window.stream]

    def sole_window(self) -> IRI | None:
        """The window that is the whole default graph, if there is one."""
        if self.describes:
            return None  # what is described is the default graph, which has to be known as such
        unnamed = self.unnamed()
        alone = len(unnamed) == 1 == len(self.windows) and not self.default_graphs
        named = unnamed and unnamed[0] == self.windows[0].stream
        return unnamed[0] if alone and not named else None

    def leaf(self, pattern: BasicPattern) -> Pattern:
        window = self.sole_window()
        if window is None or self.blocks:
            return pattern
        return WindowPattern(window=window, input=pattern, span=pattern.span)

    def graph(self, tree: Branch) -> Scoped:
        word, name_tree, group = tree.children
        assert isinstance(group, Tree)
        name = self.name_or_variable(name_tree)
        named = [window.name for window in self.windows if window.name == window.stream]
        place = self.span(word)
        # Inside the block of a window, GRAPH looks into that window's named graphs (W11).
        is_block = not self.in_window and (
            name in named or (bool(named) and isinstance(name, Variable))
        )
        outer, self.in_window = self.in_window, self.in_window or is_block
        pattern, scope = self.block(name, group)
        self.in_window = outer
        graph = Graph(graph=name, input=pattern, span=place)
        if not is_block:
            return graph, scope
        windows = WindowPattern(window=name, input=pattern, span=place)
        if isinstance(name, Variable) and self.named_graphs:
            return Union(inputs=(graph, windows), span=place), scope
        return windows, scope

    def finish(self, query: ContinuousQuery) -> ContinuousQuery:
        if not self.windows:
            return replace(query, name=self.query_name)
        return replace(
            query,
            name=self.query_name,
            windows=tuple(self.windows),
            default_graph_windows=() if self.sole_window() else tuple(self.unnamed()),
            report=Report(policy=ReportPolicy.ON_CLOSE, non_empty_only=True),
            tick=Tick(every_ms=self.every_ms),
            output=OutputOperator.RSTREAM,
        )
