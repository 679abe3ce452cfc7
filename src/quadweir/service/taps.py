"""Looking into streams and windows: what passed by lately, and why an answer holds.

A tap is a query that gives every statement of a stream. It is registered when somebody looks, and
leaves when nobody has looked for a while. So streams that nobody looks at cost nothing.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.algebra.query import ConstructForm
from quadweir.errors import QuadweirError, UsageError
from quadweir.plan.explanation import scope_in_words
from quadweir.runtime.network.querytext import QueryText
from quadweir.service.poolinputs import streams_of
from quadweir.service.problems import NotFoundError, PressureError
from quadweir.service.sinks import TAP
from quadweir.sources.statements import parse_statement
from quadweir.sources.staticfiles import read_static
from quadweir.sources.streamfiles import Element
from quadweir.testing.answers import answers_from_json, diff_answers
from quadweir.testing.oracle import Oracle
from quadweir.testing.reasoner import Reasoner
from quadweir.testing.recorded import reach_ms
from quadweir.testing.why import Reasons

if TYPE_CHECKING:
    from collections.abc import Callable

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.entailment.schema import Schema
    from quadweir.service.networkpool import NetworkPool
    from quadweir.service.servednetwork import ServedNetwork
    from quadweir.sources.staticfiles import StaticFile

MOST_TAPS: Final = 20
IDLE_S: Final = 600.0
_MOST_SHOWN: Final = 200
_REPORTS: Final = 20
_TEXT: Final = "CONSTRUCT {{ ?s ?p ?o }} {{ STREAM <{iri}> [NOW] {{ ?s ?p ?o }} }}"


@final
class StreamTaps:
    """The taps of a service.

    Args:
        pool: the networks.
        known: returns the streams that queries can read.
        static: returns the static data of all queries.
        schema: returns the schema of all queries.
        listened: whether somebody subscribes to a query.
    """

    def __init__(
        self,
        pool: NetworkPool,
        known: Callable[[], frozenset[str]],
        static: Callable[[], Iterable[StaticFile]],
        schema: Callable[[], Schema | None],
        listened: Callable[[str], bool],
    ) -> None:
        self._pool = pool
        self._static = static
        self._known = known
        self._schema = schema
        self._listened = listened
        self._lock = threading.Lock()
        self._asked: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def open(self, iri: str) -> str:
        """Look into a stream; return the name of the query that gives its statements.

        Raises:
            NotFoundError: no query can read such a stream.
            PressureError: too many streams are looked into.
        """
        if iri not in self._known():
            raise NotFoundError(f"there is no stream <{iri}> that queries can read")
        name = tap_name(iri)
        with self._lock:
            if not self._pool.has(name):
                if len(self._asked) >= MOST_TAPS:
                    raise PressureError(
                        f"{MOST_TAPS} streams are looked into already", retry_after_s=60
                    )
                text = QueryText(_TEXT.format(iri=iri))
                found = self._pool.register({name: text}, {name: frozenset({iri})}, replacing=True)
                for error in found.refused.values():
                    raise error
                self._since[iri] = time.time_ns() // 1_000_000
            self._asked[iri] = time.monotonic()
        return name

    def expire(self) -> None:
        """Close the taps that nobody has used for a while."""
        with self._lock:
            for iri, at in list(self._asked.items()):
                name = tap_name(iri)
                if at < time.monotonic() - IDLE_S and not self._listened(name):
                    del self._asked[iri]
                    if self._pool.has(name):
                        self._pool.unregister([name])

    def close_all(self) -> None:
        """Remove the taps of a former run."""
        for network in self._pool.networks():
            left = [each.id for each in network.status() if each.id.startswith(TAP)]
            if left:
                self._pool.unregister([each for each in left if self._pool.has(each)])

    # --- what passed by ---

    def elements(self, iri: str) -> list[Element]:
        """Return the last statements of a stream, each as an element."""
        name = self.open(iri)
        home = self._pool.home_of(name)
        found = []
        for number, (_, line) in enumerate(home.ring_of(name).after(name, None)[0]):
            row = json.loads(line)
            for text in row[rows.TRIPLES] if row["sign"] == "+" else ():
                found.append(Element(iri, row["t"], number, (parse_statement(text),)))
        return found

    def windows(self, query: str) -> dict[str, Any]:
        """Return what the windows of a query hold, as far as it is known.

        Raises:
            NotFoundError: there is no such query.
        """
        home, parsed = self._query(query)
        elements = self._all(parsed)
        at = self._reached(home, elements)
        return {
            "query": query,
            "at": at,
            "complete": self._is_complete(parsed, at),
            "windows": [
                {
                    "name": opened.window.name.value,
                    "stream": opened.stream.value,
                    "scope": scope_in_words(opened.window.scope),
                    **_shown(opened.content(at) if at is not None else ()),
                }
                for opened in Oracle(parsed).windows(elements)
            ],
        }

    def why(self, query: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an answer rests on, as far as it is known.

        Args:
            query: the name of the query.
            answer: the answer, as it was sent.

        Raises:
            NotFoundError: there is no such query.
            UsageError: it is no answer of a SELECT or ASK.
        """
        _, parsed = self._query(query)
        elements = self._all(parsed)
        try:
            given = {"t": answer["t"], "sign": answer["sign"], "bindings": answer["bindings"]}
            (read,) = answers_from_json([json.dumps(given)])
        except (KeyError, TypeError, ValueError, AttributeError, AssertionError):
            raise UsageError(
                "the body is no answer of a SELECT or ASK",
                hint='Send an answer as it came: {"t": ..., "sign": "+", "bindings": {...}}.',
            ) from None
        reasons = Reasons(parsed, elements, read_static(self._static()), self._schema())
        return {
            "complete": self._is_complete(parsed, read.t),
            "triples": reasons.of(read),
        }

    def verify(self, query: str) -> dict[str, Any]:
        """Compare some reports of a query with those of an evaluation from scratch.

        Raises:
            NotFoundError: there is no such query.
            UsageError: it has windows without a bound, or makes triples.
        """
        home, parsed = self._query(query)
        if isinstance(parsed.form, ConstructForm):
            raise UsageError("the answers of a CONSTRUCT cannot be verified while it runs")
        elements = self._all(parsed)
        through = home.metrics().get("through")
        nothing = {"from": None, "to": through, "reports": 0, "difference": None}
        if through is None or not elements:
            return nothing
        given: dict[int, list[str]] = {}
        for _, line in home.ring.after(query, None)[0]:
            given.setdefault(json.loads(line)["t"], []).append(line)
        if not given:
            return nothing
        # Earlier reports cannot be compared: the query was not there, or not all elements are known.
        begin = max(self._known_since(parsed), min(given)) + reach_ms(parsed)
        schema = self._schema()
        oracle = Oracle(
            parsed,
            static=read_static(self._static()),
            entail=Reasoner(schema) if schema is not None else None,
        )
        found = oracle.sample(elements, begin, int(through), most=_REPORTS, dice=random.Random())
        differences = [
            difference
            for t, expected in found.items()
            if (difference := diff_answers(expected, answers_from_json(given.get(t, []))))
        ]
        return {
            **nothing,
            "from": begin,
            "reports": len(found),
            "difference": "\n".join(differences) or None,
        }

    def _known_since(self, query: ContinuousQuery) -> int:
        """Return since when all statements of the streams of a query are known."""
        return max(
            min((each.event_time for each in self.elements(iri)), default=0)
            for iri in streams_of(query)
        )

    def _query(self, query: str) -> tuple[ServedNetwork, ContinuousQuery]:
        home = self._pool.home_of(query)
        found = home.query(query)
        if found is None:
            raise NotFoundError(f"there is no query {query!r}")
        return home, found.text.parsed()

    def _all(self, query: ContinuousQuery) -> list[Element]:
        """Return the last elements of all streams of a query, in the order of their times."""
        found = [each for iri in sorted(streams_of(query)) for each in self.elements(iri)]
        return sorted(found, key=lambda each: each.event_time)

    def _reached(self, home: ServedNetwork, elements: list[Element]) -> int | None:
        """Return the instant that the windows are shown at: the last element, or the watermark."""
        through = home.metrics().get("through")
        times = [each.event_time for each in elements]
        return max([*times, *([int(through)] if through is not None else [])], default=None)

    def _is_complete(self, query: ContinuousQuery, at: int | None) -> bool:
        """Whether everything that counts at an instant came after somebody began to look."""
        if at is None:
            return False
        try:
            begin = at - reach_ms(query)
        except QuadweirError:
            return False
        for iri in streams_of(query):
            name = tap_name(iri)
            ring = self._pool.home_of(name).ring_of(name)
            kept = ring.after(name, None)[0]
            first = json.loads(kept[0][1])["t"] if kept else None
            if first is None or first > begin:
                return False
        return True


def tap_name(iri: str) -> str:
    """Return the name of the tap of a stream."""
    return f"{TAP}{hashlib.sha256(iri.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _shown(content: Iterable[Element]) -> dict[str, Any]:
    held = list(content)
    newest = held[-_MOST_SHOWN:][::-1]
    return {
        "count": len(held),
        "newest": [
            {"t": each.event_time, "statement": str(each.quads[0])} for each in newest if each.quads
        ],
    }
