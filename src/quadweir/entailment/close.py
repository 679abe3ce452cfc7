"""Entailment over static data: the consequences of static triples, each once.

Static triples can be joined before a query starts, so transitive properties are closed as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from quadweir.algebra.query import ContinuousQuery
from quadweir.entailment.needs import SchemaNeeds, needs_of_static, needs_of_windows
from quadweir.entailment.schema import TYPE, AxiomKind, Schema
from quadweir.entailment.table import Derived, End, Table, closure
from quadweir.errors import UnsupportedError
from quadweir.terms import IRI, Quad, Resource, Term

_Place: TypeAlias = tuple[Resource | None, IRI, Term]


def refuse_transitive(schema: Schema, query: ContinuousQuery) -> None:
    """Refuse a query whose windows would need the closure of a transitive property.

    Raises:
        UnsupportedError: one of its windowed patterns needs the consequences of a transitive
        property.
    """
    needs = needs_of_windows(query)
    for each in sorted(schema.transitive):
        asked = _asked(schema, each, needs)
        if asked is not None:
            through = "" if asked == each else f", which leads to {asked},"
            span = next(
                axiom.span
                for axiom in schema.axioms
                if axiom.subject == each and axiom.kind is AxiomKind.TRANSITIVE
            )
            raise UnsupportedError(
                f"the schema makes {each} transitive{through} and the query asks for {asked} in a "
                "window",
                detail="The consequences would rest on two or more elements, which would have to be "
                "joined; entailment looks at one triple at a time.",
                hint=f"Write the path {each}+ in the query, or take owl:TransitiveProperty out of "
                "the schema. Static data alone is closed.",
                span=span,
            )


def _asked(schema: Schema, transitive: IRI, needs: SchemaNeeds) -> IRI | None:
    """The requested predicates and classes that new triples of a transitive property lead to.

    The classes of their ends are known from the joined triples.
    """
    for each in closure(schema, Derived(End.SUBJECT, transitive, End.OBJECT)):
        if not (isinstance(each.subject, End) and isinstance(each.object, End)):
            continue
        wanted = needs.some_class() if each.predicate == TYPE else needs.predicate(each.predicate)
        if wanted:
            return each.predicate
    return None


@final
@dataclass(frozen=True, slots=True)
class StaticClosure:
    """Adds the consequences to static data.

    Attributes:
        table: the consequences of one triple.
        transitive: the properties whose joined triples have further consequences.
    """

    table: Table
    transitive: frozenset[IRI] = frozenset()

    def of(self, quads: Iterable[Quad]) -> Iterator[Quad]:
        """Quads and their consequences."""
        return close(quads, self.table, self.transitive)


def static_closure(schema: Schema, query: ContinuousQuery) -> StaticClosure | None:
    """The closure of static data; None if nothing that the query uses follows from it."""
    needs = needs_of_static(query)
    used = frozenset(each for each in schema.transitive if _asked(schema, each, needs) is not None)
    table = Table.of(schema, needs.with_predicates(used))
    if not table.predicates and not table.classes and not used:
        return None
    return StaticClosure(table, used)


def close(quads: Iterable[Quad], table: Table, transitive: Collection[IRI] = ()) -> Iterator[Quad]:
    """Quads and their consequences, in the same graph; a triple may come twice.

    >>> from quadweir.entailment.schema import Axiom, AxiomKind
    >>> table = Table.of(Schema((Axiom(AxiomKind.SYMMETRIC, IRI("urn:p"), IRI("urn:p")),)))
    >>> [str(quad) for quad in close([Quad(IRI("urn:a"), IRI("urn:p"), IRI("urn:b"))], table)]
    ['<urn:a> <urn:p> <urn:b> .', '<urn:b> <urn:p> <urn:a> .']
    """
    chains = _Chains(frozenset(transitive))
    for quad in quads:
        yield quad
        waiting = [quad]
        while waiting:
            each = waiting.pop()
            found = [replace(one, graph=quad.graph) for one in table.consequences(each)]
            yield from found
            for one in (each, *found):
                if one.predicate in chains.properties:
                    new = chains.add(one)
                    yield from new
                    waiting += new


class _Chains:
    """The edges of transitive properties; adding an edge returns the edges that it implies."""

    def __init__(self, properties: frozenset[IRI]) -> None:
        self.properties = properties
        self._after: defaultdict[_Place, dict[Term, None]] = defaultdict(dict)
        self._before: defaultdict[_Place, dict[Resource, None]] = defaultdict(dict)

    def add(self, quad: Quad) -> list[Quad]:
        graph, predicate = quad.graph, quad.predicate
        new: list[Quad] = []
        waiting: list[tuple[Resource, Term]] = [(quad.subject, quad.object)]
        while waiting:
            subject, end = waiting.pop()
            if end in self._after[graph, predicate, subject]:
                continue
            self._after[graph, predicate, subject][end] = None
            self._before[graph, predicate, end][subject] = None
            if (subject, end) != (quad.subject, quad.object):
                new.append(Quad(subject, predicate, end, graph))
            waiting += [(subject, far) for far in self._after.get((graph, predicate, end), ())]
            waiting += [(far, end) for far in self._before.get((graph, predicate, subject), ())]
        return new
