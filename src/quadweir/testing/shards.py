"""Elements to the events of a kernel shard: matching, lateness and watermark, slow and plain.

What Spark does for a running query, this does for tests and small runs: it matches the triples of
each element against the shard's leaves, drops late elements (S4) and advances the watermark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import final

import numpy as np
import pyarrow as pa

from quadweir.algebra.patterns import PatternTerm
from quadweir.algebra.query import ConstructForm, ContinuousQuery
from quadweir.entailment.table import Table
from quadweir.entailment.ways import NO_WAYS, Ways, ways_of
from quadweir.errors import DataError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.clocks import Elements
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.shard import Shard
from quadweir.kernel.sharedshard import SharedShard
from quadweir.plan.nodes import Match
from quadweir.sources.streamfiles import Element
from quadweir.terms import IRI, Quad, Term, Variable, parse_term
from quadweir.testing.answers import Answer
from quadweir.testing.elements import distinct_triples, event_time
from quadweir.testing.scoping import fill, of_stream, static_label


@final
class ShardFeed:
    """Feeds a shard with elements as they arrive.

    Args:
        shard: The shard.
        delay_ms: The allowed delay (S4).
        table: What follows from triples, if there is a schema (N1).
    """

    def __init__(self, shard: Shard, *, delay_ms: int = 0, table: Table | None = None) -> None:
        self.shard = shard
        self.delay_ms = delay_ms
        self.table = table
        self._highest: dict[tuple[str, object], int] = {}
        self.late = 0
        self.dead = 0

    @property
    def watermark(self) -> int:
        """The lowest of the streams' highest times, less the delay."""
        readers = {(source.stream, source.event_time) for source in self.shard.sources}
        if not readers or any(reader not in self._highest for reader in readers):
            return ALWAYS
        return min(self._highest[reader] for reader in readers) - self.delay_ms

    @property
    def through(self) -> int:
        """How far time has come: no element until this instant is still to be taken."""
        # Without any delay the newest instant of a stream is not over before a later one is seen.
        return self.watermark if self.delay_ms > 0 else max(self.watermark - 1, ALWAYS)

    def push(self, elements: Iterable[Element]) -> Answers:
        """Take elements in the order in which they arrive, and give the answers that are final."""
        taken: dict[int, list[tuple[int, Element]]] = defaultdict(list)
        for element in elements:
            for reader in {(s.stream, s.event_time) for s in self.shard.sources}:
                if reader[0] != element.stream:
                    continue
                try:
                    time = event_time(element, reader[1])
                except DataError:
                    self.dead += 1
                    continue
                highest = self._highest.get(reader, time)
                # Elements of a stream's newest instant come together, without any delay, too.
                if time <= self.watermark and not time == highest == self.watermark:
                    self.late += 1
                    continue
                self._highest[reader] = max(time, highest)
                for place, source in enumerate(self.shard.sources):
                    if (source.stream, source.event_time) == reader:
                        taken[place].append((time, element))
        return self.shard.step(events_of(self.shard, taken, self.table), self.through)

    def push_all(self, elements: Sequence[tuple[int, Element]]) -> Answers:
        """Take all elements at once, with their times; none is late."""
        taken: dict[int, list[tuple[int, Element]]] = defaultdict(list)
        for place, source in enumerate(self.shard.sources):
            own = [each for each in elements if each[1].stream == source.stream]
            if own:
                taken[place] = own
        return self.shard.step(events_of(self.shard, taken, self.table), ALWAYS)

    def finish(self) -> Answers:
        """End all streams."""
        return self.shard.step(Events(), FOREVER)


