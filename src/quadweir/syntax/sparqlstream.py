"""The additions of SPARQLStream to SPARQL: windows that reach back from NOW, and ISTREAM, DSTREAM
and RSTREAM.

Defaults (rules W6, W8, R1 to R3, A1 and A2 of the semantics page): windows are graphs merged into
the default graph, a query reports on close if one of its windows has a SLIDE and on change if none
has, keeps silent where all windows are empty, and puts out RSTREAM unless it says otherwise.

`GRAPH <stream> { }` matches the window of that stream alone, which is then named after the stream.
`GRAPH ?g` ranges over static graphs. A single window without such a block is the whole default
graph, as in C-SPARQL.
"""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from quadweir.algebra.patterns import BasicPattern, Pattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import OutputOperator, Report, ReportPolicy
from quadweir.algebra.windows import NowScope, PastScope, TimeScope, Window, is_stepped
from quadweir.algebra.windows import Scope as WindowScope
from quadweir.syntax.build import QueryBuilder, Scoped
from quadweir.syntax.build_terms import Branch, trees, words
from quadweir.syntax.csparql import CsparqlBuilder
from quadweir.terms import IRI


class SparqlStreamBuilder(CsparqlBuilder):
    """Builds SPARQLStream queries."""

    # The blocks that may ask for a window, and whether some pattern stands outside of all.
    blocks_found: tuple[Branch, ...] = ()
    has_bare = False

    def build(self, unit: Branch) -> ContinuousQuery:
        self.blocks_found = tuple(unit.find_data("graph"))
        return super().build(unit)

    def _has_block(self, stream: IRI) -> bool:
        names = (block.children[1] for block in self.blocks_found)
        return any(isinstance(name, Tree) and self.iri(name) == stream for name in names)

    def output_word(self, word: str) -> None:
        self.output = OutputOperator[word]

    def window_clause(self, tree: Branch) -> None:
        (token,) = (
            child
            for child in tree.children
            if isinstance(child, Token) and child.type in ("IRIREF", "PNAME")
        )
        stream = self.name(token)
        (scope_tree,) = trees(tree)
        scope = self._scope(scope_tree)
        if any((each.stream, each.scope) == (stream, scope) for each in self.windows):
            return  # merging a graph with itself changes nothing
        named = self._has_block(stream)
        if named and any(each.stream == stream for each in self.windows):
            raise self.error(
                f"the stream {stream} has two windows, and GRAPH cannot tell them apart",
                token,
                hint="Keep one of them, or leave the GRAPH blocks out.",
            )
        self.windows.append(
            Window(
                name=stream if named else self.next_name(),
                stream=stream,
                scope=scope,
                content=self.window_content,
                span=self.span(tree),
            )
        )

    def _scope(self, tree: Branch) -> WindowScope:
        place = self.span(tree)
        kinds = words(tree)
        lengths = [self.duration_ms(each, zero=True) for each in trees(tree)]
        step = lengths.pop() if kinds & {"STEP", "SLIDE"} else None
        from_ms, to_ms = (*lengths, 0, 0)[:2]
        if step == 0:
            raise self.error("a SLIDE is zero", tree, hint="Write 1 MS or more.")
        if from_ms == 0 == to_ms:
            # Times are whole milliseconds, so the present instant is the last millisecond.
            return NowScope(span=place) if step is None else TimeScope(range_ms=1, step_ms=step)
        if from_ms <= to_ms:
            raise self.error(
                "a window [NOW - a TO NOW - b] ends before it starts",
                tree,
                hint="The first duration reaches further back than the second.",
            )
        if "TUMBLING" in kinds:
            step = from_ms - to_ms
        if to_ms == 0:
            return TimeScope(range_ms=from_ms, step_ms=step, span=place)
        return PastScope(from_ms=from_ms, to_ms=to_ms, step_ms=step, span=place)

    # --- where patterns are matched -----------------------------------------------------------

    def unnamed(self) -> list[IRI]:
        return [window.name for window in self.windows]

    def graph(self, tree: Branch) -> Scoped:
        name = tree.children[1]
        if isinstance(name, Tree):
            return super().graph(tree)
        return QueryBuilder.graph(self, tree)

    def leaf(self, pattern: BasicPattern) -> Pattern:
        self.has_bare = self.has_bare or not self.blocks
        return super().leaf(pattern)

    def finish(self, query: ContinuousQuery) -> ContinuousQuery:
        if not self.windows:
            return query
        stepped = any(is_stepped(window.scope) for window in self.windows)
        policy = ReportPolicy.ON_CLOSE if stepped else ReportPolicy.ON_CHANGE
        merged = (self.has_bare or self.describes) and not self.sole_window()
        return replace(
            query,
            windows=tuple(self.windows),
            default_graph_windows=tuple(self.unnamed()) if merged else (),
            report=Report(policy=policy, non_empty_only=True),
            output=self.output or OutputOperator.RSTREAM,
        )
