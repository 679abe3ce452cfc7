"""A folder whose files have every row exactly once, even after a crash.

A batch is written to a hidden folder, which is renamed once it is complete; from then on the batch
is decided. Its files are then moved to the output folder under names made of batch and part, and
the batch is noted as done. A restart finishes what was decided, drops what was not, and skips what
was done.

Rejected: Spark's own file sink, whose folder holds the files of failed attempts too, so that only
Spark, reading its `_spark_metadata`, sees every row once.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError, UsageError
from quadweir.paths import PathLike, as_path, is_elsewhere
from quadweir.private import check_writable, make_folder, replaced

if TYPE_CHECKING:
    from quadweir.sinks.base import Batch

LOG: Final = ".quadweir-sink.json"


@final
@dataclass(frozen=True, slots=True)
class OnceFolder:
    """The output folder of one query.

    Attributes:
        path: a folder on a disk that driver and executors share.
    """

    path: Path

    @staticmethod
    def of(given: PathLike) -> OnceFolder:
        """Return the folder that a caller names.

        Raises:
            UsageError: it is in an object store.
        """
        if is_elsewhere(given):
            raise UsageError(
                f"{given} is not a local path",
                detail="Exactly once needs renames, which object stores do not have.",
                hint="Write there from your own function (foreach_batch), with a table format that "
                "has transactions.",
            )
        return OnceFolder(as_path(given))

    def prepare(self) -> None:
        """Make the folder.

        Raises:
            SourceError: it cannot be written.
        """
        try:
            make_folder(self.path)
            check_writable(self.path)
        except OSError as error:
            raise SourceError(
                f"cannot write to {self.path}", detail=str(error), hint="Choose another folder."
            ) from error

    def is_decided(self, batch: Batch) -> bool:
        """Whether the rows of a batch were already written, before a crash.

        Raises:
            SourceError: the folder holds the output of another query.
        """
        done = batch.number <= self._last_done(batch.query)
        return done or (self.path / f".batch-{batch.number}.ready").is_dir()

    def publish(
        self,
        write: Callable[[Path], None],
        batch: Batch,
        *,
        suffix: str,
        is_empty: Callable[[Path], bool],
    ) -> None:
        """Write the parts of a batch with `write`, and move them to the output folder, once."""
        if batch.number <= self._last_done(batch.query):
            return
        ready = self.path / f".batch-{batch.number}.ready"
        if not ready.is_dir():
            scratch = self.path / f".batch-{batch.number}.scratch"
            write(scratch)
            scratch.rename(ready)
        for part in ready.glob("part-*"):
            if is_empty(part):
                continue
            # The number of the part, not a count: some parts may have been moved before a crash.
            number = int(part.name.split("-")[1])
            part.rename(self.path / f"{batch.number:08d}-{number:04d}{suffix}")
        self._write_log(batch.query, batch.number)
        shutil.rmtree(ready)

    def _last_done(self, query: str) -> int:
        log = self.path / LOG
        if log.is_file():
            noted = json.loads(log.read_text(encoding="utf-8"))
            if noted["query"] == query:
                return int(noted["batch"])
        elif not any(self.path.iterdir()):
            # The log is written before the first file. So a crash cannot leave our files in a
            # folder that looks like the output of another query.
            self._write_log(query, -1)
            return -1
        raise SourceError(
            f"{self.path} holds the output of another query",
            detail="Batches are numbered from 0 for each new checkpoint, so they would be mixed up.",
            hint="Choose an empty folder, or start with the checkpoint of that output.",
        )

    def _write_log(self, query: str, number: int) -> None:
        with replaced(self.path / LOG) as scratch:
            scratch.write_text(json.dumps({"query": query, "batch": number}), encoding="utf-8")
