"""Networks run as their host runs them, without Spark: matching in Python, real journals and log.

A network can lose its workers, or its whole driver, at any point of a batch. `alone` answers one of
its queries with a shard of its own, over what the query may see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Self

import pyarrow as pa

from quadweir import rows
from quadweir.algebra.dataset import Dataset
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.shard import Shard
from quadweir.optimize.pipeline import optimize
from quadweir.runtime.host.answerfiles import AnswerFiles, answer_file
from quadweir.runtime.host.messages import Arrived, JobChange, ShardPlace, Take, WorkerTask
from quadweir.runtime.host.worker import HeldShards
from quadweir.runtime.match.feeds import Feed
from quadweir.runtime.match.rowform import END
from quadweir.runtime.network.asked import AskedTerms
from quadweir.runtime.network.control import NetworkControl
from quadweir.runtime.network.controllog import FOLDER, ControlLog
from quadweir.runtime.network.delivery import Delivery, Target
from quadweir.runtime.network.queries import NetworkQuery
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.registry import QueryRegistry
from quadweir.runtime.network.spec import NETWORK_FACTS, QUERY, VALUES, NetworkSpec
from quadweir.runtime.network.templates import NetworkInputs, Templates
from quadweir.runtime.shard.clock import StreamTiming
from quadweir.runtime.shard.facts import folded
from quadweir.runtime.static.data import StaticData
from quadweir.runtime.wire.deadletters import LETTER
from quadweir.sinks.base import Batch, Sink
from quadweir.sources.streamfiles import Element
from quadweir.terms import Quad, parse_term
from quadweir.testing import Answer
from quadweir.testing.answers import multiset
from quadweir.testing.scoping import fill
from quadweir.testing.shards import as_answers, events_of, scoped_static
from query_hosts import matched
from streaming import quads
from worker_hosts import NOW, as_stream, narrowed

# Spark is asked only for the number of partitions, and whether it runs on this machine.
NO_SESSION: Any = SimpleNamespace(
    conf=SimpleNamespace(get=lambda _: "1"), sparkContext=SimpleNamespace(master="local[1]")
)
NO_DELAYS: Mapping[str, int] = MappingProxyType({})
LAST = [Element(END, 0, 0, quads("a p b"))]
"""The batch that ends all streams."""
POINTS = ("begun", "stepped", "written", "kept", "ended")
"""Where the driver can die in a batch."""


def no_rows(*_: object) -> Any:
    raise AssertionError("Spark reads streams, and it does not run")


def inputs_of(
    *,
    streams: Sequence[str] = ("urn:s", "urn:t"),
    static: Sequence[Quad] = (),
    shards: int = 2,
    delays: Mapping[str, int] = NO_DELAYS,
) -> NetworkInputs:
    feeds = {iri: Feed(iri, no_rows, delay_ms=delays.get(iri, 0)) for iri in streams}
    return NetworkInputs(NO_SESSION, feeds, StaticData.of(static), None, shards)


class LocalSet:
    """What `SharedSet` is in Java."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, texts: Iterable[str]) -> None:
        self._counts.update(texts)

    def remove(self, texts: Iterable[str]) -> None:
        self._counts.subtract(texts)

    def has(self, text: Any) -> Any:
        return self._counts[text] > 0

    def close(self) -> None:
        self._counts.clear()


