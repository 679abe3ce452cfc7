"""Reads triples into a schema, with a warning for each doubtful one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quadweir.entailment.schema import Axiom, AxiomKind, Class, Schema, SchemaWarning
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal, Quad, Term
from quadweir.vocab import OWL, RDF, RDFS

_KINDS: Final = {
    RDFS.subClassOf: AxiomKind.SUBCLASS,
    RDFS.subPropertyOf: AxiomKind.SUBPROPERTY,
    RDFS.domain: AxiomKind.DOMAIN,
    RDFS.range: AxiomKind.RANGE,
    OWL.inverseOf: AxiomKind.INVERSE,
    OWL.equivalentClass: AxiomKind.SUBCLASS,
    OWL.equivalentProperty: AxiomKind.SUBPROPERTY,
}
_BOTH_WAYS: Final = frozenset({OWL.equivalentClass, OWL.equivalentProperty})
_PROPERTY_TYPES: Final = {
    OWL.SymmetricProperty: AxiomKind.SYMMETRIC,
    OWL.TransitiveProperty: AxiomKind.TRANSITIVE,
}
# The rest of OWL: it has a meaning, but we do not use it.
_UNUSED: Final = (
    "unionOf", "intersectionOf", "complementOf", "oneOf", "onProperty", "propertyChainAxiom",
    "sameAs", "hasKey", "propertyDisjointWith", "disjointWith", "disjointUnionOf", "hasSelf",
)  # fmt: skip
_UNUSED_TYPES: Final = (
    "FunctionalProperty", "InverseFunctionalProperty", "ReflexiveProperty",
    "IrreflexiveProperty", "AsymmetricProperty",
)  # fmt: skip
# A prefix that was not expanded: <foaf:Person>.
_PREFIXES: Final = frozenset({"rdf", "rdfs", "owl", "xsd", "foaf", "skos", "dc", "dcterms", "sioc"})


def read_axioms(triples: Iterable[tuple[Quad, Span | None]]) -> tuple[Schema, list[SchemaWarning]]:
    """Read a schema.

    Args:
        triples: its triples, each with its place, if known.

    Returns:
        The schema, and the warnings in document order.

    Raises:
        UnsupportedError: the schema makes `rdf:type` its own inverse.
    """
    known = list(triples)
    reader = _Reader(
        frozenset(
            quad.subject
            for quad, _ in known
            if quad.predicate.value == RDF.type
            and quad.object == IRI(OWL.AnnotationProperty)
            and isinstance(quad.subject, IRI)
        )
    )
    for quad, span in known:
        reader.take(quad, span)
    return Schema.of(reader.axioms), reader.warnings


class _Reader:
    def __init__(self, annotations: frozenset[IRI]) -> None:
        self._annotations = annotations
        self._warned: set[str] = set()
        self.axioms: list[Axiom] = []
        self.warnings: list[SchemaWarning] = []

    def take(self, quad: Quad, span: Span | None) -> None:
        name = quad.predicate.value
        for term in (quad.subject, quad.predicate, quad.object):
            self._check_prefix(term, span)
        if name in _KINDS:
            self._relation(_KINDS[name], quad, span, both=name in _BOTH_WAYS)
        elif name == RDF.type:
            self._typed(quad, span)
        elif name.removeprefix(str(OWL)) in _UNUSED:
            self._once(f"owl:{name.removeprefix(str(OWL))} is not used: it says nothing here", span)

    def _relation(self, kind: AxiomKind, quad: Quad, span: Span | None, *, both: bool) -> None:
        subject, end = quad.subject, quad.object
        of_classes = kind is AxiomKind.SUBCLASS
        if not of_classes and not isinstance(subject, IRI):
            self._tell(f"{subject} stands for a property and is no IRI: left out", span)
            return
        if kind in (AxiomKind.SUBPROPERTY, AxiomKind.INVERSE) and not isinstance(end, IRI):
            self._tell(f"{end} stands for a property and is no IRI: left out", span)
            return
        if not isinstance(end, IRI | BlankNode):
            what = "literal" if isinstance(end, Literal) else "triple term"
            self._tell(f"the {what} {end} stands for a class: left out", span)
            return
        if kind in (AxiomKind.DOMAIN, AxiomKind.RANGE) and subject in self._annotations:
            self._tell(
                f"{subject} is an annotation, and has a {kind}: its subjects or objects become "
                f"instances of {end} all the same",
                span,
            )
        self.axioms.append(Axiom(kind, _apart(subject), _apart(end), span))
        if both:
            self.axioms.append(Axiom(kind, _apart(end), _apart(subject), span))

    def _typed(self, quad: Quad, span: Span | None) -> None:
        end = quad.object
        if not isinstance(end, IRI | BlankNode):
            what = "literal" if isinstance(end, Literal) else "triple term"
            self._tell(f"the {what} {end} stands for a class: left out", span)
            return
        name = end.value if isinstance(end, IRI) else ""
        local = name.removeprefix(str(OWL))
        if name in _PROPERTY_TYPES:
            if not isinstance(quad.subject, IRI):
                self._tell(f"{quad.subject} stands for a property and is no IRI: left out", span)
                return
            self.axioms.append(Axiom(_PROPERTY_TYPES[name], quad.subject, quad.subject, span))
        elif local in _UNUSED_TYPES:
            self._once(f"owl:{local} is not used: it says nothing here", span)
        elif not name.startswith((str(RDF), str(RDFS), str(OWL))) and isinstance(end, IRI):
            self._once(
                f"{quad.subject} is an instance of {end}: instances in a schema are not looked at; "
                "give them as static data",
                span,
                key="instance",
            )

    def _check_prefix(self, term: Term, span: Span | None) -> None:
        if isinstance(term, IRI):
            prefix, _, rest = term.value.partition(":")
            if prefix in _PREFIXES and not rest.startswith("/"):
                self._once(f"{term} looks like a name with a prefix that is not defined", span)

    def _tell(self, message: str, span: Span | None) -> None:
        self.warnings.append(SchemaWarning(message, span))

    def _once(self, message: str, span: Span | None, *, key: str | None = None) -> None:
        if (key or message) not in self._warned:
            self._warned.add(key or message)
            self._tell(message, span)


def _apart(term: Class | Literal) -> Class:
    """Rename the blank nodes of a schema, so that they differ from those of streams and static data
    (S3).
    """
    assert not isinstance(term, Literal)
    return BlankNode(f"schema-{term.label}") if isinstance(term, BlankNode) else term
