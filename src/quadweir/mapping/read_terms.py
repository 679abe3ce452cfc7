"""Term maps out of a mapping graph: expressions, term types, functions, languages, datatypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyoxigraph as ox

from quadweir.errors import MappingError, QuadweirError, UnsupportedError
from quadweir.mapping.findings import Finding, Level
from quadweir.mapping.graph import FALLBACK_FOLDER, GraphTerm, MappingGraph, Statement, to_term
from quadweir.mapping.languages import is_language_tag, unregistered_tag
from quadweir.mapping.model import (
    DEFAULT_GRAPH,
    ConstantTerm,
    FunctionExecution,
    FunctionInput,
    MapExpression,
    PerRecord,
    Reference,
    Template,
    TermMap,
    TermType,
)
from quadweir.mapping.sources import LogicalSource, LogicalTarget
from quadweir.mapping.vocabulary import (
    ALLOWED,
    EXPRESSIONS,
    FNO,
    HTTP_FNO,
    JOIN_PARAMETERS,
    UNSUPPORTED,
    is_mapping_name,
    short_name,
    shown_name,
    suggest,
)
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm

MAX_FUNCTION_DEPTH: Final = 32
_TERM_TYPES: Final = {kind.value: kind for kind in TermType}


class TermReader:
    """Reads the term maps of one mapping graph, and records the visited nodes."""

    def __init__(
        self,
        graph: MappingGraph,
        read_source: Callable[[Statement], LogicalSource],
        read_target: Callable[[Statement], LogicalTarget],
    ) -> None:
        self.graph = graph
        self.source: LogicalSource | None = None
        """The source whose records the expressions read."""
        self.findings: list[Finding] = []
        self.visited: set[GraphTerm] = set()
        self.triples_map: str | None = None
        self._read_source = read_source
        self._read_target = read_target
        self._executing: list[GraphTerm] = []

    # -- bookkeeping -------------------------------------------------------------------------

    def visit(self, node: GraphTerm, kind: str, span: Span | None) -> None:
        """Record a node's kind, and add remarks on unknown properties."""
        if node in self.visited:
            return
        self.visited.add(node)
        allowed = ALLOWED[kind]
        for statement in self.graph.about(node):
            name = statement.name
            if not is_mapping_name(name) or name in allowed:
                continue
            if name in UNSUPPORTED:
                raise UnsupportedError(
                    f"{shown_name(name)} is for {UNSUPPORTED[name]}, which is not supported",
                    hint="Say it with other triples maps, or leave it out.",
                    span=statement.property_span or span,
                )
            if name.startswith("qw:") and kind in ("object map", "join configuration"):
                if name.removeprefix("qw:") in JOIN_PARAMETERS:
                    continue
                guess = suggest(name, (f"qw:{known}" for known in JOIN_PARAMETERS))
            else:
                guess = suggest(name, allowed)
            self.note(
                Level.WARNING,
                "unknown-property",
                f"a {kind} has the property {statement.shown}, which means nothing there",
                hint=f"Did you mean {shown_name(guess, statement.iri)}?"
                if guess
                else "Leave it out.",
                span=statement.property_span or span,
            )

    def note(
        self, level: Level, code: str, message: str, *, hint: str | None, span: Span | None
    ) -> None:
        """Keep a remark for `lint`."""
        self.findings.append(
            Finding(
                level=level,
                code=code,
                message=message,
                hint=hint,
                triples_map=self.triples_map,
                span=span,
            )
        )

    def guess(self, node: GraphTerm) -> str | None:
        """A hint on a misspelt property of a node, for an error about a missing one."""
        for finding in reversed(self.findings):
            if finding.code == "unknown-property" and finding.span is not None:
                for statement in self.graph.about(node):
                    if statement.property_span == finding.span:
                        return f"It has {statement.shown}. {finding.hint}"
        return None

    # -- term maps ---------------------------------------------------------------------------

    def shortcut(self, statement: Statement) -> TermMap:
        """Read a constant that stands where a term map could."""
        return self._constant(statement.value, statement.value_span or statement.property_span)

    def graph_constant(self, statement: Statement) -> TermMap:
        """Read a graph name; both spellings of the default graph become one."""
        term = self.shortcut(statement)
        return _fold_default_graph(term)

    def term_map(self, statement: Statement, kind: str, default: TermType) -> TermMap:
        """Read a term map of a kind (`subject map`, `object map`, ...).

        Args:
            statement: the statement whose value is the term map's node.
            kind: the kind of node, a key of `vocabulary.ALLOWED`.
            default: the term type of references there; a template makes IRIs, except where only
            literals are allowed (languages, function inputs).
        """
        node = statement.value
        span = statement.value_span or statement.property_span or self.graph.span(node)
        if isinstance(node, ox.Literal):
            raise MappingError(
                f"{shown_name(statement.name)} is given the literal {node}",
                hint=f"Give it a node with properties, or write {_shortcut_of(statement.name)}.",
                span=span,
            )
        self.visit(node, kind, span)
        try:
            return self._term_map(node, kind, default, span)
        except QuadweirError as error:
            if error.span is None:
                error.span = span
            raise

    def _term_map(
        self, node: GraphTerm, kind: str, default: TermType, span: Span | None
    ) -> TermMap:
        graph = self.graph
        language = datatype = None
        if kind == "object map":
            language, datatype = self._language(node), self._datatype(node)
        declared = self._term_type(node)
        expression = self._expression(node, declared, kind, span)
        term_type = declared
        if term_type is None:
            if language is not None or datatype is not None:
                term_type = TermType.LITERAL
            elif isinstance(expression, ConstantTerm):
                term_type = _type_of(expression.term)
            elif isinstance(expression, Template) and kind not in (
                "language map",
                "input value map",
            ):
                term_type = TermType.IRI
            else:
                term_type = default
        if (
            isinstance(expression, ConstantTerm)
            and isinstance(expression.term, Literal)
            and term_type.is_iri
            and IRI(expression.term.lexical).is_valid()
        ):
            # YARRRML's own translator writes constants this way.
            self.note(
                Level.NOTE,
                "literal-iri",
                f"the constant {expression.term} is a string with the term type IRI",
                hint=f"Write <{expression.term.lexical}> instead.",
                span=span,
            )
            expression = ConstantTerm(term=IRI(expression.term.lexical))
        if isinstance(expression, ConstantTerm) and isinstance(expression.term, Literal):
            expression = _retype(expression.term, language, datatype)
        condition = graph.one(node, "condition")
        term = TermMap(
            expression=expression,
            term_type=term_type,
            language=language,
            datatype=datatype,
            condition=self._condition(condition) if condition else None,
            targets=tuple(self._read_target(s) for s in graph.values(node, "logicalTarget")),
            span=span,
        )
        return _fold_default_graph(term) if kind == "graph map" else term

    def condition(self, node: GraphTerm) -> FunctionExecution | None:
        """Read a node's condition, if it has one."""
        found = self.graph.one(node, "condition")
        return self._condition(found) if found else None

    def targets(self, node: GraphTerm) -> tuple[LogicalTarget, ...]:
        """Read a node's logical targets."""
        return tuple(self._read_target(s) for s in self.graph.values(node, "logicalTarget"))

    def expression(self, statement: Statement, kind: str) -> MapExpression:
        """Read an expression map: a term map that is used only for its value."""
        node = statement.value
        span = statement.value_span or statement.property_span
        self.visit(node, kind, span)
        try:
            return self._expression(node, None, kind, span)
        except QuadweirError as error:
            if error.span is None:
                error.span = span
            raise

    def _term_type(self, node: GraphTerm) -> TermType | None:
        found = self.graph.one(node, "termType")
        if found is None:
            return None
        name = short_name(found.value.value)
        kind = _TERM_TYPES.get(name)
        if kind is None:
            guess = suggest(name, _TERM_TYPES)
            raise MappingError(
                f"{found.value.value} is not a term type",
                hint=f"Did you mean rml:{guess}?"
                if guess
                else f"Use one of {', '.join(f'rml:{known}' for known in _TERM_TYPES)}.",
                span=found.value_span or found.property_span,
            )
        return kind

    def _expression(
        self, node: GraphTerm, declared: TermType | None, kind: str, span: Span | None
    ) -> MapExpression:
        found = self.graph.values(node, *EXPRESSIONS)
        if len({(s.name, s.value) for s in found}) > 1:
            shown = " and ".join(shown_name(s.name) for s in found)
            raise MappingError(
                f"a {kind} has {shown}, of which it can have one",
                hint="Keep one of them, or write a term map for each.",
                span=found[1].property_span or span,
            )
        if not found:
            if declared is TermType.BLANK_NODE:
                return PerRecord()
            raise MappingError(
                f"a {kind} has no constant, reference, template or function",
                detail=self.guess(node),
                hint="Give it one of rml:constant, rml:reference, rml:template and "
                "rml:functionExecution.",
                span=span,
            )
        statement = found[0]
        where = statement.value_span or statement.property_span or span
        match statement.name:
            case "constant":
                return ConstantTerm(term=self.term(statement.value, where))
            case "reference":
                return Reference(reference=self._text(statement))
            case "template":
                try:
                    return Template.parse(self._text(statement))
                except MappingError as error:
                    error.span = where
                    raise
            case "functionValue":
                return self._old_function(statement)
            case _:
                return self._function(statement, node)

    def _text(self, statement: Statement) -> str:
        if not isinstance(statement.value, ox.Literal):
            raise MappingError(
                f"{shown_name(statement.name)} is given {statement.value}, not a string",
                hint="Put it in quotes.",
                span=statement.value_span or statement.property_span,
            )
        return statement.value.value

    def _constant(self, value: GraphTerm, span: Span | None) -> TermMap:
        term = self.term(value, span)
        return TermMap(expression=ConstantTerm(term=term), term_type=_type_of(term), span=span)

    def term(self, value: GraphTerm, span: Span | None) -> Term:
        """A term of the document as a term of the output."""
        term = to_term(value)
        if isinstance(term, IRI) and term.value.startswith(FALLBACK_FOLDER):
            raise MappingError(
                f"the IRI <{self.graph.name(value)}> is relative, and the document has no base",
                hint="Write it in full, or start the document with @base.",
                span=span,
            )
        return term

    # -- languages and datatypes -------------------------------------------------------------

    def _language(self, node: GraphTerm) -> TermMap | None:
        found = self.graph.one(node, "language", "languageMap")
        if found is None:
            return None
        if found.name == "languageMap":
            term = self.term_map(found, "language map", TermType.LITERAL)
        else:
            term = self.shortcut(found)
        span = term.span or found.property_span
        if isinstance(term.expression, ConstantTerm):
            tag = term.expression.term
            if not isinstance(tag, Literal) or not is_language_tag(tag.lexical):
                raise MappingError(
                    f"{tag} is not a language tag",
                    hint='Use a tag of BCP 47, such as "en" or "nl-BE".',
                    span=span,
                )
            self.findings.extend(unregistered_tag(tag.lexical, self.triples_map, span))
        return term

    def _datatype(self, node: GraphTerm) -> TermMap | None:
        found = self.graph.one(node, "datatype", "datatypeMap")
        if found is None:
            return None
        if found.name == "datatypeMap":
            term = self.term_map(found, "datatype map", TermType.IRI)
        else:
            term = self.shortcut(found)
        if not term.term_type.is_iri:
            raise MappingError(
                "a datatype is not an IRI",
                hint="Write it as an IRI, such as xsd:integer, without quotes.",
                span=term.span or found.property_span,
            )
        return term

    # -- functions ---------------------------------------------------------------------------

    def _function(self, statement: Statement, owner: GraphTerm) -> FunctionExecution:
        node = statement.value
        span = statement.value_span or statement.property_span
        self._enter(node, span)
        self.visit(node, "function execution", span)
        self._check_source(node)
        function = self._named(node, "function", "functionMap")
        if function is None:
            raise MappingError(
                "a function execution names no function",
                detail=self.guess(node),
                hint="Give it rml:function with the function's IRI.",
                span=span,
            )
        execution = FunctionExecution(
            function=function,
            inputs=tuple(self._input(s) for s in self.graph.values(node, "input")),
            returns=self._named(owner, "return", "returnMap"),
            span=span,
        )
        self._executing.pop()
        return execution

    def _check_source(self, node: GraphTerm) -> None:
        """Refuse a function with a logical source other than that of the record it is called for."""
        found = self.graph.one(node, "logicalSource")
        if found is None or self.source is None:
            return
        own, given = self._read_source(found), self.source
        is_same = own.source == given.source and own.formulation.kind is given.formulation.kind
        if is_same and own.iterator in (None, given.iterator):
            return
        raise MappingError(
            "a function has another logical source than the triples map that calls it",
            detail="A function gets values of the record that is being mapped, and of no other.",
            hint="Leave out its rml:logicalSource, or repeat that of the triples map. Values of "
            "another source come through rml:parentTriplesMap with a join condition.",
            span=found.value_span or found.property_span,
        )

    def _input(self, statement: Statement) -> FunctionInput:
        node = statement.value
        span = statement.value_span or statement.property_span
        self.visit(node, "function input", span)
        parameter = self._named(node, "parameter", "parameterMap")
        value = self.graph.one(node, "inputValue", "inputValueMap")
        if parameter is None or value is None:
            raise MappingError(
                f"a function input has no {'parameter' if parameter is None else 'value'}",
                detail=self.guess(node),
                hint="Give it rml:parameter with an IRI, and rml:inputValue or rml:inputValueMap.",
                span=span,
            )
        return FunctionInput(parameter=parameter, value=self._input_value(value))

    def _input_value(self, statement: Statement) -> TermMap:
        if statement.name in ("inputValue", "object"):
            return self.shortcut(statement)
        return self.term_map(statement, "input value map", TermType.LITERAL)

    def _named(self, node: GraphTerm, name: str, map_name: str) -> str | None:
        """Read an IRI that is given directly or by a constant-valued map."""
        found = self.graph.one(node, name, map_name)
        if found is None:
            return None
        value = found.value
        if found.name == map_name:
            inner = self.graph.one(value, "constant")
            self.visited.add(value)
            if inner is None:
                raise UnsupportedError(
                    f"{shown_name(map_name)} is not a constant",
                    detail="Functions, parameters and outputs are chosen before any record is read.",
                    hint=f"Write {shown_name(name)} with an IRI.",
                    span=found.value_span or found.property_span,
                )
            value = inner.value
        if isinstance(value, ox.BlankNode) or not IRI(value.value).is_valid():
            raise MappingError(
                f"{shown_name(name)} is {value}, not an IRI",
                span=found.value_span or found.property_span,
            )
        return value.value

    def _old_function(self, statement: Statement) -> FunctionExecution:
        """Read `fnml:functionValue`: a triples map whose pairs are parameters and their values."""
        node = statement.value
        span = statement.value_span or statement.property_span
        self._enter(node, span)
        self.visit(node, "function execution", span)
        self._check_source(node)
        function: str | None = None
        inputs: list[FunctionInput] = []
        for pair in self.graph.values(node, "predicateObjectMap"):
            self.visit(pair.value, "predicate-object map", pair.value_span)
            predicates = self.graph.values(pair.value, "predicate", "predicateMap")
            objects = self.graph.values(pair.value, "object", "objectMap")
            if not predicates or not objects:
                raise MappingError(
                    "a function value has a pair without a parameter or without a value",
                    hint="Give it rr:predicate and rr:objectMap.",
                    span=pair.value_span or pair.property_span or span,
                )
            for predicate in predicates:
                parameter = self._named_predicate(predicate)
                for value in objects:
                    if parameter in (FNO.executes, HTTP_FNO.executes):
                        function = self._executes(value)
                    else:
                        inputs.append(
                            FunctionInput(parameter=parameter, value=self._input_value(value))
                        )
        if function is None:
            raise MappingError(
                "a function value names no function",
                hint="Give it a pair with the predicate fno:executes and the function as object.",
                span=span,
            )
        self._executing.pop()
        return FunctionExecution(function=function, inputs=tuple(inputs), span=span)

    def _named_predicate(self, statement: Statement) -> str:
        if statement.name == "predicate":
            return statement.value.value
        self.visit(statement.value, "predicate map", statement.value_span)
        inner = self.graph.one(statement.value, "constant")
        if inner is None:
            raise UnsupportedError(
                "a parameter of a function is not a constant",
                hint="Name it with rr:predicate.",
                span=statement.value_span or statement.property_span,
            )
        return inner.value.value

    def _executes(self, statement: Statement) -> str:
        value = statement.value
        if statement.name == "objectMap":
            self.visit(value, "object map", statement.value_span)
            inner = self.graph.one(value, "constant")
            if inner is None:
                raise UnsupportedError(
                    "the function to execute is not a constant",
                    hint="Name it with rr:constant.",
                    span=statement.value_span or statement.property_span,
                )
            value = inner.value
        return value.value

    def _condition(self, statement: Statement) -> FunctionExecution:
        expression = self.expression(statement, "condition")
        if not isinstance(expression, FunctionExecution):
            raise MappingError(
                "a condition is not a function",
                hint="Give it rml:functionExecution with a function that returns true or false.",
                span=statement.value_span or statement.property_span,
            )
        return expression

    def _enter(self, node: GraphTerm, span: Span | None) -> None:
        if node in self._executing:
            raise MappingError(
                "a function execution uses its own result as input",
                hint="Break the circle: give one of the executions another input.",
                span=span,
            )
        if len(self._executing) >= MAX_FUNCTION_DEPTH:
            raise MappingError(
                f"functions are nested more than {MAX_FUNCTION_DEPTH} deep", span=span
            )
        self._executing.append(node)


def _type_of(term: Term) -> TermType:
    match term:
        case IRI():
            return TermType.IRI
        case BlankNode():
            return TermType.BLANK_NODE
        case Literal():
            return TermType.LITERAL
        case TripleTerm():
            raise MappingError(
                f"the constant {term} is a triple term",
                hint="Mappings make IRIs, blank nodes and literals.",
            )


def _retype(term: Literal, language: TermMap | None, datatype: TermMap | None) -> ConstantTerm:
    """Drop the type of a constant literal if the term map repeats it."""
    return ConstantTerm(term=Literal(term.lexical) if language or datatype else term)


def _fold_default_graph(term: TermMap) -> TermMap:
    expression = term.expression
    if (
        isinstance(expression, ConstantTerm)
        and isinstance(expression.term, IRI)
        and short_name(expression.term.value) == "defaultGraph"
    ):
        return TermMap(
            expression=ConstantTerm(term=DEFAULT_GRAPH),
            term_type=TermType.IRI,
            targets=term.targets,
            condition=term.condition,
            span=term.span,
        )
    return term


def _shortcut_of(name: str) -> str:
    return shown_name(name.removesuffix("Map")) if name.endswith("Map") else "a blank node"
