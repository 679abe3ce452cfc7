"""The terms of YARRRML: values, functions, conditions, and objects of other mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from quadweir.errors import MappingError, QuadweirError, UnsupportedError
from quadweir.mapping.findings import Finding, Level
from quadweir.mapping.languages import is_language_tag, unregistered_tag
from quadweir.mapping.model import (
    ConstantTerm,
    FunctionExecution,
    FunctionInput,
    JoinCondition,
    MapExpression,
    ObjectMap,
    PerRecord,
    RefObjectMap,
    TermMap,
    TermType,
)
from quadweir.mapping.sources import LogicalTarget
from quadweir.mapping.vocabulary import suggest
from quadweir.mapping.yaml_nodes import Collection, Scalar, YamlNode, YamlSequence
from quadweir.mapping.yarrrml_io import read_target
from quadweir.mapping.yarrrml_values import InlineFunction, YarrrmlNames, parse_call
from quadweir.spans import Span
from quadweir.terms import IRI

KeyForms = Mapping[str, tuple[str, ...]]
"""Long keys with all their forms."""

_TERM: Final[KeyForms] = {
    "value": ("value", "v"),
    "type": ("type",),
    "datatype": ("datatype",),
    "language": ("language", "lang"),
    "function": ("function", "fn", "f"),
    "parameters": ("parameters", "pms"),
    "mapping": ("mapping", "mappings", "m"),
    "condition": ("condition", "conditions", "c"),
    "targets": ("targets", "target"),
    "quoted": ("quoted", "quotedNonAsserted"),
    "from": ("from",),
}
_PARAMETER: Final[KeyForms] = {
    "parameter": ("parameter", "pm"),
    "value": ("value", "v"),
    "from": ("from",),
    "type": ("type",),
    "datatype": ("datatype",),
}
_TYPES: Final = {
    "iri": TermType.IRI,
    "literal": TermType.LITERAL,
    "blank": TermType.BLANK_NODE,
    "uri": TermType.URI,
    "unsafeiri": TermType.UNSAFE_IRI,
    "unsafeuri": TermType.UNSAFE_URI,
}


class YarrrmlTermReader:
    """Reads the terms of one document; the subclass sets the facts about the document."""

    def __init__(self, scope: YarrrmlNames) -> None:
        self._scope = scope
        self._targets: dict[str, LogicalTarget] = {}
        self._findings: list[Finding] = []
        self._current: str | None = None
        self._variants: dict[str, list[str]] = {}

    # -- terms -------------------------------------------------------------------------------

    def _object(
        self, node: YamlNode, default: TermType, extra: YamlNode | None
    ) -> Iterator[ObjectMap]:
        if isinstance(node, Collection):
            parent = node.get(*_TERM["mapping"])
            if parent is not None:
                yield from self._reference_to(node, text_of(parent, "mapping"), parent.span)
                return
            function = node.get(*_TERM["function"])
            if isinstance(function, Scalar) and function.text.lstrip().startswith("join("):
                yield from self._inline_join(parse_call(function.text, function.span), node)
                return
        term = self._term(node, "object", default)
        yield self._with_third(term, extra) if extra is not None else term

    def _with_third(self, term: TermMap, extra: YamlNode) -> TermMap:
        """Apply the third part of `[predicate, object, datatype]`: a datatype or a language."""
        text = text_of(extra, "the third part of a predicate and object")
        if text.endswith("~lang"):
            language = self._language(text.removesuffix("~lang"), extra.span)
            return _literal(term, language=language)
        return _literal(term, datatype=self._datatype(text, extra.span))

    def _term(self, node: YamlNode, kind: str, default: TermType) -> TermMap:
        try:
            if isinstance(node, Scalar):
                return self._scalar(node, default)
            if isinstance(node, YamlSequence):
                return self._short(node, kind, default)
            return self._long(node, kind, default)
        except QuadweirError as error:
            if error.span is None:
                error.span = node.span
            raise

    def _scalar(self, node: Scalar, default: TermType) -> TermMap:
        text, term_type = node.text, default
        if text.endswith("~iri"):
            text, term_type = text.removesuffix("~iri"), TermType.IRI
        elif text.endswith("~literal"):
            text, term_type = text.removesuffix("~literal"), TermType.LITERAL
        elif text.endswith("~blank"):
            text, term_type = text.removesuffix("~blank"), TermType.BLANK_NODE
        expression: MapExpression = self._scope.value(text, node.span, iri=term_type.is_iri)
        return TermMap(expression=expression, term_type=term_type, span=node.span)

    def _short(self, node: YamlSequence, kind: str, default: TermType) -> TermMap:
        """Read `[value, datatype or language]`, or `[value, target]` where no literal can be."""
        if not 1 <= len(node.items) <= 2:
            raise MappingError(
                f"a {kind} in brackets has {len(node.items)} parts",
                hint="Write [value] or [value, datatype].",
                span=node.span,
            )
        term = self._term(node.items[0], kind, default)
        if len(node.items) == 1:
            return term
        if kind != "object":
            return replace(term, targets=self._read_targets(node.items[1]))
        return self._with_third(term, node.items[1])

    def _long(self, node: Collection, kind: str, default: TermType) -> TermMap:
        self._check_keys(node, _TERM, f"a {kind}")
        if node.get(*_TERM["quoted"]) is not None:
            raise UnsupportedError(
                "quoted mappings (RDF-star) are not supported",
                hint="Leave them out, or describe the statement with triples of its own.",
                span=node.span,
            )
        datatype = node.get(*_TERM["datatype"])
        language = node.get(*_TERM["language"])
        term_type = default
        declared = node.get("type")
        if declared is not None:
            name = text_of(declared, "type").lower()
            if name not in _TYPES:
                raise MappingError(
                    f"{name!r} is not a type of term",
                    hint=f"Use one of {', '.join(_TYPES)}.",
                    span=declared.span,
                )
            term_type = _TYPES[name]
        elif datatype is not None or language is not None:
            term_type = TermType.LITERAL
        value = node.get(*_TERM["value"])
        function = node.get(*_TERM["function"])
        expression: MapExpression
        if function is not None:
            expression = self._function(node)
        elif value is not None:
            inner = self._scalar(scalar_of(value, "value"), term_type)
            expression, term_type = inner.expression, inner.term_type
        elif term_type is TermType.BLANK_NODE:
            expression = PerRecord()
        else:
            raise MappingError(
                f"a {kind} has no value",
                hint="Give it the key value or function.",
                span=node.span,
            )
        term = TermMap(
            expression=expression,
            term_type=term_type,
            condition=self._conditions(node.get(*_TERM["condition"])),
            targets=self._read_targets(node.get(*_TERM["targets"])),
            span=node.span,
        )
        if language is not None:
            text = text_of(language, "language").removesuffix("~lang")
            term = _literal(term, language=self._language(text, language.span))
        if datatype is not None:
            text = text_of(datatype, "datatype")
            term = _literal(term, datatype=self._datatype(text, datatype.span))
        return term

    def _language(self, text: str, span: Span) -> TermMap:
        expression = self._scope.value(text, span, iri=False)
        if isinstance(expression, ConstantTerm) and not is_language_tag(text):
            raise MappingError(
                f"{text!r} is not a language tag",
                hint='Use a tag of BCP 47, such as "en" or "nl-BE".',
                span=span,
            )
        if isinstance(expression, ConstantTerm):
            self._findings.extend(unregistered_tag(text, None, span))
        return TermMap(expression=expression, term_type=TermType.LITERAL, span=span)

    def _datatype(self, text: str, span: Span) -> TermMap:
        expression = self._scope.value(text, span, iri=True)
        return TermMap(expression=expression, term_type=TermType.IRI, span=span)

    def _read_targets(self, node: YamlNode | None) -> tuple[LogicalTarget, ...]:
        if node is None:
            return ()
        whole = isinstance(node, Collection) or (
            isinstance(node, YamlSequence)
            and bool(node.items)
            and isinstance(node.items[0], Scalar)
            and "~" in node.items[0].text
        )
        found = []
        for index, item in enumerate([node] if whole else as_list(node)):
            if isinstance(item, Scalar) and "~" not in item.text:
                named = self._targets.get(item.text)
                if named is None:
                    guess = suggest(item.text, self._targets)
                    raise MappingError(
                        f"there is no target {item.text!r}",
                        hint=f"Did you mean {guess!r}?" if guess else "Add it under targets.",
                        span=item.span,
                    )
                found.append(named)
            else:
                name = f"{self._current}:{item.span.line}:{index}"
                found.append(read_target(item, name, self._scope))
        return tuple(found)

    # -- functions and joins -----------------------------------------------------------------

    def _function(self, node: Collection) -> FunctionExecution:
        name = scalar_of(node.get(*_TERM["function"]), "function")
        if "(" in name.text:
            return self._called(parse_call(name.text, name.span), name.span)
        inputs = []
        for item in as_list(node.get(*_TERM["parameters"])):
            parameter, value, _ = self._parameter(item)
            inputs.append(
                FunctionInput(parameter=self._scope.iri(parameter, item.span), value=value)
            )
        return FunctionExecution(
            function=self._scope.iri(name.text, name.span),
            inputs=tuple(inputs),
            span=node.span,
        )

    def _called(self, call: InlineFunction, span: Span) -> FunctionExecution:
        prefix = call.name.partition(":")[0] if ":" in call.name else ""
        inputs = []
        for parameter, value in call.arguments:
            if parameter is None:
                raise MappingError(
                    f"the function {call.name} has a value without a parameter",
                    hint="Write parameter = value.",
                    span=span,
                )
            # A parameter without a prefix has that of its function.
            full = parameter if ":" in parameter else f"{prefix}:{parameter}"
            made = (
                TermMap(expression=self._called(value, span), term_type=TermType.LITERAL, span=span)
                if isinstance(value, InlineFunction)
                else self._input(value, span)
            )
            inputs.append(FunctionInput(parameter=self._scope.iri(full, span), value=made))
        return FunctionExecution(
            function=self._scope.iri(call.name, span), inputs=tuple(inputs), span=span
        )

    def _input(self, text: str, span: Span) -> TermMap:
        if text.endswith("~iri"):
            expression = self._scope.value(text.removesuffix("~iri"), span, iri=True)
            return TermMap(expression=expression, term_type=TermType.IRI, span=span)
        expression = self._scope.value(text, span, iri=False)
        return TermMap(expression=expression, term_type=TermType.LITERAL, span=span)

    def _parameter(self, node: YamlNode) -> tuple[str, TermMap, str | None]:
        """Read one parameter: its name, its value, and which side of a join it is from."""
        side: YamlNode | None
        if isinstance(node, YamlSequence) and len(node.items) in (2, 3):
            name, value = node.items[:2]
            side = node.items[2] if len(node.items) == 3 else None
        elif isinstance(node, Collection):
            self._check_keys(node, _PARAMETER, "a parameter")
            found_n, found_v = node.get(*_PARAMETER["parameter"]), node.get(*_PARAMETER["value"])
            if found_n is None or found_v is None:
                raise MappingError(
                    "a parameter has no name or no value",
                    hint="Give it the keys parameter and value.",
                    span=node.span,
                )
            name, value, side = found_n, found_v, node.get("from")
        else:
            raise MappingError(
                "a parameter cannot be read",
                hint="Write [parameter, value], or the keys parameter and value.",
                span=node.span,
            )
        if isinstance(value, Collection):
            made = TermMap(
                expression=self._function(value), term_type=TermType.LITERAL, span=value.span
            )
        else:
            made = self._input(text_of(value, "a parameter's value"), value.span)
        which = text_of(side, "from") if side is not None else None
        if which is not None and which[:1] not in ("s", "o"):
            raise MappingError(
                f"{which!r} is not a side of a join",
                hint="Write s (this mapping) or o (the other one).",
                span=side.span if side is not None else node.span,
            )
        return text_of(name, "a parameter's name"), made, which[:1] if which else None

    def _conditions(self, node: YamlNode | None) -> FunctionExecution | None:
        if node is None:
            return None
        items = as_list(node) if not isinstance(node, Collection) else [node]
        if len(items) != 1 or not isinstance(items[0], Collection):
            raise MappingError(
                "a condition is not one function",
                hint="Give it the key function; join several with grel:boolean_and.",
                span=node.span,
            )
        self._check_keys(items[0], _TERM, "a condition")
        return self._function(items[0])

    def _reference_to(self, node: Collection, parent: str, span: Span) -> Iterator[RefObjectMap]:
        self._check_keys(node, _TERM, "an object")
        found = node.get(*_TERM["condition"])
        conditions: list[JoinCondition] = []
        other: FunctionExecution | None = None
        for item in as_list(found) if not isinstance(found, Collection) else [found]:
            if not isinstance(item, Collection):
                raise MappingError("a condition is not a function", span=item.span)
            name = scalar_of(item.get(*_TERM["function"]), "function")
            if name.text in ("equal", "equals"):
                sides = [self._parameter(p) for p in as_list(item.get(*_TERM["parameters"]))]
                conditions.append(_join(sides, item.span))
            elif name.text.startswith("equal("):
                conditions.append(self._joined(parse_call(name.text, name.span), name.span))
            else:
                other = self._function(item)
        yield from self._parents(
            parent,
            span,
            conditions,
            other,
            self._read_targets(node.get(*_TERM["targets"])),
            node.span,
        )

    def _inline_join(self, call: InlineFunction, node: Collection) -> Iterator[RefObjectMap]:
        parent: str | None = None
        conditions: list[JoinCondition] = []
        for name, value in call.arguments:
            if name == "mapping" and isinstance(value, str):
                parent = value
            elif isinstance(value, InlineFunction) and value.name in ("equal", "equals"):
                conditions.append(self._joined(value, node.span))
            else:
                raise UnsupportedError(
                    f"join() has a part that is not supported: {name or value}",
                    hint="Write join(mapping=other, equal(str1=$(a), str2=$(b))).",
                    span=node.span,
                )
        if parent is None:
            raise MappingError(
                "join() names no mapping", hint="Write mapping=other.", span=node.span
            )
        yield from self._parents(parent, node.span, conditions, None, (), node.span)

    def _joined(self, call: InlineFunction, span: Span) -> JoinCondition:
        sides: list[tuple[str, TermMap, str | None]] = [
            (name or "", self._input(value, span), None)
            for name, value in call.arguments
            if isinstance(value, str)
        ]
        return _join(sides, span)

    def _parents(
        self,
        parent: str,
        span: Span,
        conditions: list[JoinCondition],
        condition: FunctionExecution | None,
        targets: tuple[LogicalTarget, ...],
        place: Span,
    ) -> Iterator[RefObjectMap]:
        names = self._variants.get(parent)
        if names is None:
            guess = suggest(parent, self._variants)
            raise MappingError(
                f"there is no mapping {parent!r}",
                hint=f"Did you mean {guess!r}?" if guess else "Add it under mappings.",
                span=span,
            )
        for name in names:
            yield RefObjectMap(
                parent=name,
                conditions=tuple(conditions),
                condition=condition,
                targets=targets,
                span=place,
            )

    def _check_keys(self, node: Collection, known: KeyForms, what: str) -> None:
        allowed = {short for forms in known.values() for short in forms}
        for key, _ in node:
            if key.text not in allowed:
                guess = suggest(key.text, allowed)
                self._findings.append(
                    Finding(
                        level=Level.WARNING,
                        code="unknown-property",
                        message=f"{what} has the key {key.text!r}, which means nothing there",
                        hint=f"Did you mean {guess!r}?" if guess else "Leave it out.",
                        triples_map=self._current,
                        span=key.span,
                    )
                )


# -- plain helpers -----------------------------------------------------------------------------


def as_list(node: YamlNode | None) -> list[YamlNode]:
    """Take a list as it is, and anything else as a list of one."""
    if node is None:
        return []
    return list(node.items) if isinstance(node, YamlSequence) else [node]


def scalar_of(node: YamlNode | None, what: str) -> Scalar:
    """Take a node that has to be a text."""
    if not isinstance(node, Scalar):
        raise MappingError(f"{what} is not a text", span=node.span if node is not None else None)
    return node


def text_of(node: YamlNode, what: str) -> str:
    """Take the text of a node that has to be one."""
    return scalar_of(node, what).text


def _literal(
    term: TermMap, *, language: TermMap | None = None, datatype: TermMap | None = None
) -> TermMap:
    expression = term.expression
    if isinstance(expression, ConstantTerm) and isinstance(expression.term, IRI):
        raise MappingError(
            "an IRI has a datatype or a language",
            hint="Drop ~iri, or the datatype.",
            span=term.span,
        )
    return replace(
        term,
        term_type=TermType.LITERAL,
        language=language or term.language,
        datatype=datatype or term.datatype,
    )


def _join(sides: list[tuple[str, TermMap, str | None]], span: Span) -> JoinCondition:
    if len(sides) != 2:
        raise MappingError(
            f"equal is given {len(sides)} values to compare",
            hint="Give it the parameters str1 and str2.",
            span=span,
        )
    ordered = sorted(sides, key=lambda side: side[0])
    child, parent = ordered[0], ordered[1]
    if child[2] == "o" or parent[2] == "s":
        child, parent = parent, child
    return JoinCondition(child=child[1].expression, parent=parent[1].expression, span=span)
