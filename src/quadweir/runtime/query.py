"""A registered query: its answers as a DataFrame, and the run that writes them to a sink."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from quadweir import rows
from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.algebra.query import ConstructForm, ContinuousQuery
from quadweir.algebra.warn import warnings_of
from quadweir.entailment.close import refuse_transitive, static_closure
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import Schema
from quadweir.entailment.table import Table
from quadweir.errors import UnsupportedError, UsageError
from quadweir.optimize.pipeline import optimize
from quadweir.plan.bounds import refuse_endless
from quadweir.plan.describe import describe
from quadweir.plan.facts import NO_STATIC_DATA, NOTHING_KNOWN, StaticFacts
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.private import make_folder
from quadweir.runtime.answers import as_statements, present, with_times
from quadweir.runtime.checkpoint import DRIVER, EXECUTORS, Fingerprint
from quadweir.runtime.claims import Claim
from quadweir.runtime.host import pool as shardpool
from quadweir.runtime.host.bounded import ShardSpec, answer_bounded
from quadweir.runtime.host.executors import answer_continuously
from quadweir.runtime.host.processes import Outlet, ShardsBeside
from quadweir.runtime.match.feeds import METRICS as INPUT_METRICS
from quadweir.runtime.match.feeds import Feed, Opened, open_feeds
from quadweir.runtime.match.recording import Recorder
from quadweir.runtime.match.unmatched import unmatched_in_static, unmatched_in_streams
from quadweir.runtime.metrics import Meter
from quadweir.runtime.shard.functions import packed_functions
from quadweir.runtime.staticdata import Prepared, StaticData
from quadweir.runtime.whole import whole
from quadweir.runtime.wire.deadletters import dead_letters as letters_of
from quadweir.runtime.wire.handover import counting_rows, stages_in_python
from quadweir.sinks.gate import Gate
from quadweir.sinks.start import Call, Split, start
from quadweir.terms import IRI

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.sinks.start import Sink

ANSWERS: Final = "urn:quadweir:answers"
_TAGS: Final = itertools.count(1)


@final
@dataclass(frozen=True, slots=True)
class _Planned:
    """A query over static data as it was at some time.

    Attributes:
        plan: the plan.
        spec: what shards are made from.
        prepared: the static data, which is there for as long as this is.
        like: the layout that was asked for since rows lay so already, if any was.
    """

    plan: QueryPlan
    spec: ShardSpec
    prepared: Prepared
    like: str


@final
class RegisteredQuery:
    """A continuous query with its streams and static data; nothing runs before it is asked to.

    Args:
        spark: the session.
        query: the query as it was parsed.
        feeds: the streams there are, by IRI.
        static: the static data.
        shards: how many shards to use, at most.
        allow_unbounded: windows and streams that may be kept whole.
        schema: what else follows from the triples of streams and static data (N1).

    Attributes:
        warnings: what in the query is legal but probably not meant, such as unknown functions.

    Raises:
        UnboundedStateError: the query would have to keep a stream whole.
        UnsupportedError: a window would need the closure of a transitive property.
        PlanError: it cannot be planned.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        feeds: Mapping[str, Feed],
        *,
        static: StaticData | None = None,
        shards: int | None = None,
        allow_unbounded: Iterable[str] = (),
        schema: Schema | None = None,
    ) -> None:
        analyze(query)
        self.warnings = warnings_of(query)
        refuse_unbounded(query, allowed=frozenset(map(IRI, allow_unbounded)))
        if shards is not None and shards < 1:
            raise UsageError(f"{shards} shards cannot hold anything", hint="Ask for 1 or more.")
        self.query = query
        self._spark = spark
        self._feeds = dict(feeds)
        self._static = static or StaticData()
        self._schema = schema
        self._optimized = optimize(query).query
        if schema is not None:
            refuse_transitive(schema, query)
        self.partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        self._most = shards or self.partitions
        # Right for any static data; nothing of that is read yet.
        self._draft = self._planned_by(NO_STATIC_DATA if self._static.is_empty else NOTHING_KNOWN)
        refuse_endless(
            self._optimized,
            self._draft.endless,
            self._draft.why_not,
            allowed=frozenset(map(IRI, allow_unbounded)),
        )
        self._last_planned: _Planned | None = None
        self._running: StreamingQuery | None = None
        self._beside: ShardsBeside | None = None
        self._shards_in = DRIVER if self._is_on_one_machine else EXECUTORS
        self._gate = Gate()
        self._runs_as = ""
        # What it runs over, it itself and the queries whose answers it reads. Another query over the
        # same answers may have the one that makes them read its data anew, which is then planned
        # otherwise than it runs here.
        self._runs_over: dict[RegisteredQuery, _Planned] = {}
        self._start: Callable[[], object] | None = None
        self._observed: tuple[Observation, DataFrame] | None = None
        self._meter = Meter()
        self._claim: Claim | None = None

    @property
    def _planned(self) -> _Planned:
        """The plan over static data as it was read last; the first who asks has it read."""
        if self._last_planned is None:
            self._last_planned = self._plan(self._prepare())
        return self._last_planned

    @property
    def plan(self) -> QueryPlan:
        """How it is run over static data as it was read last."""
        return self._planned.plan

    @property
    def shards(self) -> int:
        """How many shards it uses."""
        return self.plan.shards(self._most)[0]

    @property
    def spec(self) -> ShardSpec:
        """What shards are made from, over static data as it was read last."""
        return self._planned.spec

    def _prepare(self) -> Prepared:
        """Read static data as it is now."""
        schema = self._schema
        follows = static_closure(schema, self.query) if schema is not None else None
        return self._static.prepare(self._spark, self._optimized, self._streams, follows=follows)

    def _plan(self, prepared: Prepared, *, like: str = "") -> _Planned:
        """Plan over static data; `like` is the layout of rows that are there already."""
        plan = self._planned_by(prepared.facts, like=like).resolved(prepared.values_of)
        functions = packed_functions(plan.query)
        spec = ShardSpec(plan, prepared.source, prepared.digest, functions=functions)
        return _Planned(plan, spec, prepared, like)

    def _planned_by(self, facts: StaticFacts, *, like: str = "") -> QueryPlan:
        """Plan with what is known of static data."""
        schema = self._schema
        return plan_query(
            self._optimized,
            streams=self._streams,
            facts=facts,
            table=Table.of(schema, needs_of(self.query)) if schema is not None else None,
            shards=self._most,
            like=like,
        )

    @property
    def _streams(self) -> tuple[str, ...]:
        return tuple(sorted(self._feeds))

    def to_dataframe(self, *, spool: Path | None = None) -> DataFrame:
        """The answers: bounded if all streams are, else a streaming frame.

        The columns are `t`, the report instant in milliseconds; `sign`, + or -; and `bindings`, a
        struct with the canonical spelling of what each variable is bound to, or, for CONSTRUCT,
        `graph`, an array of quads, whose `graph` is NULL for the default graph.

        Args:
            spool: where TCP and MQTT keep what arrived until it is processed; only they need it.

        Raises:
            UsageError: a stream is not declared, or the streams do not go together.
        """
        return self._answers(spool, run="")

    def statements(self, stream: str = ANSWERS, *, spool: Path | None = None) -> DataFrame:
        """The triples of a CONSTRUCT's answers as statements of a stream (A5).

        If its streams go on, there are rows without a triple among them: they say through which
        instant all is known, for `Engine.provide` to make a stream of.

        Raises:
            UsageError: the query is no CONSTRUCT.
        """
        self._check_construct()
        # Of several queries in one run each has metrics of its own.
        raw, is_streaming = self._raw(spool, run=stream, tag=f"_{next(_TAGS)}")
        if is_streaming:
            return with_times(raw, self.plan.query, self.spec.shape, stream)
        return as_statements(present(raw, self.plan.query, self.spec.shape), stream)

    def as_feed(self, stream: str) -> Feed:
        """The triples of a CONSTRUCT's answers as a stream that another query can read.

        Raises:
            UsageError: the query is no CONSTRUCT.
        """
        self._check_construct()

        def open_answers(predicate: str | None, spool: Path | None) -> DataFrame:
            if predicate is not None:
                raise UsageError(
                    f"<{stream}> is made by a query, which gives its elements their times",
                    hint=f"Leave out the event time <{predicate}> in the window over it.",
                )
            return self.statements(stream, spool=spool)

        return Feed(stream, open_answers, told=True, made_by=self)

    def dead_letters(self) -> DataFrame:
        """What of bounded streams cannot be used, as rows of `rows.DEAD_LETTER_SCHEMA`."""
        opened = open_feeds(self.plan, self._feeds, None)
        if opened is None:
            return self._spark.createDataFrame([], rows.DEAD_LETTER_SCHEMA)
        return opened.dead_letters

    def start(
        self,
        sink: Sink,
        *,
        checkpoint: Path,
        every: timedelta | None = None,
        available_now: bool = False,
        statements: str | None = None,
        name_elements: bool = True,
        name: str | None = None,
        record: Path | None = None,
        dead_letters: Sink | None = None,
        reload_static: bool = False,
        shards_in: str | None = None,
    ) -> RegisteredQuery:
        """Start writing answers to a sink as streams go on.

        Args:
            sink: where answers go.
            checkpoint: offsets and state; the same folder makes the query go on where it stopped.
            every: how often a batch is taken; default: as soon as the last one is done.
            available_now: take what is there now and end.
            statements: write the triples of a CONSTRUCT as statements of a stream of this IRI.
            name_elements: give the triples of one such answer a graph name in common, by which timed
                lines keep them together; without, what the template puts in no graph is in none.
            name: what Spark calls the query.
            record: a folder for all that it reads (`recording.Recorder`), to check its answers by.
            dead_letters: where rows of `rows.DEAD_LETTER_SCHEMA` go: records that cannot be read, and
                statements that match but are late, as far as the query looks at them.
            reload_static: go on with static data as it is now, as `reload_static()` does, if the
                checkpoint was left over other data.
            shards_in: `driver` for shards in processes beside the driver, whose answers come sooner;
                `executors` for shards in Spark's executors, with state in Spark's state store, which
                a cluster needs. Default: as the checkpoint was left; in a new one beside the driver
                if Spark runs on one machine, and not very many queries do so already.

        Raises:
            StateError: another process runs with the checkpoint; or it was made for another query,
                another schema, other static data or another number of shards; the error says what
                differs. With `reload_static` other
                static data, of this query or of those that feed it, is refused only where
                `reload_static()` would refuse it.
            UsageError: it runs already, or its streams are all there.
        """
        if self._running is not None and self._running.isActive:
            raise UsageError("the query runs already", hint="Stop it first, or register another.")
        checkpoint = Path(checkpoint)
        claim = Claim(checkpoint)
        try:
            self._begin(
                sink,
                checkpoint=checkpoint,
                every=every,
                available_now=available_now,
                statements=statements,
                name_elements=name_elements,
                name=name,
                record=record,
                dead_letters=dead_letters,
                reload_static=reload_static,
                shards_in=shards_in,
            )
        except BaseException:
            claim.release()
            raise
        self._let_go()
        self._claim = claim
        return self

    def _begin(
        self,
        sink: Sink,
        *,
        checkpoint: Path,
        every: timedelta | None,
        available_now: bool,
        statements: str | None,
        name_elements: bool,
        name: str | None,
        record: Path | None,
        dead_letters: Sink | None,
        reload_static: bool,
        shards_in: str | None,
    ) -> None:
        """Start a run over a checkpoint that is this process's."""
        left = Fingerprint.left_in(checkpoint)
        self._shards_in = self._chosen(shards_in, left)
        self._settle(left)
        opened = open_feeds(self.plan, self._feeds, checkpoint / "spool")
        if opened is None or not opened.is_streaming:
            raise UsageError(
                "the streams of the query are all there: it has an end, and nothing to start",
                hint="Take to_dataframe(), or watch a folder (watch = true), or replay the files.",
            )
        self.fingerprint.guard(checkpoint, reload_static=reload_static)
        self._runs_as = self.fingerprint.digest
        self._runs_over = {each: each._planned for each in self._all_queries()}
        if statements is not None:
            self._check_construct()

        def answers(raw: DataFrame) -> DataFrame:
            found = present(raw, self.plan.query, self.spec.shape)
            if statements is None:
                return found
            return as_statements(found, statements, named=name_elements)

        read = self._read(opened, record=record, letters=dead_letters is not None)
        spec = replace(self.spec, letters=dead_letters is not None)
        self._gate = Gate()
        begin = partial(
            start,
            checkpoint=checkpoint,
            every=every,
            available_now=available_now,
            name=name,
            gate=self._gate,
        )
        if self._shards_in == DRIVER:
            names = tuple(each.name for each in self.spec.shape.variables)
            is_solutions = not isinstance(self.plan.query.form, ConstructForm)
            outlets = [Outlet(sink, answers, variables=names if is_solutions else None)]
            if dead_letters is not None:
                outlets.append(Outlet(dead_letters, letters_of, letters=True))
            self._beside = ShardsBeside(
                self._spark,
                read,
                spec,
                opened.timing,
                shards=self.shards,
                checkpoint=checkpoint,
                outlets=outlets,
            )
            self._running = self._beside.started_by(begin)
        else:
            raw = answer_continuously(
                read,
                spec,
                opened.timing,
                shards=self.shards,
                name=str(checkpoint.absolute()),
                checkpoint=checkpoint,
            )
            self._running = self._start_in_executors(raw, answers, sink, dead_letters, begin)

        def again() -> None:
            self.fingerprint.replace_static(checkpoint)
            self.start(
                sink,
                checkpoint=checkpoint,
                every=every,
                available_now=available_now,
                statements=statements,
                name_elements=name_elements,
                name=name,
                record=record,
                dead_letters=dead_letters,
                shards_in=self._shards_in,
            )

        self._start = again

    def _start_in_executors(
        self,
        raw: DataFrame,
        answers: Callable[[DataFrame], DataFrame],
        sink: Sink,
        dead_letters: Sink | None,
        begin: Callable[[DataFrame, Sink], StreamingQuery],
    ) -> StreamingQuery:
        """Start writing what shards in Spark's executors give."""
        self._beside = None

        def split(raw: DataFrame) -> tuple[DataFrame, DataFrame]:
            return answers(raw), letters_of(raw)

        # Matching, and each stage: what anybody else hands to Python has to be weighed.
        own = 1 + len(self.plan.stages)
        is_alone = stages_in_python(raw) == own and not any(
            isinstance(each, Call) and not each.whole for each in (sink, dead_letters)
        )
        with counting_rows(self._spark, when=is_alone):
            if dead_letters is None:
                return begin(answers(raw), whole(sink))
            return begin(raw, whole(Split(split, (sink, dead_letters))))

    @property
    def _is_on_one_machine(self) -> bool:
        master = str(self._spark.sparkContext.master)
        return master.startswith("local") and not master.startswith("local-cluster")

    def _chosen(self, asked: str | None, left: Fingerprint | None) -> str:
        """Say where shards are to be, if a checkpoint was left so or so."""
        if asked is None:
            known = EXECUTORS if shardpool.are_many() else DRIVER
            known = left.shards_in if left is not None else known
            # A checkpoint that was left beside a driver is refused on a cluster, later and with reasons.
            return known if self._is_on_one_machine else EXECUTORS
        if asked not in (DRIVER, EXECUTORS):
            raise UsageError(
                f"shards cannot be in {asked!r}", hint=f"Choose {DRIVER} or {EXECUTORS}."
            )
        if asked == DRIVER and not self._is_on_one_machine:
            raise UsageError(
                "shards beside the driver need all of Spark on one machine",
                hint=f"Choose {EXECUTORS}, or the master local[*].",
            )
        return asked

    def reload_static(self) -> bool:
        """Read static data anew; tells whether it is another for this query.

        A query that runs is stopped once the batch is done that it is at, and goes on from its
        checkpoint: whole batches see either the old data or the new. What windows hold is joined with
        the new data, and answers that this brings or takes away by itself are not told: reports are
        compared as if the data had always been as it is now. Queries whose answers are streams of this one read theirs anew too. If the
        new data cannot be read or used, the query goes on with the old.

        Raises:
            SourceError: a file is not there any more.
            DataError: a file is not what its name says.
            PlanError: FROM names a graph that is not there any more.
            UnsupportedError: with the new data something else would have to be held, or in other
                shards.
        """
        known = self._runs_as if self.isActive else self.fingerprint.digest
        running = self._runs_over if self.isActive else {}
        found = {}
        for query in self._all_queries():
            then = running.get(query)
            # Rows stay where they are, if they can, however else they could lie over the new data.
            like = then.plan.layout if then is not None else ""
            found[query] = query._plan(query._prepare(), like=like)
            now = found[query].plan
            if then is not None and now.held != then.plan.held:
                raise UnsupportedError(
                    "with the new static data the query would hold other rows, or in other shards",
                    detail=_difference(then.plan, now),
                    hint="It goes on with the old data. Stop it and start it with another "
                    "checkpoint.",
                )
        for query, planned in found.items():
            then = running.get(query, query._planned)
            is_same = planned.prepared.digest == then.prepared.digest
            query._last_planned = then if is_same and (running or not then.like) else planned
        if self.fingerprint.digest == known:
            return False
        if self._start is not None and self.isActive:
            self._gate.close(self.streaming)
            self.metrics()  # what Spark says of the run that ends
            # One that a batch ended meanwhile stays ended, for its owner to see.
            if self.exception() is None:
                self.stop()
                self._start()
        return True

    def _settle(self, known: Fingerprint | None) -> None:
        """Plan as a checkpoint was left, if it is known, as far as there is a choice.

        Other data may have had rows lie otherwise, and rows that are there stay where they are. Only
        where another number of shards is asked for than then, there is none: that is for the user to say.
        """
        like = known.layout if known is not None and known.most == self._most else ""
        if like not in (self._planned.like, self.plan.layout):
            self._last_planned = self._plan(self._planned.prepared, like=like)
        # If others than then feed it, it is refused later.
        left = known.inputs if known is not None else ()
        for query, then in itertools.zip_longest(self._feeding(), left):
            if query is not None:
                query._settle(then)

    def _all_queries(self) -> list[RegisteredQuery]:
        """List this query and those whose answers it reads, each once."""
        found = [self]
        for query in self._feeding():
            found += query._all_queries()
        return list(dict.fromkeys(found))

    def _feeding(self) -> list[RegisteredQuery]:
        """List the queries whose answers it reads itself, in the order of their streams."""
        made = [each.made_by for each in self._read_feeds()]
        return [each for each in made if isinstance(each, RegisteredQuery)]

    @property
    def fingerprint(self) -> Fingerprint:
        """What the state of this query depends on."""
        return self._fingerprint(self._shards_in)

    def _fingerprint(self, shards_in: str) -> Fingerprint:
        return Fingerprint.of(
            self.plan,
            shards=self._most,
            # Processes beside the driver are as many as shards.
            partitions=self.partitions if shards_in == EXECUTORS else 0,
            static=self._planned.prepared.digest,
            # Queries whose answers are read are part of what Spark runs.
            inputs=tuple(each._fingerprint(EXECUTORS) for each in self._feeding()),
            schema=self._schema.digest if self._schema is not None else "",
            shards_in=shards_in,
        )

    def explain(self, *, spark: bool = False) -> str:
        """Say how the query is run.

        Args:
            spark: add Spark's own plan.
        """
        text = describe(self.plan, shards=self._most, facts=self._planned.prepared.facts)
        return f"{text}\nSpark\n{self.spark_plan()}\n" if spark else text

    def spark_plan(self) -> str:
        """Spark's own plan of the answers, as text."""
        frame: Any = self._answers(Path("spool"), run="")
        return str(frame._jdf.queryExecution().simpleString())

    # --- a run, like Spark's StreamingQuery ---

    @property
    def streaming(self) -> StreamingQuery:
        """Spark's own handle of the run.

        Raises:
            UsageError: the query was not started.
        """
        if self._running is None:
            raise UsageError("the query was not started", hint="Call start(sink, checkpoint=...).")
        return self._running

    @property
    def id(self) -> str:
        """What Spark calls the query, also after a restart."""
        return str(self.streaming.id)

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's StreamingQuery has it
        """Whether it runs."""
        is_active = self._running is not None and bool(self._running.isActive)
        if not is_active:
            self._let_go()
        return is_active

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's report of the last batch."""
        last = self.streaming.lastProgress
        return last if self._beside is None else self._beside.reports.report(last)

    @property
    def recentProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's reports of the last batches."""
        found = self.streaming.recentProgress
        return found if self._beside is None else [*map(self._beside.reports.report, found)]

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until it ends, as Spark's StreamingQuery does."""
        ended = self.streaming.awaitTermination(timeout)
        if ended is not False:
            self._let_go()
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802 - as Spark's StreamingQuery has it
        """Wait until all that is there now was answered; for tests."""
        self.streaming.processAllAvailable()

    def exception(self) -> Any:
        """What ended it, None if nothing did."""
        return self.streaming.exception()

    def stop(self) -> None:
        """Stop it; its checkpoint lets it go on later."""
        if self._running is None:
            return
        # Spark waits for the batch that it is at.
        stopped = self._beside.hurry() if self._beside is not None else None
        try:
            self._running.stop()
        finally:
            if self._beside is not None and stopped is not None:
                stopped()
                self._beside.close()
            self._let_go()

    def _let_go(self) -> None:
        """Let other processes have the checkpoint."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def metrics(self) -> dict[str, Any]:
        """How the query has fared since it was first started here.

        `batches`, `statements`, `dead_letters`, `ahead` (those of them whose times are implausibly far
        ahead), `answers` and `late` (matches of late elements) are totals; `input_rate` and `answer_rate` are statements and answers a second of late; `through`
        is the instant until which all is known, in milliseconds, None before and after; `lag_ms` how
        far it lies behind the clock; `held` the mappings that shards remember; `state_rows` and
        `state_bytes` what Spark's state store holds, or the logs of shards beside the driver; `batch_ms` the time of the last batch, of which
        `kernel_ms` in shards, `state_ms` for writing state and `spark_ms` the rest. What
        is not known before the first batch is None.

        Spark remembers a hundred batches: ask at least as often for totals without gaps.
        """
        if self._running is not None:
            self._meter.add(self.recentProgress)
        return self._meter.metrics()

    def input_counts(self) -> dict[str, int | None]:
        """How many statements and dead letters the bounded run of `to_dataframe` read.

        `earliest` is the earliest event time of a statement, None if there is none. It waits until
        that frame has been computed, by whatever action.
        """
        if self._observed is None:
            return {"statements": 0, "dead_letters": 0, "earliest": None}
        observation, frame = self._observed
        observed: Any = observation
        if observed._jo.getRow().length():
            return dict(observation.get)
        # Where nothing matched, Spark drops what it had begun, and with it what was observed.
        return frame.agg(*_observed()).collect()[0].asDict()

    def unmatched(self) -> list[str]:
        """Say what of a bounded run matched nothing, a line for each: patterns, and empty streams.

        The streams are read once more for it.
        """
        found = unmatched_in_static(self._planned.prepared.unmatched)
        opened = open_feeds(self.plan, self._feeds, None)
        if opened is not None and not opened.is_streaming:
            found += unmatched_in_streams(opened.statements, self.plan)
        return found

    # --- inside ---

    def _answers(self, spool: Path | None, *, run: str) -> DataFrame:
        raw, _ = self._raw(spool, run=run)
        return present(raw, self.plan.query, self.spec.shape)

    def _raw(self, spool: Path | None, *, run: str, tag: str = "") -> tuple[DataFrame, bool]:
        """Give the answers as the shards do, and whether there is no end to them."""
        opened = open_feeds(self.plan, self._feeds, spool)
        if opened is None:
            empty = self._spark.createDataFrame([], rows.STATEMENT_SCHEMA)
            return answer_bounded(empty, self.spec, shards=1), False
        if not opened.is_streaming:
            # Without a name of its own: queries over the answers of queries have several.
            observation = Observation()
            self._observed = observation, opened.frame
            told = replace(opened, frame=opened.frame.observe(observation, *_observed()))
            return answer_bounded(told.statements, self.spec, shards=self.shards), False
        statements = self._read(opened, tag=tag)
        found = answer_continuously(
            statements, self.spec, opened.timing, shards=self.shards, name=run, tag=tag
        )
        return found, True

    def _read(
        self,
        opened: Opened,
        *,
        tag: str = "",
        record: Path | None = None,
        letters: bool = False,
    ) -> DataFrame:
        """Give what streams that go on bring, counted and, if asked to, recorded."""
        # Counting goes row by row, outside of Spark's compiled code; where rows that sources give
        # are what is counted, Spark has counted them already.
        if not opened.plain:
            counts = (*_counts(), _ahead())
            opened = replace(opened, frame=opened.frame.observe(INPUT_METRICS + tag, *counts))
        statements = opened.frame if letters else opened.statements
        if record is None:
            return statements
        make_folder(record)
        recorder = Recorder(str(record.absolute()))
        return statements.mapInArrow(recorder, statements.schema)

    def _read_feeds(self) -> list[Feed]:
        """List the streams that it reads, as far as they are known."""
        read = {source.stream for source in self._draft.sources}
        return [self._feeds[iri] for iri in sorted(read & self._feeds.keys())]

    def _check_construct(self) -> None:
        if not isinstance(self.query.form, ConstructForm):
            raise UsageError(
                "only the answers of a CONSTRUCT are triples", hint="Take to_dataframe()."
            )


def _counts() -> tuple[Column, Column]:
    """Count the statements of what is read, and the dead letters."""
    return (
        F.count(F.when(F.col(rows.REASON).isNull(), 1)).alias("statements"),
        F.count(rows.REASON).alias("dead_letters"),
    )


def _observed() -> tuple[Column, Column, Column]:
    """Count what is read of bounded streams, and find the earliest event time."""
    # Rows without a triple only say how far time has come.
    is_statement = F.col(rows.REASON).isNull() & F.col(rows.PREDICATE).isNotNull()
    earliest = F.min(F.when(is_statement, F.col(rows.EVENT_TIME)))
    return (*_counts(), earliest.alias("earliest"))


def _ahead() -> Column:
    """Count the dead letters that are too far ahead in time (S4)."""
    return F.count_if(F.col(rows.REASON).startswith(rows.AHEAD)).alias("ahead")


def _difference(then: QueryPlan, now: QueryPlan) -> str:
    """Say what differs in what two plans hold."""
    if then.layout != now.layout:
        return f"Rows are sharded {then.layout}, and would be {now.layout}."
    if then.eager != now.eager:
        told = {True: "as soon as their parts have arrived", False: "when time has come to them"}
        return f"Answers leave {told[then.eager]}, and would leave {told[now.eager]}."
    known = then.held.splitlines()
    others = [line for line in now.held.splitlines() if line not in known]
    return f"It would hold: {'; '.join(others) or 'less'}."
