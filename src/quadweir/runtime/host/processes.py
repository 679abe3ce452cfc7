"""The host on one machine: shards in worker processes next to the driver.

Spark reads and matches. The driver collects what matched, each shard takes its part, and the answers
go to the sink. There is no second stage of tasks, no state store and no shuffle, which take most of
a small batch's time, and a shard stays in its process (`docs/design/0011-local-workers.md`).

A batch is stepped before any of it is written. The journal of each shard can bring it back to its
state before a batch, so Spark may repeat the batch during which it stopped.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from quadweir.private import make_folder
from quadweir.runtime.checkpoint import DRIVER
from quadweir.runtime.host.answerfiles import PassedRows, rows_in_files
from quadweir.runtime.host.answerwriter import AnswerWriter, is_too_large
from quadweir.runtime.host.base import AnswerOutput, Host, Run, Trigger
from quadweir.runtime.host.messages import Arrived, JobChange, ShardReport
from quadweir.runtime.host.reports import BatchReports
from quadweir.runtime.host.tagging import tagged
from quadweir.runtime.host.workergroup import WorkerGroup
from quadweir.runtime.shard.base import Counts
from quadweir.runtime.spark.arrowbatches import count_rows_in, stages_in_python
from quadweir.runtime.wire.pack import batch_began
from quadweir.sinks.base import Sink
from quadweir.sinks.gate import Gate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.shard.base import Job
    from quadweir.sinks.base import Batch

FOLDER: Final = "shards"
"""The folder of the journals in a checkpoint."""
_SCRATCH: Final = "scratch-"
# Up to so many bytes of rows travel in the request, more in a file.
_INLINE: Final = 1 << 18
# If a batch had more bytes of rows than this, Spark's tasks write those of the next one to files. That
# takes 30 ms more for few rows and a quarter less for many, and no row is in the driver's memory.
_LARGE: Final = 1 << 25
_PATIENCE_SECONDS: Final = 5.0


@final
class Processes(Host):
    """Shards in worker processes of the driver's machine."""

    @property
    def name(self) -> str:
        return DRIVER

    def partitions(self, spark: SparkSession) -> int:  # noqa: ARG002 - Spark has no part in it
        return 0

    def start(
        self,
        jobs: Sequence[Job],
        outputs: Sequence[AnswerOutput],
        *,
        checkpoint: Path,
        trigger: Trigger,
    ) -> Run:
        gate = Gate()
        shards = ProcessSink(jobs, outputs, checkpoint=checkpoint, gate=gate)
        try:
            return ProcessRun(trigger.start(shards.rows, shards, checkpoint, gate), gate, shards)
        except BaseException:
            shards.close()
            raise


@final
class ProcessRun(Run):
    """A run whose shards are in worker processes; they are released when it ends, however it does."""

    def __init__(self, streaming: StreamingQuery, gate: Gate, shards: ProcessSink) -> None:
        super().__init__(streaming, gate)
        self._shards = shards
        threading.Thread(target=self._await_end, name="quadweir-shards", daemon=True).start()

    def _await_end(self) -> None:
        # The owner of a query learns why it failed; if Java is gone, there is nobody to tell.
        with contextlib.suppress(Exception):
            self.streaming.awaitTermination()
        self._shards.close()

    def _with_facts(self, report: Any) -> Any:
        return self._shards.reports.report(report)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        ended = super().awaitTermination(timeout)
        if ended is not False:
            self._shards.close()
        return ended

    def stop(self) -> None:
        # Spark waits for the present batch.
        timer = threading.Timer(_PATIENCE_SECONDS, self._shards.abandon)
        timer.daemon = True
        timer.start()
        try:
            super().stop()
        finally:
            timer.cancel()
            self._shards.close()


