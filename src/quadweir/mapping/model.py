"""RML as dataclasses, the common model of both vocabularies and YARRRML.

Every node checks itself when it is made, so a mapping that exists can be compiled. The `span`
fields hold places in the mapping text; equality ignores them.

Spec: https://kg-construct.github.io/rml-core/spec/docs/
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as Frames
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

from quadweir.errors import MappingError
from quadweir.mapping.findings import Finding
from quadweir.mapping.sources import LogicalSource, LogicalTarget, ValueRules
from quadweir.mapping.template import (
    ReferencePart,
    TemplatePart,
    TextPart,
    parse_template,
    spell_template,
)
from quadweir.paths import PathLike, as_path
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULT_GRAPH: Final = IRI("http://w3id.org/rml/defaultGraph")
"""The graph name of the default graph, in all vocabularies."""


class TermType(StrEnum):
    """The kind of term that a term map makes.

    The unsafe kinds put values into a template unchanged; the safe ones percent-encode them.
    URI kinds are IRIs whose non-ASCII characters are percent-encoded as well.
    """

    IRI = "IRI"
    URI = "URI"
    UNSAFE_IRI = "UnsafeIRI"
    UNSAFE_URI = "UnsafeURI"
    BLANK_NODE = "BlankNode"
    LITERAL = "Literal"

    @property
    def is_iri(self) -> bool:
        """Whether the term is an IRI of some kind."""
        return self not in (TermType.BLANK_NODE, TermType.LITERAL)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantTerm:
    """Always the same term."""

    term: Term


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The values that a column name or path has in the record: none, one or several."""

    reference: str

    def __post_init__(self) -> None:
        if not self.reference:
            raise MappingError(
                "a reference is empty", hint="Name the column or path that it should read."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """Text with references in it; one value for each combination of their values.

    >>> Template.parse("a{b}").references
    ('b',)
    """

    parts: tuple[TemplatePart, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a template from its text; see `quadweir.mapping.template`."""
        return cls(parts=parse_template(text))

    @property
    def references(self) -> tuple[str, ...]:
        """The references in order, with repetitions."""
        return tuple(part.reference for part in self.parts if isinstance(part, ReferencePart))

    def __str__(self) -> str:
        return spell_template(self.parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PerRecord:
    """A new blank node for each record (a term map with only a term type)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionInput:
    """A value for one parameter, which is named by its IRI (or by its predicate's IRI)."""

    parameter: str
    value: TermMap


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionExecution:
    """A function applied to values from the record; `returns` selects an output.

    `returns=None` takes the first output. Old-vocabulary function values (`fnml:functionValue`)
    are read into this form too.

    Spec: https://kg-construct.github.io/rml-fnml/spec/docs/
    """

    function: str
    inputs: tuple[FunctionInput, ...] = ()
    returns: str | None = None
    span: Span | None = field(default=None, compare=False)


MapExpression: TypeAlias = ConstantTerm | Reference | Template | FunctionExecution | PerRecord


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TermMap:
    """How a term is made from a record.

    `language` and `datatype` are term maps themselves (their values are a tag and an IRI); at most
    one of them is set, and only for literals. With neither, a literal has the natural datatype of
    its value. With a `condition` (a boolean function), no term is made for records that fail it.
    """

    expression: MapExpression
    term_type: TermType
    language: TermMap | None = None
    datatype: TermMap | None = None
    condition: FunctionExecution | None = None
    targets: tuple[LogicalTarget, ...] = ()
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.language is not None and self.datatype is not None:
            raise MappingError(
                "a term map has both a language and a datatype",
                hint="Keep one of them: a language-tagged literal is always an rdf:langString.",
                span=self.span,
            )
        if self.term_type is not TermType.LITERAL and (self.language or self.datatype):
            what = "language" if self.language else "datatype"
            raise MappingError(
                f"a term map of type {self.term_type} has a {what}",
                hint=f"Make its term type Literal, or drop the {what}.",
                span=self.span,
            )
        if isinstance(self.expression, PerRecord) and self.term_type is not TermType.BLANK_NODE:
            raise MappingError(
                "a term map has no constant, reference, template or function",
                hint="Give it one of them; only a blank node can do without.",
                span=self.span,
            )
        if isinstance(self.expression, ConstantTerm):
            self._check_constant(self.expression.term)

    def _check_constant(self, term: Term) -> None:
        match term:
            case IRI():
                fits = self.term_type.is_iri
            case BlankNode():
                fits = self.term_type is TermType.BLANK_NODE
            case Literal():
                fits = self.term_type is TermType.LITERAL
            case TripleTerm():
                fits = False
        if not fits:
            raise MappingError(
                f"the constant {term} is given the term type {self.term_type}",
                detail="A constant already is a term; its term type cannot be another one.",
                hint="Drop the term type, or write the constant as the term it should be.",
                span=self.span,
            )

    @property
    def is_default_graph(self) -> bool:
        """Whether this graph map names the default graph."""
        return self.expression == ConstantTerm(term=DEFAULT_GRAPH)


def constant(term: Term, *, span: Span | None = None) -> TermMap:
    """The term map that always yields `term`.

    >>> constant(IRI("urn:a")).term_type
    <TermType.IRI: 'IRI'>
    """
    match term:
        case IRI():
            kind = TermType.IRI
        case BlankNode():
            kind = TermType.BLANK_NODE
        case Literal():
            kind = TermType.LITERAL
    return TermMap(expression=ConstantTerm(term=term), term_type=kind, span=span)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JoinCondition:
    """The child's and the parent's value are equal as strings; all conditions have to hold."""

    child: MapExpression
    parent: MapExpression
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.child, PerRecord) or isinstance(self.parent, PerRecord):
            raise MappingError("a join condition lacks its child or its parent", span=self.span)


class JoinWindowKind(StrEnum):
    """The kinds of windows for stream joins; see `docs/reference/rml.md`."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    DYNAMIC = "dynamic"
    INTERVAL = "interval"
    CROSS = "cross"
    CUSTOM = "custom"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindowMap:
    """A window for a join of two streams; parameters that are not in `parameters` have the kind's
    default.

    `parameters` holds the properties in our own namespace, sorted by name, as lexical forms with
    durations in milliseconds; `mapping.joins` interprets them.
    """

    kind: JoinWindowKind
    parameters: tuple[tuple[str, str], ...] = ()
    policy: str | None = None
    """The name of a registered window policy, for `CUSTOM`."""
    span: Span | None = field(default=None, compare=False)

    def parameter(self, name: str) -> str | None:
        """Look up one of our own parameters by its local name."""
        return dict(self.parameters).get(name)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefObjectMap:
    """Objects that are the subjects of another triples map.

    Without conditions they come from the same record (or, over another source, from every record).
    """

    parent: str
    """The name of the parent `TriplesMap`."""
    conditions: tuple[JoinCondition, ...] = ()
    window: JoinWindowMap | None = None
    condition: FunctionExecution | None = None
    targets: tuple[LogicalTarget, ...] = ()
    span: Span | None = field(default=None, compare=False)


ObjectMap: TypeAlias = TermMap | RefObjectMap


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectMap:
    """The subjects of a triples map, their classes, and the graphs of all its triples."""

    term: TermMap
    classes: tuple[IRI, ...] = ()
    graphs: tuple[TermMap, ...] = ()
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.term.term_type is TermType.LITERAL:
            _refuse_string(self.term, "subject", self.span)
            raise MappingError(
                "a subject map makes literals",
                hint="A subject is an IRI or a blank node: set the term type to one of these.",
                span=self.term.span or self.span,
            )
        _check_graphs(self.graphs)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PredicateObjectMap:
    """Every predicate with every object, in these graphs and those of the subject map."""

    predicates: tuple[TermMap, ...]
    objects: tuple[ObjectMap, ...]
    graphs: tuple[TermMap, ...] = ()
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.predicates:
            raise MappingError(
                "a predicate-object map has no predicate",
                hint="Give it rml:predicate or rml:predicateMap.",
                span=self.span,
            )
        if not self.objects:
            raise MappingError(
                "a predicate-object map has no object",
                hint="Give it rml:object or rml:objectMap.",
                span=self.span,
            )
        for predicate in self.predicates:
            if not predicate.term_type.is_iri:
                _refuse_string(predicate, "predicate", self.span)
                raise MappingError(
                    f"a predicate map makes terms of type {predicate.term_type}",
                    hint="A predicate is an IRI: drop the term type or set it to IRI.",
                    span=predicate.span or self.span,
                )
        _check_graphs(self.graphs)


def _refuse_string(term: TermMap, what: str, span: Span | None) -> None:
    """Refuse a constant that is an IRI in quotes."""
    if not isinstance(term.expression, ConstantTerm) or not isinstance(
        term.expression.term, Literal
    ):
        return
    text = term.expression.term.lexical
    written = f"<{text}>" if "//" in text or text.startswith("urn:") else text
    raise MappingError(
        f"the {what} is the string {term.expression.term}",
        detail=f"A {what} is an IRI, and IRIs have no quotes.",
        hint=f"Write {written}."
        if IRI(text).is_valid()
        else "Write an IRI: <http://...>, or a name with a prefix.",
        span=term.span or span,
    )


def _check_graphs(graphs: tuple[TermMap, ...]) -> None:
    for graph in graphs:
        if graph.term_type is TermType.LITERAL:
            _refuse_string(graph, "graph", None)
            raise MappingError(
                "a graph map makes literals",
                hint="A graph is named by an IRI: drop the term type or set it to IRI.",
                span=graph.span,
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TriplesMap:
    """Triples about one subject for each record of a source."""

    name: str
    """Its IRI, or a blank node's label with `_:` in front."""
    source: LogicalSource
    subject: SubjectMap
    predicate_objects: tuple[PredicateObjectMap, ...] = ()
    base_iri: str | None = None
    span: Span | None = field(default=None, compare=False)

    def term_maps(self) -> Iterator[TermMap]:
        """Every term map in it, including language, datatype and function inputs."""
        yield from walk_term(self.subject.term)
        for graph in self.subject.graphs:
            yield from walk_term(graph)
        for pair in self.predicate_objects:
            for term in (*pair.predicates, *pair.graphs):
                yield from walk_term(term)
            for item in pair.objects:
                if isinstance(item, TermMap):
                    yield from walk_term(item)
                elif item.condition is not None:
                    yield from walk_expression(item.condition)

    def ref_object_maps(self) -> Iterator[RefObjectMap]:
        """Its referencing object maps."""
        for pair in self.predicate_objects:
            for item in pair.objects:
                if isinstance(item, RefObjectMap):
                    yield item

    def references(self) -> frozenset[str]:
        """Every reference that it reads from its own source, including join children."""
        found = {r for term in self.term_maps() for r in expression_references(term.expression)}
        for item in self.ref_object_maps():
            for condition in item.conditions:
                found |= expression_references(condition.child)
        return frozenset(found)


def walk_term(term: TermMap) -> Iterator[TermMap]:
    """A term map and those inside it."""
    yield term
    yield from walk_expression(term.expression)
    if term.language is not None:
        yield from walk_term(term.language)
    if term.datatype is not None:
        yield from walk_term(term.datatype)
    if term.condition is not None:
        yield from walk_expression(term.condition)


def walk_expression(expression: MapExpression) -> Iterator[TermMap]:
    """The term maps in an expression: the inputs of its functions."""
    if isinstance(expression, FunctionExecution):
        for item in expression.inputs:
            yield from walk_term(item.value)


def expression_references(expression: MapExpression) -> frozenset[str]:
    """The references that an expression reads, including those of nested functions.

    >>> sorted(expression_references(Template.parse("{a}-{b}")))
    ['a', 'b']
    """
    match expression:
        case Reference(reference=reference):
            return frozenset((reference,))
        case Template():
            return frozenset(expression.references)
        case FunctionExecution():
            inner = walk_expression(expression)
            return frozenset(
                r
                for term in inner
                if not isinstance(term.expression, FunctionExecution)
                for r in expression_references(term.expression)
            )
        case ConstantTerm() | PerRecord():
            return frozenset()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """A whole mapping: triples maps that may refer to one another by name."""

    triples_maps: tuple[TriplesMap, ...]
    base_iri: str | None = None
    """The base of relative IRIs, unless the run or a triples map has its own."""
    path: Path | None = field(default=None, compare=False)
    """The file it was read from; its folder is the root of relative paths."""
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    """The findings from reading it, for `check.lint`."""

    def __post_init__(self) -> None:
        names: set[str] = set()
        for triples_map in self.triples_maps:
            if triples_map.name in names:
                raise MappingError(
                    f"two triples maps are named {triples_map.name}", span=triples_map.span
                )
            names.add(triples_map.name)
        for triples_map in self.triples_maps:
            for item in triples_map.ref_object_maps():
                if item.parent not in names:
                    raise MappingError(
                        f"triples map {triples_map.name} refers to the parent triples map "
                        f"{item.parent}, which the mapping does not have",
                        hint="Check the name, or add that triples map.",
                        span=item.span or triples_map.span,
                    )

    @classmethod
    def read(cls, path: PathLike, *, rules: ValueRules | str | None = None) -> Mapping:
        """Read a mapping file.

        Args:
            path: RML in any RDF syntax, or YARRRML (`.yml`, `.yaml`, `.yarrrml`).
            rules: how values become terms, `current` or `older`; without it each source's
                vocabulary decides.
        """
        from quadweir.mapping.read import read_mapping

        mapping = read_mapping(as_path(path))
        return mapping if rules is None else mapping.with_rules(ValueRules(rules))

    def with_rules(self, rules: ValueRules) -> Mapping:
        """The same mapping with other rules for the values of all its sources."""
        return replace(
            self,
            triples_maps=tuple(
                replace(one, source=replace(one.source, rules=rules)) for one in self.triples_maps
            ),
        )

    def apply(
        self,
        frames: DataFrame | Frames[str, DataFrame],
        *,
        base: str | None = None,
        time: str | Frames[str, str] | None = None,
    ) -> DataFrame:
        """Map DataFrames to quads, or to statements if their records have event times.

        See `quadweir.mapping.apply.apply`.
        """
        from quadweir.mapping.apply import apply

        return apply(self, frames, base=base, time=time)

    def triples_map(self, name: str) -> TriplesMap:
        """Look up a triples map by its name."""
        for candidate in self.triples_maps:
            if candidate.name == name:
                return candidate
        raise MappingError(f"the mapping has no triples map named {name}")

    def targets(self) -> tuple[LogicalTarget, ...]:
        """Every logical target once, in the order of first use."""
        found: dict[LogicalTarget, None] = {}
        for triples_map in self.triples_maps:
            for term in triples_map.term_maps():
                found.update(dict.fromkeys(term.targets))
            for item in triples_map.ref_object_maps():
                found.update(dict.fromkeys(item.targets))
        return tuple(found)


__all__ = [
    "DEFAULT_GRAPH",
    "ConstantTerm",
    "MapExpression",
    "FunctionExecution",
    "FunctionInput",
    "JoinCondition",
    "JoinWindowMap",
    "JoinWindowKind",
    "Mapping",
    "ObjectMap",
    "PerRecord",
    "PredicateObjectMap",
    "RefObjectMap",
    "Reference",
    "ReferencePart",
    "SubjectMap",
    "Template",
    "TemplatePart",
    "TermMap",
    "TermType",
    "TextPart",
    "TriplesMap",
    "constant",
    "expression_references",
    "walk_expression",
    "walk_term",
]
