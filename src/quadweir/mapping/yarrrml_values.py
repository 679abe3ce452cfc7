"""The small languages inside YARRRML: `$(reference)`, `prefix:name`, and one-line functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from quadweir.errors import MappingError
from quadweir.mapping.model import ConstantTerm, Reference, Template
from quadweir.mapping.template import ReferencePart, TemplatePart, TextPart
from quadweir.mapping.vocabulary import FNO, GREL, IDLAB
from quadweir.spans import Span
from quadweir.terms import IRI, Literal
from quadweir.vocab import OWL, PROV, RDF, RDFS, XSD

# A scheme without slashes has to be one that exists; `nope:name` is a prefix no one declared.
_ABSOLUTE: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://|(?:urn|tag|mailto|tel|geo|data|did|doi|info|news|file|cid|mid):"
)
_CALL: Final = re.compile(r"\s*(?P<name>[^\s(),=]+)\s*\(")
_NAME: Final = re.compile(r"\s*(?P<name>[^\s(),=]+)\s*=")

# RDFa's initial context, as far as it is used in mappings, and the function vocabularies.
PREFIXES: Final[Mapping[str, str]] = {
    "rdf": str(RDF),
    "rdfs": str(RDFS),
    "owl": str(OWL),
    "xsd": str(XSD),
    "prov": str(PROV),
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "dc": "http://purl.org/dc/terms/",
    "dcterms": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "void": "http://rdfs.org/ns/void#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "org": "http://www.w3.org/ns/org#",
    "qb": "http://purl.org/linked-data/cube#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "as": "https://www.w3.org/ns/activitystreams#",
    "gr": "http://purl.org/goodrelations/v1#",
    "og": "http://ogp.me/ns#",
    "cc": "http://creativecommons.org/ns#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "fno": str(FNO),
    "grel": str(GREL),
    "idlab-fn": str(IDLAB),
}


@final
@dataclass(frozen=True, slots=True)
class YarrrmlNames:
    """The prefixes and the external references of one document."""

    prefixes: Mapping[str, str]
    external: Mapping[str, str] = field(default_factory=dict)

    def expand(self, text: str) -> str:
        """Replace a known prefix by its namespace.

        >>> YarrrmlNames(PREFIXES).expand("xsd:date")
        'http://www.w3.org/2001/XMLSchema#date'
        """
        prefix, colon, rest = text.partition(":")
        if colon and prefix in self.prefixes and not rest.startswith("//"):
            return self.prefixes[prefix] + rest
        return text

    def iri(self, text: str, span: Span | None) -> str:
        """Read a name that has to be an IRI."""
        expanded = RDF.type if text == "a" else self.expand(text.strip("<>"))
        if not _ABSOLUTE.match(expanded) or not IRI(expanded).is_valid():
            prefix = text.partition(":")[0]
            unknown = ":" in text and prefix not in self.prefixes
            raise MappingError(
                f"{text!r} is not an IRI",
                hint=f"Declare the prefix {prefix!r} under prefixes, or write the IRI in full."
                if unknown
                else "Write a prefix and a name, such as ex:name, or the IRI in full.",
                span=span,
            )
        return expanded

    def parts(self, text: str, span: Span | None) -> tuple[TemplatePart, ...]:
        r"""Split a value at its `$(...)`; `\` takes a parenthesis literally.

        >>> YarrrmlNames({}).parts("a$(b)", None)
        (TextPart(text='a'), ReferencePart(reference='b'))
        """
        found: list[TemplatePart] = []
        run: list[str] = []
        position = 0
        while position < len(text):
            if text.startswith("\\$(", position):
                run.append("$(")
                position += 3
            elif text.startswith("$(", position):
                reference, position = _reference(text, position + 2, span)
                name = reference.removeprefix("_")
                if reference.startswith("_") and name in self.external:
                    run.append(self.external[name])
                    continue
                if run:
                    found.append(TextPart("".join(run)))
                    run = []
                # A backslash says that a reference with an underscore is an ordinary one.
                plain = reference[1:] if reference.startswith("\\_") else reference
                found.append(ReferencePart(plain))
            else:
                run.append(text[position])
                position += 1
        if run:
            found.append(TextPart("".join(run)))
        return tuple(found)

    def value(
        self, text: str, span: Span | None, *, iri: bool
    ) -> ConstantTerm | Reference | Template:
        """Read a value: a constant, one reference, or a template.

        Args:
            text: as written, without a trailing `~iri` or `~lang`.
            span: its place.
            iri: whether it makes an IRI, so that a prefix is expanded.
        """
        parts = self.parts(text, span)
        match parts:
            case (ReferencePart(reference=reference),):
                return Reference(reference=reference)
            case () | (TextPart(),):
                plain = parts[0].text if parts and isinstance(parts[0], TextPart) else ""
                if iri:
                    return ConstantTerm(term=IRI(self.iri(plain, span)))
                return ConstantTerm(term=Literal(plain))
        if iri and isinstance(parts[0], TextPart):
            parts = (TextPart(self.expand(parts[0].text)), *parts[1:])
        return Template(parts=parts)


def _reference(text: str, start: int, span: Span | None) -> tuple[str, int]:
    run: list[str] = []
    depth = 0
    position = start
    while position < len(text):
        character = text[position]
        if character == "\\" and text[position + 1 : position + 2] in ("(", ")"):
            run.append(text[position + 1])
            position += 2
            continue
        if character == ")" and depth == 0:
            reference = "".join(run)
            if not reference.strip():
                raise MappingError(f"the value {text!r} has an empty reference", span=span)
            return reference, position + 1
        depth += (character == "(") - (character == ")")
        run.append(character)
        position += 1
    raise MappingError(
        f"the value {text!r} does not close its reference",
        hint="End it with ), or write \\$( for the characters themselves.",
        span=span,
    )


@final
@dataclass(frozen=True, slots=True)
class InlineFunction:
    """A function on one line: its name and its arguments, values or calls."""

    name: str
    arguments: tuple[tuple[str | None, str | InlineFunction], ...]


def parse_call(text: str, span: Span | None = None) -> InlineFunction:
    """Read `name(parameter = value, ...)`, calls inside it included.

    >>> parse_call('f(a = $(x), b = "y")').arguments
    (('a', '$(x)'), ('b', 'y'))
    """
    call, position = _call(text, 0, span, 0)
    if text[position:].strip():
        raise _bad_call(text, span)
    return call


def _call(text: str, position: int, span: Span | None, depth: int) -> tuple[InlineFunction, int]:
    match = _CALL.match(text, position)
    if match is None or depth > 32:
        raise _bad_call(text, span)
    position = match.end()
    arguments: list[tuple[str | None, str | InlineFunction]] = []
    while True:
        while position < len(text) and text[position] in " \t\n,":
            position += 1
        if position < len(text) and text[position] == ")":
            return InlineFunction(match["name"], tuple(arguments)), position + 1
        name = _NAME.match(text, position)
        if name is not None:
            position = name.end()
        value: str | InlineFunction
        value, position = _argument(text, position, span, depth)
        arguments.append((name["name"] if name is not None else None, value))


def _argument(
    text: str, position: int, span: Span | None, depth: int
) -> tuple[str | InlineFunction, int]:
    while position < len(text) and text[position].isspace():
        position += 1
    if position >= len(text):
        raise _bad_call(text, span)
    if text[position] in "\"'":
        quote, start = text[position], position + 1
        end = text.find(quote, start)
        if end < 0:
            raise _bad_call(text, span)
        return text[start:end], end + 1
    if _CALL.match(text, position) and not text.startswith("$(", position):
        before = text[position : text.index("(", position)]
        if not before.rstrip().endswith("$"):
            return _call(text, position, span, depth + 1)
    run: list[str] = []
    while position < len(text) and text[position] not in ",)":
        if text.startswith("$(", position):
            reference, after = _reference(text, position + 2, span)
            run.append(text[position:after])
            assert reference
            position = after
            continue
        run.append(text[position])
        position += 1
    if position >= len(text):
        raise _bad_call(text, span)
    return "".join(run).strip(), position


def _bad_call(text: str, span: Span | None) -> MappingError:
    return MappingError(
        f"the function {text!r} cannot be read",
        hint="Write it as name(parameter = value, ...), or with the key parameters.",
        span=span,
    )
