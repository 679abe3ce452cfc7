"""The body of a push, as records: elements of RDF as N-Quads, or records for a mapping.

Everything is checked before it is accepted, so a client learns the place of a mistake.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, final

import pyoxigraph as ox

from quadweir.errors import DataError
from quadweir.jelly import CONTENT_TYPE as JELLY
from quadweir.rdfguards import check_triple_terms
from quadweir.service.jellybody import read_jelly_body
from quadweir.service.messages import (
    NDJSON_LD,
    SUFFIX,
    VERSIONS,
    is_log,
    joined,
    read_log,
    read_ndjson_ld,
)
from quadweir.service.problems import MediaTypeError
from quadweir.service.rdfbody import check_nesting, misplaced, read_rdf
from quadweir.sources.streamfiles import split_time
from quadweir.spans import Span

TIMED_LINES: Final = "text/x-timed-lines"
_JSON_LD: Final = "application/ld+json"
_RDF: Final = {
    "application/n-quads": ox.RdfFormat.N_QUADS,
    "application/n-triples": ox.RdfFormat.N_TRIPLES,
    "application/trig": ox.RdfFormat.TRIG,
    "text/turtle": ox.RdfFormat.TURTLE,
    _JSON_LD: ox.RdfFormat.JSON_LD,
}
RDF_TYPES: Final = (*_RDF, TIMED_LINES, NDJSON_LD, JELLY)
_RECORDS: Final = {
    "jsonl": ("application/json", "application/x-ndjson"),
    "xml": ("application/xml", "text/xml"),
}
RECORD_TYPES: Final = (*_RECORDS["jsonl"], *_RECORDS["xml"])


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
    body: bytes,
    media_type: str,
    form: str,
    *,
    is_rdf: bool,
    time_ms: int | None,
    version: str | None = None,
) -> PushBody:
    """Read a body.

    Args:
        body: the body.
        media_type: its content type.
        form: the format of the stream's records, if they are no RDF.
        is_rdf: whether the stream has RDF.
        time_ms: the event time of what has none of its own; None for the time of arrival.
        version: the version of RDF that the content type names.

    Raises:
        MediaTypeError: the stream does not take this content type.
        DataError: the body is not what its type says; the error has the place.
        LimitError: it is too large when it is written out.
    """
    if is_rdf:
        if media_type == TIMED_LINES:
            return _timed_lines(body)
        if media_type not in RDF_TYPES:
            raise _not_taken(media_type, RDF_TYPES)
        if version is not None and version.removesuffix(SUFFIX) not in VERSIONS:
            raise MediaTypeError(
                f"there is no version {version[:40]!r} of RDF that is known here",
                hint=f"Send {', '.join(VERSIONS)}, each also with {SUFFIX!r} at its end.",
            )
        values, count = joined(_elements(body, media_type, version))
        return PushBody(values, [time_ms] * len(values), count)
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


def _elements(body: bytes, media_type: str, version: str | None) -> Iterable[list[ox.Quad]]:
    """Return the statements of each element: a message, or in a document a graph."""
    if media_type == NDJSON_LD:
        return read_ndjson_ld(body)
    if media_type == JELLY:
        messages, is_flat = read_jelly_body(body)
        return _graphs_of(chain.from_iterable(messages)) if is_flat else messages
    form = _RDF[media_type]
    if media_type != _JSON_LD and is_log(body, version):
        return read_log(body, form)
    return _graphs_of(read_rdf(body, form))


def _graphs_of(quads: Iterable[ox.Quad]) -> Iterable[list[ox.Quad]]:
    graphs: dict[Any, list[ox.Quad]] = {}
    for quad in quads:
        graphs.setdefault(quad.graph_name, []).append(quad)
    return graphs.values()


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
    text = "\n".join(statements)
    has_triple_terms = check_triple_terms(text.encode(), ox.RdfFormat.N_QUADS)
    try:
        for quad in ox.parse(text, ox.RdfFormat.N_QUADS):
            if has_triple_terms:
                check_nesting(quad)
            graph = quad.graph_name
            found.append(None if isinstance(graph, ox.DefaultGraph) else graph)
    except SyntaxError as error:
        raise misplaced(error, numbers[(error.lineno or 1) - 1]) from None
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
