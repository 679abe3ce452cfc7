"""Names of blank nodes (S3): those of a stream, of static data, and new ones of a CONSTRUCT."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from quadweir.algebra.query import ConstructForm, TemplateTerm, TripleTemplate
from quadweir.terms import IRI, BlankNode, Quad, Term, Variable, triple_of


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
    """Name the blank nodes of a quad by its stream (S3)."""
    return quad.relabelled(lambda label: blank_label(stream.value, label))


def fill(form: ConstructForm, solution: Mapping[str, Term], number: str) -> frozenset[Quad]:
    """Fill in a template; blank nodes are new for each solution (S3), bad triples are left out."""

    def value(term: TemplateTerm) -> Term | None:
        match term:
            case Variable():
                return solution.get(term.name)
            case BlankNode():
                return BlankNode(f"c{number}-{term.label}")
            case TripleTemplate():
                return triple_of(value(term.subject), value(term.predicate), value(term.object))
            case _:
                return term

    found = set()
    for triple in form.template:
        subject, predicate = value(triple.subject), value(triple.predicate)
        end = value(triple.object)
        if not isinstance(subject, IRI | BlankNode) or not isinstance(predicate, IRI):
            continue
        name = None if triple.graph is None else value(triple.graph)
        if end is None or (name is None) != (triple.graph is None):
            continue
        if name is not None and not isinstance(name, IRI | BlankNode):
            continue
        found.add(Quad(subject, predicate, end, name))
    return frozenset(found)
