"""Generated schemas over the names that `dense.py` uses, and an independent reasoner for them.

The predicate `:p2` of the questions and feeds of `dense.py` becomes `rdf:type` here, so that the
subjects serve as classes too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import owlrl
import rdflib
from hypothesis import assume
from hypothesis import strategies as st

from properties.strategies import NAMESPACE, SUBJECTS
from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.errors import UnsupportedError
from quadweir.terms import IRI, Literal, Quad, Term
from quadweir.testing import Element, read_turtle
from quadweir.vocab import OWL, RDF, RDFS

_PROPERTIES = [IRI(f"{NAMESPACE}p{n}") for n in (0, 1, 3)]
_CLASSES = [IRI(each) for each in SUBJECTS]
_PREDICATES = {
    AxiomKind.SUBCLASS: RDFS.subClassOf,
    AxiomKind.SUBPROPERTY: RDFS.subPropertyOf,
    AxiomKind.DOMAIN: RDFS.domain,
    AxiomKind.RANGE: RDFS.range,
    AxiomKind.INVERSE: OWL.inverseOf,
}
RULES = [kind for kind in AxiomKind if kind is not AxiomKind.TRANSITIVE]


@st.composite
def schemas(
    draw: st.DrawFn, *, kinds: Collection[AxiomKind] = tuple(RULES), types: bool = True
) -> Schema:
    """A schema of up to eight axioms; with `types`, also axioms about rdf:type itself."""
    properties = [*_PROPERTIES, *_PROPERTIES, TYPE] if types else _PROPERTIES

    def axiom(kind: AxiomKind) -> st.SearchStrategy[Axiom]:
        subject = st.sampled_from(_CLASSES if kind is AxiomKind.SUBCLASS else properties)
        if kind in (AxiomKind.SYMMETRIC, AxiomKind.TRANSITIVE):
            return subject.map(lambda each: Axiom(kind, each, each))
        classes = kind in (AxiomKind.SUBCLASS, AxiomKind.DOMAIN, AxiomKind.RANGE)
        end = st.sampled_from(_CLASSES if classes else properties)
        return st.builds(Axiom, st.just(kind), subject, end)

    axioms = draw(st.lists(st.sampled_from(sorted(kinds)).flatmap(axiom), min_size=1, max_size=8))
    try:
        return Schema.of(axioms)
    except UnsupportedError:
        assume(False)
        raise


def typed_text(text: str) -> str:
    """Let a question of `dense.py` ask for types."""
    return text.replace(":p2", "a")


def typed(quad: Quad) -> Quad:
    """Let a triple of `dense.py` be a type."""
    return replace(quad, predicate=TYPE) if quad.predicate.value.endswith("p2") else quad


def typed_feed(feed: list[Element]) -> list[Element]:
    return [replace(each, quads=tuple(map(typed, each.quads))) for each in feed]


class Owlrl:
    """The closure of triples by owlrl, which implements OWL 2 RL, limited to our names."""

    def __init__(self, schema: Schema) -> None:
        self._axioms = [
            f"{each.subject} <{_PREDICATES[each.kind]}> {each.object} ."
            if each.kind in _PREDICATES
            else f"{each.subject} <{RDF.type}> <{OWL[each.kind.removeprefix('owl:')]}> ."
            for each in schema.axioms
        ]
        self._alone = self._close([])

    def __call__(self, triples: Collection[Quad], is_static: bool, /) -> set[Quad]:
        # RDFS does not compare literals by value, but owlrl merges equal values and rdflib changes
        # their spelling. So each literal goes through both as a distinct text.
        literals = sorted(
            {quad.object for quad in triples if isinstance(quad.object, Literal)}, key=str
        )
        texts: dict[Term, Term] = {
            literal: Literal(f"literal {n}") for n, literal in enumerate(literals)
        }
        back = {text: literal for literal, text in texts.items()}
        opaque = [replace(quad, object=texts.get(quad.object, quad.object)) for quad in triples]
        found = {quad for quad in self._close(opaque) - self._alone if _is_ours(quad)}
        return {replace(quad, object=back.get(quad.object, quad.object)) for quad in found} | set(
            triples
        )

    def _close(self, triples: Collection[Quad]) -> set[Quad]:
        graph = rdflib.Graph()
        graph.parse(data="\n".join([*self._axioms, *map(str, triples)]), format="nt")
        owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(graph)
        kept = [
            f"{s.n3()} {p.n3()} {o.n3()} ."
            for s, p, o in graph
            if isinstance(p, rdflib.URIRef) and not isinstance(s, rdflib.Literal)
        ]
        return set(read_turtle("\n".join(kept)))


def _is_ours(quad: Quad) -> bool:
    if not isinstance(quad.subject, IRI) or not quad.subject.value.startswith(NAMESPACE):
        return False
    if quad.predicate == TYPE:
        return isinstance(quad.object, IRI) and quad.object.value.startswith(NAMESPACE)
    return quad.predicate.value.startswith(NAMESPACE)
