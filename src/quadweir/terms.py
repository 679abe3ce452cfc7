"""IRIs, literals, blank nodes, variables and quads, and their one canonical spelling.

The spelling is canonical N-Triples: equal terms have equal spellings, so a column of spellings can
be compared, hashed and grouped without parsing. Rules: `xsd:string` is left out, language tags are
lower case, only the characters that need an escape have one, and the shortest escape is used.

Spec: https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from quadweir.errors import DataError
from quadweir.vocab import RDF, XSD

_SHORT_ESCAPES: Final = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}
_NEEDS_ESCAPE: Final = re.compile('[\x00-\x1f"\\\\\x7f\ufffe\uffff]')
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_UNESCAPES: Final = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    '"': '"',
    "\\": "\\",
    "'": "'",
}
IRI_FORBIDDEN: Final = '\x00-\x20<>"{}|^`\\\\\x7f-\x9f'
_BAD_IRI: Final = re.compile(f"[{IRI_FORBIDDEN}]")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_LABEL: Final = re.compile(r"[\w:](?:[\w:.\-·]*[\w:\-·])?")
_TERM: Final = re.compile(
    r'<(?P<iri>[^<>]*)>|_:(?P<label>\S+)|"(?P<lexical>(?:[^"\\]|\\.)*)"'
    r"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^<>]*)>)?",
    re.DOTALL,
)


def escape(text: str) -> str:
    r"""Spell the inside of a literal canonically.

    >>> escape('say "hi"\n')
    'say \\"hi\\"\\n'
    """

    def one(match: re.Match[str]) -> str:
        character = match.group()
        return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"

    return _NEEDS_ESCAPE.sub(one, text)


def unescape(text: str) -> str:
    r"""Undo every N-Triples escape; a wrong one is an error.

    >>> unescape("caf\\u00E9")
    'café'
    """
    if "\\" not in text:
        return text

    def one(match: re.Match[str]) -> str:
        short, long, single = match.groups()
        if single is not None:
            try:
                return _UNESCAPES[single]
            except KeyError:
                raise DataError(f"\\{single} is not an escape in N-Triples") from None
        point = int(short or long, 16)
        if 0xD800 <= point <= 0xDFFF or point > 0x10FFFF:
            raise DataError(f"{match.group()} is not a Unicode character")
        return chr(point)

    return _ESCAPE.sub(one, text)


@final
@dataclass(frozen=True, slots=True, order=True)
class IRI:
    """An absolute IRI.

    >>> str(IRI("http://example.org/a"))
    '<http://example.org/a>'
    """

    value: str

    def __str__(self) -> str:
        return f"<{self.value}>"

    def is_valid(self) -> bool:
        """Tell whether it has a scheme and none of the characters that N-Triples forbids."""
        return bool(_SCHEME.match(self.value)) and not _BAD_IRI.search(self.value)


XSD_STRING: Final = IRI(XSD.string)
RDF_LANG_STRING: Final = IRI(RDF.langString)


@final
@dataclass(frozen=True, slots=True, order=True)
class BlankNode:
    """A blank node; the label is only good inside one stream or document."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


@final
@dataclass(frozen=True, slots=True)
class Literal:
    """A literal; the language tag is kept in lower case, so equal literals are equal.

    >>> str(Literal("salut", language="FR-be"))
    '"salut"@fr-be'
    >>> str(Literal("5", datatype=IRI("http://www.w3.org/2001/XMLSchema#integer")))
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """

    lexical: str
    datatype: IRI = XSD_STRING
    language: str | None = None

    def __post_init__(self) -> None:
        if self.language is not None:
            object.__setattr__(self, "language", self.language.lower())
            object.__setattr__(self, "datatype", RDF_LANG_STRING)

    def __str__(self) -> str:
        quoted = f'"{escape(self.lexical)}"'
        if self.language is not None:
            return f"{quoted}@{self.language}"
        if self.datatype == XSD_STRING:
            return quoted
        return f"{quoted}^^{self.datatype}"


@final
@dataclass(frozen=True, slots=True, order=True)
class Variable:
    """A query variable, named without its `?`."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Term: TypeAlias = IRI | BlankNode | Literal
Resource: TypeAlias = IRI | BlankNode


@final
@dataclass(frozen=True, slots=True)
class Quad:
    """A triple in a graph; `graph=None` is the default graph.

    >>> str(Quad(IRI("urn:s"), IRI("urn:p"), Literal("o")))
    '<urn:s> <urn:p> "o" .'
    """

    subject: Resource
    predicate: IRI
    object: Term
    graph: Resource | None = None

    def __str__(self) -> str:
        graph = f" {self.graph}" if self.graph is not None else ""
        return f"{self.subject} {self.predicate} {self.object}{graph} ."


def parse_term(spelling: str) -> Term:
    r"""Read one N-Triples term, canonical or not.

    >>> parse_term('"caf\\u00E9"@FR')
    Literal(lexical='café', datatype=IRI(value='http://www.w3.org/1999/02/22-rdf-syntax-ns#langString'), language='fr')
    """
    match = _TERM.fullmatch(spelling)
    if match is None:
        raise DataError(f"not an RDF term: {spelling[:80]}")
    if match["iri"] is not None:
        return _checked_iri(match["iri"])
    if match["label"] is not None:
        if not _LABEL.fullmatch(match["label"]):
            raise DataError(f"not a blank node label: {match['label'][:80]}")
        return BlankNode(match["label"])
    lexical = unescape(match["lexical"])
    if match["language"] is not None:
        if not _LANGUAGE.fullmatch(match["language"]):
            raise DataError(f"not a language tag: {match['language'][:80]}")
        return Literal(lexical, language=match["language"])
    if match["datatype"] is not None:
        return Literal(lexical, datatype=_checked_iri(match["datatype"]))
    return Literal(lexical)


def _checked_iri(text: str) -> IRI:
    iri = IRI(unescape(text))
    if not iri.is_valid():
        raise DataError(f"not an absolute IRI: <{text[:80]}>")
    return iri
