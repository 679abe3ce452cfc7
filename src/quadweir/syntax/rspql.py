"""The additions of RSP-QL to SPARQL: REGISTER, FROM NAMED WINDOW and WINDOW.

Defaults (rules W8, R1 to R3 and A2 of the semantics page): windows are graphs, a query reports
always, on close if one of its windows has a step and on change if none has, and puts out RSTREAM
unless it says otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from lark import Token, Tree

from quadweir.algebra.patterns import WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.streams import ON_CHANGE, ON_CLOSE, OutputOperator, Tick
from quadweir.algebra.windows import (
    AllScope,
    Content,
    NowScope,
    PastScope,
    TimeScope,
    Window,
    is_stepped,
)
from quadweir.algebra.windows import Scope as WindowScope
from quadweir.syntax.build import Scoped
from quadweir.syntax.build_terms import Branch, trees, words
from quadweir.syntax.build_windows import WindowBuilder
from quadweir.terms import IRI, Variable


class RspqlBuilder(WindowBuilder):
    """Builds RSP-QL queries."""

    default_content = Content.GRAPH

    def register(self, tree: Branch) -> None:
        _, kind, *_ = tree.children
        assert isinstance(kind, Token)
        self.read_name(tree)
        if kind.type not in ("STREAM", "QUERY"):
            self.output_word(kind.type)

    def output_word(self, word: str) -> None:
        self.output = OutputOperator[word]

    def window_clause(self, tree: Branch) -> None:
        names = [
            child
            for child in tree.children
            if isinstance(child, Token) and child.type in ("IRIREF", "PNAME", "VAR")
        ]
        scope_tree, *event_time = trees(tree)
        (predicate,) = (trees(each)[0] for each in event_time) if event_time else (None,)
        name_token, stream_token = names
        name = self.name(name_token)
        stream: IRI | Variable
        if stream_token.type == "VAR":
            stream = self.variable(stream_token)
        else:
            stream = self.name(stream_token)
        if name in (window.name for window in self.windows):
            raise self.error(
                f"the window {name} is declared twice", name_token, hint="Give each its own name."
            )
        self.windows.append(
            Window(
                name=name,
                stream=stream,
                scope=self._scope(scope_tree),
                content=self.window_content,
                event_time=None if predicate is None else self.iri(predicate),
                span=self.span(tree),
            )
        )

    def _scope(self, tree: Branch) -> WindowScope:
        place = self.span(tree)
        match str(tree.data):
            case "time_scope":
                range_ms, *_ = self.durations(tree)
                return TimeScope(
                    range_ms=range_ms, step_ms=self.step_ms(tree, range_ms), span=place
                )
            case "count_scope":
                return self.count_scope(tree)
            case "past_scope":
                return self._past(tree)
            case "now_scope":
                return NowScope(span=place)
            case _:
                return AllScope(span=place)

    def _past(self, tree: Branch) -> WindowScope:
        kinds = words(tree)
        stepped = bool(kinds & {"STEP", "SLIDE"})
        lengths = [self.duration_ms(each, zero=True) for each in trees(tree)]
        step = lengths.pop() if stepped else None
        from_ms, to_ms = lengths if len(lengths) == 2 else (lengths[0], 0)
        if from_ms <= to_ms:
            raise self.error(
                "a window FROM NOW-a TO NOW-b ends before it starts",
                tree,
                hint="The first duration reaches further back than the second.",
            )
        if step == 0:
            raise self.error("a step is zero", tree)
        if "TUMBLING" in kinds:
            step = from_ms - to_ms
        return PastScope(from_ms=from_ms, to_ms=to_ms, step_ms=step, span=self.span(tree))

    def window_element(self, tree: Branch) -> Scoped:
        word, name_token, group = tree.children
        assert isinstance(name_token, Token)
        assert isinstance(group, Tree)
        name: IRI | Variable
        if name_token.type == "VAR":
            name = self.variable(name_token)
        else:
            name = self.name(name_token)
            declared = [window.name for window in self.windows]
            if name not in declared:
                listed = ", ".join(map(str, declared[:5])) or "none"
                raise self.error(
                    f"the window {name} is not declared",
                    name_token,
                    hint=f"Declare it with FROM NAMED WINDOW {name} ON ... [...]; "
                    f"declared are: {listed}.",
                )
        pattern, scope = self.block(name, group)
        streams = dict.fromkeys(
            window.stream
            for window in self.windows
            if isinstance(window.stream, Variable)
            and (isinstance(name, Variable) or name == window.name)
        )
        return WindowPattern(window=name, input=pattern, span=self.span(word)), {**streams, **scope}

    def finish(self, query: ContinuousQuery) -> ContinuousQuery:
        stepped = any(is_stepped(window.scope) for window in self.windows)
        return replace(
            query,
            name=self.query_name,
            windows=tuple(self.windows),
            report=ON_CLOSE if stepped else ON_CHANGE,
            tick=Tick(every_ms=self.every_ms),
            output=self.output or OutputOperator.RSTREAM,
        )
