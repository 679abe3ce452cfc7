"""Join the static parts of a query into one piece that is evaluated once."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from quadweir.algebra.analyze import is_static
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import (
    BasicPattern,
    Join,
    PathPattern,
    Pattern,
    Service,
    TriplePattern,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import in_scope
from quadweir.algebra.traverse import PATTERN_CLASSES, with_children
from quadweir.optimize.conditions import is_volatile
from quadweir.terms import Variable


def gather_static(query: ContinuousQuery) -> ContinuousQuery:
    """Turn Join(window, A, window, B) into Join(window, window, Join(A, B)) for static A and B.

    Only parts that share a variable are joined beforehand: a product of two unrelated tables
    would be larger than both. Triple patterns that share no variable are separated for that.
    """
    if not query.windows:
        return query
    pattern = _gather(query.pattern, query)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


def _gather(pattern: Pattern, query: ContinuousQuery) -> Pattern:
    if isinstance(pattern, WindowPattern | Service) or is_static(pattern, query):
        return pattern  # inside a window only GRAPH is static, and it is one piece

    def below(child: Node) -> Node:
        return _gather(cast(Pattern, child), query) if isinstance(child, PATTERN_CLASSES) else child

    pattern = with_children(pattern, below)
    if not isinstance(pattern, Join):
        return pattern
    static = [each for each in pattern.inputs if is_static(each, query) and not is_volatile(each)]
    apart = [part for each in static for part in _apart(each, query)]
    pieces = _connected(apart, query)
    if len(apart) == len(static) and all(len(piece) == 1 for piece in pieces):
        return pattern
    moving = [each for each in pattern.inputs if each not in static]
    gathered: list[Pattern] = [
        piece[0] if len(piece) == 1 else Join(inputs=tuple(piece)) for piece in pieces
    ]
    return Join(inputs=(*moving, *gathered), span=pattern.span)


def _apart(pattern: Pattern, query: ContinuousQuery) -> list[Pattern]:
    """Separate triple patterns that share no variable."""
    if not isinstance(pattern, BasicPattern):
        return [pattern]
    single: list[Pattern] = [replace(pattern, patterns=(each,)) for each in pattern.patterns]
    pieces = _connected(single, query)
    if len(pieces) < 2:
        return [pattern]
    return [
        replace(pattern, patterns=tuple(one for each in piece for one in _patterns(each)))
        for piece in pieces
    ]


def _patterns(pattern: Pattern) -> tuple[TriplePattern | PathPattern, ...]:
    assert isinstance(pattern, BasicPattern)
    return pattern.patterns


def _connected(patterns: list[Pattern], query: ContinuousQuery) -> list[list[Pattern]]:
    """Group patterns that share variables, in order."""
    pieces: list[tuple[list[Pattern], frozenset[Variable]]] = []
    for each in patterns:
        scope = in_scope(each, query)
        touching = [piece for piece in pieces if piece[1] & scope]
        rest = [piece for piece in pieces if not piece[1] & scope]
        members = [member for piece in touching for member in piece[0]]
        pieces = [*rest, ([*members, each], scope.union(*(piece[1] for piece in touching)))]
    return [members for members, _ in pieces]
