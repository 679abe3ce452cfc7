"""The additions of CQELS-QL to SPARQL: STREAM blocks with a window, anywhere in WHERE.

Defaults (rules W8, R1 to R3 and A2 of the semantics page): windows are bags, a query reports on
change unless all of its windows have a step, and puts out ISTREAM.

CQELS 2 declares its windows in FROM STREAM, where `[RANGE 10s]` tumbles; in CQELS 1 the same words
mean a window that slides with every element. A query that could be either is refused, unless the
dialect `cqels2` is asked for by name.
"""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from quadweir.algebra.patterns import BasicPattern, Pattern, WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator
from quadweir.algebra.windows import (
    AllScope,
    Content,
    NowScope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.algebra.windows import Scope as WindowScope
from quadweir.errors import UnsupportedError
from quadweir.syntax.build import Scoped
from quadweir.syntax.build_terms import Branch, trees, words
from quadweir.syntax.build_windows import WindowBuilder
from quadweir.terms import IRI, Variable


class CqelsBuilder(WindowBuilder):
    """Builds CQELS-QL 1.x queries."""

    default_content = Content.BAG

    def register(self, tree: Branch) -> None:
        raise self._version_two(tree, "REGISTER")

    def window_clause(self, tree: Branch) -> None:
        raise self._version_two(tree, "FROM STREAM")

    def _version_two(self, tree: Branch, words_used: str) -> UnsupportedError:
        return UnsupportedError(
            f"{words_used} is CQELS 2, where windows mean something else",
            detail="In CQELS 2 [RANGE 10s] is a window that tumbles every ten seconds; in "
            "CQELS-QL 1 it slides with every element.",
            hint="Name the dialect cqels2, or write STREAM <s> [RANGE 10s TUMBLING] { } in WHERE.",
            span=self.span(tree),
        )

    def scope(self, tree: Branch) -> WindowScope:
        place = self.span(tree)
        match str(tree.data):
            case "time_scope":
                range_ms, *_ = self.durations(tree)
                return TimeScope(
                    range_ms=range_ms, step_ms=self.step_ms(tree, range_ms), span=place
                )
            case "sliding_scope":
                range_ms, step_ms = self.durations(tree)
                return TimeScope(range_ms=range_ms, step_ms=step_ms, span=place)
            case "count_scope":
                return self.count_scope(tree)
            case "now_scope":
                return NowScope(span=place)
            case _:
                return AllScope(span=place)

    def stream_parts(self, tree: Branch) -> tuple[Token, Token, Branch | None, Branch]:
        """Take a STREAM block apart: the word, the stream, its window if any, the group."""
        word, stream, *between, group = tree.children
        assert isinstance(word, Token)
        assert isinstance(stream, Token)
        assert isinstance(group, Tree)
        scope = between[0] if between else None
        assert scope is None or isinstance(scope, Tree)
        return word, stream, scope, group

    def window_element(self, tree: Branch) -> Scoped:
        word, stream_token, scope_tree, group = self.stream_parts(tree)
        if scope_tree is None:
            raise self.error(
                "a STREAM block has no window",
                stream_token,
                hint="Write one of [NOW], [ALL], [RANGE 10s], [RANGE 10s SLIDE 1s] or "
                "[TRIPLES 100] after the stream.",
            )
        if scope_tree.data == "sliding_scope" or "STEP" in words(scope_tree):
            raise self.error(
                "a CQELS-QL window has a STEP",
                scope_tree,
                hint="Write [RANGE 10s SLIDE 1s].",
            )
        if stream_token.type == "NAME":
            raise self.error(
                f"{stream_token} is no stream", stream_token, hint="Write its IRI in <>."
            )
        stream: IRI | Variable
        if stream_token.type == "VAR":
            stream = self.variable(stream_token)
        else:
            stream = self.name(stream_token)
        name = self._window(stream, self.scope(scope_tree), tree)
        pattern, scope = self.block(stream, group)
        return WindowPattern(window=name, input=pattern, span=self.span(word)), scope

    def _window(self, stream: IRI | Variable, scope: WindowScope, tree: Branch) -> IRI:
        # The same window over the same stream in two blocks is one window: it has one content.
        for window in self.windows:
            if (window.stream, window.scope) == (stream, scope):
                return window.name
        name = self.next_name()
        self.windows.append(
            Window(
                name=name,
                stream=stream,
                scope=scope,
                content=self.window_content,
                span=self.span(tree.children[0]),
            )
        )
        return name

    def finish(self, query: ContinuousQuery) -> ContinuousQuery:
        if not self.windows:
            return replace(query, name=self.query_name)
        stepped = all(is_stepped(window.scope) for window in self.windows)
        return replace(
            query,
            name=self.query_name,
            windows=tuple(self.windows),
            report=ON_CLOSE if stepped else ON_CHANGE,
            output=OutputOperator.ISTREAM,
        )


class Cqels2Builder(CqelsBuilder):
    """Builds CQELS 2 queries: windows in FROM STREAM, tumbling unless they have a STEP."""

    def register(self, tree: Branch) -> None:
        self.read_name(tree)

    def window_clause(self, tree: Branch) -> None:
        token = tree.children[2]
        assert isinstance(token, Token)
        stream = self.name(token)
        if any(window.stream == stream for window in self.windows):
            raise self.error(
                f"the stream {stream} is declared twice",
                token,
                hint="CQELS 2 has one window per stream.",
            )
        (scope_tree,) = trees(tree)
        self._window(stream, self.scope(scope_tree), tree)

    def scope(self, tree: Branch) -> WindowScope:
        scope = super().scope(tree)
        match scope:
            case TimeScope(step_ms=None, range_ms=range_ms):
                return replace(scope, step_ms=range_ms)
            case _:
                return scope

    def window_element(self, tree: Branch) -> Scoped:
        word, stream_token, scope_tree, group = self.stream_parts(tree)
        if scope_tree is not None or stream_token.type == "VAR":
            raise self.error(
                "a CQELS 2 STREAM block has a window or a variable",
                stream_token,
                hint="Declare the window in FROM STREAM, or name the dialect cqels.",
            )
        stream = self.name(stream_token)
        for window in self.windows:
            if window.stream == stream:
                pattern, scope = self.block(stream, group)
                return WindowPattern(window=window.name, input=pattern, span=self.span(word)), scope
        raise self.error(
            f"the stream {stream} is not declared",
            stream_token,
            hint=f"Add FROM STREAM {stream} [...].",
        )

    def leaf(self, pattern: BasicPattern) -> Pattern:
        """Bind bare patterns to the only stream, if there is nothing else they could mean."""
        alone = len(self.windows) == 1 and not self.default_graphs and not self.named_graphs
        if self.blocks or not alone or self.has_blocks:
            return pattern
        return WindowPattern(window=self.windows[0].name, input=pattern, span=pattern.span)

    has_blocks = False

    def build(self, unit: Branch) -> ContinuousQuery:
        self.has_blocks = any(True for _ in unit.find_data("stream"))
        return super().build(unit)
