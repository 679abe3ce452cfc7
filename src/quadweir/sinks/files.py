"""Plain files that have every row exactly once, even after a crash.

A batch is written to a hidden folder, which is renamed once it is complete; from then on the batch
is decided. Its files are then moved to the output folder under names made of batch and part, and
the batch is noted as done. A restart finishes what was decided, drops what was not, and skips what
was done.

Rejected: Spark's own file sink, whose folder holds the files of failed attempts too, so that only
Spark, reading its `_spark_metadata`, sees every row once.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError, UsageError
from quadweir.private import check_writable, make_folder, replaced, write_file
from quadweir.sinks.base import SinkNeeds, TextSink
from quadweir.sinks.lineformat import LineFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Batch

LOG: Final = ".quadweir-sink.json"


@final
@dataclass(frozen=True, slots=True)
class FileSink(TextSink):
    """Writes lines to files `BATCH-PART.nq` (or `.nt`, `.stream`, `.jsonl`) of one folder.

    Guarantee: exactly once.

    Attributes:
        folder: a folder on a disk that driver and executors share; it belongs to one query.
        form: how a row becomes a line.
        compress: write gzip.
    """

    folder: Path
    form: LineFormat = LineFormat.NQUADS
    compress: bool = False

    def __post_init__(self) -> None:
        if "://" in str(self.folder) or str(self.folder).startswith(("hdfs:/", "s3a:/")):
            raise UsageError(
                f"{self.folder} is not a local path",
                detail="Exactly once needs renames, which object stores do not have.",
                hint="Write there from your own function (sinks.start.Call), with a table "
                "format that has transactions.",
            )

    def prepare(self) -> None:
        try:
            make_folder(self.folder)
            check_writable(self.folder)
        except OSError as error:
            raise SourceError(
                f"cannot write to {self.folder}", detail=str(error), hint="Choose another folder."
            ) from error

    def is_decided(self, batch: Batch) -> bool:
        """Whether the rows of a batch were already written, before a crash.

        Raises:
            SourceError: the folder holds the output of another query.
        """
        done = batch.number <= self._last_done(batch.query)
        return done or (self.folder / f".batch-{batch.number}.ready").is_dir()

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=True)

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        if self.is_decided(batch):
            # The files exist, but the state does not: Spark writes it as it computes the rows.
            lines.write.format("noop").mode("overwrite").save()
        options = {"compression": "gzip"} if self.compress else {}

        def write(folder: Path) -> None:
            lines.write.mode("overwrite").options(**options).text(str(folder.absolute()))

        self._publish(write, batch)

    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        def write(folder: Path) -> None:
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder)
            data = "".join(f"{line}\n" for line in lines).encode()
            write_file(folder / "part-0", gzip.compress(data) if self.compress else data)

        self._publish(write, batch)

    def _publish(self, write: Callable[[Path], None], batch: Batch) -> None:
        """Write the parts of a batch with `write`, and move them to the output folder, once."""
        if batch.number <= self._last_done(batch.query):
            return
        ready = self.folder / f".batch-{batch.number}.ready"
        if not ready.is_dir():
            scratch = self.folder / f".batch-{batch.number}.scratch"
            write(scratch)
            scratch.rename(ready)
        for part in ready.glob("part-*"):
            if self._is_empty(part):
                continue
            # The number of the part, not a count: some parts may have been moved before a crash.
            number = int(part.name.split("-")[1])
            part.rename(self.folder / f"{batch.number:08d}-{number:04d}{self._suffix}")
        self._note(batch)
        shutil.rmtree(ready)

    @property
    def _suffix(self) -> str:
        return self.form.suffix + (".gz" if self.compress else "")

    def _is_empty(self, part: Path) -> bool:
        if not self.compress:
            return part.stat().st_size == 0
        with gzip.open(part) as file:
            return not file.read(1)

    def _last_done(self, query: str) -> int:
        log = self.folder / LOG
        if log.is_file():
            noted = json.loads(log.read_text(encoding="utf-8"))
            if noted["query"] == query:
                return int(noted["batch"])
        elif not self._has_output():
            # The log is written before the first file. So a crash cannot leave our files in a
            # folder that looks like the output of another query.
            self._write_log(query, -1)
            return -1
        raise SourceError(
            f"{self.folder} holds the output of another query",
            detail="Batches are numbered from 0 for each new checkpoint, so they would be mixed up.",
            hint="Choose an empty folder, or start with the checkpoint of that output.",
        )

    def _has_output(self) -> bool:
        return any(self.folder.iterdir())

    def _note(self, batch: Batch) -> None:
        self._write_log(batch.query, batch.number)

    def _write_log(self, query: str, number: int) -> None:
        with replaced(self.folder / LOG) as scratch:
            scratch.write_text(json.dumps({"query": query, "batch": number}), encoding="utf-8")
