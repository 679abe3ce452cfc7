"""Read a mapping document into the model: RML of either vocabulary, or YARRRML."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyoxigraph as ox

from quadweir.errors import MappingError, QuadweirError
from quadweir.mapping.findings import Level
from quadweir.mapping.graph import GraphNode, GraphTerm, MappingGraph, Statement, read_text
from quadweir.mapping.model import (
    JoinCondition,
    JoinWindowMap,
    MapExpression,
    Mapping,
    ObjectMap,
    PredicateObjectMap,
    Reference,
    RefObjectMap,
    SubjectMap,
    TermMap,
    TermType,
    TriplesMap,
)
from quadweir.mapping.read_joins import read_window
from quadweir.mapping.read_sources import SourceReader
from quadweir.mapping.read_terms import TermReader
from quadweir.mapping.sources import FormulationKind, LogicalSource
from quadweir.mapping.vocabulary import is_mapping_name, shown_name
from quadweir.spans import Span
from quadweir.terms import IRI

_TRIPLES_MAP_SIGNS: Final = ("logicalSource", "subjectMap", "subject", "predicateObjectMap")
# A name or simple path, so that a comma inside a JSONPath union is never taken for a list.
_PLAIN: Final = re.compile(r"[\w$@./: -]+")


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file; YARRRML if its name ends in `.yml`, `.yaml` or `.yarrrml`, else RDF."""
    if path.suffix.lower() in (".yml", ".yaml", ".yarrrml"):
        from quadweir.mapping.yarrrml import parse_yarrrml

        mapping = parse_yarrrml(read_text(path), source=str(path))
    else:
        mapping = build_mapping(MappingGraph.read(path), source=str(path))
    return replace(mapping, path=path)


def parse_mapping(text: str, *, source: str | None = None) -> Mapping:
    """Read a mapping from Turtle text.

    >>> parse_mapping('''
    ... @prefix rml: <http://w3id.org/rml/> .
    ... <urn:tm> rml:logicalSource [ rml:source "a.csv" ; rml:referenceFormulation rml:CSV ] ;
    ...   rml:subjectMap [ rml:template "urn:{id}" ] .
    ... ''').triples_maps[0].subject.term.expression.references
    ('id',)
    """
    return build_mapping(MappingGraph.parse(text, source=source), source=source)


def build_mapping(graph: MappingGraph, *, source: str | None = None) -> Mapping:
    """Turn a mapping graph into the model."""
    return _Reader(graph, source).mapping()


