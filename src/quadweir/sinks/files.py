"""Plain files of lines that have every row exactly once, even after a crash (`oncefolder.py`)."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.private import make_folder, write_file
from quadweir.sinks.base import SinkNeeds, TextSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.oncefolder import OnceFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Batch


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
        object.__setattr__(self, "folder", OnceFolder.of(self.folder).path)

    @property
    def _output(self) -> OnceFolder:
        return OnceFolder(self.folder)

    def prepare(self) -> None:
        self._output.prepare()

    def is_decided(self, batch: Batch) -> bool:
        """Whether the rows of a batch were already written, before a crash.

        Raises:
            SourceError: the folder holds the output of another query.
        """
        return self._output.is_decided(batch)

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
        suffix = self.form.suffix + (".gz" if self.compress else "")
        self._output.publish(write, batch, suffix=suffix, is_empty=self._is_empty)

    def _is_empty(self, part: Path) -> bool:
        if not self.compress:
            return part.stat().st_size == 0
        with gzip.open(part) as file:
            return not file.read(1)
