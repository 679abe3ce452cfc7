"""Data to evaluate over: triples with their times, in graphs and in bags.

A `TripleSource` is what a basic pattern is matched against. In a graph a triple is there once; in a
bag it is there once for every element that carries it (W8), each occurrence with its own time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, final

from quadweir.algebra.windows import Content
from quadweir.errors import PlanError
from quadweir.terms import IRI, Quad, Resource, Term


class Occurrence(NamedTuple):
    """One triple, and the event time of the element that brought it; None for static data."""

    subject: Term
    predicate: Term
    object: Term
    time: int | None


class StreamElement(Protocol):
    """What a window holds: an RDF graph, its stream's IRI, its event time in milliseconds."""

    @property
    def stream(self) -> str: ...

    @property
    def event_time(self) -> int: ...

    @property
    def quads(self) -> tuple[Quad, ...]: ...


@final
class TripleSource:
    """Occurrences of triples, found by any of their terms.

    >>> source = graph_source([Quad(IRI("urn:s"), IRI("urn:p"), IRI("urn:o"))])
    >>> len(source.match(None, IRI("urn:p"), None)), len(source.match(IRI("urn:x"), None, None))
    (1, 0)
    """

    def __init__(self, occurrences: Iterable[Occurrence]) -> None:
        self.occurrences = tuple(occurrences)
        # One index for each combination of given terms, made when it is first asked for.
        self._indexes: dict[tuple[int, ...], dict[tuple[Term, ...], list[Occurrence]]] = {}
        self._nodes: dict[Term, None] | None = None

    def match(
        self, subject: Term | None, predicate: Term | None, object_: Term | None
    ) -> Sequence[Occurrence]:
        """Find the occurrences that have these terms; None stands for any."""
        given = (subject, predicate, object_)
        places = tuple(place for place, term in enumerate(given) if term is not None)
        if not places:
            return self.occurrences
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {}
            for occurrence in self.occurrences:
                key = tuple(occurrence[place] for place in places)
                index.setdefault(key, []).append(occurrence)  # type: ignore[arg-type]
        return index.get(tuple(term for term in given if term is not None), ())

    def nodes(self) -> Collection[Term]:
        """The subjects and objects, each once; a path of no steps leads from each to itself."""
        if self._nodes is None:
            found: dict[Term, None] = {}
            for occurrence in self.occurrences:
                found[occurrence.subject] = None
                found[occurrence.object] = None
            self._nodes = found
        return self._nodes.keys()


EMPTY = TripleSource(())


def graph_source(triples: Iterable[Quad]) -> TripleSource:
    """Make a graph: each triple once, whatever graph the quads name."""
    distinct = dict.fromkeys((quad.subject, quad.predicate, quad.object) for quad in triples)
    return TripleSource(Occurrence(*triple, None) for triple in distinct)


def window_source(elements: Iterable[StreamElement], content: Content) -> TripleSource:
    """Make the content of a window: all triples of its elements, whatever graph they are in (W11).

    In a graph the time of a triple is that of the latest element that carries it.
    """
    return _source(((element.event_time, element.quads) for element in elements), content)


def window_graphs(
    elements: Iterable[StreamElement], content: Content
) -> dict[Resource, TripleSource]:
    """Make the named graphs of a window (W11): those that a quad in it names."""
    graphs: dict[Resource, list[tuple[int, list[Quad]]]] = {}
    for element in elements:
        own: dict[Resource, list[Quad]] = {}
        for quad in element.quads:
            if quad.graph is not None:
                own.setdefault(quad.graph, []).append(quad)
        for name, quads in own.items():
            graphs.setdefault(name, []).append((element.event_time, quads))
    return {name: _source(parts, content) for name, parts in graphs.items()}


def _source(parts: Iterable[tuple[int, Iterable[Quad]]], content: Content) -> TripleSource:
    """The time and the triples of each element; a triple counts once in an element."""
    bag: list[Occurrence] = []
    graph: dict[tuple[Term, Term, Term], int] = {}
    for time, quads in parts:
        for triple in dict.fromkeys((t.subject, t.predicate, t.object) for t in quads):
            bag.append(Occurrence(*triple, time))
            graph[triple] = max(time, graph.get(triple, time))
    if content is Content.BAG:
        return TripleSource(bag)
    return TripleSource(Occurrence(*triple, time) for triple, time in graph.items())


def merge_sources(sources: Iterable[tuple[TripleSource, Content]]) -> TripleSource:
    """Merge graphs and bags into one: graphs share their triples, a bag adds each of its own."""
    graph: dict[tuple[Term, Term, Term], int | None] = {}
    bag: list[Occurrence] = []
    for source, content in sources:
        if content is Content.BAG:
            bag.extend(source.occurrences)
            continue
        for subject, predicate, object_, time in source.occurrences:
            triple = (subject, predicate, object_)
            known = graph.get(triple)
            graph[triple] = (
                max(t for t in (time, known) if t is not None)
                if (time is not None or known is not None)
                else None
            )
    return TripleSource([*(Occurrence(*triple, time) for triple, time in graph.items()), *bag])


@final
@dataclass(frozen=True, slots=True)
class Dataset:
    """Static data: a default graph, and graphs by name.

    >>> quads = [Quad(IRI("urn:s"), IRI("urn:p"), IRI("urn:o"), IRI("urn:g"))]
    >>> list(Dataset.of(quads).named)
    [IRI(value='urn:g')]
    """

    default: TripleSource = EMPTY
    named: Mapping[Resource, TripleSource] = field(default_factory=dict)

    @staticmethod
    def of(quads: Iterable[Quad], *, named: Iterable[Resource] = ()) -> Dataset:
        """Sort quads into graphs; `named` lists graphs that are there even if empty."""
        graphs: dict[Resource | None, list[Quad]] = {None: []}
        for name in named:
            graphs[name] = []
        for quad in quads:
            graphs.setdefault(quad.graph, []).append(quad)
        default = graph_source(graphs.pop(None))
        return Dataset(
            default,
            {name: graph_source(each) for name, each in graphs.items() if name is not None},
        )

    def size(self) -> int:
        """Return how many triples there are in all graphs."""
        return sum(len(each.occurrences) for each in (self.default, *self.named.values()))

    def restricted(self, default: Sequence[IRI], named: Sequence[IRI]) -> Dataset:
        """The dataset of FROM and FROM NAMED.

        Raises:
            PlanError: a named graph does not exist.
        """
        for name in (*default, *named):
            if name not in self.named:
                raise PlanError(
                    f"there is no graph {name}",
                    hint="Load it as a static graph of this name before the query runs.",
                )
        merged = merge_sources((self.named[name], Content.GRAPH) for name in default)
        return Dataset(merged, {name: self.named[name] for name in named})
