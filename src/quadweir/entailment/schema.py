"""A schema as the axioms that the entailment rules use.

RDFS (`subClassOf`, `subPropertyOf`, `domain`, `range`), and of OWL `inverseOf`, `SymmetricProperty`,
`TransitiveProperty`, `equivalentClass` and `equivalentProperty`, the last two as subsumption both
ways. Everything else in a schema is ignored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeAlias, final

from quadweir.errors import UnsupportedError
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode
from quadweir.vocab import RDF

Class: TypeAlias = IRI | BlankNode
TYPE: Final = IRI(RDF.type)


class AxiomKind(StrEnum):
    """The kinds of axioms."""

    SUBCLASS = "rdfs:subClassOf"
    SUBPROPERTY = "rdfs:subPropertyOf"
    DOMAIN = "rdfs:domain"
    RANGE = "rdfs:range"
    INVERSE = "owl:inverseOf"
    SYMMETRIC = "owl:SymmetricProperty"
    TRANSITIVE = "owl:TransitiveProperty"


@final
@dataclass(frozen=True, slots=True)
class Axiom:
    """One statement of a schema; symmetric and transitive properties stand on both sides.

    >>> str(Axiom(AxiomKind.SUBCLASS, IRI("urn:cat"), IRI("urn:animal")))
    '<urn:cat> rdfs:subClassOf <urn:animal>'
    """

    kind: AxiomKind
    subject: Class
    object: Class
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.kind in (AxiomKind.SYMMETRIC, AxiomKind.TRANSITIVE):
            return f"{self.subject} a {self.kind}"
        return f"{self.subject} {self.kind} {self.object}"


@final
@dataclass(frozen=True, slots=True)
class SchemaWarning:
    """A doubtful statement of a schema, and its place."""

    message: str
    span: Span | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.span}: {self.message}" if self.span else self.message


@final
@dataclass(frozen=True)
class Schema:
    """The axioms of a schema, and the direct steps that they allow.

    Raises:
        UnsupportedError: `rdf:type` is its own inverse, which makes a class of every instance.
    """

    axioms: tuple[Axiom, ...]

    def __post_init__(self) -> None:
        # The properties that a statement of rdf:type leads to, and whether its ends are swapped.
        seen = {(TYPE, False)}
        waiting = [(TYPE, False)]
        while waiting:
            at, turned = waiting.pop()
            steps = [(each, turned) for each in self.superproperties.get(at, ())]
            steps += [(each, not turned) for each in self.inverses.get(at, ())]
            for step in steps:
                if step not in seen:
                    seen.add(step)
                    waiting.append(step)
        if (TYPE, True) in seen:
            raise UnsupportedError(
                "the schema makes rdf:type its own inverse",
                detail="Every instance of a class would be a class of its own.",
                hint="Take the axioms about rdf:type out of the schema.",
            )

    @staticmethod
    def of(axioms: Iterable[Axiom]) -> Schema:
        """A schema of axioms, each once, in the order of first mention."""
        return Schema(tuple(dict.fromkeys(axioms)))

    @cached_property
    def superclasses(self) -> Mapping[Class, tuple[Class, ...]]:
        """For each class the classes said to be above it."""
        return _by_subject(each for each in self.axioms if each.kind is AxiomKind.SUBCLASS)

    @cached_property
    def superproperties(self) -> Mapping[IRI, tuple[IRI, ...]]:
        """For each property the properties said to be above it."""
        return _properties(each for each in self.axioms if each.kind is AxiomKind.SUBPROPERTY)

    @cached_property
    def inverses(self) -> Mapping[IRI, tuple[IRI, ...]]:
        """For each property those that hold the other way round, itself if it is symmetric."""
        found = []
        for each in self.axioms:
            if each.kind is AxiomKind.SYMMETRIC:
                found.append(each)
            elif each.kind is AxiomKind.INVERSE:
                found += [each, Axiom(AxiomKind.INVERSE, each.object, each.subject)]
        return _properties(found)

    @cached_property
    def domains(self) -> Mapping[IRI, tuple[Class, ...]]:
        """For each property the classes of its subjects."""
        return _classes(each for each in self.axioms if each.kind is AxiomKind.DOMAIN)

    @cached_property
    def ranges(self) -> Mapping[IRI, tuple[Class, ...]]:
        """For each property the classes of its objects."""
        return _classes(each for each in self.axioms if each.kind is AxiomKind.RANGE)

    @cached_property
    def transitive(self) -> frozenset[IRI]:
        """The transitive properties."""
        return frozenset(
            _properties(each for each in self.axioms if each.kind is AxiomKind.TRANSITIVE)
        )

    @cached_property
    def properties(self) -> tuple[IRI, ...]:
        """All properties that axioms name, in order of their IRIs."""
        kinds = (
            AxiomKind.SUBPROPERTY,
            AxiomKind.INVERSE,
            AxiomKind.SYMMETRIC,
            AxiomKind.TRANSITIVE,
        )
        found = {each.subject for each in self.axioms if each.kind is not AxiomKind.SUBCLASS}
        found |= {each.object for each in self.axioms if each.kind in kinds}
        return tuple(sorted(each for each in found if isinstance(each, IRI)))

    @cached_property
    def classes(self) -> tuple[Class, ...]:
        """All classes that axioms name, in order of their spelling."""
        found = {each.subject for each in self.axioms if each.kind is AxiomKind.SUBCLASS}
        kinds = (AxiomKind.SUBCLASS, AxiomKind.DOMAIN, AxiomKind.RANGE)
        found |= {each.object for each in self.axioms if each.kind in kinds}
        return tuple(sorted(found, key=str))

    @property
    def digest(self) -> str:
        """SHA-256 over the axioms; their order does not matter."""
        text = "\n".join(sorted(map(str, self.axioms)))
        return hashlib.sha256(text.encode()).hexdigest()


def _by_subject(axioms: Iterable[Axiom]) -> dict[Class, tuple[Class, ...]]:
    found: dict[Class, dict[Class, None]] = {}
    for each in axioms:
        found.setdefault(each.subject, {})[each.object] = None
    return {subject: tuple(objects) for subject, objects in found.items()}


def _classes(axioms: Iterable[Axiom]) -> dict[IRI, tuple[Class, ...]]:
    return {
        subject: objects
        for subject, objects in _by_subject(axioms).items()
        if isinstance(subject, IRI)
    }


def _properties(axioms: Iterable[Axiom]) -> dict[IRI, tuple[IRI, ...]]:
    return {
        subject: tuple(each for each in objects if isinstance(each, IRI))
        for subject, objects in _classes(axioms).items()
    }