class NetworkHost:
    """Does what a network and its host do; `begun` and `batch` are what Spark's checkpoint says.

    Attributes:
        batch: The batch that comes next.
        answers: The answers of each query, by its number.
        letters: The dead letters.
        lifetimes: Each query that ever ran, by its number.
    """

    def __init__(
        self,
        folder: Path,
        *,
        streams: Sequence[str] = ("urn:s", "urn:t"),
        static: Sequence[Quad] = (),
        shards: int = 2,
        delays: Mapping[str, int] = NO_DELAYS,
        processes: int = 1,
        most_held: int | None = None,
        sink: Sink | None = None,
        letters: bool = False,
    ) -> None:
        self.folder, self._sink = folder, sink
        self._shards, self._processes, self._most_held = shards, min(processes, shards), most_held
        self._timing = StreamTiming({iri: delays.get(iri, 0) for iri in streams}, {})
        self._inputs = inputs_of(streams=streams, static=static, shards=shards, delays=delays)
        self._held: list[HeldShards] = []
        self._has_letters = letters
        self._begun = -1
        self.batch = 0
        self.letters: list[str] = []
        self.answers: dict[int, list[Answer]] = {}
        self.lifetimes: dict[int, NetworkQuery] = {}
        self.facts: Mapping[str, Any] = {}
        self._targets: dict[str, Target] = {}
        self.start()

    def start(self) -> None:
        """Start the driver, with what the checkpoint has."""
        self.log = ControlLog(self.folder / FOLDER, self._begun)
        self.templates = Templates(self._inputs)
        self.registry = QueryRegistry(self.templates, self.log)
        self.spec = NetworkSpec(
            self._timing,
            tuple(range(self._shards)),
            letters=self._has_letters,
            most_held=self._most_held,
        )
        self.delivery = Delivery(NO_SESSION, self._sink)
        for name, target in self._targets.items():
            self.delivery.send(name, target)
        self.asked = AskedTerms(lambda _: LocalSet())
        self.control = NetworkControl(
            self.registry, self.log, self.templates, self.spec, self.delivery, self.asked
        )
        self._packer = self.control.packer

    def die(self) -> None:
        """Lose everything that is in memory, and start again."""
        self.lose()
        self.log.close()
        self.start()

    def reload(self, static: Sequence[Quad]) -> None:
        """Stop, and start again over other static data."""
        self._inputs = replace(self._inputs, static=StaticData.of(static))
        self.die()

    def lose(self) -> None:
        """Lose the workers."""
        for each in self._held:
            each.close()
        self._held = []

    # --- queries ---

    def register(self, *, replacing: bool = False, **texts: str | QueryText) -> list[str]:
        """Register queries; give the names of those that are refused."""
        given = {
            name: text if isinstance(text, QueryText) else QueryText(text)
            for name, text in texts.items()
        }
        return [*self.registry.register(given, replacing=replacing)[1]]

    def send(self, **targets: Target) -> None:
        """Hand the answers of queries to sinks or functions, too."""
        self._targets |= targets
        for name, target in targets.items():
            self.delivery.send(name, target)

    def number(self, name: str) -> int:
        query = self.registry.get(name)
        assert query is not None
        return query.number

    # --- batches ---

    def push(
        self, elements: Sequence[Element], *, dies: str | None = None, loses: bool = False
    ) -> None:
        """Take a batch; the driver may die at a point of it, or lose its workers after the step."""
        if dies is None:
            self._push(elements, None, loses=loses)
        else:
            before = {number: list(found) for number, found in self.answers.items()}
            self._push(elements, dies, loses=False)
            written, self.answers = self.answers, before
            self.die()
            self._push(elements, None, loses=loses)
            if dies in ("written", "kept", "ended"):
                again = {number: multiset(found) for number, found in self.answers.items()}
                assert again == {number: multiset(found) for number, found in written.items()}
        self.batch += 1

    def _push(self, elements: Sequence[Element], until: str | None, *, loses: bool) -> None:
        batch = self._begun = self.batch
        if not self._held:
            self._hold()
        plan = self.control.begin(batch)
        self.lifetimes |= self.delivery.queries
        if until == "begun":
            return
        used = sorted({each.template for each in self.delivery.queries.values()})
        matching, _ = self.templates.merged([self.registry.specs[each] for each in used])
        rows_of: Any = SimpleNamespace(matching=matching, wanted=matching.wanted)
        packer = plan.packer or self._packer
        found = matched(rows_of, elements, self._shards, asked=self.asked.of(matching))
        found = narrowed(found, packer.packer.bits)
        change = JobChange(plan.packer, plan.change, plan.grown)
        request = Take(batch, NOW, Arrived(inline=as_stream(found)), (change,))
        reports = [report for each in self._held for report in each.take(request)]
        if loses:
            self.lose()
            self._hold()
            reports = [report for each in self._held for report in each.take(request)]
        self._packer = packer
        if until == "stepped":
            return
        self._write(batch)
        if until == "written":
            return
        for each in self._held:
            each.keep(batch)
        if until == "kept":
            return
        self.facts = folded(NETWORK_FACTS, [each.facts for each in reports])
        self.control.end(batch, self.facts)

    def _hold(self) -> None:
        (spec,) = self.spec.stages([tuple(range(self._shards))])
        for number in range(self._processes):
            keys = spec.shards[number :: self._processes]
            places = tuple(ShardPlace(key, spec, str(self.folder / f"0-{key}")) for key in keys)
            answers = str(answer_file(self.folder, 0, number))
            self._held.append(
                HeldShards(WorkerTask(0, (places,), self._packer, answers), self.batch)
            )

    def _write(self, batch: int) -> None:
        files = [str(answer_file(self.folder, 0, number)) for number in range(self._processes)]
        found = list(AnswerFiles(tuple(files)).read(range(len(files))))
        self.delivery.write_arrow(found, Batch(batch, "network"))
        for row in pa.Table.from_batches(found).to_pylist():
            if row[LETTER] is not None:
                self.letters.append(row[LETTER])
            if row[QUERY] is not None:
                query = self.delivery.queries[row[QUERY]]
                own = self.answers.setdefault(query.number, [])
                own += read_answer(query, row, f"{batch}-{len(own)}")

    def finish(self) -> None:
        """End all streams."""
        self.push(LAST)
        self.lose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.lose()
        self.log.close()


