"""IRIs, literals, blank nodes, triple terms, variables and quads, and their one canonical spelling.

The spelling is canonical N-Triples: equal terms have equal spellings, so a column of spellings can
be compared, hashed and grouped without parsing. Rules: `xsd:string` is left out, language tags are
lower case, only the characters that need an escape have one, and the shortest escape is used.

Spec: https://www.w3.org/TR/rdf12-n-triples/#canonical-ntriples
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
LANGUAGE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
"""The shape of a language tag."""
_LABEL: Final = re.compile(r"[\w:](?:[\w:.\-·]*[\w:\-·])?")
_TERM: Final = re.compile(
    r'<(?P<iri>[^<>]*)>|_:(?P<label>\S+)|"(?P<lexical>(?:[^"\\]|\\.)*)"'
    r"(?:@(?P<language>[A-Za-z0-9-]+)|\^\^<(?P<datatype>[^<>]*)>)?",
    re.DOTALL,
)
# How a triple term begins, up to its object.
_OPENED: Final = re.compile(r"<<\([ \t]*(<[^<>]*>|_:[^\s<>()]+)[ \t]*(<[^<>]*>)[ \t]*")


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
        """Whether it has a scheme and none of the characters that N-Triples forbids."""
        return bool(_SCHEME.match(self.value)) and not _BAD_IRI.search(self.value)


XSD_STRING: Final = IRI(XSD.string)
RDF_LANG_STRING: Final = IRI(RDF.langString)


@final
@dataclass(frozen=True, slots=True, order=True)
class BlankNode:
    """A blank node; the label is valid only inside one stream or document."""

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


Resource: TypeAlias = IRI | BlankNode

MOST_NESTED: Final = 16
"""The greatest depth of nested triple terms."""
TOO_DEEP: Final = f"more than {MOST_NESTED} triple terms inside one another"


@final
@dataclass(frozen=True, slots=True)
class TripleTerm:
    """A triple as a term of its own; RDF 1.2 has it only as the object of a triple.

    A triple term says nothing by itself: the triple need not be in the data.

    >>> str(TripleTerm(IRI("urn:s"), IRI("urn:p"), Literal("o")))
    '<<( <urn:s> <urn:p> "o" )>>'

    Spec: https://www.w3.org/TR/rdf12-concepts/#dfn-triple-term
    """

    subject: Resource
    predicate: IRI
    object: Term

    def __str__(self) -> str:
        return f"<<( {self.subject} {self.predicate} {self.object} )>>"

    @property
    def depth(self) -> int:
        """The depth of nested triple terms, including this one."""
        return 1 + nesting(self.object)


Term: TypeAlias = IRI | BlankNode | Literal | TripleTerm


Ground: TypeAlias = IRI | Literal | TripleTerm
"""A term that a query can name: no blank node, and no triple term with one in it."""


def nesting(term: Term) -> int:
    """The depth of nested triple terms in a term; 0 if it is not a triple term."""
    return term.depth if isinstance(term, TripleTerm) else 0


def triple_of(subject: Term | None, predicate: Term | None, end: Term | None) -> TripleTerm | None:
    """A triple term; None if RDF does not allow these parts, or if it would nest too deeply.

    >>> triple_of(Literal("x"), IRI("urn:p"), IRI("urn:o")) is None
    True
    """
    if not isinstance(subject, IRI | BlankNode) or not isinstance(predicate, IRI):
        return None
    if end is None or nesting(end) >= MOST_NESTED:
        return None
    return TripleTerm(subject, predicate, end)


def _relabelled(resource: Resource, label: Callable[[str], str]) -> Resource:
    return BlankNode(label(resource.label)) if isinstance(resource, BlankNode) else resource


def relabelled_term(term: Term, label: Callable[[str], str]) -> Term:
    """A term with other labels of blank nodes, including those in triple terms."""
    match term:
        case TripleTerm(subject=subject, predicate=predicate, object=end):
            return TripleTerm(_relabelled(subject, label), predicate, relabelled_term(end, label))
        case Literal():
            return term
        case _:
            return _relabelled(term, label)


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

    def relabelled(self, label: Callable[[str], str]) -> Quad:
        """The quad with other labels of blank nodes, including those in triple terms.

        >>> inner = TripleTerm(BlankNode("a"), IRI("urn:p"), BlankNode("b"))
        >>> str(Quad(BlankNode("a"), IRI("urn:p"), inner).relabelled("x-{}".format))
        '_:x-a <urn:p> <<( _:x-a <urn:p> _:x-b )>> .'
        """
        return Quad(
            _relabelled(self.subject, label),
            self.predicate,
            relabelled_term(self.object, label),
            None if self.graph is None else _relabelled(self.graph, label),
        )

    def __str__(self) -> str:
        graph = f" {self.graph}" if self.graph is not None else ""
        return f"{self.subject} {self.predicate} {self.object}{graph} ."


def parse_term(spelling: str) -> Term:
    r"""Read one N-Triples term, canonical or not.

    >>> parse_term('"caf\\u00E9"@FR')
    Literal(lexical='café', datatype=IRI(value='http://www.w3.org/1999/02/22-rdf-syntax-ns#langString'), language='fr')
    """
    if spelling.startswith("<<("):
        return _parse_triple_term(spelling)
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
        if not LANGUAGE.fullmatch(match["language"]):
            raise DataError(f"not a language tag: {match['language'][:80]}")
        return Literal(lexical, language=match["language"])
    if match["datatype"] is not None:
        return Literal(lexical, datatype=_checked_iri(match["datatype"]))
    return Literal(lexical)


def _parse_triple_term(spelling: str) -> TripleTerm:
    place = 0
    while (opened := _OPENED.match(spelling, place)) is not None:
        place = opened.end()
    beginning, rest = spelling[:place], spelling[place:]
    for _ in range(beginning.count("<<(")):
        if not rest.endswith(")>>"):
            break
        rest = rest[: -len(")>>")].rstrip(" \t")
    else:
        if place and not rest.startswith("<<"):
            return nested(beginning, parse_term(rest), parse_term)
    raise DataError(f"not an RDF term: {spelling[:80]}")


def nested(beginning: str, innermost: Term, read: Callable[[str], Term]) -> TripleTerm:
    """Wrap a term in the triple terms whose beginnings are in a text; `read` parses a term.

    >>> str(nested("<<( <urn:a> <urn:b> <<(<urn:c><urn:d>", Literal("x"), parse_term))
    '<<( <urn:a> <urn:b> <<( <urn:c> <urn:d> "x" )>> )>>'

    Raises:
        DataError: they nest too deeply, or their parts are not a triple.
    """
    pairs = _OPENED.findall(beginning)
    if len(pairs) > MOST_NESTED:
        raise DataError(TOO_DEEP)
    found = innermost
    for spelled, predicate in reversed(pairs):
        subject, link = read(spelled), read(predicate)
        assert isinstance(subject, IRI | BlankNode)
        assert isinstance(link, IRI)
        found = TripleTerm(subject, link, found)
    assert isinstance(found, TripleTerm)
    return found


def _checked_iri(text: str) -> IRI:
    iri = IRI(unescape(text))
    if not iri.is_valid():
        raise DataError(f"not an absolute IRI: <{text[:80]}>")
    return iri
