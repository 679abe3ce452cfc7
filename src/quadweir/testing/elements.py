"""The input of tests: elements of streams, and a clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from quadweir import rows
from quadweir.errors import DataError
from quadweir.sources.streamfiles import Element
from quadweir.sources.termtimes import read_time
from quadweir.terms import IRI, BlankNode, Literal, Quad, Resource, Term, TripleTerm


def distinct_triples(element: Element) -> tuple[Quad, ...]:
    """List an element's triples, each once (W8: one that it carries twice counts once)."""
    return tuple(dict.fromkeys(element.triples))


@final
class MemoryStream:
    """A stream that a test writes to; positions count from 0 in the order of writing.

    >>> stream = MemoryStream("urn:s")
    >>> stream.add(1000, '<urn:a> <urn:p> "1" .')
    >>> stream.add(2000, '<urn:a> <urn:p> "2" . <urn:b> <urn:p> "3" .')
    >>> [(element.event_time, element.position, len(element.quads)) for element in stream]
    [(1000, 0, 1), (2000, 1, 2)]
    """

    def __init__(self, iri: str | IRI) -> None:
        self.iri = iri.value if isinstance(iri, IRI) else iri
        self.elements: list[Element] = []

    def add(self, time: int, triples: str | Iterable[Quad]) -> None:
        """Append an element; a string is read as Turtle."""
        read = read_turtle(triples) if isinstance(triples, str) else tuple(triples)
        self.elements.append(Element(self.iri, time, len(self.elements), read))

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)


@final
class HandCrankedClock:
    """A clock that moves only when a test turns it.

    >>> clock = HandCrankedClock()
    >>> clock.turn(250)
    >>> clock.now_ms()
    250
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        return self._now_ms

    def turn(self, ms: int) -> None:
        """Move the clock on; it never goes back."""
        if ms < 0:
            raise ValueError("a clock does not run backwards")
        self._now_ms += ms


def read_turtle(text: str, *, base: str | None = None) -> tuple[Quad, ...]:
    """Read a little Turtle or TriG, blank node labels kept as written.

    >>> [str(quad) for quad in read_turtle("@prefix : <urn:> . _:x :p 1 .")]
    ['_:x <urn:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .']
    """
    import pyoxigraph as ox

    try:
        return tuple(
            from_oxigraph_quad(quad)
            for quad in ox.parse(text, format=ox.RdfFormat.TRIG, base_iri=base)
        )
    except (SyntaxError, ValueError) as error:
        raise DataError(f"not Turtle: {error}") from None


def from_oxigraph_quad(quad: object) -> Quad:
    """Turn a pyoxigraph quad into one of ours."""
    import pyoxigraph as ox

    assert isinstance(quad, ox.Quad)
    graph = quad.graph_name
    subject = from_oxigraph(quad.subject)
    predicate = from_oxigraph(quad.predicate)
    assert isinstance(subject, IRI | BlankNode)
    assert isinstance(predicate, IRI)
    name: Resource | None = None
    if not isinstance(graph, ox.DefaultGraph):
        term = from_oxigraph(graph)
        assert isinstance(term, IRI | BlankNode)
        name = term
    return Quad(subject, predicate, from_oxigraph(quad.object), name)


def from_oxigraph(term: object) -> Term:
    """Turn a pyoxigraph term into one of ours."""
    import pyoxigraph as ox

    match term:
        case ox.NamedNode():
            return IRI(term.value)
        case ox.BlankNode():
            return BlankNode(term.value)
        case ox.Literal():
            if term.language is not None:
                return Literal(term.value, language=term.language)
            return Literal(term.value, datatype=IRI(term.datatype.value))
        case ox.Triple():
            subject, predicate = from_oxigraph(term.subject), from_oxigraph(term.predicate)
            assert isinstance(subject, IRI | BlankNode)
            assert isinstance(predicate, IRI)
            return TripleTerm(subject, predicate, from_oxigraph(term.object))
        case _:
            raise DataError(f"not a term of RDF 1.1: {term}")


def event_time(element: Element, predicate: IRI | None) -> int:
    """An element's event time (S2): that of its envelope, or the value of a predicate inside.

    The value is an integer of milliseconds, an `xsd:dateTime`, or a string that reads as one, with
    a blank for the `T` if needed; without a time zone it is in UTC.

    Raises:
        DataError: if the element has no such value, several, or one that is no time, or if that is
            thousands of years away.
    """
    found = element.event_time if predicate is None else _inner_time(element, predicate)
    if abs(found) > rows.LAST_TIME_MS:
        raise DataError(f"the element's time, {found}, is thousands of years away")
    return found


def _inner_time(element: Element, predicate: IRI) -> int:
    values = {triple.object for triple in element.quads if triple.predicate == predicate}
    if len(values) != 1:
        count = "no value" if not values else f"{len(values)} values"
        raise DataError(f"the element has {count} for its event time {predicate}")
    return read_time(values.pop())
