"""Property paths: the pairs of nodes that a path connects.

A path without repetition counts every way to walk it; `*`, `+` and `?` give each pair once.

Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, assert_never

from quadweir.algebra.dataset import TripleSource
from quadweir.algebra.patterns import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from quadweir.terms import Term

Pair: TypeAlias = tuple[Term, Term]


def connected(
    source: TripleSource, path: Path, start: Term | None, end: Term | None
) -> Iterator[Pair]:
    """Give the pairs of nodes that the path connects; None for an end that is not fixed.

    A fixed end is a term of the pattern: a path of no steps has it even if the graph has not.

    >>> from quadweir.algebra.dataset import graph_source
    >>> from quadweir.terms import IRI, Quad
    >>> a, b, c, p = map(IRI, ("urn:a", "urn:b", "urn:c", "urn:p"))
    >>> source = graph_source([Quad(a, p, b), Quad(b, p, c)])
    >>> [str(end) for _, end in connected(source, OneOrMore(path=Link(predicate=p)), a, None)]
    ['<urn:b>', '<urn:c>']
    """
    match path:
        case Link(predicate=predicate):
            for occurrence in source.match(start, predicate, end):
                yield occurrence.subject, occurrence.object
        case Inverse(path=inner):
            for left, right in connected(source, inner, end, start):
                yield right, left
        case Sequence(paths=paths):
            yield from _sequence(source, paths, start, end)
        case Alternative(paths=paths):
            for each in paths:
                yield from connected(source, each, start, end)
        case NegatedSet(forward=forward, backward=backward):
            if forward or not backward:
                for occurrence in source.match(start, None, end):
                    if occurrence.predicate not in forward:
                        yield occurrence.subject, occurrence.object
            if backward:
                for occurrence in source.match(end, None, start):
                    if occurrence.predicate not in backward:
                        yield occurrence.object, occurrence.subject
        case ZeroOrOne(path=inner):
            pairs = dict.fromkeys(connected(source, inner, start, end))
            pairs.update(dict.fromkeys(_no_steps(source, start, end)))
            yield from pairs
        case ZeroOrMore(path=inner):
            yield from _closure(source, inner, start, end, at_least_one=False)
        case OneOrMore(path=inner):
            yield from _closure(source, inner, start, end, at_least_one=True)
        case _:
            assert_never(path)


def _no_steps(source: TripleSource, start: Term | None, end: Term | None) -> Iterator[Pair]:
    """From each node to itself; a fixed end is a node even if the graph does not have it."""
    if start is not None and end is not None:
        if start == end:
            yield start, end
    elif start is not None:
        yield start, start
    elif end is not None:
        yield end, end
    else:
        for node in source.nodes():
            yield node, node


def _sequence(
    source: TripleSource, paths: tuple[Path, ...], start: Term | None, end: Term | None
) -> Iterator[Pair]:
    # What is between two steps is a variable. A step between two variables stays among the nodes
    # of the graph, even where no triple is needed to get from one to the other.
    nodes = source.nodes()
    first, *rest = paths
    if not rest:
        yield from connected(source, first, start, end)
        return
    if start is None and end is not None:
        # Walk from the end that is known.
        *before, last = paths
        for middle, right in connected(source, last, None, end):
            if middle in nodes:
                for left, _ in _sequence(source, tuple(before), None, middle):
                    yield left, right
        return
    for left, middle in connected(source, first, start, None):
        if middle in nodes or (end is not None and len(rest) == 1):
            for _, right in _sequence(source, tuple(rest), middle, end):
                yield left, right


def _closure(
    source: TripleSource, step: Path, start: Term | None, end: Term | None, *, at_least_one: bool
) -> Iterator[Pair]:
    if start is None and end is not None:
        for left, right in _closure(
            source, Inverse(path=step), end, None, at_least_one=at_least_one
        ):
            yield right, left
        return
    starts = source.nodes() if start is None else (start,)
    for node in starts:
        for reached in _reach(source, step, node, at_least_one=at_least_one):
            if end is None or reached == end:
                yield node, reached


def _reach(
    source: TripleSource, step: Path, start: Term, *, at_least_one: bool
) -> dict[Term, None]:
    """The nodes that repeated steps lead to, in the order they are found."""
    reached: dict[Term, None] = {} if at_least_one else {start: None}
    frontier = [start]
    while frontier:
        node = frontier.pop()
        for _, target in connected(source, step, node, None):
            if target not in reached:
                reached[target] = None
                frontier.append(target)
    return reached
