"""Finds the place of each triple in a Turtle text.

The RDF parser gives triples without places. This module reads the same text with a small scanner,
and `match_places` compares its triples with the parser's, from named nodes down into blank ones.
The scanner trusts the text (the parser has already accepted it). At Turtle that mappings do not
use, it stops and keeps its results so far: places only improve error messages, and never change a
mapping's meaning.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyoxigraph as ox

from quadweir.spans import Span
from quadweir.syntax.iris import resolve
from quadweir.vocab import RDF

_TOKEN: Final = re.compile(
    r"""
      (?P<skip>[\s\ufeff]+|\#[^\n\r]*)
    | (?P<string>\"{3}(?:[^"\\]|\\.|\"(?!\"\"))*\"{3}|'{3}(?:[^'\\]|\\.|'(?!''))*'{3}
        |"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
    | (?P<iri><[^<>\s]*>)
    | (?P<directive>@(?:prefix|base)\b)
    | (?P<tag>@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^)
    | (?P<blank>_:[^\s;,()\[\]<>"']*[^\s;,.()\[\]<>"'])
    | (?P<number>[+-]?(?:\d+\.\d*[eE][+-]?\d+|\.\d+[eE][+-]?\d+|\d+[eE][+-]?\d+|\d*\.\d+|\d+))
    | (?P<name>(?:[^\W\d_](?:[\w.\-·]*[\w\-·])?)?:
        (?:(?:[\w:%\-·]|\\.|\.(?=[\w:%\\\-·.]))*))
    | (?P<word>[A-Za-z]+)
    | (?P<punctuation>[\[\]().;,])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of Turtle: its kind, its text and where it starts and ends."""

    kind: str
    text: str
    start: int
    end: int


PlaceKey: TypeAlias = str | int | None
"""A node of the scanner: an IRI, `_:label`, the number of a nameless blank node, or None for
literals and lists."""


@dataclass(frozen=True, slots=True)
class TriplePlace:
    """A triple's nodes, and the places of its three terms."""

    subject: PlaceKey
    predicate: str
    object: PlaceKey
    subject_span: Span
    predicate_span: Span
    object_span: Span


class _GiveUpError(Exception):
    """The text uses Turtle that this scanner does not follow."""


def locate_triples(text: str, *, base: str = "", source: str | None = None) -> list[TriplePlace]:
    """The places of a Turtle text's triples; inner triples come before outer ones.

    >>> [place.predicate for place in locate_triples("<urn:s> <urn:p> [ <urn:q> 1 ] .")]
    ['urn:q', 'urn:p']
    """
    scanner = _Scanner(text, base, source)
    with contextlib.suppress(_GiveUpError, RecursionError):
        scanner.document()
    return scanner.places


def match_places(quads: Sequence[ox.Quad], places: Sequence[TriplePlace]) -> dict[int, TriplePlace]:
    """The place of each quad, by its index, where it is certain."""
    ours: dict[PlaceKey, dict[str, list[TriplePlace]]] = defaultdict(lambda: defaultdict(list))
    theirs: dict[object, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place in places:
        ours[place.subject][place.predicate].append(place)
    for index, quad in enumerate(quads):
        theirs[quad.subject][quad.predicate.value].append(index)
    # By spelling: the scanner may take another text for a name.
    named: dict[PlaceKey, object] = {
        node.value if isinstance(node, ox.NamedNode) else str(node): node for node in theirs
    }
    waiting: list[tuple[PlaceKey, object]] = [
        (key, named[key]) for key in ours if isinstance(key, str) and key in named
    ]
    inner = {place.object for place in places}
    roots = [key for key in ours if isinstance(key, int) and key not in inner]
    objects = {quad.object for quad in quads}
    labelled = {node for _, node in waiting}
    others = [
        node
        for node in theirs
        if isinstance(node, ox.BlankNode) and node not in objects and node not in labelled
    ]
    if len(roots) == len(others):
        waiting.extend(zip(roots, others, strict=True))
    matched: dict[int, TriplePlace] = {}
    seen: set[PlaceKey] = set()
    while waiting:
        key, node = waiting.pop()
        if key in seen:
            continue
        seen.add(key)
        for predicate, mine in ours[key].items():
            indexes = theirs[node][predicate] if node in theirs else []
            if len(indexes) != len(mine):
                continue
            # Objects of one subject and predicate come in document order from both.
            for index, place in zip(indexes, mine, strict=True):
                matched[index] = place
                if isinstance(place.object, int):
                    waiting.append((place.object, quads[index].object))
    return matched


class _Scanner:
    def __init__(self, text: str, base: str, source: str | None) -> None:
        self._base = base
        self._source = source
        self._tokens = _tokens(text)
        self._lines = [0] + [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]
        self._position = 0
        self._prefixes: dict[str, str] = {}
        self._blanks = 0
        self.places: list[TriplePlace] = []

    def document(self) -> None:
        while self._position < len(self._tokens):
            token = self._tokens[self._position]
            if token.kind == "directive" or (
                token.kind == "word" and token.text.upper() in ("PREFIX", "BASE")
            ):
                self._directive(token)
            else:
                self._statement()

    def _next(self, expected: str | None = None) -> Token:
        if self._position >= len(self._tokens):
            raise _GiveUpError
        token = self._tokens[self._position]
        if expected is not None and token.text != expected:
            raise _GiveUpError
        self._position += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._position].text if self._position < len(self._tokens) else ""

    def _directive(self, token: Token) -> None:
        self._next()
        if token.text.lstrip("@").upper() == "PREFIX":
            prefix = self._next().text
            self._prefixes[prefix.rstrip(":")] = _resolve(self._base, self._next().text[1:-1])
        else:
            self._base = _resolve(self._base, self._next().text[1:-1])
        if token.kind == "directive":
            self._next(".")

    def _statement(self) -> None:
        start = self._position
        subject, span = self._term()
        # A blank node with properties may stand alone as a statement.
        alone = self._tokens[start].text == "[" and self._peek() == "."
        if not alone:
            self._properties(subject, span)
        self._next(".")

    def _properties(self, subject: PlaceKey, span: Span) -> None:
        while True:
            token = self._next()
            predicate = RDF.type if token.text == "a" else self._iri(token)
            if predicate is None:
                raise _GiveUpError
            while True:
                value, value_span = self._term()
                self.places.append(
                    TriplePlace(subject, predicate, value, span, self._span(token), value_span)
                )
                if self._peek() != ",":
                    break
                self._next()
            if self._peek() != ";":
                return
            while self._peek() == ";":
                self._next()
            if self._peek() in (".", "]"):
                return

    def _iri(self, token: Token) -> str | None:
        if token.kind == "iri":
            return _resolve(self._base, token.text[1:-1])
        if token.kind == "name":
            prefix, _, local = token.text.partition(":")
            if prefix in self._prefixes:
                return self._prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)
        return None

    def _term(self) -> tuple[PlaceKey, Span]:
        token = self._next()
        span = self._span(token)
        key: PlaceKey = None
        if token.text == "[":
            self._blanks += 1
            key = self._blanks
            if self._peek() != "]":
                self._properties(key, span)
            self._next("]")
        elif token.text == "(":
            while self._peek() != ")":
                # Recorded, so that a nameless member is not taken for a separate statement.
                member, member_span = self._term()
                self.places.append(TriplePlace(None, RDF.first, member, span, span, member_span))
            self._next(")")
        elif token.kind == "string":
            if self._peek() == "^^":
                self._next()
                self._next()
            elif self._peek().startswith("@"):
                self._next()
        elif token.kind == "blank":
            key = token.text
        elif token.kind in ("iri", "name"):
            key = self._iri(token)
        elif token.kind in ("punctuation", "tag", "directive"):
            raise _GiveUpError
        return key, span

    def _span(self, token: Token) -> Span:
        line, column = self._place(token.start)
        end_line, end_column = self._place(token.end)
        return Span(line, column, end_line, end_column, self._source)

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1


def _resolve(base: str, iri: str) -> str:
    return resolve(iri, base) if base else iri


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            break  # the statement this stands in will end too early, and so will the list
        kind = match.lastgroup or ""
        if kind != "skip":
            found.append(Token(kind, match.group(), match.start(), match.end()))
        position = match.end()
    return found
