"""The body of a push, as records: elements of RDF as N-Quads, or records for a mapping.

Everything is checked before it is accepted, so a client learns the place of a mistake.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import pyoxigraph as ox

from quadweir.errors import DataError
from quadweir.service.problems import MediaTypeError
from quadweir.sources.streamfiles import split_time
from quadweir.spans import Span

TIMED_LINES: Final = "text/x-timed-lines"
_RDF: Final = {
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/trig": ox.RdfFormat.TRIG,
    "text/turtle": ox.RdfFormat.TURTLE,
    "application/ld+json": ox.RdfFormat.JSON_LD,
}
RDF_TYPES: Final = (*_RDF, TIMED_LINES)
_RECORDS: Final = {
    "jsonl": ("application/json", "application/x-ndjson"),
    "xml": ("application/xml", "text/xml"),
}
_MOST_DEPTH: Final = 100
# Strings and IRIs are skipped. One without an end reaches to the end of the body, so the body is read
# only once.
_OPENING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|<[^<>\s]*+>?|[\[{(]|[\])}]', re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class PushBody:
    """The records of a body.

    Attributes:
        values: their texts.
        times: their event times; None for the time of arrival.
        statements: how many statements they have; 0 if they are no RDF.
    """

    values: list[str]
    times: list[int | None]
    statements: int = 0


def read_push(
    body: bytes, media_type: str, form: str, *, is_rdf: bool, time_ms: int | None
) -> PushBody:
    """Read a body.

    Args:
        body: the body.
        media_type: its content type.
        form: the format of the stream's records, if they are no RDF.
        is_rdf: whether the stream has RDF.
        time_ms: the event time of what has none of its own; None for the time of arrival.

    Raises:
        MediaTypeError: the stream does not take this content type.
        DataError: the body is not what its type says; the error has the place.
    """
    if is_rdf:
        if media_type == TIMED_LINES:
            return _timed_lines(body)
        if media_type in _RDF:
            return _document(body, _RDF[media_type], time_ms)
        raise _not_taken(media_type, RDF_TYPES)
    types = _RECORDS.get(form, ())
    if media_type not in types:
        raise _not_taken(media_type, types)
    values = [*_records(body, media_type)]
    return PushBody(values, [time_ms] * len(values))


def _not_taken(media_type: str, types: tuple[str, ...]) -> MediaTypeError:
    return MediaTypeError(
        f"this stream does not take {media_type or 'a body without a content type'}",
        hint=f"Send {', '.join(types)}.",
    )


# --- RDF ---


def _document(body: bytes, form: ox.RdfFormat, time_ms: int | None) -> PushBody:
    """Return a document: each graph of it is an element."""
    check_depth(body)
    graphs: dict[Any, list[Any]] = {}
    count = 0
    for quad in _parsed(body, form):
        graphs.setdefault(quad.graph_name, []).append(quad)
        count += 1
    values = []
    for quads in graphs.values():
        lines = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
        assert lines is not None
        values.append(lines.decode().rstrip("\n"))
    return PushBody(values, [time_ms] * len(values), count)


def _parsed(body: bytes, form: ox.RdfFormat) -> Iterator[Any]:
    try:
        # A label means something in its own document only.
        yield from ox.parse(body, form, rename_blank_nodes=True)
    except SyntaxError as error:
        raise _misplaced(error) from None
    except (ValueError, OSError) as error:
        raise DataError(f"the body is not RDF: {str(error)[:300]}") from None


def _misplaced(error: SyntaxError, line: int | None = None) -> DataError:
    at = line if line is not None else error.lineno
    span = Span(at, max(1, error.offset or 1)) if at else None
    return DataError(f"the body is not RDF: {str(error.msg)[:300]}", span=span)


def _timed_lines(body: bytes) -> PushBody:
    """Return timed lines: those of the same time and the same named graph in a row are an element."""
    numbers, times, statements = [], [], []
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            # It also separates elements.
            numbers.append(0)
            continue
        try:
            at, rest = split_time(bare)
        except DataError as error:
            raise DataError(f"{error.message}", span=Span(number, 1)) from None
        numbers.append(number)
        times.append(at)
        statements.append(rest)
    graphs = _graphs([each for each in numbers if each], statements)
    values: list[str] = []
    of_values: list[int | None] = []
    last: tuple[int, Any] | None = None
    place = 0
    for number in numbers:
        if not number:
            last = None
            continue
        graph = graphs[place]
        if graph is not None and last == (times[place], graph):
            values[-1] += "\n" + statements[place]
        else:
            values.append(statements[place])
            of_values.append(times[place])
        last = (times[place], graph) if graph is not None else None
        place += 1
    return PushBody(values, of_values, place)


def _graphs(numbers: list[int], statements: list[str]) -> list[Any]:
    """Check statements, one a line; return the graph of each, None for the default graph."""
    found = []
    joined = "\n".join(statements)
    try:
        for quad in ox.parse(joined, ox.RdfFormat.N_QUADS):
            graph = quad.graph_name
            found.append(None if isinstance(graph, ox.DefaultGraph) else graph)
    except SyntaxError as error:
        raise _misplaced(error, numbers[(error.lineno or 1) - 1]) from None
    except ValueError as error:
        raise DataError(f"the body is not RDF: {str(error)[:300]}") from None
    if len(found) != len(statements):
        raise DataError("each line must have an event time and one statement")
    return found


# --- records ---


def _records(body: bytes, media_type: str) -> Iterator[str]:
    if media_type.endswith("xml"):
        yield _text(body)
    elif media_type == "application/x-ndjson":
        for number, line in enumerate(_text(body).split("\n"), start=1):
            if line.strip():
                _json(line, number)
                yield line.strip()
    else:
        found = _json(_text(body), 1)
        for each in found if isinstance(found, list) else [found]:
            yield json.dumps(each, ensure_ascii=False)


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None


def _json(text: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = Span(line + error.lineno - 1, error.colno)
        raise DataError(f"the body is not JSON: {error.msg}", span=place) from None
    except RecursionError:
        raise DataError("the JSON of the body nests too deeply") from None


def check_depth(body: bytes) -> None:
    """Refuse a document that nests too deeply for its parser.

    >>> check_depth(b'[' * 10)

    Raises:
        DataError: it does.
    """
    if body.count(b"[") + body.count(b"{") + body.count(b"(") <= _MOST_DEPTH:
        return
    depth = 0
    for each in _OPENING.finditer(body):
        mark = each.group()
        if mark in (b"[", b"{", b"("):
            depth += 1
            if depth > _MOST_DEPTH:
                raise DataError(f"the body nests deeper than {_MOST_DEPTH} levels")
        elif mark in (b"]", b"}", b")"):
            depth -= 1
