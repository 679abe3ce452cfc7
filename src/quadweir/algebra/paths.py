"""Property paths: the pairs of nodes that a path connects.

A path without repetition counts every way to walk it; `*`, `+` and `?` give each pair once. So
inside of these no way is counted: the nodes that a step leads to are a set, found once for each
node (`_Walk`), and a path takes no longer than the square of the graph however deep it is nested.

Spec: https://www.w3.org/TR/sparql11-query/#propertypaths
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias, assert_never, final

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
from quadweir.algebra.work import WorkCounter
from quadweir.terms import Term

Pair: TypeAlias = tuple[Term, Term]

_WALKS: Final = "a path goes from node to node"


def connected(
    source: TripleSource,
    path: Path,
    start: Term | None,
    end: Term | None,
    work: WorkCounter | None = None,
) -> Iterator[Pair]:
    """The pairs of nodes that the path connects; None for an end that is not fixed.

    A fixed end is a term of the pattern: a path of no steps has it even if the graph has not.

    >>> from quadweir.algebra.dataset import graph_source
    >>> from quadweir.terms import IRI, Quad
    >>> a, b, c, p = map(IRI, ("urn:a", "urn:b", "urn:c", "urn:p"))
    >>> source = graph_source([Quad(a, p, b), Quad(b, p, c)])
    >>> [str(end) for _, end in connected(source, OneOrMore(path=Link(predicate=p)), a, None)]
    ['<urn:b>', '<urn:c>']

    Raises:
        LimitError: that is more work than the limit allows.
    """
    work = work if work is not None else WorkCounter(size=len(source.occurrences))
    match path:
        case Link() | NegatedSet():
            for pair in _one_step(source, path, start, end):
                work.spend(1, _WALKS)
                yield pair
        case Inverse(path=inner):
            for left, right in connected(source, inner, end, start, work):
                yield right, left
        case Sequence(paths=paths):
            yield from _sequence(source, paths, start, end, work)
        case Alternative(paths=paths):
            for each in paths:
                yield from connected(source, each, start, end, work)
        case ZeroOrOne() | ZeroOrMore() | OneOrMore():
            yield from _once(source, path, start, end, work)
        case _:
            assert_never(path)


def _one_step(
    source: TripleSource, path: Link | NegatedSet, start: Term | None, end: Term | None
) -> Iterator[Pair]:
    if isinstance(path, Link):
        for occurrence in source.match(start, path.predicate, end):
            yield occurrence.subject, occurrence.object
        return
    if path.forward or not path.backward:
        for occurrence in source.match(start, None, end):
            if occurrence.predicate not in path.forward:
                yield occurrence.subject, occurrence.object
    if path.backward:
        for occurrence in source.match(end, None, start):
            if occurrence.predicate not in path.backward:
                yield occurrence.object, occurrence.subject


def _sequence(
    source: TripleSource,
    paths: tuple[Path, ...],
    start: Term | None,
    end: Term | None,
    work: WorkCounter,
) -> Iterator[Pair]:
    if start is None and end is not None:
        # Walk from the end that is known.
        back = tuple(Inverse(path=each) for each in reversed(paths))
        for left, right in _sequence(source, back, end, None, work):
            yield right, left
        return
    # What is between two steps is a variable. A step between two variables stays among the nodes
    # of the graph, even where no triple is needed to get from one to the other.
    nodes = source.nodes()
    last = len(paths) - 1
    pairs = list(connected(source, paths[0], start, end if last == 0 else None, work))
    for place, path in enumerate(paths[1:], 1):
        goal = end if place == last else None
        ends: dict[Term, list[Term]] = {}
        longer: list[Pair] = []
        for left, middle in pairs:
            if middle not in nodes and goal is None:
                continue
            if middle not in ends:
                ends[middle] = [right for _, right in connected(source, path, middle, goal, work)]
            work.spend(len(ends[middle]), _WALKS)
            longer += [(left, right) for right in ends[middle]]
        pairs = longer
    yield from pairs


def _once(
    source: TripleSource,
    path: ZeroOrOne | ZeroOrMore | OneOrMore,
    start: Term | None,
    end: Term | None,
    work: WorkCounter,
) -> Iterator[Pair]:
    """The pairs of a path that gives each of them once."""
    if start is None and end is not None:
        for left, right in _once(source, type(path)(path=Inverse(path=path.path)), end, None, work):
            yield right, left
        return
    walk = _Walk(source, work)
    # A fixed start is a node even if the graph does not have it.
    for node in source.nodes() if start is None else (start,):
        reached = walk.from_node(path, node, backward=False)
        if end is None:
            for each in reached:
                yield node, each
        elif end in reached:
            yield node, end


@final
class _Walk:
    """Finds the nodes that paths lead to from a node, each once, and remembers them.

    Without the memory, a path that is nested n deep would take time with the n-th power of the
    number of nodes.
    """

    def __init__(self, source: TripleSource, work: WorkCounter) -> None:
        self._source = source
        self._work = work
        self._known: dict[tuple[int, Term, bool], dict[Term, None]] = {}

    def from_node(self, path: Path, node: Term, *, backward: bool) -> dict[Term, None]:
        """The nodes, in the order they are found."""
        key = (id(path), node, backward)
        if key not in self._known:
            found = self._find(path, node, backward)
            self._work.spend(1 + len(found), _WALKS)
            self._known[key] = found
        return self._known[key]

    def _find(self, path: Path, node: Term, backward: bool) -> dict[Term, None]:
        match path:
            case Link() | NegatedSet():
                if backward:
                    pairs = _one_step(self._source, path, None, node)
                    return dict.fromkeys(left for left, _ in pairs)
                return dict.fromkeys(
                    right for _, right in _one_step(self._source, path, node, None)
                )
            case Inverse(path=inner):
                return self.from_node(inner, node, backward=not backward)
            case Sequence(paths=paths):
                return self._through(paths[::-1] if backward else paths, node, backward)
            case Alternative(paths=paths):
                choices = (self.from_node(each, node, backward=backward) for each in paths)
                return {each: None for choice in choices for each in choice}
            case ZeroOrOne(path=inner):
                return {node: None} | self.from_node(inner, node, backward=backward)
            case ZeroOrMore(path=inner):
                return self._reach({node: None}, inner, node, backward)
            case OneOrMore(path=inner):
                return self._reach({}, inner, node, backward)
            case _:
                assert_never(path)

    def _through(self, paths: tuple[Path, ...], node: Term, backward: bool) -> dict[Term, None]:
        nodes = self._source.nodes()
        reached: dict[Term, None] = {node: None}
        for place, path in enumerate(paths):
            # Between two steps a path stays among the nodes of the graph.
            between = [each for each in reached if not place or each in nodes]
            ends = (self.from_node(path, each, backward=backward) for each in between)
            reached = {each: None for found in ends for each in found}
        return reached

    def _reach(
        self, reached: dict[Term, None], step: Path, start: Term, backward: bool
    ) -> dict[Term, None]:
        """Add the nodes that repeated steps lead to."""
        frontier = [start]
        while frontier:
            for target in self.from_node(step, frontier.pop(), backward=backward):
                if target not in reached:
                    reached[target] = None
                    frontier.append(target)
        return reached
