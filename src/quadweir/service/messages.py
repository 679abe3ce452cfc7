"""RDF Message Logs: bodies of several messages, each of which is an element.

Spec: https://w3c-cg.github.io/rsp/spec/messages
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyoxigraph as ox

from quadweir.errors import DataError, LimitError
from quadweir.rdfguards import LINE_FORMATS, MOST_CHARACTERS
from quadweir.service.rdfbody import read_rdf
from quadweir.spans import Span

NDJSON_LD: Final = "application/x-ld+ndjson"
VERSIONS: Final = ("1.1", "1.2-basic", "1.2")
SUFFIX: Final = "-messages"
_LABELS: Final = frozenset(f"{each}{SUFFIX}" for each in VERSIONS)
_LINE_DELIMITER: Final = re.compile(rb"^[ \t]*+MESSAGE[ \t]*+(?:#[^\r\n]*+)?(?=\r?$)", re.MULTILINE)
_LINE_VERSION: Final = re.compile(
    rb'^[ \t]*+VERSION[ \t]*+"([^"\\\r\n]*+)"[ \t]*+(?:#[^\r\n]*+)?(?=\r?$)', re.MULTILINE
)
# Comments, texts and IRIs are passed over, so that what is inside them delimits nothing.
_LONG: Final = rb'"""|' + rb"'''"
_TOKEN: Final = re.compile(
    rb"#[^\r\n]*+|(" + _LONG + rb")|"
    rb'"[^"\\\r\n]*+(?:\\.[^"\\\r\n]*+)*"?|'
    rb"'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*'?|<[^<>\s]*+>|"
    rb"(?<![\w:.\-@\"'])(@message|MESSAGE)(?![\w:\-])|"
    rb"(?<![\w:.\-@\"'])(?:@version|VERSION)\s*+[\"']([^\"'\r\n]*+)[\"']|([\[{(])|([\])}])",
    re.IGNORECASE | re.DOTALL,
)
_LONG_ENDS: Final = {mark: re.compile(rb"\\.|" + mark, re.DOTALL) for mark in (b'"""', b"'''")}


def is_log(body: bytes, version: str | None) -> bool:
    """Whether a body is a log of messages: its content type says so, or the body itself.

    >>> is_log(b'VERSION "1.2-messages"', None), is_log(b"", "1.1-messages"), is_log(b"", "1.2")
    (True, True, False)
    """
    if version is not None and version.endswith(SUFFIX):
        return True
    # Only a statement of the version has it like this; comments and texts are looked at later.
    return SUFFIX.encode() in body and any(
        label.decode("latin-1") in _LABELS for label in _versions(body)
    )


def _versions(body: bytes) -> Iterator[bytes]:
    for kind, found in _scanned(body):
        if kind == "version":
            yield found.group(3)


def read_log(body: bytes, form: ox.RdfFormat) -> Iterator[list[ox.Quad]]:
    """Yield the statements of each message of a log; those of an empty message are none.

    Blank nodes mean something in their own message only.

    Raises:
        DataError: it is no log of messages; the error has the place.
        LimitError: it is too large when it is written out.
    """
    # Each delimiter becomes a statement that nobody can guess. So the document is parsed once, and
    # prefixes go on through all messages.
    mark = ox.NamedNode(f"urn:quadweir:message:{secrets.token_hex(16)}")
    marked = _marked(body, form, f"{mark} {mark} {mark}".encode())
    own: list[ox.Quad] = []
    labels: dict[str, ox.BlankNode] = {}
    for quad in read_rdf(marked, form, rename_blank_nodes=False):
        if quad.predicate == mark:
            yield own
            own, labels = [], {}
        else:
            own.append(_relabelled(quad, labels))
    if own:
        yield own


def _marked(body: bytes, form: ox.RdfFormat, mark: bytes) -> bytes:
    if form in LINE_FORMATS:
        without = _LINE_VERSION.sub(b"", body)
        return _LINE_DELIMITER.sub(mark + b" .", without)
    parts, place, depth = [], 0, 0
    for kind, found in _scanned(body):
        if kind == "message":
            if depth:
                line = body.count(b"\n", 0, found.start()) + 1
                raise DataError("a message cannot end inside a graph", span=Span(line, 1))
            # The full stop of `@message .` is in the body.
            is_old = found.group(2).startswith(b"@")
            parts += [body[place : found.start()], mark if is_old else mark + b" ."]
            place = found.end()
        depth += (kind == "open") - (kind == "close")
    return b"".join([*parts, body[place:]])


def _scanned(body: bytes) -> Iterator[tuple[str, re.Match[bytes]]]:
    """Yield delimiters, versions and brackets that are no part of a text, an IRI or a comment."""
    place = 0
    while (found := _TOKEN.search(body, place)) is not None:
        place = found.end()
        if (quotes := found.group(1)) is not None:
            ends = (each for each in _LONG_ENDS[quotes].finditer(body, place))
            last = next((each for each in ends if each.group() == quotes), None)
            place = last.end() if last is not None else len(body)
        elif found.lastindex is not None:
            yield ("", "", "message", "version", "open", "close")[found.lastindex], found


def _relabelled(quad: ox.Quad, labels: dict[str, ox.BlankNode]) -> ox.Quad:
    """Return a statement whose blank nodes are those of its message."""

    def own(term: Any) -> Any:
        if isinstance(term, ox.BlankNode):
            return labels.setdefault(term.value, ox.BlankNode())
        if isinstance(term, ox.Triple):
            return ox.Triple(own(term.subject), term.predicate, own(term.object))
        return term

    return ox.Quad(own(quad.subject), quad.predicate, own(quad.object), own(quad.graph_name))


# --- JSON-LD, a message a line ---


def read_ndjson_ld(body: bytes) -> Iterator[list[ox.Quad]]:
    """Yield the statements of each line of newline-delimited JSON-LD.

    A line that has only `@context` is the context of the messages after it.

    Raises:
        DataError: a line is no message; the error has the place.
        LimitError: contexts and messages are too much work.
    """
    context: bytes | None = None
    work = 0
    for number, line in enumerate(body.rstrip().split(b"\n"), start=1):
        table = _table(line, number)
        if table.keys() == {"@context"}:
            context = json.dumps(table["@context"], ensure_ascii=False).encode()
            continue
        document = line if context is None else b'{"@context":%b,"@graph":%b}' % (context, line)
        work += len(document)
        if work > MOST_CHARACTERS:
            raise LimitError(
                "the context and the messages of the body are too much work together",
                hint="Send it in parts.",
            )
        try:
            yield list(read_rdf(document, ox.RdfFormat.JSON_LD)) if table else []
        except DataError as error:
            raise DataError(error.message, span=Span(number, 1)) from None


def _table(line: bytes, number: int) -> dict[str, Any]:
    place = Span(number, 1)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise DataError("the line is not JSON", span=place) from None
    if not isinstance(found, dict):
        raise DataError("a message of JSON-LD is an object", span=place)
    return found


def joined(messages: Iterable[list[ox.Quad]]) -> tuple[list[str], int]:
    """Return messages as N-Quads, without empty ones, and how many statements they have."""
    values, count = [], 0
    for quads in messages:
        if quads:
            values.append(as_lines(quads))
            count += len(quads)
    return values, count


def as_lines(quads: Iterable[ox.Quad]) -> str:
    """Return statements as N-Quads, without a line end after the last."""
    lines = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
    assert lines is not None, "they go to no file"
    return lines.decode().rstrip("\n")
