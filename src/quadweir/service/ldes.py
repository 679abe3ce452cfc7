"""A pushed stream as a Linked Data Event Stream: pages of elements in the order of their arrival.

Spec: https://w3id.org/ldes/specification and https://w3id.org/tree/specification
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, final

from quadweir.service.problems import NotFoundError
from quadweir.sources.pushlog import PushLogReader, frames_of, head_at, records_of
from quadweir.sources.statements import parse_statement

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
    """A page: its text, and whether it will ever change."""

    text: str
    is_whole: bool


@final
class EventPages:
    """The pages of a stream.

    Args:
        folder: the folder of its log.
        place: the IRI of the event stream.
    """

    def __init__(self, folder: Path, place: str) -> None:
        self._log = PushLogReader(folder)
        self._place = place

    def view(self) -> str:
        """Return the event stream with its pages, each with the arrival of its first element."""
        lines = [
            _PREFIXES,
            f"<{self._place}> a ldes:EventStream ;",
            "  ldes:timestampPath dct:issued ;",
            "  ldes:versionOfPath dct:isVersionOf ;",
            f"  tree:view <{self._place}/pages> .",
            f"<{self._place}/pages> a tree:Node .",
        ]
        for page, arrival in self._firsts():
            lines += [
                f"<{self._place}/pages> tree:relation [",
                "  a tree:GreaterThanOrEqualToRelation ;",
                "  tree:path dct:issued ;",
                f"  tree:value {_moment(arrival)} ;",
                f"  tree:node <{self._place}/{page}>",
                "] .",
            ]
        return "\n".join(lines) + "\n"

    def _firsts(self) -> Iterator[tuple[int, int]]:
        """Yield the pages that are there, with the arrival of the first element that is kept."""
        last = -1
        for first, count, arrival in self._heads():
            for page in range(max(last + 1, first // PAGE), (first + count - 1) // PAGE + 1):
                yield page, arrival
                last = page

    def _heads(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first number, the count and the arrival of each frame, without its records."""
        end = self._log.end()
        for piece in self._log.read(self._log.first(), end):
            place = 0
            while place < len(piece):
                head = head_at(piece, place)
                yield head.first, head.records, head.arrival_ms
                place += head.size

    def page(self, number: int) -> EventPage:
        """Return a page.

        Raises:
            NotFoundError: it is no longer there, or not yet.
        """
        elements = list(self._elements(number * PAGE, (number + 1) * PAGE))
        if not elements:
            raise NotFoundError("there is no such page", hint=f"{self._place} lists the pages.")
        lines = [_PREFIXES, f"<{self._place}/{number}> a tree:Node ."]
        for each in elements:
            member = f"<{self._place}/members/{each.number}>"
            quads = [parse_statement(line) for line in each.text.split("\n") if line]
            lines += [
                f"<{self._place}> tree:member {member} .",
                f"{member} dct:issued {_moment(each.arrival_ms)} ;",
                f"  prov:generatedAtTime {_moment(each.time_ms)} ;",
                f"  dct:isVersionOf {quads[0].subject} .",
                f"{member} {{",
                *(f"  {quad.subject} {quad.predicate} {quad.object} ." for quad in quads),
                "}",
            ]
        is_whole = len(elements) == PAGE
        return EventPage("\n".join(lines) + "\n", is_whole)

    def _elements(self, first: int, end: int) -> Iterator[LoggedElement]:
        for piece in self._log.read(self._log.first(), self._log.end()):
            for frame in frames_of(piece):
                if frame.first + frame.count <= first:
                    continue
                if frame.first >= end:
                    return
                number = frame.first
                for batch in records_of(frame):
                    texts = batch.column("value").to_pylist()
                    times = batch.column("time").to_pylist()
                    for text, time_ms in zip(texts, times, strict=True):
                        if first <= number < end:
                            yield LoggedElement(number, frame.arrival_ms, time_ms, text)
                        number += 1


def _moment(ms: int) -> str:
    """Return an instant as RDF.

    >>> _moment(0)
    '"1970-01-01T00:00:00.000Z"^^xsd:dateTime'
    """
    at = datetime.fromtimestamp(ms / 1000, UTC)
    return f'"{at.strftime("%Y-%m-%dT%H:%M:%S")}.{ms % 1000:03d}Z"^^xsd:dateTime'