class _Reader:
    def __init__(self, graph: MappingGraph, source: str | None) -> None:
        self._graph = graph
        self._source = source
        self._sources = SourceReader(graph)
        self._terms = TermReader(graph, self._sources.logical_source, self._sources.target)
        self._sources.attach(self._terms)

    def mapping(self) -> Mapping:
        maps = tuple(self._triples_map(node) for node in self._find_triples_maps())
        if not maps:
            raise MappingError(
                "the mapping has no triples map",
                hint="Give it a node with rml:logicalSource and rml:subjectMap.",
                span=Span(1, 1, source=self._source) if self._source else None,
            )
        self._remark_on_the_rest()
        return Mapping(
            triples_maps=maps,
            base_iri=self._graph.base_iri,
            findings=tuple(self._terms.findings),
        )

    def _find_triples_maps(self) -> list[GraphNode]:
        graph = self._graph
        subjects = list(graph.subjects())
        # A function value of the older vocabulary looks like a triples map, but is not one.
        functions: set[GraphTerm] = {
            s.value
            for node in subjects
            for s in graph.values(node, "functionValue", "functionExecution")
        }
        return [
            node
            for node in subjects
            if node not in functions
            and ("TriplesMap" in graph.types(node) or graph.values(node, *_TRIPLES_MAP_SIGNS))
        ]

    def _triples_map(self, node: GraphNode) -> TriplesMap:
        name = self._graph.name(node)
        span = self._graph.span(node)
        self._terms.triples_map = name
        try:
            return self._read_triples_map(node, name, span)
        except QuadweirError as error:
            error.message = f"triples map {name}: {error.message}"
            error.args = (error.message,)
            if error.span is None:
                error.span = span
            raise
        finally:
            self._terms.triples_map = None
            self._terms.source = None

    def _read_triples_map(self, node: GraphNode, name: str, span: Span | None) -> TriplesMap:
        graph = self._graph
        self._terms.visit(node, "triples map", span)
        found = graph.one(node, "logicalSource")
        if found is None:
            raise MappingError(
                "it has no logical source",
                hint="Give it rml:logicalSource with a source and a reference formulation.",
                span=span,
            )
        source = self._sources.logical_source(found)
        self._terms.source = source
        subjects = graph.values(node, "subject", "subjectMap")
        if not subjects:
            raise MappingError(
                "it has no subject map",
                detail=self._terms.guess(node),
                hint="Give it rml:subjectMap or rml:subject.",
                span=span,
            )
        if len({s.value for s in subjects}) > 1:
            raise MappingError(
                f"it has {len(subjects)} subject maps, of which one is allowed",
                hint="Write a triples map for each of them.",
                span=subjects[1].property_span or span,
            )
        base = graph.one(node, "baseIRI")
        return TriplesMap(
            name=name,
            source=source,
            subject=self._subject(subjects[0]),
            predicate_objects=tuple(
                self._predicate_object(s, source) for s in graph.values(node, "predicateObjectMap")
            ),
            base_iri=base.value.value if base else None,
            span=span,
        )

    def _subject(self, statement: Statement) -> SubjectMap:
        span = statement.value_span or statement.property_span
        classes: list[Statement] = []
        graphs: tuple[TermMap, ...] = ()
        if statement.name == "subject":
            term = self._terms.shortcut(statement)
        else:
            node = statement.value
            term = self._terms.term_map(statement, "subject map", TermType.IRI)
            classes = self._graph.values(node, "class")
            graphs = self._graphs(node)
        for found in classes:
            if not isinstance(found.value, ox.NamedNode):
                raise MappingError(
                    f"the class {found.value} is not an IRI",
                    hint="Name the class by its IRI.",
                    span=found.value_span or found.property_span,
                )
            self._terms.term(found.value, found.value_span or found.property_span)
        return SubjectMap(
            term=term,
            classes=tuple(IRI(found.value.value) for found in classes),
            graphs=graphs,
            span=span,
        )

    def _graphs(self, node: GraphTerm) -> tuple[TermMap, ...]:
        return tuple(
            self._terms.graph_constant(s)
            if s.name == "graph"
            else self._terms.term_map(s, "graph map", TermType.IRI)
            for s in self._graph.values(node, "graph", "graphMap")
        )

    def _predicate_object(self, statement: Statement, source: LogicalSource) -> PredicateObjectMap:
        node = statement.value
        span = statement.value_span or statement.property_span
        self._terms.visit(node, "predicate-object map", span)
        graph = self._graph
        try:
            return PredicateObjectMap(
                predicates=tuple(
                    self._terms.shortcut(s)
                    if s.name == "predicate"
                    else self._terms.term_map(s, "predicate map", TermType.IRI)
                    for s in graph.values(node, "predicate", "predicateMap")
                ),
                objects=tuple(
                    self._terms.shortcut(s) if s.name == "object" else self._object(s, source)
                    for s in graph.values(node, "object", "objectMap")
                ),
                graphs=self._graphs(node),
                span=span,
            )
        except QuadweirError as error:
            error.detail = error.detail or self._terms.guess(node)
            if error.span is None:
                error.span = span
            raise

    def _object(self, statement: Statement, source: LogicalSource) -> ObjectMap:
        node = statement.value
        parent = self._graph.one(node, "parentTriplesMap")
        if parent is None:
            return self._terms.term_map(statement, "object map", TermType.LITERAL)
        span = statement.value_span or statement.property_span
        self._terms.visit(node, "object map", span)
        if isinstance(parent.value, ox.Literal):
            raise MappingError(
                f"rml:parentTriplesMap is the literal {parent.value}",
                hint="Name the parent triples map by its node.",
                span=parent.value_span or span,
            )
        window = read_window(self._graph, self._terms, statement)
        conditions: list[JoinCondition] = []
        for found in self._graph.values(node, "joinCondition"):
            conditions.extend(self._join(found, source, window, parent.value))
        return RefObjectMap(
            parent=self._graph.name(parent.value),
            conditions=tuple(conditions),
            window=window,
            condition=self._terms.condition(node),
            targets=self._terms.targets(node),
            span=span,
        )

    def _join(
        self,
        statement: Statement,
        source: LogicalSource,
        window: JoinWindowMap | None,
        other: GraphNode,
    ) -> list[JoinCondition]:
        node = statement.value
        span = statement.value_span or statement.property_span
        self._terms.visit(node, "join condition", span)
        child = self._operand(node, "child", span)
        # The parent's side reads the records of the parent.
        found = self._graph.one(other, "logicalSource")
        self._terms.source = self._sources.logical_source(found) if found is not None else None
        parent = self._operand(node, "parent", span)
        self._terms.source = source
        if window is not None or source.formulation.kind is not FormulationKind.CSV:
            children, parents = _comma_list(child), _comma_list(parent)
            if len(children) == len(parents) > 1:
                return [
                    JoinCondition(child=c, parent=p, span=span)
                    for c, p in zip(children, parents, strict=True)
                ]
        return [JoinCondition(child=child, parent=parent, span=span)]

    def _operand(self, node: GraphTerm, name: str, span: Span | None) -> MapExpression:
        found = self._graph.one(node, name, f"{name}Map")
        if found is None:
            raise MappingError(
                f"a join condition has no {shown_name(name)}",
                hint=f"Give it {shown_name(name)} with a reference, or {shown_name(name)}Map.",
                span=span,
            )
        if found.name == name:
            if not isinstance(found.value, ox.Literal):
                raise MappingError(
                    f"{shown_name(name)} is given {found.value}, not a reference",
                    hint="Put the reference in quotes.",
                    span=found.value_span or span,
                )
            return Reference(reference=found.value.value)
        return self._terms.expression(found, "join operand")

    def _remark_on_the_rest(self) -> None:
        """Add remarks on nodes with mapping properties that no triples map uses."""
        for node in self._graph.subjects():
            if node in self._terms.visited:
                continue
            names = [s.name for s in self._graph.about(node) if is_mapping_name(s.name)]
            if names:
                self._terms.note(
                    Level.WARNING,
                    "unused-node",
                    f"{self._graph.name(node)} has {shown_name(names[0])}, but nothing uses it",
                    hint="Refer to it, or leave it out.",
                    span=self._graph.span(node),
                )


def _comma_list(expression: MapExpression) -> list[Reference]:
    """Split `a,b` as RMLStreamer writes several join keys; other references stay whole."""
    if not isinstance(expression, Reference) or "," not in expression.reference:
        return []
    parts = [part.strip() for part in expression.reference.split(",")]
    if not all(_PLAIN.fullmatch(part) for part in parts):
        return []
    return [Reference(reference=part) for part in parts]
