"""Names of blank nodes (S3): those of a stream, of static data, and new ones of a CONSTRUCT."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from quadweir.algebra.query import ConstructForm
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term, Variable


def blank_label(stream: str, label: str) -> str:
    """Name a blank node by its stream and its label there (S3).

    >>> blank_label("urn:s", "b0")
    'se2219d44-b0'
    """
    return f"s{hashlib.sha256(stream.encode()).hexdigest()[:8]}-{label}"


def static_label(label: str) -> str:
    """Name a blank node of static data."""
    return f"g-{label}"


def of_stream(quad: Quad, stream: IRI) -> Quad:
    """Name the blank nodes of a triple by its stream (S3)."""
    return scoped(quad, lambda label: blank_label(stream.value, label))


def scoped(quad: Quad, rename: Callable[[str], str]) -> Quad:
    """Give a quad with other names for its blank nodes; that of its graph stays."""
    subject, end = quad.subject, quad.object
    if isinstance(subject, BlankNode):
        subject = BlankNode(rename(subject.label))
    if isinstance(end, BlankNode):
        end = BlankNode(rename(end.label))
    return Quad(subject, quad.predicate, end, quad.graph)


def fill(form: ConstructForm, solution: Mapping[str, Term], number: str) -> frozenset[Quad]:
    """Fill in a template; blank nodes are new for each solution (S3), bad triples are left out."""

    def value(term: IRI | Literal | BlankNode | Variable) -> Term | None:
        match term:
            case Variable():
                return solution.get(term.name)
            case BlankNode():
                return BlankNode(f"c{number}-{term.label}")
            case _:
                return term

    found = set()
    for triple in form.template:
        subject, predicate = value(triple.subject), value(triple.predicate)
        end = value(triple.object)
        if isinstance(subject, IRI | BlankNode) and isinstance(predicate, IRI) and end is not None:
            found.add(Quad(subject, predicate, end))
    return frozenset(found)
