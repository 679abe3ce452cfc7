"""A network: many continuous queries over the same streams, in one Spark query.

Queries come and go while it runs. A change counts from the next batch on, and survives a crash from
the moment when the call returns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import NotImplementedYetError, QuadweirError, UsageError
from quadweir.runtime.checkpoint import DRIVER, Fingerprint
from quadweir.runtime.claims import Claim
from quadweir.runtime.host.base import AnswerOutput, Run, Trigger
from quadweir.runtime.host.choice import HOSTS, usual_host
from quadweir.runtime.match.feeds import open_feeds
from quadweir.runtime.metrics import QueryMeter
from quadweir.runtime.network.asked import AskedTerms
from quadweir.runtime.network.control import NetworkControl
from quadweir.runtime.network.controllog import FOLDER, ControlLog
from quadweir.runtime.network.delivery import Delivery, NetworkAnswer, Target
from quadweir.runtime.network.explain import network_svg, network_text, query_text
from quadweir.runtime.network.querytext import QueryText
from quadweir.runtime.network.registry import QueryRegistry, of_query
from quadweir.runtime.network.spec import NETWORK_METRICS, NetworkSpec
from quadweir.runtime.network.templates import NetworkInputs, Templates
from quadweir.runtime.shard.base import Job
from quadweir.runtime.spark.sharedsets import SharedSet
from quadweir.runtime.wire.deadletters import dead_letters as letters_of
from quadweir.terms import IRI

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.network.queries import NetworkQuery
    from quadweir.sinks.base import Sink

JOB: Final = "network"
# What shards report of each template (`control.units`).
_TEMPLATE, _HELD, _MICROSECONDS = 0, 2, 3


@final
@dataclass(frozen=True, slots=True)
class Registration:
    """What became of queries that were registered in one call.

    Attributes:
        registered: the names of the queries that are new or replaced.
        refused: the errors of the others, by name.
    """

    registered: tuple[str, ...]
    refused: Mapping[str, QuadweirError]


@final
@dataclass(frozen=True, slots=True)
class QueryStatus:
    """How a query of a network is.

    Attributes:
        id: its name.
        state: `running`, `paused` or `stopped`.
        reason: why it was stopped.
        template: the number of the template that it shares with others.
        shared_with: how many other queries there are of this template.
        answers: how many answers it gave since the network was started here.
    """

    id: str
    state: str
    reason: str | None
    template: int
    shared_with: int
    answers: int


@final
@dataclass(frozen=True, slots=True)
class QueryCost:
    """What a query of a network costs.

    Attributes:
        id: its name.
        batch_ms: its share of the time that shards took for the last batch, in milliseconds.
        share: the same as a part of the time of all queries.
        held: its share of the mappings that shards hold.
        answers: how many answers it gave since the network was started here.
    """

    id: str
    batch_ms: float
    share: float
    held: float
    answers: int


@final
class Network:
    """Queries over the same streams that run together.

    `Engine.network` makes it. Queries can be registered before it starts and while it runs.

    Args:
        inputs: what its queries read.
        most_held: how many mappings the queries of one template may hold in a shard, if there is a
            limit.
    """

    def __init__(self, inputs: NetworkInputs, *, most_held: int | None = None) -> None:
        self._inputs = inputs
        self._most_held = most_held
        self._waiting: dict[str, QueryText] = {}
        self._targets: dict[str, Target] = {}
        self._paused: set[str] = set()
        self._meter = QueryMeter()
        self._claim: Claim | None = None
        self._run: Run | None = None
        self._registry: QueryRegistry | None = None
        self._log: ControlLog | None = None
        self._delivery: Delivery | None = None
        self._control: NetworkControl | None = None

    # --- queries ---

    def register(
        self,
        query: str,
        text: str | QueryText,
        *,
        send_to: Sink | Callable[[list[NetworkAnswer]], None] | None = None,
    ) -> None:
        """Register a query; in a running network it joins with the next batch.

        Args:
            query: its name.
            text: the query, in any dialect.
            send_to: where its answers go, in addition to the sink of the network: a sink, or a
                function that gets the answers of each batch.

        Raises:
            QuerySyntaxError: the text is not a query.
            UsageError: there is another query of this name.
            PlanError: it cannot be planned.
        """
        found = self.register_all({query: text}, send_to={query: send_to} if send_to else {})
        for error in found.refused.values():
            raise error

    def register_all(
        self,
        queries: Mapping[str, str | QueryText],
        *,
        send_to: Mapping[str, Sink | Callable[[list[NetworkAnswer]], None]] | None = None,
        replacing: bool = False,
    ) -> Registration:
        """Register many queries at once. After a crash, all of those that are good are there, or none.

        Args:
            queries: the queries, by name. One that is there already with the same text stays.
            send_to: where the answers of some of them go, too.
            replacing: whether queries of the same name with another text are replaced.
        """
        texts = {
            name: text if isinstance(text, QueryText) else QueryText(text)
            for name, text in queries.items()
        }
        targets = dict(send_to or {})
        if self._registry is None:
            return self._wait_for_start(texts, targets, replacing=replacing)
        made, refused = self._registry.register(texts, replacing=replacing)
        for name, target in targets.items():
            if name not in refused:
                self._send(name, target)
        return Registration(tuple(each.id for each in made), refused)

    def _wait_for_start(
        self, texts: Mapping[str, QueryText], targets: Mapping[str, Target], *, replacing: bool
    ) -> Registration:
        refused: dict[str, QuadweirError] = {}
        for name, text in texts.items():
            if self._waiting.get(name, text) != text and not replacing:
                refused[name] = UsageError(
                    f"there is a query {name!r} already",
                    hint="Choose another name, or replace it.",
                )
                continue
            try:
                text.parsed()
            except QuadweirError as error:
                refused[name] = error
                continue
            self._waiting[name] = text
        self._targets |= {name: each for name, each in targets.items() if name not in refused}
        return Registration(tuple(name for name in texts if name not in refused), refused)

    def replace(
        self,
        query: str,
        text: str | QueryText,
        *,
        send_to: Sink | Callable[[list[NetworkAnswer]], None] | None = None,
    ) -> None:
        """Register a query in place of one of the same name, in one batch.

        Raises:
            QuadweirError: as `register`; the query of before then stays.
        """
        targets = {query: send_to} if send_to else {}
        found = self.register_all({query: text}, send_to=targets, replacing=True)
        for error in found.refused.values():
            raise error

    def unregister(self, *queries: str) -> None:
        """Let queries leave; they give no answers from the next batch on.

        Raises:
            UsageError: there is no query of a name; then all stay.
        """
        if self._registry is None:
            self._check_wait(queries)
            for name in queries:
                del self._waiting[name]
                self._targets.pop(name, None)
                self._paused.discard(name)
            return
        for name in self._registry.unregister(queries):
            self._send(name, None)

    def pause(self, *queries: str) -> None:
        """Let queries give no answers for now; their windows go on (J4).

        Raises:
            UsageError: there is no query of a name.
        """
        if self._registry is None:
            self._check_wait(queries)
            self._paused.update(queries)
        else:
            self._registry.pause(queries, is_paused=True)

    def resume(self, *queries: str) -> None:
        """Let paused queries give answers again.

        Raises:
            UsageError: there is no query of a name.
        """
        if self._registry is None:
            self._check_wait(queries)
            self._paused.difference_update(queries)
        else:
            self._registry.pause(queries, is_paused=False)

    def send(self, query: str, target: Sink | Callable[[list[NetworkAnswer]], None] | None) -> None:
        """Hand the answers of a query to a sink or a function, too; None for no longer."""
        self._send(query, target)

    def _send(self, query: str, target: Target | None) -> None:
        if target is None:
            self._targets.pop(query, None)
        else:
            if hasattr(target, "prepare"):
                target.prepare()
            self._targets[query] = target
        if self._delivery is not None:
            self._delivery.send(query, target)

    def _check_wait(self, queries: Iterable[str]) -> None:
        for name in queries:
            if name not in self._waiting:
                raise UsageError(
                    f"there is no query {name!r}", hint="`network.queries()` lists the queries."
                )

    def _registered(self) -> QueryRegistry:
        if self._registry is None:
            raise UsageError("the network was not started", hint="Call start(checkpoint=...).")
        return self._registry

    # --- a run ---

    def start(
        self,
        sink: Sink | None = None,
        *,
        checkpoint: Path | str,
        every: timedelta | None = None,
        available_now: bool = False,
        name: str | None = None,
        dead_letters: Sink | None = None,
        refused: Callable[[str, QuadweirError], None] | None = None,
        keep: Collection[str] | None = None,
    ) -> Network:
        """Start all queries, and continue with those that the checkpoint has.

        Args:
            sink: where the answers of all queries go, as JSON lines that name the query.
            checkpoint: the folder of offsets, state and queries.
            every: how often a batch begins; default: as soon as the last one is done.
            available_now: take what is there now and end.
            name: the name of the Spark query.
            dead_letters: where rows of `rows.DEAD_LETTER_SCHEMA` go.
            refused: gets the name of each query that cannot be planned, and why; the others run.
                Default: such a query is an error, and nothing starts.
            keep: which queries of the checkpoint go on, besides those registered here, which are
                paused only if they were paused here; the others leave. Default: all go on as they
                were.

        Raises:
            StateError: another process runs with the checkpoint; or it was made for other streams,
                static data, schema or number of shards; the error says what differs.
            UsageError: the network runs already, or its streams are bounded.
            QuadweirError: a query that was registered before cannot be planned.
        """
        if self.isActive:
            raise UsageError("the network runs already", hint="Stop it first.")
        if usual_host(self._inputs.spark).name != DRIVER:
            raise NotImplementedYetError(
                "networks run on one machine only, for now",
                hint="Start Spark with the master local[*], or run the queries alone.",
            )
        folder = Path(checkpoint)
        claim = Claim(folder)
        try:
            trigger = Trigger(every, available_now, name)
            self._begin(folder, sink, dead_letters, trigger, refused or _raise_of_query, keep)
        except BaseException:
            self._forget_run()
            claim.release()
            raise
        self._claim = claim
        return self

    def _begin(
        self,
        folder: Path,
        sink: Sink | None,
        dead_letters: Sink | None,
        trigger: Trigger,
        refuse: Callable[[str, QuadweirError], None],
        keep: Collection[str] | None,
    ) -> None:
        inputs = self._inputs
        times = {
            iri: IRI(feed.timed_by) if feed.timed_by else None
            for iri, feed in sorted(inputs.feeds.items())
        }
        opened = open_feeds(times, inputs.feeds, folder / "spool")
        if opened is None or not opened.is_streaming:
            raise UsageError(
                "the streams of the network are bounded: it has an end, and nothing to start",
                hint="Watch a folder (watch = true), or replay the files.",
            )
        self._fingerprint().guard(folder)
        log = self._log = ControlLog(folder / FOLDER, _last_batch(folder))
        templates = Templates(inputs)
        registry = QueryRegistry(templates, log)
        _, refused = registry.register(self._waiting, replacing=True)
        for name, error in refused.items():
            refuse(name, error)
        self._settle(registry, refused, keep)
        has_letters = dead_letters is not None
        spec = NetworkSpec(
            opened.timing,
            tuple(range(inputs.shards)),
            letters=has_letters,
            most_held=self._most_held,
        )
        delivery = Delivery(inputs.spark, sink)
        for query, target in self._targets.items():
            if hasattr(target, "prepare"):
                target.prepare()
            delivery.send(query, target)
        asked = AskedTerms(lambda name: SharedSet(inputs.spark, name))
        control = NetworkControl(registry, log, templates, spec, delivery, asked)
        counted = opened.counted()
        statements = counted.frame if has_letters else counted.statements
        job = Job(
            name=JOB,
            counts=(inputs.shards,),
            rows=lambda _: statements,
            packer=lambda _keys, _clock: control.packer,
            stages=spec.stages,
            metrics=(NETWORK_METRICS,),
            has_padding=True,
            control=control,
        )
        outputs = [AnswerOutput(delivery, lambda raws: raws[0])]
        if dead_letters is not None:
            outputs.append(
                AnswerOutput(dead_letters, lambda raws: letters_of(raws[0]), letters=True)
            )
        self._registry, self._delivery, self._control = registry, delivery, control
        self._run = HOSTS[DRIVER].start([job], outputs, checkpoint=folder, trigger=trigger)

    def _settle(
        self, registry: QueryRegistry, refused: Collection[str], keep: Collection[str] | None
    ) -> None:
        """Pause what was paused before the start, and let queries leave that are not kept."""
        here = [name for name in self._waiting if name not in refused]
        registry.pause([name for name in here if name in self._paused], is_paused=True)
        if keep is None:
            return
        registry.pause([name for name in here if name not in self._paused], is_paused=False)
        known = {*self._waiting, *keep}
        registry.unregister(
            each.id for each in (*registry.queries(), *registry.stopped()) if each.id not in known
        )

    def _fingerprint(self) -> Fingerprint:
        inputs = self._inputs
        return Fingerprint(
            "\n".join(("network", *(f"  stream <{iri}>" for iri in sorted(inputs.feeds)))),
            inputs.shards,
            0,
            inputs.static.digest(),
            schema=inputs.schema.digest if inputs.schema is not None else "",
            shards_in=DRIVER,
            most=inputs.shards,
        )

    def _forget_run(self) -> None:
        if self._log is not None:
            self._log.close()
        self._registry = self._log = self._delivery = self._control = self._run = None

    def _run_of(self) -> Run:
        if self._run is None:
            raise UsageError("the network was not started", hint="Call start(checkpoint=...).")
        return self._run

    @property
    def streaming(self) -> StreamingQuery:
        """Spark's own handle of the run.

        Raises:
            UsageError: the network was not started.
        """
        return self._run_of().streaming

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's StreamingQuery has it
        """Whether it runs."""
        return self._run is not None and self._run.isActive

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's report of the last batch."""
        return self._run_of().lastProgress

    @property
    def recentProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's reports of the last batches."""
        return self._run_of().recentProgress

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until it ends, as Spark's StreamingQuery does."""
        ended = self._run_of().awaitTermination(timeout)
        if ended is not False:
            self._release()
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802 - as Spark's StreamingQuery has it
        """Wait until everything that is there now is answered; for tests."""
        self._run_of().processAllAvailable()

    def exception(self) -> Any:
        """The error that ended it, or None."""
        return self._run_of().exception()

    def stop(self) -> None:
        """Stop it; with its checkpoint, it can continue later with the same queries."""
        if self._run is None:
            return
        try:
            self._run.stop()
        finally:
            self._release()

    def _release(self) -> None:
        if self._log is not None:
            self._log.close()
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    # --- how it is ---

    def queries(self) -> list[str]:
        """List the names of the queries that run or are paused."""
        if self._registry is None:
            return list(self._waiting)
        return [each.id for each in self._registry.queries()]

    def status(self) -> list[QueryStatus]:
        """Return how each query is; those that were stopped come last."""
        registry = self._registered()
        return [self._status(each) for each in (*registry.queries(), *registry.stopped())]

    def _status(self, query: NetworkQuery) -> QueryStatus:
        assert self._registry is not None
        assert self._delivery is not None
        state = "paused" if query.is_paused else "running"
        return QueryStatus(
            query.id,
            state if query.stopped is None else "stopped",
            query.stopped,
            query.template,
            max(0, self._registry.members_of(query.template) - 1),
            self._delivery.counts[query.number],
        )

    def explain(self, query: str | None = None) -> str:
        """Say which queries share what; for one query, also how it runs.

        Raises:
            UsageError: there is no such query, or the network was not started.
        """
        registry = self._registered()
        if query is None:
            streams = sorted(self._inputs.feeds)
            return network_text(registry.specs, registry.queries(), streams, self._inputs.shards)
        found = registry.get(query)
        if found is None:
            raise UsageError(
                f"there is no query {query!r}", hint="`network.status()` lists the queries."
            )
        return query_text(found, registry.specs, registry.queries())

    def draw(self) -> str:
        """Draw streams, templates and queries as SVG.

        Raises:
            UsageError: the network was not started.
        """
        registry = self._registered()
        return network_svg(registry.specs, registry.queries(), sorted(self._inputs.feeds))

    def most_expensive(self, count: int = 10) -> list[QueryCost]:
        """Return the queries that took most of the last batch, the most expensive first.

        The queries of a template run together: each is charged with an equal share of its time and
        state, and with its own answers.
        """
        registry, control = self._registered(), self._control
        assert control is not None
        assert self._delivery is not None
        total = sum(unit[_MICROSECONDS] for unit in control.units) or 1
        spent, held = Counter[int](), Counter[int]()
        for unit in control.units:
            spent[unit[_TEMPLATE]] += unit[_MICROSECONDS]
            held[unit[_TEMPLATE]] += unit[_HELD]
        found = []
        for query in registry.queries():
            members = max(1, registry.members_of(query.template))
            own = spent[query.template] / members
            found.append(
                QueryCost(
                    query.id,
                    own / 1000,
                    own / total,
                    held[query.template] / members,
                    self._delivery.counts[query.number],
                )
            )
        return sorted(found, key=lambda each: (-each.batch_ms, -each.answers))[:count]

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the network since it was first started here.

        They are those of `RegisteredQuery.metrics`, with `queries` and `templates`, the numbers of
        queries that run and of what they share.
        """
        if self._run is not None:
            self._meter.add(self._run.recentProgress)
        found = self._meter.metrics()
        queries = self._registry.queries() if self._registry is not None else []
        found["queries"] = len(queries)
        found["templates"] = len({each.template for each in queries})
        return found


def _raise_of_query(name: str, error: QuadweirError) -> None:
    raise of_query(name, error)


def _last_batch(checkpoint: Path) -> int:
    """Return the last batch that Spark has begun; -1 if there is none."""
    offsets = checkpoint / "offsets"
    return max((int(each.name) for each in offsets.glob("[0-9]*")), default=-1)
