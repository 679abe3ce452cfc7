"""A registered query: its answers as a DataFrame, and the run that writes them to a sink."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from quadweir.paths import PathLike, as_path
from quadweir.plan.describe import describe
from quadweir.runtime.answercolumns import AnswerColumns, ColumnType
from quadweir.runtime.checkpoint import EXECUTORS, Fingerprint
from quadweir.runtime.claims import Claim
from quadweir.runtime.frames import AnswerFrames
from quadweir.runtime.handle import RunHandle
from quadweir.runtime.host.base import Host, Run
from quadweir.runtime.host.choice import is_on_one_machine, usual_host
from quadweir.runtime.metrics import QueryMeter
from quadweir.runtime.pictures import handle_html, plan_svg
from quadweir.runtime.planned import PlannedQuery
from quadweir.runtime.spark.placement import PlacementWatch
from quadweir.runtime.start import Started, StartOptions
from quadweir.runtime.writing import WriteRequest, letters_to, trigger_of
from quadweir.times import DurationLike, as_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.plan.query import QueryPlan
    from quadweir.runtime.shard.spec import ShardSpec
    from quadweir.sinks.base import Sink


@final
class RegisteredQuery(AnswerFrames, RunHandle):
    """A continuous query with its streams and static data; nothing runs before it is asked to.

    `Engine.query` makes it.

    Args:
        planned: the query with its streams and static data.

    Attributes:
        query: the query as it was parsed.
        warnings: what in the query is legal but probably not meant, such as unknown functions.
    """

    def __init__(self, planned: PlannedQuery) -> None:
        super().__init__(planned)
        self._spark = planned.spark
        self._host: Host = usual_host(planned.spark)
        self._started: Started | None = None
        self._meter = QueryMeter()
        self._placement: PlacementWatch | None = None
        self._claim: Claim | None = None

    @property
    def plan(self) -> QueryPlan:
        """The plan over static data as it was last read; the first call reads it."""
        return self._planned.plan

    @property
    def spec(self) -> ShardSpec:
        """What shards are made from, over static data as it was last read."""
        return self._planned.spec

    @property
    def shards(self) -> int:
        """How many shards it uses."""
        return self._planned.shards

    # --- a run, like Spark's StreamingQuery ---

    def write_stream(
        self,
        format: str | None = None,  # noqa: A002 - as Spark's DataStreamWriter has it
        path: PathLike | None = None,
        *,
        table: str | None = None,
        servers: str | None = None,
        topic: str | None = None,
        foreach_batch: Callable[[DataFrame, int], object] | None = None,
        types: Mapping[str, ColumnType] | None = None,
        terms: bool = False,
        checkpoint: PathLike | None = None,
        trigger: DurationLike | None = None,
        name: str | None = None,
        options: Mapping[str, str] | None = None,
        dead_letters: Sink | PathLike | None = None,
        reload_static: bool = False,
        upgrade: bool = False,
        allow_loss: bool = False,
        shards_in: str | None = None,
    ) -> RegisteredQuery:
        """Start writing answers while streams go on, with the columns of `to_dataframe`.

        Args:
            format: `parquet`, `delta`, `jsonl`, `kafka`, `memory` or `console`.
            path: the folder of `parquet` and `jsonl`, the folder or URI of `delta`.
            table: append to this table instead.
            servers: for `kafka`, the brokers as `HOST:PORT`.
            topic: for `kafka`, the topic.
            foreach_batch: a function that gets the rows of each batch and its number.
            types: types of Spark's for some variables, as in `to_dataframe`.
            terms: all parts of each term, as in `to_dataframe`.
            checkpoint: the folder of offsets and state; with the same folder, the query continues
                where it stopped. Without it, `memory`, `console` and functions use a temporary one.
            trigger: how often a batch begins, such as `10s`; default: as soon as the last one is
                done. With `availableNow`, take what is there now and end.
            name: the name of the query. It is the name of the view of `memory`.
            options: options of Kafka's client, or of the table's data source.
            dead_letters: where rows of `DEAD_LETTER_SCHEMA` go: a sink, or a folder for JSON Lines.
            reload_static: accept a checkpoint that was made with other static data, as in `start`.
            upgrade: accept a checkpoint that was made for another text of the query, as in `start`.
            allow_loss: with `upgrade`, start even if state is lost, as in `start`.
            shards_in: `driver` or `executors`, as in `start`.

        Returns:
            This query, which is its handle; it has the methods of Spark's StreamingQuery.

        Raises:
            UsageError: an argument is missing or does not fit the format, the query runs already, or
                its streams are bounded.
            EnvironmentProblem: Spark has no such data source.
            StateError: as in `start`.
        """
        asked = WriteRequest(
            form=format,
            path=path,
            table=table,
            servers=servers,
            topic=topic,
            function=foreach_batch,
            name=name,
            options=options or {},
        )
        every, available_now = trigger_of(trigger)
        columns = AnswerColumns.of(self.query, types=types, terms=terms)
        sink = asked.sink(self._spark)
        self._begin_new(
            StartOptions(
                sink=sink,
                checkpoint=asked.checkpoint(checkpoint),
                every=every,
                available_now=available_now,
                name=name,
                dead_letters=letters_to(dead_letters),
                reload_static=reload_static,
                upgrade=upgrade,
                allow_loss=allow_loss,
                shards_in=shards_in,
                columns=columns,
            )
        )
        return self

    def start(
        self,
        sink: Sink,
        *,
        checkpoint: PathLike,
        every: DurationLike | None = None,
        available_now: bool = False,
        statements: str | None = None,
        name_elements: bool = True,
        name: str | None = None,
        record: PathLike | None = None,
        dead_letters: Sink | None = None,
        reload_static: bool = False,
        upgrade: bool = False,
        allow_loss: bool = False,
        shards_in: str | None = None,
    ) -> RegisteredQuery:
        """Start writing answers to a sink while streams go on.

        Args:
            sink: where answers go.
            checkpoint: the folder of offsets and state; with the same folder, the query continues
                where it stopped.
            every: how often a batch begins; default: as soon as the last one is done.
            available_now: take what is there now and end.
            statements: write the triples of a CONSTRUCT as statements of a stream of this IRI.
            name_elements: give the triples of one such answer a common graph name, which keeps them
                together in timed lines. Without it, triples that the template puts into no graph are
                in none.
            name: the name of the Spark query.
            record: a folder for everything that it reads (`recording.Recorder`), to check its
                answers.
            dead_letters: where rows of `rows.DEAD_LETTER_SCHEMA` go: records that cannot be read, and
                statements that match but are late.
            reload_static: continue with static data as it is now, as `reload_static()` does, if the
                checkpoint was made with other data.
            upgrade: continue with what the query has in common with the one that the checkpoint was made
                for: the content of its windows. The old checkpoint is kept under another name.
            allow_loss: with `upgrade`, start even if windows begin without all that they would have.
                Without it, the error says what is lost.
            shards_in: `driver` for shards in local worker processes (lowest latency); `executors` for
                shards in Spark's executors, with state in Spark's state store, as a cluster needs it.
                Default: what the checkpoint says. For a new one: local worker processes, if Spark
                runs on one machine and does not run very many of them already.

        Raises:
            StateError: another process runs with the checkpoint; or it was made for another query,
                schema, static data or number of shards; the error says what differs. With
                `reload_static`, other static data is refused only if `reload_static()` would refuse
                it.
            UsageError: the query runs already, or its streams are bounded.
        """
        if statements is not None:
            self._check_construct()
        options = StartOptions(
            sink=sink,
            checkpoint=as_path(checkpoint),
            every=None if every is None else as_duration(every),
            available_now=available_now,
            statements=statements,
            name_elements=name_elements,
            name=name,
            record=None if record is None else as_path(record),
            dead_letters=dead_letters,
            reload_static=reload_static,
            upgrade=upgrade,
            allow_loss=allow_loss,
            shards_in=shards_in,
        )
        self._begin_new(options)
        return self

    def _begin_new(self, options: StartOptions) -> None:
        self._refuse_second_run()
        self._begin(options)

    def _begin(self, options: StartOptions) -> None:
        claim = Claim(options.checkpoint)
        try:
            self._started = Started.of(self._planned, options)
        except BaseException:
            claim.release()
            raise
        self._host, self._claim = self._started.host, claim

    def reload_static(self) -> bool:
        """Read static data again; return whether it is different for this query.

        A running query stops when the present batch is done, and continues from its checkpoint: a
        batch sees either the old data or the new data. The content of windows is joined with the new
        data. Answers that appear or disappear only because of the new data are not reported: reports
        are compared as if the data had always been as it is now. Queries whose answers this one reads
        read their data again, too. If the new data cannot be read or used, the query continues with
        the old data.

        Raises:
            SourceError: a file no longer exists.
            DataError: a file is not what its name says.
            PlanError: FROM names a graph that no longer exists.
            UnsupportedError: with the new data, shards would have to hold something else.
        """
        started = self._started if self.isActive else None
        known = started.digest if started is not None else self.fingerprint.digest
        self._planned.replan(started.over if started is not None else {})
        if self.fingerprint.digest == known:
            return False
        if started is not None:
            started.run.finish_batch()
            self.metrics()  # what Spark reports about the run that ends
            # If a batch failed meanwhile, the query stays ended, and its owner sees why.
            if self.exception() is None:
                self.stop()
                self.fingerprint.replace_static(started.options.checkpoint)
                self._begin(replace(started.options, shards_in=self._host.name))
        return True

    @property
    def fingerprint(self) -> Fingerprint:
        """What the state of this query depends on."""
        return self._planned.fingerprint(self._host.name, self._host.partitions(self._spark))

    @property
    def name(self) -> str | None:
        """The name that it was started with."""
        if self._started is None:
            raise self._not_started()
        return self._started.options.name

    @property
    def status(self) -> dict[str, Any]:
        """What it is doing: `message`, `isDataAvailable` and `isTriggerActive`."""
        return dict(self.streaming.status)

    @property
    def _last_run(self) -> Run | None:
        return self._started.run if self._started is not None else None

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the query since it was first started here.

        `batches`, `statements`, `dead_letters`, `ahead` (dead letters whose times are implausibly far
        ahead), `answers` and `late` (matches of late elements) are totals. `input_rate` and
        `answer_rate` are recent statements and answers per second. `through` is the instant through
        which everything is known, in milliseconds, or None; `lag_ms` is its distance from the clock.
        `held` counts the mappings in shards. `state_rows` and `state_bytes` are the size of Spark's
        state store, or of the journals of local workers. `batch_ms` is the time of the last batch:
        `kernel_ms` in shards, `state_ms` for writing state, and `spark_ms` for the rest. `busy` is the
        share of the time that batches take, and `backlog` what waits in the sources: records of the
        partition of a topic that is furthest behind, or files. Before the first batch, unknown values
        are None.

        With shards in the executors of a cluster, `executors` counts them, `executor_shards` says how
        many shards each has, `shard_moves` how often a shard was on another executor than in the batch
        before, `executors_lost` how many of those with shards were lost, and `recovery_ms` how long
        after the last loss a batch was done without it.

        Spark remembers a hundred batches: call it at least that often for totals without gaps.
        """
        if self._started is not None:
            self._meter.add(self.recentProgress)
        return self._meter.metrics() | self._placed()

    def _placed(self) -> dict[str, Any]:
        """Return where its shards are, if Spark's executors on a cluster have them."""
        if self._started is None or self._started.host.name != EXECUTORS:
            return {}
        if is_on_one_machine(self._spark):
            return {}
        run = self.runId
        if self._placement is None or self._placement.run != run:
            self._placement = PlacementWatch(self._spark, run)
        return self._placement.look().metrics()

    # --- explanations ---

    def explain(self, *, spark: bool = False) -> str:
        """Return how the query runs, as text.

        Args:
            spark: add Spark's own plan.
        """
        planned = self._planned
        text = describe(self.plan, shards=planned.most_shards, facts=planned.now.prepared.facts)
        text += planned.left_out()
        return f"{text}\nSpark\n{self.spark_plan()}\n" if spark else text

    def draw(self) -> str:
        """Draw its windows, shards and answers as SVG."""
        return plan_svg(self.plan)

    def _repr_html_(self) -> str:
        """Show the query in a notebook: its state, rates and watermark, and its plan."""
        state, notes = "registered", [str(each) for each in self.warnings]
        if self._started is not None:
            state = "running" if self.isActive else "stopped"
            notes += [self._started.watch.said] if self._started.watch.said else []
        return handle_html("query", state, self.metrics(), self.draw(), notes)

    def spark_plan(self) -> str:
        """Return Spark's own plan of the answers, as text."""
        frame: Any = self.spelled_answers(spool=Path("spool"))
        return str(frame._jdf.queryExecution().simpleString())
