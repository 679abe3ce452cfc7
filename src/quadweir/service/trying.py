"""Trying a query on what streams brought lately, before it is registered."""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.algebra.query import ConstructForm
from quadweir.runtime.local.query import LocalQuery
from quadweir.service.poolinputs import streams_of
from quadweir.service.problems import PressureError
from quadweir.sources.declare import FileSource, Format, StreamDeclaration
from quadweir.sources.replay import timed_text
from quadweir.sources.staticfiles import read_static
from quadweir.testing.answers import diff_answers
from quadweir.testing.oracle import Oracle
from quadweir.testing.reasoner import Reasoner
from quadweir.testing.shards import as_answers

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.entailment.schema import Schema
    from quadweir.runtime.network.querytext import QueryText
    from quadweir.service.queries import QueryDesk
    from quadweir.sources.staticfiles import StaticFile
    from quadweir.sources.streamfiles import Element
    from quadweir.testing.answers import Answer

MOST_ELEMENTS: Final = 2_000
_MOST_ANSWERS: Final = 100
_REPORTS: Final = 20


@final
class TrialDesk:
    """Runs queries over a sample, in this process and one at a time.

    Args:
        queries: reads and checks queries.
        elements: returns the last statements of a stream, each as an element.
        static: returns the static data of all queries.
        schema: returns the schema of all queries.
    """

    def __init__(
        self,
        queries: QueryDesk,
        elements: Callable[[str], list[Element]],
        static: Callable[[], Iterable[StaticFile]],
        schema: Callable[[], Schema | None],
    ) -> None:
        self._queries = queries
        self._elements = elements
        self._static = static
        self._schema = schema
        self._running = threading.Lock()

    def run(self, text: QueryText) -> dict[str, Any]:
        """Answer a query over the last elements, and compare some reports with the oracle.

        Raises:
            QuadweirError: the query is not valid.
            PressureError: another one is tried.
        """
        query = self._queries.read(text)
        if not self._running.acquire(blocking=False):
            raise PressureError("another query is tried now", retry_after_s=2)
        try:
            return self._run(query, text)
        finally:
            self._running.release()

    def _run(self, query: ContinuousQuery, text: QueryText) -> dict[str, Any]:
        feed = sorted(
            (each for iri in sorted(streams_of(query)) for each in self._elements(iri)),
            key=lambda each: each.event_time,
        )[-MOST_ELEMENTS:]
        found: dict[str, Any] = {"elements": len(feed), "from": None, "to": None}
        found |= {"answers": [], "count": 0, "reports": 0, "difference": None}
        if not feed:
            return found
        begin, end = feed[0].event_time, feed[-1].event_time
        given = [each for each in self._answers(query, text, feed) if each.t <= end]
        given.sort(key=lambda each: each.t)
        found |= {"from": begin, "to": end, "count": len(given)}
        found["answers"] = [each.to_json() for each in given[-_MOST_ANSWERS:]]
        # The blank nodes of a CONSTRUCT have other names each time.
        if not isinstance(query.form, ConstructForm):
            found |= self._verified(query, feed, given, begin, end)
        return found

    def _answers(
        self, query: ContinuousQuery, text: QueryText, feed: list[Element]
    ) -> list[Answer]:
        with tempfile.TemporaryDirectory(prefix="quadweir-try-") as folder:
            streams = {}
            for number, iri in enumerate(sorted(streams_of(query))):
                file = Path(folder) / f"{number}.stream"
                lines = (f"{timed_text(each)}\n" for each in feed if each.stream == iri)
                file.write_text("".join(lines), encoding="utf-8")
                streams[iri] = StreamDeclaration(
                    iri=iri, source=FileSource(path=file), format=Format.TIMED_LINES
                )
            answered = LocalQuery(
                query,
                streams,
                static=tuple(self._static()),
                schema=self._schema(),
                allow_unbounded=text.allow_unbounded,
            ).run()
            return as_answers(answered.answers, answered.query)

    def _verified(
        self,
        query: ContinuousQuery,
        feed: list[Element],
        given: list[Answer],
        begin: int,
        end: int,
    ) -> dict[str, Any]:
        schema = self._schema()
        oracle = Oracle(
            query,
            static=read_static(self._static()),
            entail=Reasoner(schema) if schema is not None else None,
        )
        expected = oracle.sample(feed, begin, end, most=_REPORTS, dice=random.Random())
        differences = [
            difference
            for t, wanted in expected.items()
            if (difference := diff_answers(wanted, [each for each in given if each.t == t]))
        ]
        return {"reports": len(expected), "difference": "\n".join(differences) or None}