def read_answer(query: NetworkQuery, row: Mapping[str, Any], salt: str) -> list[Answer]:
    """What a row of a network says; a CONSTRUCT's may be of no triple."""
    spelled = zip(query.variables, row[VALUES], strict=True)
    bound = {name: parse_term(term) for name, term in spelled if term is not None}
    t, sign = int(row[rows.REPORT]), row[rows.SIGN]
    if query.construct is None:
        return [Answer.of(t, sign, bound)]
    graph = fill(query.construct, bound, salt)
    return [Answer(t, sign, graph=graph)] if graph else []


# --- the same query alone ---


def joined_at(text: QueryText, before: Sequence[Element]) -> int:
    """The instant at which a query joins after some elements (J1)."""
    streams = {getattr(each.stream, "value", "") for each in text.parsed().windows}
    return max((each.event_time for each in before if each.stream in streams), default=ALWAYS)


def alone(
    text: QueryText,
    batches: Sequence[Sequence[Element]],
    first: int,
    last: int,
    *,
    streams: Sequence[str],
    static: Sequence[Quad] = (),
    delays: Mapping[str, int] = NO_DELAYS,
    backfilled: int | None = None,
    on_batch: Callable[[int, list[Answer]], None] = lambda *_: None,
) -> list[Answer]:
    """Answer a query over the batches from `first` to before `last`, as if there were no others.

    It sees what is later than its joining instant, or later than `backfilled` (J5); it reports later
    than it joined. No element may be late.
    """
    query = optimize(text.parsed()).query
    shard = Shard.of(query, static=Dataset.of(scoped_static(static)), streams=sorted(streams))

    read = {source.stream for source in shard.sources}
    before = [element for batch in batches[:first] for element in batch]
    joined = joined_at(text, before)
    since = joined if backfilled is None else backfilled
    highest: dict[str, int] = {}
    if backfilled is None:
        for element in before:
            highest[element.stream] = max(element.event_time, highest.get(element.stream, ALWAYS))
    through, found = ALWAYS, []
    for number in range(first if backfilled is None else 0, last):
        taken: dict[int, list[tuple[int, Element]]] = {}
        for element in batches[number]:
            at = element.event_time
            highest[element.stream] = max(at, highest.get(element.stream, ALWAYS))
            for place, source in enumerate(shard.sources):
                if source.stream == element.stream and at > since:
                    assert at > through, "no element is late"
                    taken.setdefault(place, []).append((at, element))
        if END in highest:
            through = FOREVER
        elif all(each in highest for each in read):
            reached = [highest[each] - (delays.get(each, 0) or 1) for each in read]
            through = max(through, min(reached, default=ALWAYS))
        answers = as_answers(shard.step(events_of(shard, taken), through), query)
        answers = [each for each in answers if each.t > joined]
        assert number >= first or not answers, "nothing of before is later than the query joined"
        on_batch(number, answers)
        found += answers
    return found
