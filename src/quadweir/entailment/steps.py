"""Why a triple follows from another: the rules and axioms of one shortest derivation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.terms import IRI, BlankNode, Quad, Term

_Triple = tuple[Term, IRI, Term]


@final
@dataclass(frozen=True, slots=True)
class DerivationStep:
    """One use of a rule: its axiom, and the derived triple.

    >>> axiom = Axiom(AxiomKind.SUBCLASS, IRI("urn:cat"), IRI("urn:animal"))
    >>> print(DerivationStep("rdfs9", axiom, (IRI("urn:tom"), TYPE, IRI("urn:animal"))).axiom)
    <urn:cat> rdfs:subClassOf <urn:animal>
    """

    rule: str
    axiom: Axiom
    triple: tuple[Term, IRI, Term]


def steps_to(schema: Schema, start: Quad, goal: Quad) -> tuple[DerivationStep, ...] | None:
    """Find a shortest chain of rules from one triple to another; None if there is none.

    An empty chain means that they are the same triple.
    """
    first: _Triple = (start.subject, start.predicate, start.object)
    last: _Triple = (goal.subject, goal.predicate, goal.object)
    before: dict[_Triple, tuple[_Triple, DerivationStep] | None] = {first: None}
    new = [first]
    while new and last not in before:
        step, new = new, []
        for each in step:
            for rule, axiom, following in _uses(schema, each):
                if following not in before:
                    before[following] = (each, DerivationStep(rule, axiom, following))
                    new.append(following)
    if last not in before:
        return None
    chain: list[DerivationStep] = []
    at = before[last]
    while at is not None:
        chain.append(at[1])
        at = before[at[0]]
    return tuple(reversed(chain))


def _uses(schema: Schema, triple: _Triple) -> Iterator[tuple[str, Axiom, _Triple]]:
    subject, predicate, end = triple
    for above in schema.superproperties.get(predicate, ()):
        axiom = Axiom(AxiomKind.SUBPROPERTY, predicate, above)
        yield "rdfs7", axiom, (subject, above, end)
    for inverse in schema.inverses.get(predicate, ()):
        if inverse == predicate:
            yield "sym", Axiom(AxiomKind.SYMMETRIC, predicate, predicate), (end, predicate, subject)
        else:
            yield "inv2", Axiom(AxiomKind.INVERSE, predicate, inverse), (end, inverse, subject)
    for one in schema.domains.get(predicate, ()):
        yield "rdfs2", Axiom(AxiomKind.DOMAIN, predicate, one), (subject, TYPE, one)
    for one in schema.ranges.get(predicate, ()):
        yield "rdfs3", Axiom(AxiomKind.RANGE, predicate, one), (end, TYPE, one)
    if predicate == TYPE and isinstance(end, IRI | BlankNode):
        for one in schema.superclasses.get(end, ()):
            yield "rdfs9", Axiom(AxiomKind.SUBCLASS, end, one), (subject, TYPE, one)
