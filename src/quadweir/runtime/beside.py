"""A query whose shards are in processes beside the driver, on the one machine that there is.

Spark reads and matches; what matched is collected, and each shard takes its part of it; the answers go
to the sink. There is no second stage of tasks, no state store and no shuffle in between, which makes up
most of a small batch's time, and a shard that stays in its process need not be brought up to date
(`docs/design/0011-shards-beside-the-driver.md`).

A batch is stepped before anything of it is written. State on disk says for each shard what it was before
a batch, so that Spark may repeat the one that it was at (`shardlog`).
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema

from quadweir import rows
from quadweir.errors import EnvironmentProblem, InternalError
from quadweir.plan.describe import second_shards, shards_used
from quadweir.runtime import shardpool
from quadweir.runtime.besidefiles import (
    SPILLED_SCHEMA,
    AnswerFiles,
    Spill,
    answer_file,
    answers_in,
)
from quadweir.runtime.continuous import FIRST_METRICS, METRICS
from quadweir.runtime.exchange import Packer
from quadweir.runtime.handover import Handed, matched_rows
from quadweir.runtime.shardpool import ProcessEnded, ShardProcess
from quadweir.runtime.shardworker import FIRST, LAST, Arrived, Place, Told, Work
from quadweir.sinks.answertext import answer_text
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.start import TextSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.bounded import ShardSpec
    from quadweir.runtime.processor import Timing
    from quadweir.sinks.lines import LineFormat
    from quadweir.sinks.start import Batch, Sink

FOLDER: Final = "shards"
"""Where in a checkpoint state is kept."""
# Rows in so many bytes travel with the request, more in a file.
_INLINE: Final = 1 << 18
# Up to so many answers are written by the driver: Spark takes longer to begin than for them.
_FEW: Final = 10_000
# Up to so many need not become lines in Spark either.
_VERY_FEW: Final = 2_000
# If files of blobs came to more than this, the next batch is not tried to be collected either.
_LARGE_SPILL: Final = 1 << 26
_TOO_LARGE: Final = "spark.driver.maxResultSize"
_TRIES: Final = 3
_PATIENCE_SECONDS: Final = 5.0
_REMEMBERED: Final = 256
_SUMMED: Final = ("late", "held", "replayed", "state_rows", "state_bytes")
_HIGHEST: Final = ("kernel_ms", "state_ms")


@final
@dataclass(frozen=True, slots=True)
class Outlet:
    """Where some of what shards give goes.

    Attributes:
        sink: the sink.
        choose: makes of the rows that shards give those that the sink gets.
        letters: whether these are letters rather than answers.
        variables: what answers bind, if they are solutions, in the order of their columns.
    """

    sink: Sink
    choose: Callable[[DataFrame], DataFrame]
    letters: bool = False
    variables: tuple[str, ...] | None = None


@final
class ShardsBeside:
    """The shards of one run of a query, as the sink of what its streams match.

    Args:
        spark: the session, whose tasks run on this machine.
        statements: rows of `rows.STATEMENT_SCHEMA` of all streams of the query, which go on.
        spec: the query with its plan and static data.
        timing: delays and idle times of the streams.
        shards: how many shards to use, if the plan can be sharded.
        checkpoint: the folder that state is kept in.
        outlets: where answers go.
    """

    def __init__(
        self,
        spark: SparkSession,
        statements: DataFrame,
        spec: ShardSpec,
        timing: Timing,
        *,
        shards: int,
        checkpoint: Path,
        outlets: Sequence[Outlet],
    ) -> None:
        self._spark = spark
        self._folder = checkpoint.absolute() / FOLDER
        self._scratch = self._folder / "scratch"
        self._count = shards_used(spec.plan, shards)
        self._spec = spec = replace(spec, shards=tuple(range(self._count)))
        self._timing = timing
        self._stages = [spec]
        self._then = 0
        if spec.plan.key.cut is not None:
            self._then = second_shards(spec.plan, shards)
            self._stages = [*spec.stages(tuple(range(self._then)))]
        self._packer = Packer.of(spec.plan, spec.shards)
        self.frame = matched_rows(statements, spec.plan, self._count)
        self._outlets = outlets
        self._lines: list[DataFrame | None] = []
        self._processes: list[ShardProcess] = []
        self._is_open = self._is_closed = self._is_large = False
        self._lock = threading.Lock()
        self._told: dict[int, dict[str, dict[str, int | None]]] = {}

    # --- as a sink ---

    def prepare(self) -> None:
        for outlet in self._outlets:
            outlet.sink.prepare()
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._scratch.mkdir(parents=True)
        # They load the kernel while Spark plans the first batch.
        self._processes = shardpool.take(max(self._count, self._then))
        answers = self._answers()
        # What is written as lines is planned once: that takes longer than a small batch.
        self._lines = [
            each.sink.lines(each.choose(answers)) if isinstance(each.sink, TextSink) else None
            for each in self._outlets
        ]

    def write(self, frame: DataFrame, batch: Batch) -> None:
        with self._lock:
            self._go_on()
            now = int(time.time() * 1000)
            arrived = self._collect(frame)
            try:
                told = self._step(batch.number, now, arrived)
            finally:
                self._clear(arrived)
            self._go_on()
            counts = {False: 0, True: 0}
            for each in told[-1]:
                counts[False] += each.answers
                counts[True] += each.letters
            for outlet, lines in zip(self._outlets, self._lines, strict=True):
                self._put(outlet, lines, counts[outlet.letters], batch)
            self._note(batch.number, told)

    def match(self, frame: DataFrame) -> int:
        """Only match, and have each shard pack what is for it; for measurements.

        Returns:
            How many bytes that makes.
        """
        with self._lock:
            arrived = self._collect(frame)
            try:
                self._open(0)
                return sum(self._ask_all([("pack", 0, arrived)] * self._count))
            finally:
                self._clear(arrived)

    def _go_on(self) -> None:
        if self._is_closed:
            raise InternalError("the query was stopped")

    # --- rows in ---

    def _collect(self, frame: DataFrame) -> Arrived:
        """Have Spark match, and take what matched."""
        if not self._is_large:
            try:
                return self._handed(frame.toArrow())
            except Exception as error:
                if _TOO_LARGE not in str(error):
                    raise
        spilled: dict[int, list[str]] = {key: [] for key in self._spec.shards}
        pack = Spill(Handed(self._packer), str(self._scratch))
        for key, place in frame.mapInArrow(pack, SPILLED_SCHEMA).collect():
            spilled[key].append(place)
        size = sum(Path(each).stat().st_size for places in spilled.values() for each in places)
        self._is_large = size > _LARGE_SPILL
        return Arrived(packed=spilled)

    def _handed(self, table: pa.Table) -> Arrived:
        if table.nbytes <= _INLINE:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            return Arrived(inline=sink.getvalue().to_pybytes())
        file = self._scratch / "rows.arrow"
        with pa.OSFile(str(file), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        return Arrived(file=str(file))

    def _clear(self, arrived: Arrived) -> None:
        spilled = [each for places in arrived.packed.values() for each in places]
        for each in (arrived.file, *spilled) if arrived.file else spilled:
            Path(each).unlink(missing_ok=True)

    # --- shards ---

    def _step(self, batch: int, now: int, arrived: Arrived) -> list[list[Told]]:
        """Have all shards of all stages take a batch; gives what each told.

        A process that ends is replaced, and all begin the batch anew with what is on disk.
        """
        reason = ""
        for _ in range(_TRIES):
            try:
                self._open(batch)
                told = [self._ask_all([("first", batch, now, arrived)] * self._count)]
                if self._then:
                    sent: list[list[bytes]] = [[] for _ in range(self._then)]
                    for key, blob in (pair for each in told[0] for pair in each.sent):
                        sent[key].append(blob)
                    told.append(self._ask_all([("last", batch, blobs) for blobs in sent]))
                return told
            except ProcessEnded as error:
                reason = str(error)
                # None of them is asked again: some have not been heard yet.
                self._end()
                self._go_on()
        raise EnvironmentProblem(
            f"a process that holds shards was ended {_TRIES} times in one batch",
            detail=reason,
            hint="Most likely there is not enough memory: use shorter windows, or fewer shards.",
        )

    def _open(self, batch: int) -> None:
        if self._is_open:
            return
        if not self._processes:
            self._processes = shardpool.take(max(self._count, self._then))
        works = [
            cloudpickle.dumps(self._work(number))  # type: ignore[no-untyped-call]
            for number in range(len(self._processes))
        ]
        self._ask_all([("open", work, batch) for work in works])
        self._is_open = True

    def _work(self, number: int) -> Work:
        counts = (self._count, self._then)
        places = [
            Place(stage, number, spec, str(self._folder / f"{stage}-{number}"))
            for stage, spec, count in zip((FIRST, LAST), self._stages, counts, strict=False)
            if number < count
        ]
        answers = str(answer_file(self._scratch, number))
        return Work(tuple(places), self._packer, self._timing, answers)

    def _ask_all(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Ask as many processes as there are requests at once, and wait for all of them."""
        asked = self._processes[: len(requests)]
        for process, request in zip(asked, requests, strict=True):
            process.ask(*request)
        found, failed = [], None
        for process in asked:
            # Every one is heard: what is not would be taken for the answer to the next request.
            try:
                found.append(process.answer())
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return found

    def _end(self) -> None:
        for process in self._processes:
            process.end()
        self._processes, self._is_open = [], False

    def _let_go(self) -> None:
        processes, self._processes, self._is_open = self._processes, [], False
        shardpool.give_back(processes)

    # --- answers out ---

    def _answers(self) -> DataFrame:
        schema = self._stages[-1].writer.schema
        return answers_in(self._spark, self._scratch, self._then or self._count, schema)

    def _put(self, outlet: Outlet, lines: DataFrame | None, count: int, batch: Batch) -> None:
        sink = outlet.sink
        if isinstance(sink, TextSink) and lines is not None:
            if count > _FEW:
                sink.write_lines(lines, batch)
                return
            texts: list[str] | None = None if count else []
            if texts is None and outlet.variables is not None and count <= _VERY_FEW:
                texts = self._spelled(sink.form, outlet.variables)
            sink.write_text(
                lines.toArrow().column(0).to_pylist() if texts is None else texts, batch
            )
        elif count or not (outlet.letters or isinstance(sink, KafkaSink)):
            # A frame of its own for each batch: others may keep it, or have Spark keep its rows.
            sink.write(outlet.choose(self._answers()), batch)

    def _spelled(self, form: LineFormat, variables: Sequence[str]) -> list[str] | None:
        """Write the solutions of a batch as lines, if that can be done here."""
        found = pa.Table.from_batches(
            AnswerFiles(str(self._scratch)).read(range(self._then or self._count)),
            to_arrow_schema(self._stages[-1].writer.schema),
        )
        t, sign, *others = found.filter(pc.field(rows.SIGN).is_valid()).columns
        terms = [column.to_pylist() for column in others[: len(variables)]]
        bound = dict(zip(variables, terms, strict=True))
        return answer_text(form, t.to_pylist(), sign.to_pylist(), bound)

    # --- what Spark's reports do not say ---

    def _note(self, batch: int, told: Sequence[Sequence[Told]]) -> None:
        names = (FIRST_METRICS, METRICS)[-len(told) :]
        found = {
            name: _summed(each.facts for each in stage)
            for name, stage in zip(names, told, strict=True)
        }
        found[METRICS]["answers"] = sum(each.answers for each in told[-1])
        self._told[batch] = found
        self._told.pop(batch - _REMEMBERED, None)

    def report(self, progress: Any) -> Any:
        """Give Spark's report of a batch with what the shards told of it."""
        if progress is None:
            return None
        return BatchReport(progress, self._told.get(progress.batchId, {}))

    # --- the end ---

    def started_by(
        self, begin: Callable[[DataFrame, ShardsBeside], StreamingQuery]
    ) -> StreamingQuery:
        """Start a query over what streams match; all is let go of once it has ended, however it does.

        Args:
            begin: starts writing a frame to a sink.
        """
        try:
            query = begin(self.frame, self)
        except BaseException:
            self.close()
            raise

        def wait() -> None:
            # A query that failed tells its owner; a gateway that is gone, nobody.
            with contextlib.suppress(Exception):
                query.awaitTermination()
            self.close()

        threading.Thread(target=wait, name="quadweir-shards", daemon=True).start()
        return query

    def close(self) -> None:
        """Let go of everything; a batch that is being taken is ended, if it takes long."""
        self._is_closed = True
        if not self._lock.acquire(timeout=_PATIENCE_SECONDS):
            for process in self._processes:
                process.end()
            self._lock.acquire()
        try:
            self._let_go()
            shutil.rmtree(self._scratch, ignore_errors=True)
        finally:
            self._lock.release()


def _summed(facts: Iterable[Mapping[str, int]]) -> dict[str, int | None]:
    told = list(facts)
    found: dict[str, int | None] = {name: sum(each[name] for each in told) for name in _SUMMED}
    found |= {name: max(each[name] for each in told) for name in _HIGHEST}
    return {**found, "through": min(each["through"] for each in told)}


@final
class BatchReport:
    """Spark's report of a batch, and what shards told of it among what was observed."""

    def __init__(self, progress: Any, told: Mapping[str, Mapping[str, int | None]]) -> None:
        self._progress = progress
        self._told = told

    @property
    def observedMetrics(self) -> dict[str, Any]:  # noqa: N802 - as Spark's report has it
        """What was observed."""
        return {**self._progress.observedMetrics, **self._told}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)
