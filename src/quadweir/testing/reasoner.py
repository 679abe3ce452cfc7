"""Entailment rule by rule, until nothing is new: slow and simple (N1).

It shares nothing with `quadweir.entailment` but the axioms: no closure of the schema, no tables, no
reduction to what a query asks for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Protocol, final

from quadweir.entailment.schema import AxiomKind, Schema
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term
from quadweir.vocab import RDF

_TYPE = IRI(RDF.type)
_Triple = tuple[Term, IRI, Term]


class Entail(Protocol):
    """Returns triples and their consequences; for static data also by transitive properties."""

    def __call__(self, triples: Collection[Quad], is_static: bool, /) -> Iterable[Quad]: ...


@final
class Reasoner:
    """The closure of triples under a schema.

    >>> from quadweir.entailment.schema import Axiom
    >>> reason = Reasoner(Schema((Axiom(AxiomKind.SYMMETRIC, IRI("urn:p"), IRI("urn:p")),)))
    >>> sorted(str(quad) for quad in reason([Quad(IRI("urn:a"), IRI("urn:p"), IRI("urn:b"))], False))
    ['<urn:a> <urn:p> <urn:b> .', '<urn:b> <urn:p> <urn:a> .']
    """

    def __init__(self, schema: Schema) -> None:
        self._said: defaultdict[tuple[AxiomKind, Term], list[Term]] = defaultdict(list)
        for each in schema.axioms:
            self._said[each.kind, each.subject].append(each.object)
            if each.kind is AxiomKind.INVERSE:  # inv1
                self._said[each.kind, each.object].append(each.subject)

    def __call__(self, triples: Collection[Quad], is_static: bool, /) -> set[Quad]:
        known: set[_Triple] = {(quad.subject, quad.predicate, quad.object) for quad in triples}
        while True:
            new = {each for triple in known for each in self._one(triple)}
            if is_static:
                new |= set(self._chained(known))
            if new <= known:
                break
            known |= new
        # A literal or a triple term is no subject, though something may follow by way of it.
        return {Quad(s, p, o) for s, p, o in known if isinstance(s, IRI | BlankNode)}

    def _one(self, triple: _Triple) -> Iterator[_Triple]:
        subject, predicate, end = triple
        for one in self._said[AxiomKind.DOMAIN, predicate]:  # rdfs2
            yield subject, _TYPE, one
        for one in self._said[AxiomKind.RANGE, predicate]:  # rdfs3
            yield end, _TYPE, one
        for above in self._said[AxiomKind.SUBPROPERTY, predicate]:  # rdfs5 by and by, rdfs7
            assert isinstance(above, IRI)
            yield subject, above, end
        for inverse in self._said[AxiomKind.INVERSE, predicate]:  # inv2
            assert isinstance(inverse, IRI)
            yield end, inverse, subject
        if self._said[AxiomKind.SYMMETRIC, predicate]:  # sym
            yield end, predicate, subject
        if predicate == _TYPE:  # rdfs9, rdfs11 by and by
            for one in self._said[AxiomKind.SUBCLASS, end]:
                yield subject, _TYPE, one

    def _chained(self, known: set[_Triple]) -> Iterator[_Triple]:
        after: defaultdict[tuple[IRI, Term], list[Term]] = defaultdict(list)
        for subject, predicate, end in known:
            # Chains are made of triples; one with a literal as its subject is none.
            if self._said[AxiomKind.TRANSITIVE, predicate] and not isinstance(subject, Literal):
                after[predicate, subject].append(end)
        for (predicate, subject), ends in list(after.items()):
            for end in ends:
                for far in after.get((predicate, end), ()):
                    yield subject, predicate, far