def events_of(
    shard: Shard | SharedShard,
    taken: Mapping[int, Sequence[tuple[int, Element]]],
    table: Table | None = None,
) -> Events:
    """Match elements with their times, given by the places of sources, against the leaves."""
    if isinstance(shard, Shard) and shard.program.template is not None:
        later = {
            place: [each for each in own if each[0] > shard.since] for place, own in taken.items()
        }
        taken = {place: own for place, own in later.items() if own}
    matches = {}
    for number, plan in enumerate(shard.leaves):
        place = shard.sources.index(plan.source)
        times, positions, rows = [], [], []
        own_table = None if plan.carried else table
        for time, element in taken.get(place, ()):
            for row in _matches(plan, element, own_table):
                times.append(time)
                positions.append(element.position)
                rows.append(row)
        if times:
            columns = [
                pa.array([row[column] for row in rows], pa.string()).dictionary_encode()
                for column in range(len(plan.variables))
            ]
            matches[number] = MatchColumns(_ints(times), _ints(positions), columns)
    elements, seen = {}, {}
    for place, these in taken.items():
        times = [time for time, _ in these]
        sizes = [len(distinct_triples(element)) for _, element in these]
        positions = [element.position for _, element in these]
        elements[place] = Elements(_ints(times), _ints(positions), _ints(sizes))
        seen[place] = (min(times), max(times))
    return Events(matches, elements, seen)


def _ints(values: Sequence[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _matches(
    plan: Match, element: Element, table: Table | None = None
) -> Iterable[tuple[str, ...]]:
    """The bindings of a leaf's variables by the triples of an element and their consequences."""
    if plan.pattern is None:
        if element.quads:
            yield ()
        return
    ways = NO_WAYS if table is None else ways_of(plan.pattern, table)
    found: dict[tuple[str, ...], None] = {}
    for quad in element.quads:
        carried = of_stream(quad, IRI(element.stream))
        triple = replace(carried, graph=None)
        follows = table.consequences(triple) if ways.looked_up and table is not None else ()
        for each in (triple, *_by_ways(triple, ways), *follows):
            bound = _match(plan, replace(each, graph=carried.graph))
            if bound is not None:
                found[tuple(str(bound[variable]) for variable in plan.variables)] = None
    yield from found


def _by_ways(triple: Quad, ways: Ways) -> Iterable[Quad]:
    for way in ways.listed:
        named = triple.subject if way.turned else triple.object
        if triple.predicate in way.predicates and (way.classes is None or named in way.classes):
            derived = way.derived.of(triple.subject, triple.object)
            if derived is not None:
                yield derived


def _match(plan: Match, quad: Quad) -> dict[Variable, Term] | None:
    assert plan.pattern is not None
    bound: dict[Variable, Term] = {}
    pairs: list[tuple[PatternTerm, Term | None]] = [
        (plan.pattern.subject, quad.subject),
        (plan.pattern.predicate, quad.predicate),
        (plan.pattern.object, quad.object),
    ]
    if plan.graph is not None:
        pairs.append((plan.graph, quad.graph))
    for place, term in pairs:
        if term is None:
            return None
        if isinstance(place, Variable):
            if bound.setdefault(place, term) != term:
                return None
        elif place != term:
            return None
    return bound


def scoped_static(quads: Iterable[Quad]) -> list[Quad]:
    """Static data with blank nodes that differ from those of streams (S3)."""
    return [quad.relabelled(static_label) for quad in quads]


def as_answers(answers: Answers, query: ContinuousQuery) -> list[Answer]:
    """A shard's answers in the form in which the oracle gives its own."""
    found = []
    columns = [column.to_pylist() for column in answers.values]
    for place in range(len(answers)):
        bound = {
            variable.name: parse_term(column[place])
            for variable, column in zip(answers.variables, columns, strict=True)
            if column[place] is not None
        }
        t, sign = int(answers.t[place]), "+" if answers.sign[place] > 0 else "-"
        if isinstance(query.form, ConstructForm):
            graph = fill(query.form, bound, f"{t}-{place}")
            if graph:
                found.append(Answer(t, sign, graph=graph))
        else:
            found.append(Answer.of(t, sign, bound))
    return found
