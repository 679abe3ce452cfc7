"""Our terms as pyoxigraph terms, for the oracle's store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pyoxigraph as ox

from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, TripleTerm
from quadweir.vocab import XSD

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def to_oxigraph_quad(quad: Quad, graph: str | None) -> ox.Quad:
    """Put a triple into a graph; None is the default graph."""
    name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    subject = to_oxigraph(quad.subject)
    assert isinstance(subject, ox.NamedNode | ox.BlankNode)
    return ox.Quad(subject, ox.NamedNode(quad.predicate.value), to_oxigraph(quad.object), name)


def to_oxigraph(term: Term) -> ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple:
    """Turn a term into one of pyoxigraph."""
    match term:
        case IRI():
            return ox.NamedNode(term.value)
        case BlankNode():
            return ox.BlankNode(term.label)
        case Literal():
            if term.language is not None:
                return ox.Literal(term.lexical, language=term.language)
            return ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype.value))
        case TripleTerm():
            subject, predicate = to_oxigraph(term.subject), ox.NamedNode(term.predicate.value)
            assert isinstance(subject, ox.NamedNode | ox.BlankNode)
            return ox.Triple(subject, predicate, to_oxigraph(term.object))


def integer_literal(number: int) -> ox.Literal:
    """Make an xsd:integer."""
    return ox.Literal(str(number), datatype=ox.NamedNode(XSD.integer))


def milliseconds(term: object) -> int:
    """Read an xsd:integer."""
    assert isinstance(term, ox.Literal)
    return int(term.value)


def moment_literal(t: int) -> ox.Literal:
    """The report instant as NOW() has it."""
    moment = (_EPOCH + timedelta(milliseconds=t)).replace(tzinfo=None)
    return ox.Literal(
        moment.isoformat(timespec="milliseconds") + "Z", datatype=ox.NamedNode(XSD.dateTime)
    )
