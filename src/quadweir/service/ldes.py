"""A pushed stream as a Linked Data Event Stream: pages of elements in the order of their arrival.

Spec: https://w3id.org/ldes/specification and https://w3id.org/tree/specification
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, final

import pyoxigraph as ox

from quadweir.errors import SourceError
from quadweir.service.problems import GoneError, NotFoundError
from quadweir.sources.pushlog import PushLogReader, frames_of, records_of

if TYPE_CHECKING:
    from pathlib import Path

MEDIA_TYPE: Final = "application/trig"
PAGE: Final = 1_000
"""How many elements a page has."""
_PREFIXES: Final = """\
@prefix dct: <http://purl.org/dc/terms/> .
@prefix ldes: <https://w3id.org/ldes#> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix tree: <https://w3id.org/tree#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


@final
@dataclass(frozen=True, slots=True)
class LoggedElement:
    """An element of a log: its number, when it arrived, its event time, and its statements."""

    number: int
    arrival_ms: int
    time_ms: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class EventPage:
    """A page, or the view of all pages: its text, and whether it will ever change."""

    text: str
    is_whole: bool = False


@dataclass(slots=True)
class _PageMark:
    """Where a page begins in the log, and when its first and its last element arrived."""

    byte: int
    first_ms: int
    last_ms: int


@final
class EventPages:
    """The pages of a stream.

    What is known about them is kept: a log of a gigabyte is not looked through for each request.

    Args:
        folder: the folder of its log.
    """

    def __init__(self, folder: Path) -> None:
        self._log = PushLogReader(folder)
        self._lock = threading.Lock()
        self._marks: dict[int, _PageMark] = {}
        self._count = self._end = 0

    def view(self, place: str) -> EventPage:
        """Return the event stream with its pages.

        Args:
            place: the IRI of the view.
        """
        marks, count = self._known()
        lines = [
            *_about(place),
            "  ldes:timestampPath dct:issued ;",
            "  ldes:sequencePath dct:identifier ;",
            "  ldes:versionOfPath dct:isVersionOf ;",
            "  ldes:versionTimestampPath prov:generatedAtTime .",
            f"<{place}> a tree:Node .",
        ]
        if marks:
            begin = _moment(min(mark.first_ms for mark in marks.values()))
            lines += [
                f"<{place}> ldes:retentionPolicy <{place}#kept> .",
                f"<{place}#kept> a ldes:RetentionPolicy ; ldes:startingFrom {begin} .",
            ]
        for page, mark in marks.items():
            lines += _relation(place, page, "GreaterThanOrEqualTo", mark.first_ms)
            if (page + 1) * PAGE <= count:
                lines += _relation(place, page, "LessThanOrEqualTo", mark.last_ms)
        return EventPage("\n".join(lines) + "\n")

    def page(self, place: str, number: int) -> EventPage:
        """Return a page.

        Raises:
            NotFoundError: there is none yet.
            GoneError: it is no longer kept.
        """
        marks, count = self._known()
        if number not in marks:
            kind = GoneError if 0 <= number * PAGE < count else NotFoundError
            raise kind("there is no such page", hint=f"{place} lists the pages.")
        is_whole = (number + 1) * PAGE <= count
        lines = [
            *_about(place),
            "  ldes:timestampPath dct:issued .",
            f"<{place}/{number}> a tree:Node .",
        ]
        if is_whole:
            lines.append(f"<{place}/{number}> ldes:immutable true .")
        try:
            for each in self._elements(marks[number].byte, number * PAGE):
                lines += _member(place, each)
        except (FileNotFoundError, SourceError):
            raise GoneError("there is no such page", hint=f"{place} lists the pages.") from None
        return EventPage("\n".join(lines) + "\n", is_whole)

    def _known(self) -> tuple[dict[int, _PageMark], int]:
        """Return where whole and growing pages begin, and how many elements the log ever had."""
        with self._lock:
            end, first = self._log.end(), self._log.first()
            oldest = next(self._log.heads(first, end), None)
            start = max(self._end, first)
            # A segment may be removed meanwhile; the next request knows.
            with suppress(FileNotFoundError):
                for byte, head in self._log.heads(start, end):
                    self._count = head.first + head.records
                    self._end = byte + head.size
                    for page in range(head.first // PAGE, (self._count - 1) // PAGE + 1):
                        mark = self._marks.setdefault(page, _PageMark(byte, head.arrival_ms, 0))
                        mark.last_ms = head.arrival_ms
            kept_from = oldest[1].first if oldest is not None else self._count
            # Whoever lost its first elements has changed, so it is gone.
            kept = {page: mark for page, mark in self._marks.items() if page * PAGE >= kept_from}
            self._marks = kept
            return {page: replace(mark) for page, mark in kept.items()}, self._count

    def _elements(self, byte: int, first: int) -> Iterator[LoggedElement]:
        for piece in self._log.read(byte, self._log.end()):
            for frame in frames_of(piece):
                if frame.first >= first + PAGE:
                    return
                number = frame.first
                for batch in records_of(frame):
                    texts = batch.column("value").to_pylist()
                    times = batch.column("time").to_pylist()
                    for text, time_ms in zip(texts, times, strict=True):
                        if first <= number < first + PAGE:
                            yield LoggedElement(number, frame.arrival_ms, time_ms, text)
                        number += 1


def _about(place: str) -> list[str]:
    """Return how each page begins; the stream is not the view, which is one way to see it."""
    return [_PREFIXES, f"<{place}#stream> a ldes:EventStream ; tree:view <{place}> ;"]


def _relation(place: str, page: int, kind: str, ms: int) -> list[str]:
    return [
        f"<{place}> tree:relation [",
        f"  a tree:{kind}Relation ; tree:path dct:issued ; tree:value {_moment(ms)} ;",
        f"  tree:node <{place}/{page}>",
        "] .",
    ]


def _member(place: str, element: LoggedElement) -> Iterator[str]:
    member = f"<{place}/members/{element.number}>"
    quads = list(ox.parse(element.text, ox.RdfFormat.N_QUADS))
    yield f"<{place}#stream> tree:member {member} ."
    yield f"{member} dct:issued {_moment(element.arrival_ms)} ; dct:identifier {element.number} ;"
    if isinstance(quads[0].subject, ox.NamedNode):
        yield f"  dct:isVersionOf {quads[0].subject} ;"
    yield f"  prov:generatedAtTime {_moment(element.time_ms)} ."
    graph = ox.NamedNode(member[1:-1])
    own = (ox.Quad(quad.subject, quad.predicate, quad.object, graph) for quad in quads)
    found = ox.serialize(own, format=ox.RdfFormat.TRIG)
    assert found is not None, "it goes to no file"
    yield found.decode()


def _moment(ms: int) -> str:
    """Return an instant as RDF.

    >>> _moment(0)
    '"1970-01-01T00:00:00.000Z"^^xsd:dateTime'
    """
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return f'"{at.strftime("%Y-%m-%dT%H:%M:%S")}.{ms % 1000:03d}Z"^^xsd:dateTime'
