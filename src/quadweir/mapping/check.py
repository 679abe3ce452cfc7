"""Errors and doubtful places of a mapping.

`check_mapping` raises the first error; every run calls it. `lint` lists all errors and doubtful
places, and checks sample records if there are any; `quadweir map --validate` prints that list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as Samples
from dataclasses import replace
from typing import Final

from lxml import etree

from quadweir.errors import MappingError, QuadweirError
from quadweir.mapping.findings import Finding, Level
from quadweir.mapping.formats.xmlfile import known_names
from quadweir.mapping.formats.xpaths import compile_xpath
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.joins import time_reference, window_of
from quadweir.mapping.jsonpath import check_path
from quadweir.mapping.model import (
    ConstantTerm,
    FunctionExecution,
    JoinWindowMap,
    MapExpression,
    Mapping,
    Reference,
    RefObjectMap,
    Template,
    TermMap,
    TermType,
    TextPart,
    TriplesMap,
    expression_references,
)
from quadweir.mapping.sources import FormulationKind, LogicalSource
from quadweir.mapping.vocabulary import suggest
from quadweir.spans import Span
from quadweir.terms import IRI, BlankNode, Literal

MatchCheck = Callable[[LogicalSource, str], bool]
"""Says whether a reference of a source matched in at least one sample record."""

_WITH_GRAPHS: Final = ("N-Quads", "TriG", "JSON-LD")
# Whitespace and the characters that N-Triples forbids: the fixed text of a template must not put
# them into an IRI.
_BAD_IRI_TEXT: Final = re.compile(r'[\x00-\x20<>"|^`\x7f]')


def check_mapping(mapping: Mapping, registry: MappingFunctions = FUNCTIONS) -> None:
    """Raise a `MappingError` if the mapping cannot run, whatever its data."""
    for triples_map in mapping.triples_maps:
        for error in _errors(triples_map, mapping, registry):
            raise error


def lint(
    mapping: Mapping,
    samples: Samples[LogicalSource, Sequence[str]] | MatchCheck | None = None,
    registry: MappingFunctions = FUNCTIONS,
) -> list[Finding]:
    """List everything that is wrong or doubtful in a mapping, in the order of the text.

    Args:
        mapping: the mapping, which has been read without an error.
        samples: for each logical source the references that matched something in its sample
            records (for CSV, its columns), or a function that says so of one reference; sources
            without an entry are not checked.
        registry: the functions that the run will have.
    """
    findings = list(mapping.findings)
    for triples_map in mapping.triples_maps:
        findings.extend(
            _as_finding(error, triples_map) for error in _errors(triples_map, mapping, registry)
        )
        findings.extend(_unused(triples_map, mapping))
        findings.extend(_unbounded(triples_map, mapping))
        findings.extend(_idle_windows(triples_map, mapping))
        findings.extend(_doubtful(triples_map))
        findings.extend(_chance(triples_map, registry))
        if samples is not None:
            findings.extend(_unmatched(triples_map, mapping, samples))
    ordered = sorted(
        dict.fromkeys(findings),
        key=lambda f: (f.span.line, f.span.column) if f.span else (1 << 30, 0),
    )
    return list(_each_once(ordered))


def _each_once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Report an error that several triples maps share once, at its first place."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        common = finding.message.removeprefix(f"triples map {finding.triples_map}: ")
        is_error = finding.level is Level.ERROR
        groups.setdefault((common, finding.hint) if is_error else number, []).append(finding)
    for first, *others in groups.values():
        more = f" (and in {len(others)} more place{'s' if len(others) > 1 else ''})"
        yield replace(first, message=first.message + more) if others else first


# -- errors ------------------------------------------------------------------------------------


def _errors(
    triples_map: TriplesMap, mapping: Mapping, registry: MappingFunctions
) -> Iterator[QuadweirError]:
    for execution in _executions(triples_map):
        try:
            registry.check(execution)
        except MappingError as error:
            error.message = f"triples map {triples_map.name}: {error.message}"
            error.args = (error.message,)
            error.span = error.span or triples_map.span
            yield error
    for source, expression, holder in _read(triples_map, mapping):
        for reference in sorted(expression_references(expression)):
            yield from _path_errors(triples_map, source, reference, "a reference", holder.span)
    yield from _graph_errors(triples_map)
    source = triples_map.source
    if source.iterator is not None:
        yield from _path_errors(triples_map, source, source.iterator, "the iterator", source.span)
    for item in triples_map.ref_object_maps():
        if item.window is not None:
            yield from _window_errors(triples_map, mapping, item, item.window)
        parent = mapping.triples_map(item.parent)
        live = parent.source.is_stream or triples_map.source.is_stream
        whole = not item.conditions and item.window is None
        if live and whole and parent.source != triples_map.source:
            yield MappingError(
                f"triples map {triples_map.name}: a stream is joined to {item.parent} "
                "without a condition or a window",
                detail="Every record would be paired with every other one, forever.",
                hint="Add rml:joinCondition and rmls:windowType.",
                span=item.span or triples_map.span,
            )


def _window_errors(
    triples_map: TriplesMap, mapping: Mapping, item: RefObjectMap, window: JoinWindowMap
) -> Iterator[QuadweirError]:
    """A window that is not valid, or whose times are read from an invalid path."""
    try:
        window_of(window)
    except MappingError as error:
        error.message = f"triples map {triples_map.name}: {error.message}"
        error.args = (error.message,)
        yield error
    sides = (triples_map, mapping.triples_map(item.parent))
    for is_parent, side in enumerate(sides):
        reference = time_reference(window, is_parent=bool(is_parent))
        if reference is not None:
            yield from _path_errors(triples_map, side.source, reference, "the time", window.span)


def _graph_errors(triples_map: TriplesMap) -> Iterator[QuadweirError]:
    """Targets whose syntax would lose the graphs of their quads."""
    subject = triples_map.subject
    pairs: list[tuple[tuple[TermMap, ...], tuple[TermMap | RefObjectMap, ...]]] = [
        ((*subject.graphs, *pair.graphs), (*pair.predicates, *pair.objects))
        for pair in triples_map.predicate_objects
    ]
    pairs.append((subject.graphs, ()))
    for graphs, terms in pairs:
        named = [graph for graph in graphs if not graph.is_default_graph]
        if not named:
            continue
        for term in (subject.term, *terms, *named):
            for target in term.targets:
                local = target.serialization.rpartition("/")[2]
                if local not in _WITH_GRAPHS:
                    yield MappingError(
                        f"triples map {triples_map.name}: what goes to {target.path} is in a named "
                        f"graph, which {local} cannot hold",
                        hint=f"Choose one of {', '.join(_WITH_GRAPHS)}, or leave out the graph.",
                        span=target.span or term.span or triples_map.span,
                    )
                    return


def _path_errors(
    triples_map: TriplesMap, source: LogicalSource, path: str, what: str, span: Span | None
) -> Iterator[QuadweirError]:
    try:
        if source.formulation.kind is FormulationKind.JSONPATH:
            check_path(path, what)
        elif source.formulation.kind is FormulationKind.XPATH:
            _check_xpath(path, dict(source.formulation.namespaces), what)
    except MappingError as error:
        yield MappingError(
            f"triples map {triples_map.name}: {error.message}",
            detail=error.detail,
            hint=error.hint,
            span=error.span or span or triples_map.span,
        )


def _check_xpath(path: str, namespaces: dict[str, str], what: str) -> None:
    try:
        # Unknown functions only show when a path is evaluated. The document declares the prefixes
        # that the mapping does not.
        names = known_names(path, namespaces)
        compile_xpath(path, names)(etree.Element("empty"))
    except (etree.XPathError, ValueError) as error:
        raise MappingError(
            f"{what} is not an XPath: {path}",
            detail=str(error),
            hint="Write it in XPath 1.0.",
        ) from None


def _executions(triples_map: TriplesMap) -> Iterator[FunctionExecution]:
    for term in triples_map.term_maps():
        if isinstance(term.expression, FunctionExecution):
            yield term.expression
        if term.condition is not None:
            yield term.condition
    for item in triples_map.ref_object_maps():
        if item.condition is not None:
            yield item.condition
        for condition in item.conditions:
            for side in (condition.child, condition.parent):
                if isinstance(side, FunctionExecution):
                    yield side


def _as_finding(error: QuadweirError, triples_map: TriplesMap) -> Finding:
    return Finding(
        level=Level.ERROR,
        code="cannot-run",
        message=error.message,
        hint=error.hint,
        triples_map=triples_map.name,
        span=error.span,
    )


# -- doubts ------------------------------------------------------------------------------------


def _warn(
    triples_map: TriplesMap, code: str, message: str, hint: str, term: TermMap | RefObjectMap | None
) -> Finding:
    return Finding(
        level=Level.WARNING,
        code=code,
        message=f"triples map {triples_map.name}: {message}",
        hint=hint,
        triples_map=triples_map.name,
        span=(term.span if term is not None else None) or triples_map.span,
    )


def _unused(triples_map: TriplesMap, mapping: Mapping) -> Iterator[Finding]:
    """A triples map without predicates or classes makes no triple; it may still be a parent."""
    if triples_map.predicate_objects or triples_map.subject.classes:
        return
    parents = {item.parent for t in mapping.triples_maps for item in t.ref_object_maps()}
    if triples_map.name not in parents:
        yield _warn(
            triples_map,
            "unused-map",
            "it makes no triples, and no other triples map refers to it",
            "Give it rml:predicateObjectMap or rml:class, or leave it out.",
            None,
        )


def _unbounded(triples_map: TriplesMap, mapping: Mapping) -> Iterator[Finding]:
    for item in triples_map.ref_object_maps():
        parent = mapping.triples_map(item.parent)
        if item.window is None and item.conditions:
            both = parent.source.is_stream and triples_map.source.is_stream
            if both and parent.source != triples_map.source:
                yield _warn(
                    triples_map,
                    "unbounded-join",
                    f"its stream is joined with that of {item.parent} without a window",
                    "Give the object map rmls:windowType; without it, a live run keeps every "
                    "record of both streams.",
                    item,
                )
        if not item.conditions and parent.source != triples_map.source:
            yield _warn(
                triples_map,
                "cross-join",
                f"it is joined with {item.parent}, which has another source, without a condition",
                "Every record joins with every other one; add rml:joinCondition to limit that.",
                item,
            )


def _idle_windows(triples_map: TriplesMap, mapping: Mapping) -> Iterator[Finding]:
    for item in triples_map.ref_object_maps():
        both = (triples_map.source, mapping.triples_map(item.parent).source)
        if item.window is not None and not all(source.is_stream for source in both):
            yield _warn(
                triples_map,
                "window-without-streams",
                f"it is joined with {item.parent} in a window, but not both are streams",
                "All records of a file are joined, whatever the window; leave it out.",
                item,
            )


def _doubtful(triples_map: TriplesMap) -> Iterator[Finding]:
    base = triples_map.base_iri
    if base is not None and not IRI(base).is_valid():
        yield _warn(
            triples_map,
            "bad-base",
            f"its base {base!r} is not an absolute IRI",
            "Give rml:baseIRI an absolute IRI.",
            None,
        )
    for term in triples_map.term_maps():
        expression = term.expression
        if isinstance(expression, Template) and not expression.references:
            yield _warn(
                triples_map,
                "constant-template",
                f"the template {str(expression)!r} has no reference, so it always makes one term",
                "Use rml:constant if that is meant, or put references in braces.",
                term,
            )
        if isinstance(expression, Template) and term.term_type.is_iri:
            for part in expression.parts:
                if isinstance(part, TextPart) and _BAD_IRI_TEXT.search(part.text):
                    yield _warn(
                        triples_map,
                        "bad-iri-text",
                        f"the template {str(expression)!r} makes IRIs with characters that IRIs "
                        "cannot have",
                        "Percent-encode them, or set the term type to rml:Literal.",
                        term,
                    )
                    break
        if (
            isinstance(expression, ConstantTerm)
            and isinstance(expression.term, Literal)
            and expression.term.language is None
            and "{" in expression.term.lexical
            and "}" in expression.term.lexical
        ):
            yield _warn(
                triples_map,
                "template-as-constant",
                f"the constant {expression.term} looks like a template",
                "Write rml:template if its braces are references.",
                term,
            )
        if isinstance(expression, ConstantTerm) and isinstance(expression.term, BlankNode):
            yield _warn(
                triples_map,
                "blank-constant",
                "a constant is a blank node, the same one for all records",
                'Use rml:termType rml:BlankNode with a template, or leave it to "one for each '
                'record" with the term type alone.',
                term,
            )
        if isinstance(expression, Reference) and term.term_type is TermType.LITERAL:
            yield from _wrong_formulation(triples_map, term, expression)


def _wrong_formulation(
    triples_map: TriplesMap, term: TermMap, expression: Reference
) -> Iterator[Finding]:
    kind = triples_map.source.formulation.kind
    if kind is FormulationKind.CSV and expression.reference.startswith("$."):
        yield _warn(
            triples_map,
            "foreign-reference",
            f"the reference {expression.reference!r} is a JSONPath, but the source is CSV",
            f"Write {expression.reference[2:]!r}, the column's name.",
            term,
        )


def _chance(triples_map: TriplesMap, registry: MappingFunctions) -> Iterator[Finding]:
    for execution in _executions(triples_map):
        function = registry.get(execution.function)
        if function is not None and not function.deterministic:
            yield Finding(
                level=Level.NOTE,
                code="not-deterministic",
                message=f"triples map {triples_map.name}: {execution.function} gives other results "
                "in every run, also when a batch is repeated after a failure",
                hint="Make terms from the record's values where they must stay the same.",
                triples_map=triples_map.name,
                span=execution.span or triples_map.span,
            )


# -- samples -----------------------------------------------------------------------------------


def _unmatched(
    triples_map: TriplesMap,
    mapping: Mapping,
    samples: Samples[LogicalSource, Sequence[str]] | MatchCheck,
) -> Iterator[Finding]:
    for source, expression, holder in _read(triples_map, mapping):
        for reference in sorted(expression_references(expression)):
            known: Sequence[str] = ()
            if callable(samples):
                if samples(source, reference):
                    continue
            else:
                if source not in samples:
                    continue
                known = samples[source]
                if reference in known:
                    continue
            guess = suggest(reference, known)
            yield _warn(
                triples_map,
                "unmatched-reference",
                f"the reference {reference!r} matches nothing in the sample",
                f"Did you mean {guess!r}?" if guess else "Check its spelling against the data.",
                holder,
            )


def _read(
    triples_map: TriplesMap, mapping: Mapping
) -> Iterator[tuple[LogicalSource, MapExpression, TermMap | RefObjectMap]]:
    """Every expression that reads a source, with the source it reads."""
    for term in triples_map.term_maps():
        if not isinstance(term.expression, FunctionExecution):
            yield triples_map.source, term.expression, term
    for item in triples_map.ref_object_maps():
        parent = mapping.triples_map(item.parent)
        for condition in item.conditions:
            yield triples_map.source, condition.child, item
            yield parent.source, condition.parent, item


__all__ = ["Finding", "Level", "check_mapping", "lint"]