@final
class ProcessSink(Sink):
    """The shards of one run, as the sink of the rows that match.

    Args:
        jobs: what to run; one that passes rows on is the last.
        outputs: where answers go.
        checkpoint: the folder that the journals are in.
        gate: holds a batch whose run is being stopped.
    """

    def __init__(
        self, jobs: Sequence[Job], outputs: Sequence[AnswerOutput], *, checkpoint: Path, gate: Gate
    ) -> None:
        frames = [job.rows(job.counts[0] if job.counts else 0) for job in jobs]
        self.rows = tagged(frames)
        stateful = [job for job in jobs if job.counts]
        self._controls = [job.control for job in stateful]
        self._gate = gate
        self._clock = str(checkpoint.absolute() / "offsets")
        self._folder = checkpoint.absolute() / FOLDER
        # Of its own: the run before may still finish its last batch.
        self._scratch = self._folder / f"{_SCRATCH}{uuid.uuid4().hex}"
        self._workers = WorkerGroup(stateful, folder=self._folder, scratch=self._scratch)
        self._counts_rows = (
            all(job.has_padding for job in jobs) and stages_in_python(self.rows) == 0
        )
        self._passed: PassedRows | None = None
        if len(jobs) > len(stateful):
            self._passed = PassedRows(len(stateful), frames[-1].schema, self._scratch)
        self._writer = AnswerWriter(self.rows.sparkSession, outputs, self._workers, self._passed)
        self._is_large = False
        self._lock = threading.Lock()
        self.reports = BatchReports(self._workers.stages, [job.metrics for job in stateful])

    def prepare(self) -> None:
        make_folder(self._scratch)
        # They load the kernel while Spark plans the first batch.
        self._workers.start()
        self._writer.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        with self._lock:
            is_first = self._workers.open(batch.number)
            if is_first:
                self._drop_others()
            now = batch_began(self._clock, batch.number)
            plans = [each.begin(batch.number) for each in self._controls]
            changes = [JobChange(each.packer, each.change, each.grown) for each in plans]
            for plan in plans:
                frame = plan.match(frame)
            # The first batch may be one that is repeated since it was too much for Java to collect.
            arrived = self._collect(
                frame, in_files=(is_first and batch.number > 0) or self._is_large
            )

            def step() -> list[list[list[ShardReport]]]:
                return self._workers.step(
                    batch.number, now, arrived, changes, go_on=lambda: self._gate.pass_with(frame)
                )

            try:
                reports = step()
                counts = Counts.of(each.counts for stages in reports for each in stages[-1])
                if self._passed is not None:
                    counts = Counts.of([counts, self._passed.take(arrived)])
                # Spark commits the batch when both are done: what is written, and what is kept.
                kept = self._workers.keep_while(
                    lambda: self._writer.write(counts, batch), step, batch.number
                )
            finally:
                for each in arrived.files:
                    Path(each).unlink(missing_ok=True)
            facts = self.reports.note(batch.number, reports, kept)
            for control, own in zip(self._controls, facts, strict=True):
                control.end(batch.number, own)

    def pack(self, frame: DataFrame) -> int:
        """Only match and pack rows, for measurements; return the number of bytes."""
        with self._lock:
            self._workers.open(0)
            arrived = self._collect(frame, in_files=self._is_large)
            try:
                return self._workers.pack(arrived)
            finally:
                for each in arrived.files:
                    Path(each).unlink(missing_ok=True)

    def _drop_others(self) -> None:
        """Remove the scratch folders of runs that were killed: the checkpoint is ours now."""
        for folder in self._folder.glob(f"{_SCRATCH}*"):
            if folder != self._scratch:
                shutil.rmtree(folder, ignore_errors=True)

    def _collect(self, frame: DataFrame, *, in_files: bool) -> Arrived:
        """Let Spark match, and return what matched."""
        if not in_files:
            try:
                return self._handed_over(frame.toArrow())
            except Exception as error:
                if not is_too_large(error):
                    raise
        if self._counts_rows:
            # A running query has a Spark session of its own.
            count_rows_in(frame.sparkSession)
        files = rows_in_files(frame, self._scratch)
        self._is_large = sum(Path(each).stat().st_size for each in files) > _LARGE
        return Arrived(files=tuple(files))

    def _handed_over(self, table: pa.Table) -> Arrived:
        self._is_large = table.nbytes > _LARGE
        if table.nbytes <= _INLINE:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            return Arrived(inline=sink.getvalue().to_pybytes())
        file = str(self._scratch / "rows.arrow")
        with pa.OSFile(file, "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)
        return Arrived(files=(file,))

    def abandon(self) -> None:
        """Give up the present batch, because the run is being stopped; Spark will repeat it."""
        self._gate.shut()
        self._workers.kill()

    def close(self) -> None:
        """Release everything, after the present batch."""
        with self._lock:
            self._workers.release()
            shutil.rmtree(self._scratch, ignore_errors=True)
