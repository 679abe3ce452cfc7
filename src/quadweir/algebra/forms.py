"""The results of CONSTRUCT and DESCRIBE for a bag of solutions."""

from __future__ import annotations

from collections.abc import Iterator

from quadweir.algebra.dataset import TripleSource
from quadweir.algebra.query import TemplateTerm, TemplateTriple, TripleTemplate
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import Bag, Solution
from quadweir.terms import IRI, BlankNode, Quad, Resource, Term, Variable, triple_of


def construct(template: tuple[TemplateTriple, ...], bag: Bag, context: Context) -> Iterator[Quad]:
    """Fill in a template for every solution; blank nodes are new for each."""
    for solution in bag:
        made: dict[BlankNode, BlankNode] = {}

        def fill(
            place: TemplateTerm,
            solution: Solution = solution,
            made: dict[BlankNode, BlankNode] = made,
        ) -> Term | None:
            if isinstance(place, Variable):
                return solution.get(place)
            if isinstance(place, BlankNode):
                if place not in made:
                    made[place] = context.fresh_blank_node()
                return made[place]
            if isinstance(place, TripleTemplate):
                return triple_of(fill(place.subject), fill(place.predicate), fill(place.object))
            return place

        for triple in template:
            subject, predicate = fill(triple.subject), fill(triple.predicate)
            object_ = fill(triple.object)
            graph = None if triple.graph is None else fill(triple.graph)
            # A triple that is incomplete, or no RDF, is left out.
            if (
                isinstance(subject, IRI | BlankNode)
                and isinstance(predicate, IRI)
                and object_ is not None
                and (triple.graph is None or isinstance(graph, IRI | BlankNode))
            ):
                assert graph is None or isinstance(graph, IRI | BlankNode)
                yield Quad(subject, predicate, object_, graph)


def describe(
    targets: tuple[IRI | Variable, ...], bag: Bag, graph: TripleSource
) -> dict[Resource, frozenset[Quad]]:
    """The concise bounded description of each target: the triples it is the subject of.

    A blank node that such a triple leads to is described too, since a query cannot name it. A
    resource without triples is left out.

    Spec: https://www.w3.org/submissions/2005/SUBM-CBD-20050603/
    """
    found: dict[Resource, frozenset[Quad]] = {}
    for target in targets:
        terms: list[Term] = [target] if isinstance(target, IRI) else []
        if isinstance(target, Variable):
            terms = [solution[target] for solution in bag if target in solution]
        for term in terms:
            if isinstance(term, IRI | BlankNode) and term not in found:
                found[term] = frozenset(_about(term, graph))
    return {resource: triples for resource, triples in found.items() if triples}


def _about(resource: Resource, graph: TripleSource) -> Iterator[Quad]:
    waiting: list[Term] = [resource]
    seen: set[Term] = set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for occurrence in graph.match(node, None, None):
            subject, predicate = occurrence.subject, occurrence.predicate
            assert isinstance(subject, IRI | BlankNode)
            assert isinstance(predicate, IRI)
            yield Quad(subject, predicate, occurrence.object)
            if isinstance(occurrence.object, BlankNode):
                waiting.append(occurrence.object)
