"""Which patterns of a query match nothing, found while the oracle reads its input.

The engine asks Spark for this (`runtime/unmatched.py`); the oracle runs without Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from quadweir.algebra.patterns import TriplePattern, WindowPattern
from quadweir.algebra.traverse import children
from quadweir.terms import IRI, Literal, Quad

if TYPE_CHECKING:
    from quadweir.algebra.node import Node
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.sources.streamfiles import Element

# Where static data comes from, among the names of streams.
_STATIC: Final = ""


@final
@dataclass(frozen=True, slots=True)
class _Wanted:
    """A pattern, and the streams that it may match; None stands for all."""

    pattern: TriplePattern
    streams: frozenset[str] | None

    def is_matched_by(self, quad: Quad, stream: str) -> bool:
        pattern = self.pattern
        return (self.streams is None or stream in self.streams) and all(
            wanted == found
            for wanted, found in (
                (pattern.subject, quad.subject),
                (pattern.predicate, quad.predicate),
                (pattern.object, quad.object),
            )
            # A blank node of a pattern is a variable; what a triple term holds is not looked into.
            if isinstance(wanted, IRI | Literal)
        )

    def __str__(self) -> str:
        pattern, span = self.pattern, self.pattern.span
        if self.streams == frozenset({_STATIC}):
            what = "no static data matches"
        elif self.streams is None or len(self.streams) > 1:
            what = "no statement matches"
        else:
            what = f"no statement of <{next(iter(self.streams))}> matches"
        place = f" (line {span.line}, column {span.column})" if span is not None else ""
        return f"{what} {pattern.subject} {pattern.predicate} {pattern.object}{place}"


@final
class Unmatched:
    """The patterns of a query that nothing has matched so far."""

    def __init__(self, query: ContinuousQuery, static: Iterable[Quad]) -> None:
        self._wanted = list(_patterns(query))
        for quad in static:
            self._see(quad, _STATIC)

    def watching(self, feed: Iterable[Element]) -> Iterator[Element]:
        """Give the elements on, and look at each."""
        for element in feed:
            for quad in element.quads if self._wanted else ():
                self._see(quad, element.stream)
            yield element

    def said(self) -> list[str]:
        """Say of each pattern that is left that nothing matches it."""
        return list(map(str, self._wanted))

    def _see(self, quad: Quad, stream: str) -> None:
        self._wanted = [each for each in self._wanted if not each.is_matched_by(quad, stream)]


def _patterns(query: ContinuousQuery) -> Iterator[_Wanted]:
    """List the patterns of triples, each with the streams of the windows that it stands in."""
    over = {
        window.name: window.stream.value if isinstance(window.stream, IRI) else None
        for window in query.windows
    }
    outside = _streams([over[name] for name in query.default_graph_windows], [_STATIC])
    stack: list[tuple[Node, frozenset[str] | None]] = [(query.pattern, outside)]
    while stack:
        node, streams = stack.pop()
        match node:
            case TriplePattern():
                yield _Wanted(node, streams)
            case WindowPattern(window=IRI() as name):
                stack.append((node.input, _streams([over[name]])))
            case WindowPattern():
                stack.append((node.input, _streams(over.values())))
            case _:
                stack += ((each, streams) for each in reversed(children(node)))


def _streams(*groups: Iterable[str | None]) -> frozenset[str] | None:
    """Give the names of streams; None if a variable stands for one of them."""
    named = [each for group in groups for each in group]
    return None if None in named else frozenset(each for each in named if each is not None)
