"""Parses the text of one N-Triples or N-Quads statement."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from quadweir.errors import DataError
from quadweir.terms import (
    IRI,
    MOST_NESTED,
    RDF_LANG_STRING,
    TOO_DEEP,
    BlankNode,
    Literal,
    Quad,
    Resource,
    Term,
    TripleTerm,
    escape,
    nested,
    parse_term,
    unescape,
)

# White space between terms may be left out if the result is clear (`<s><p><o>.`). A blank node
# label may contain dots but not end in one. Repetitions are possessive: a hostile line of megabytes
# must not take quadratic time. Only sets of characters are repeated with `*+`: after a group with
# `*+`, Python 3.11.2 of Debian 12 continues at the wrong place (3.11.7 does not). Where a group is
# repeated, one character decides whether it is repeated again.
_IRI: Final = r"<[^<>]*+>"
_NAME_START: Final = (
    "A-Za-z0-9_:\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME: Final = f"{_NAME_START}\\-\u00b7\u0300-\u036f\u203f\u2040"
_LABEL: Final = rf"_:[{_NAME_START}](?:[{_NAME}.]*[{_NAME}])?(?!\.*[{_NAME}])"
_QUOTED: Final = r'"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*"'
_TAG: Final = r"(?:@[A-Za-z0-9-]++|\^\^[ \t]*+<[^<>]*+>)"
_SPACE: Final = r"[ \t]*+"

_BEGINNINGS: Final = rf"(?:<<\({_SPACE}(?:{_IRI}|{_LABEL}){_SPACE}{_IRI}{_SPACE})*"
_STATEMENT: Final = re.compile(
    rf"{_SPACE}({_IRI}|{_LABEL}){_SPACE}({_IRI}){_SPACE}"
    rf"({_BEGINNINGS})"
    rf"(?:({_IRI}|{_LABEL})|({_QUOTED})(?:{_SPACE}({_TAG}))?)"
    rf"((?:{_SPACE}\)>>)*){_SPACE}({_IRI}|{_LABEL})?{_SPACE}\.{_SPACE}(?:#[^\r\n]*+)?"
)
_TRIPLE_SUBJECT: Final = re.compile(rf"{_SPACE}<<")
# What a bad statement begins with: the reasons are found part by part.
_ANY_IRI: Final = r'<[^<> \t\n\r"]*+>'
_ANY_LABEL: Final = rf"_:[{_NAME_START}][{_NAME}.]*(?<!\.)"
_ANY_RESOURCE: Final = f"(?:{_ANY_IRI}|{_ANY_LABEL})"
_SUBJECT: Final = re.compile(rf"{_SPACE}{_ANY_RESOURCE}")
_PREDICATE: Final = re.compile(rf"{_SPACE}{_ANY_IRI}")
_BEGUN: Final = re.compile(rf"{_SPACE}(?:<<\({_SPACE}{_ANY_RESOURCE}{_SPACE}{_ANY_IRI}{_SPACE})*")
_VALUE: Final = re.compile(rf'{_ANY_RESOURCE}|"[^"\n\r]*+"')

ONLY_OBJECTS: Final = "a triple term <<( ... )>> can only be an object"
NO_QUOTED_TRIPLES: Final = (
    "a quoted triple << ... >> of RDF-star; RDF 1.2 has triple terms, <<( ... )>>, as objects"
)
NO_SUBJECT: Final = "the subject is not an IRI or a blank node"
NO_PREDICATE: Final = "the predicate is not an IRI"
NO_OBJECT: Final = (
    "the object is not an IRI, a blank node, a closed literal or a triple term <<( ... )>>"
)
NO_END: Final = "after the object only a graph name and a full stop can follow"
UNCLOSED: Final = "the triple terms <<( ... )>> that begin and end are not as many"
BAD_ESCAPE: Final = "an escape that N-Triples does not know"
BAD_IRI: Final = "is not an absolute IRI, or has a character that no IRI has"
NO_LANGUAGE: Final = "rdf:langString needs a language tag"
_INSIDE: Final = re.compile(f"{_ANY_IRI}|{_ANY_LABEL}")
_NOT_BARE: Final = re.compile(r'[ \t"]')
_SHOWN: Final = 100
_OPENED: Final = 3
_CLOSED: Final = 7
_GRAPH: Final = 8
# Longer spellings would make the cache of terms too large.
_CACHED_CHARACTERS: Final = 256


@lru_cache(maxsize=4096)
def _cached_term(spelling: str) -> Term:
    return _checked_term(spelling)


def _checked_term(spelling: str) -> Term:
    term = parse_term(spelling)
    iri = term if isinstance(term, IRI) else getattr(term, "datatype", None)
    if isinstance(iri, IRI) and ("\ufffe" in iri.value or "\uffff" in iri.value):
        raise DataError("an IRI with a character that no IRI has")
    return term


def _term(spelling: str) -> Term:
    if spelling.startswith("_:"):
        return BlankNode(spelling[2:])
    return (
        _cached_term(spelling) if len(spelling) <= _CACHED_CHARACTERS else _checked_term(spelling)
    )


def parse_statement(text: str) -> Quad:
    r"""Return the quad of a statement; white space around it and a comment after it are allowed.

    >>> print(parse_statement('<urn:s> <urn:p> "caf\\u00E9"@FR <urn:g> . # then'))
    <urn:s> <urn:p> "café"@fr <urn:g> .

    Raises:
        DataError: the text is not one statement.
    """
    match = _matched(text)
    if match is None:
        raise DataError(_why(text))
    try:
        return _read(match)
    except DataError as error:
        raise DataError(_why_terms(text, match, error.message)) from None


def _read(match: re.Match[str]) -> Quad:
    subject, predicate, opened, value, quoted, tag, _, graph = match.groups()
    end = _literal(quoted, tag) if quoted is not None else _term(value)
    return Quad(
        _resource(subject),
        _iri(predicate),
        nested(opened, end, _term) if opened else end,
        _resource(graph) if graph is not None else None,
    )


def _matched(text: str) -> re.Match[str] | None:
    """Match a text of the shape of a statement, in which every triple term is closed."""
    match = _STATEMENT.fullmatch(text)
    if match is None or match[_OPENED].count("<<(") != match[_CLOSED].count(")>>"):
        return None
    return match


def _why(text: str) -> str:
    """Say why a text does not have the form of a statement, as `canonical.py` does with columns."""
    # No escaped quote or backslash is left, so that a quote ends a literal.
    plain = text.replace("\\\\", "\\u005C").replace('\\"', "\\u0022")
    if match := _TRIPLE_SUBJECT.match(plain):
        return ONLY_OBJECTS if plain.startswith("<<(", match.end() - 2) else NO_QUOTED_TRIPLES
    subject = _SUBJECT.match(plain)
    if subject is None:
        return NO_SUBJECT
    predicate = _PREDICATE.match(plain, subject.end())
    if predicate is None:
        return NO_PREDICATE
    begun = _BEGUN.match(plain, predicate.end())
    assert begun is not None, "it matches nothing, too"
    if begun[0].count("<<(") > MOST_NESTED:
        return TOO_DEEP
    if plain.startswith("<<", begun.end()) and not plain.startswith("<<(", begun.end()):
        return NO_QUOTED_TRIPLES
    if _VALUE.match(plain, begun.end()) is None:
        return NO_OBJECT
    return UNCLOSED if _STATEMENT.fullmatch(plain) else NO_END


def _why_terms(text: str, match: re.Match[str], message: str) -> str:
    """Say which term is wrong in a text that has the form of a statement."""
    reason = _why(text)
    if message == TOO_DEEP or reason not in (NO_END, UNCLOSED):
        return message if message == TOO_DEEP else reason
    subject, predicate, opened, value, quoted, tag, _, graph = match.groups()
    datatype = tag[2:].lstrip() if tag is not None and tag.startswith("^^") else ""
    if any(_NOT_BARE.search(each) for each in (datatype, graph or "")):
        return NO_END
    inside = _INSIDE.findall(opened)
    terms = [subject, predicate, value or quoted, datatype, graph or "", *inside]
    try:
        plain = [unescape(each) for each in terms]
    except DataError:
        return BAD_ESCAPE
    for each in plain:
        if each.startswith("<") and not _is_good(each[1:-1]):
            return f"{escape(each)[:_SHOWN]} {BAD_IRI}"
    return NO_LANGUAGE if message == NO_LANGUAGE else NO_END


def _is_good(iri: str) -> bool:
    return IRI(iri).is_valid() and "\ufffe" not in iri and "\uffff" not in iri


def graph_name(text: str) -> str | None:
    r"""Return the graph name of a text that has the shape of a quad, without escapes; else None.

    Only the shape decides which lines belong together (`docs/reference/stream-files.md`). So every
    reader agrees, even about lines whose terms are wrong.

    >>> graph_name("<urn:s> <urn:p> <urn:o> <urn:\\u0067> .")
    '<urn:g>'
    """
    match = _matched(text)
    return plain_name(match[_GRAPH]) if match is not None and match[_GRAPH] is not None else None


def plain_name(name: str) -> str:
    """Return a graph name without escapes; if an escape is wrong, the name as it is."""
    try:
        return unescape(name)
    except DataError:
        return name


def is_blank(text: str) -> bool:
    """Whether a line has only white space or a comment."""
    stripped = text.lstrip(" \t\r")
    return not stripped or stripped.startswith("#")


def _literal(quoted: str, tag: str | None) -> Term:
    if tag is None:
        return _term(quoted)
    term = _term(quoted + (tag if tag[0] == "@" else f"^^{tag[2:].lstrip()}"))
    if isinstance(term, Literal) and term.datatype == RDF_LANG_STRING and term.language is None:
        raise DataError(NO_LANGUAGE)
    return term


def _resource(spelling: str) -> Resource:
    term = _term(spelling)
    if isinstance(term, Literal | TripleTerm):
        raise DataError("a literal where a resource must stand")
    return term


def _iri(spelling: str) -> IRI:
    term = _term(spelling)
    if not isinstance(term, IRI):
        raise DataError("the predicate is not an IRI")
    return term
