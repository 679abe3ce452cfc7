"""The recompute-everything oracle: what the right answers are.

At every report instant each window is materialised from the whole stream and the query evaluated
from scratch by pyoxigraph. No evaluation code is shared with the engine: where both agree, it is
not because both are wrong in the same way. The rules are those of `docs/semantics.md`, by number.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, final

from quadweir.algebra.analyze import check_windows, windows_with_graphs
from quadweir.algebra.query import (
    ConstructForm,
    ContinuousQuery,
    DescribeForm,
)
from quadweir.algebra.streams import OutputOperator
from quadweir.errors import DataError
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Quad, Variable
from quadweir.testing.answers import Answer
from quadweir.testing.contents import OpenWindow, report_instants
from quadweir.testing.elements import (
    event_time,
)
from quadweir.testing.evaluation import Evaluation, OracleRow
from quadweir.testing.reasoner import Entail
from quadweir.testing.scoping import fill
from quadweir.testing.watermark import ArrivedElement, Watermark

# A stream and the predicate that its event times are read from; None is the envelope's (S2).
_Source: TypeAlias = tuple[str, IRI | None]


@final
@dataclass(slots=True)
class OracleRun:
    """The result of a bounded replay.

    Attributes:
        answers: in the order of their report instants and, within one, of ORDER BY.
        reports: every report instant, those without answers too.
        late: elements that came after the watermark had passed them (S4).
        dead: elements whose event time could not be read (S2, P5), and why.
    """

    answers: list[Answer] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)
    late: list[Element] = field(default_factory=list)
    dead: list[tuple[Element, str]] = field(default_factory=list)


class Oracle:
    """Answers a continuous query over recorded streams, slowly and obviously.

    >>> from quadweir.testing import MemoryStream
    >>> text = "SELECT ?x { STREAM <urn:s> [RANGE 10ms TUMBLING] { ?x <urn:p> ?y } }"
    >>> stream = MemoryStream("urn:s")
    >>> stream.add(5, "<urn:a> <urn:p> 1 .")
    >>> for answer in Oracle(text).answers(stream):
    ...     print(answer)
    10 + ?x = <urn:a>

    Args:
        query: The query, as it was parsed, or its text.
        static: Static data; quads without a graph are its default graph.
        delay_ms: The allowed delay (S4). None means that no element is late, whatever the order.
        idle_ms: After which time without an arrival a stream no longer holds the watermark back
            (S4), for all streams or for each by its IRI; one that has none never falls idle. The
            feed then says when its elements arrive.
        max_reports: How many report instants there may be before the oracle gives up.
        entail: What gives the triples that follow from those of an element, or of a static graph,
            and these (N1); `Reasoner` for a schema.
    """

    def __init__(
        self,
        query: ContinuousQuery | str,
        *,
        static: Iterable[Quad] = (),
        delay_ms: int | None = None,
        idle_ms: int | Mapping[str, int] | None = None,
        max_reports: int = 100_000,
        entail: Entail | None = None,
    ) -> None:
        if isinstance(query, str):
            query = parse(query, allow=("FROM",))
        check_windows(query)
        self.query = query
        self.static = tuple(static)
        self.delay_ms = delay_ms
        self.idle_ms = idle_ms
        self.max_reports = max_reports
        self.entail = entail

    def answers(self, feed: Iterable[Element | ArrivedElement]) -> list[Answer]:
        """The answers over a bounded feed; see `run`."""
        return self.run(feed).answers

    def run(self, feed: Iterable[Element | ArrivedElement]) -> OracleRun:
        """Replay a bounded feed and drain it (E3).

        Args:
            feed: The elements of all streams in the order in which they arrive, as an `ArrivedElement`
                each if streams can fall idle. The order and the times of arrival matter only if
                there is an allowed delay, and then only for which elements are late.

        Raises:
            LimitError: if the query reports more than `max_reports` times.
            ValueError: streams can fall idle, and an element has no time of arrival, or one
                before that of the element before it.
        """
        run = OracleRun()
        windows = self._open(tuple(feed), run)
        evaluation = Evaluation(self.query, windows, self.static, self.entail)
        if not self.query.windows:
            # A plain SPARQL query: one report.
            run.reports = [0]
            run.answers = list(self._out(0, evaluation.rows(0), []))
            return run
        before: list[OracleRow] = []
        for t in report_instants(self.query, windows, limit=self.max_reports):
            run.reports.append(t)
            now = evaluation.rows(t)
            run.answers += self._out(t, now, before)
            before = now
        return run

    def sample(
        self,
        feed: Iterable[Element],
        begin: int,
        end: int,
        *,
        most: int,
        dice: random.Random,
    ) -> dict[int, list[Answer]]:
        """The answers of some of the reports between two instants, both included.

        Args:
            feed: The elements that these reports, and those before them, can see.
            begin: The first instant.
            end: The last instant.
            most: How many reports to compute at most.
            dice: Chooses them.
        """
        windows = self._open(tuple(feed), OracleRun())
        evaluation = Evaluation(self.query, windows, self.static, self.entail)
        before: dict[int, int | None] = {}
        last = None
        for t in report_instants(self.query, windows, limit=self.max_reports):
            if begin <= t <= end:
                before[t] = last
            last = t
        chosen = sorted(dice.sample(sorted(before), min(most, len(before))))
        return {
            t: list(self._out(t, evaluation.rows(t), self._rows_before(evaluation, before[t])))
            for t in chosen
        }

    def _rows_before(self, evaluation: Evaluation, t: int | None) -> list[OracleRow]:
        is_compared = self.query.output is not OutputOperator.RSTREAM
        return evaluation.rows(t) if t is not None and is_compared else []

    def windows(self, feed: Iterable[Element]) -> list[OpenWindow]:
        """The windows of the query with their elements, without those that are late."""
        return self._open(tuple(feed), OracleRun())

    # --- streams to windows -----------------------------------------------------------------------

    def _open(self, feed: Sequence[Element | ArrivedElement], run: OracleRun) -> list[OpenWindow]:
        """Give every window its elements, timed as it wants them (S2), without the late ones (S4)."""
        streams = sorted({element.stream for element, _ in map(_parts, feed)})
        wanted: list[_Source] = []
        for window in self.query.windows:
            over = streams if isinstance(window.stream, Variable) else [window.stream.value]
            wanted += [(stream, window.event_time) for stream in over]
        accepted = self._accept(feed, dict.fromkeys(wanted), run)
        with_graphs = windows_with_graphs(self.query)
        opened = []
        for window in self.query.windows:
            over = streams if isinstance(window.stream, Variable) else [window.stream.value]
            for stream in over:
                elements = accepted[(stream, window.event_time)]
                ordered = sorted(elements, key=lambda each: (each.event_time, each.position))
                has_graphs = window.name in with_graphs
                opened.append(OpenWindow(window, IRI(stream), tuple(ordered), has_graphs))
        return opened

    def _accept(
        self, feed: Sequence[Element | ArrivedElement], sources: Iterable[_Source], run: OracleRun
    ) -> dict[_Source, list[Element]]:
        """Walk the feed as it arrives; a stream read with two event times counts as two (S4)."""
        accepted: dict[_Source, list[Element]] = {each: [] for each in sources}
        watermark: Watermark[_Source] | None = None
        if self.delay_ms is not None:
            watermark = Watermark(
                accepted, delay_ms=self.delay_ms, idle_ms=self._idle_times(accepted)
            )
        for each in feed:
            element, arrived = _parts(each)
            if self.idle_ms is None:
                arrived = None
            elif arrived is None:
                raise ValueError("streams fall idle by times of arrival, and an element has none")
            for source in accepted:
                if source[0] != element.stream:
                    continue
                try:
                    time = event_time(element, source[1])
                except DataError as error:
                    run.dead.append((element, error.message))
                    continue
                if watermark is not None and watermark.is_late(source, time, arrived):
                    run.late.append(element)
                    continue
                accepted[source].append(replace(element, event_time=time))
        return accepted

    def _idle_times(self, sources: Iterable[_Source]) -> dict[_Source, int]:
        match self.idle_ms:
            case None:
                return {}
            case int(same):
                return dict.fromkeys(sources, same)
            case times:
                return {source: times[source[0]] for source in sources if source[0] in times}

    # --- relations to streams ---------------------------------------------------------------------

    def _out(self, t: int, now: list[OracleRow], before: list[OracleRow]) -> Iterator[Answer]:
        """Apply the output operator (A2): multiset differences, in the order of the solutions."""
        match self.query.output:
            case OutputOperator.RSTREAM:
                sign, rows = "+", now
            case OutputOperator.ISTREAM:
                sign, rows = "+", _minus(now, before)
            case OutputOperator.DSTREAM:
                sign, rows = "-", _minus(before, now)
        for number, (solution, more) in enumerate(rows):
            match self.query.form:
                case ConstructForm() as form:
                    graph = fill(form, dict(solution), f"{t}-{number}")
                    if graph:
                        yield Answer(t, sign, graph=graph)
                case DescribeForm():
                    triples = frozenset(each for each in more if isinstance(each, Quad))
                    yield Answer(t, sign, graph=triples)
                case _:
                    yield Answer(t, sign, solution)


def _parts(fed: Element | ArrivedElement) -> tuple[Element, int | None]:
    return (fed.element, fed.at_ms) if isinstance(fed, ArrivedElement) else (fed, None)


def _minus(rows: list[OracleRow], others: list[OracleRow]) -> list[OracleRow]:
    left = Counter(rows) - Counter(others)
    kept = []
    for row in rows:
        if left[row] > 0:
            left[row] -= 1
            kept.append(row)
    return kept
