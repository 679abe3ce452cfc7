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
import json
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.errors import InternalError
from quadweir.private import make_folder, replaced
from quadweir.runtime.host.answerfiles import AnswerFiles, answers_in, link_answers, rows_in_files
from quadweir.runtime.host.reports import BatchReports
from quadweir.runtime.host.worker import Arrived, Told
from quadweir.runtime.host.workers import SteppedShards
from quadweir.runtime.wire.handover import count_rows_in, matched_rows, stages_in_python
from quadweir.sinks.answertext import answer_text
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.start import TextSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.host.bounded import ShardSpec
    from quadweir.runtime.shard.hosted import Timing
    from quadweir.sinks.lines import LineFormat
    from quadweir.sinks.start import Batch, Sink

FOLDER: Final = "shards"
"""Where in a checkpoint state is kept."""
_SCRATCH: Final = "scratch-"
_CLOCK: Final = "batch.json"
# Rows in so many bytes travel with the request, more in a file.
_INLINE: Final = 1 << 18
# Up to so many answers are written by the driver: Spark takes longer to begin than for them.
_FEW: Final = 10_000
# Up to so many need not become lines in Spark either.
_VERY_FEW: Final = 2_000
# If rows came to more than this, those of the next batch are not collected: to have tasks write them to
# files takes 30 ms more for few and a quarter less for many, and none of them is in the driver's memory.
_LARGE: Final = 1 << 25
_TOO_LARGE: Final = ("spark.driver.maxResultSize", "OutOfMemory", "OversizedAllocation")
_PATIENCE_SECONDS: Final = 5.0


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
        # Of its own: the run before may still be at its last batch.
        self._scratch = self._folder / f"{_SCRATCH}{uuid.uuid4().hex}"
        self._shards = SteppedShards(
            spec, timing, shards=shards, folder=self._folder, scratch=self._scratch
        )
        self.frame = matched_rows(statements, spec.plan, self._shards.count)
        self._is_alone = stages_in_python(self.frame) == 0
        self._outlets = outlets
        self._lines: list[DataFrame | None] = []
        self._is_closed = self._is_large = False
        self._lock = threading.Lock()
        self.reports = BatchReports()

    # --- as a sink ---

    def prepare(self) -> None:
        for outlet in self._outlets:
            outlet.sink.prepare()
        make_folder(self._scratch)
        # They load the kernel while Spark plans the first batch.
        self._shards.start()
        answers = answers_in(self._spark, self._shards.files, self._shards.schema)
        # What is written as lines is planned once: that takes longer than a small batch.
        self._lines = [
            each.sink.lines(each.choose(answers)) if isinstance(each.sink, TextSink) else None
            for each in self._outlets
        ]

    def write(self, frame: DataFrame, batch: Batch) -> None:
        with self._lock:
            self._go_on()
            if self._shards.open(batch.number):
                self._drop_others()
            now, is_repeated = self._begun(batch.number)
            # A batch that is repeated may have been too much for Java to collect.
            arrived = self._collect(frame, in_files=is_repeated or self._is_large)

            def step() -> list[list[Told]]:
                return self._shards.step(batch.number, now, arrived, go_on=self._go_on)

            try:
                told = step()
                self._go_on()
                # Spark takes the batch for done when both are: what is written, and what is kept.
                kept = self._shards.keep_while(
                    lambda: self._put_all(told[-1], batch), step, batch.number
                )
            finally:
                self._clear(arrived)
            self.reports.note(batch.number, told, kept)

    def match(self, frame: DataFrame) -> int:
        """Only match, and have each shard pack what is for it; for measurements.

        Returns:
            How many bytes that makes.
        """
        with self._lock:
            self._shards.open(0)
            arrived = self._collect(frame, in_files=self._is_large)
            try:
                return self._shards.pack(arrived)
            finally:
                self._clear(arrived)

    def _go_on(self) -> None:
        if self._is_closed:
            raise InternalError("the query was stopped")

    def _drop_others(self) -> None:
        """Remove what runs left that were killed: the checkpoint is this one's now."""
        for folder in self._folder.glob(f"{_SCRATCH}*"):
            if folder != self._scratch:
                shutil.rmtree(folder, ignore_errors=True)

    def _begun(self, batch: int) -> tuple[int, bool]:
        """Tell when a batch was first begun, which is now unless it is repeated, and whether it is.

        Which streams are idle depends on it: a batch that is repeated must come to the same.
        """
        file = self._folder / _CLOCK
        if file.is_file():
            known = json.loads(file.read_text(encoding="utf-8"))
            if known["batch"] == batch:
                return int(known["now"]), True
        now = int(time.time() * 1000)
        with replaced(file) as scratch:
            scratch.write_text(json.dumps({"batch": batch, "now": now}), encoding="utf-8")
        return now, False

    # --- rows in ---

    def _collect(self, frame: DataFrame, *, in_files: bool) -> Arrived:
        """Have Spark match, and take what matched."""
        if not in_files:
            try:
                return self._handed(frame.toArrow())
            except Exception as error:
                if not any(reason in str(error) for reason in _TOO_LARGE):
                    raise
        if self._is_alone:
            # A query that runs has a session of its own.
            count_rows_in(frame.sparkSession)
        files = rows_in_files(frame, self._scratch)
        self._is_large = sum(Path(each).stat().st_size for each in files) > _LARGE
        return Arrived(files=tuple(files))

    def _handed(self, table: pa.Table) -> Arrived:
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

    def _clear(self, arrived: Arrived) -> None:
        for each in arrived.files:
            Path(each).unlink(missing_ok=True)

    # --- answers out ---

    def _put_all(self, told: Sequence[Told], batch: Batch) -> None:
        answers = sum(each.answers for each in told)
        letters = sum(each.letters for each in told)
        for outlet, lines in zip(self._outlets, self._lines, strict=True):
            self._put(outlet, lines, letters if outlet.letters else answers, batch)

    def _put(self, outlet: Outlet, lines: DataFrame | None, count: int, batch: Batch) -> None:
        sink = outlet.sink
        if isinstance(sink, TextSink) and lines is not None:
            texts = self._text(outlet, sink.form, lines, count)
            if texts is None:
                sink.write_lines(lines, batch)
            else:
                sink.write_text(texts, batch)
        elif count or not (outlet.letters or isinstance(sink, KafkaSink)):
            # Under names of their own: what Spark is asked to keep of a batch is not another's then.
            files = link_answers(self._shards.files, batch.number)
            try:
                frame = answers_in(self._spark, files, self._shards.schema)
                sink.write(outlet.choose(frame), batch)
            finally:
                for file in files:
                    file.unlink(missing_ok=True)

    def _text(
        self, outlet: Outlet, form: LineFormat, lines: DataFrame, count: int
    ) -> list[str] | None:
        """Give the lines of a batch, if they are few."""
        if not count:
            return []
        if count <= _VERY_FEW and outlet.variables is not None:
            found = self._spelled(form, outlet.variables)
            if found is not None:
                return found
        if count > _FEW:
            return None
        try:
            return list(lines.toArrow().column(0).to_pylist())
        except Exception as error:
            if not any(reason in str(error) for reason in _TOO_LARGE):
                raise
            return None

    def _spelled(self, form: LineFormat, variables: Sequence[str]) -> list[str] | None:
        """Write the solutions of a batch as lines, if that can be done here."""
        files = AnswerFiles(tuple(map(str, self._shards.files)))
        found = pa.Table.from_batches(files.read(range(len(files.files))))
        t, sign, *others = found.filter(pc.field(rows.SIGN).is_valid()).columns
        terms = [column.to_pylist() for column in others[: len(variables)]]
        bound = dict(zip(variables, terms, strict=True))
        return answer_text(form, t.to_pylist(), sign.to_pylist(), bound)

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

    def hurry(self) -> Callable[[], None]:
        """Have a batch that is being taken end soon, since the query is about to be stopped.

        Returns:
            What is to be called once it has been.
        """

        def end() -> None:
            self._is_closed = True
            self._shards.kill()

        timer = threading.Timer(_PATIENCE_SECONDS, end)
        timer.daemon = True
        timer.start()
        return timer.cancel

    def close(self) -> None:
        """Let go of everything, after the batch that is being taken."""
        self._is_closed = True
        with self._lock:
            self._shards.let_go()
            shutil.rmtree(self._scratch, ignore_errors=True)
