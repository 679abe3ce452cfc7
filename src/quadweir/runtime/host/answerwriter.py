"""The answers of worker processes, written to sinks.

Spark takes longer to write three answers than everything else takes. So few answers are written by
the driver: as text where the sink takes text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.errors import InternalError
from quadweir.runtime.host.answerfiles import AnswerFiles, PassedRows, answers_in, link_answers
from quadweir.sinks.answertext import answer_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from quadweir.runtime.host.base import AnswerOutput
    from quadweir.runtime.host.workergroup import WorkerGroup
    from quadweir.runtime.shard.base import Counts
    from quadweir.sinks.base import Batch, TextSink
    from quadweir.sinks.lineformat import LineFormat

# The driver writes up to so many answers itself: Spark takes longer only to begin.
_FEW: Final = 10_000
# Up to so many become lines without Spark.
_VERY_FEW: Final = 2_000
_TOO_LARGE: Final = ("spark.driver.maxResultSize", "OutOfMemory", "OversizedAllocation")


@final
class AnswerWriter:
    """Writes the answer files of workers to outputs.

    Args:
        spark: the session, whose tasks run on this machine.
        outputs: where answers go.
        workers: the workers.
        passed: the rows of a job that passes them on, if there is one.
    """

    def __init__(
        self,
        spark: SparkSession,
        outputs: Sequence[AnswerOutput],
        workers: WorkerGroup,
        passed: PassedRows | None = None,
    ) -> None:
        self._spark = spark
        self._outputs = outputs
        self._workers = workers
        self._passed = passed
        self._frames: list[DataFrame | None] = []

    def prepare(self) -> None:
        """Check the sinks, and plan what they get.

        It is planned once: that takes longer than a small batch.
        """
        for output in self._outputs:
            output.sink.prepare()
        rows_of = self._rows(self._files())
        self._frames = [self._frame(output, rows_of) for output in self._outputs]

    def _frame(self, output: AnswerOutput, rows_of: Sequence[DataFrame]) -> DataFrame | None:
        if output.sink.arrow is not None:
            return None
        frame = output.choose(rows_of)
        text = output.sink.text
        return text.lines(frame) if text is not None else frame

    def _files(self) -> list[list[Path]]:
        found = [self._workers.files(job) for job in range(len(self._workers.stages))]
        return found if self._passed is None else [*found, [self._passed.file]]

    def _rows(self, files: Sequence[Sequence[Path]]) -> list[DataFrame]:
        """Return the rows in files, a frame for each job."""
        schemas = [self._workers.output(job) for job in range(len(self._workers.stages))]
        if self._passed is not None:
            schemas.append(self._passed.schema)
        pairs = zip(files, schemas, strict=True)
        return [answers_in(self._spark, each, schema) for each, schema in pairs]

    def write(self, counts: Counts, batch: Batch) -> None:
        """Write the answers and dead letters of a batch."""
        for output, frame in zip(self._outputs, self._frames, strict=True):
            count = counts.letters if output.letters else counts.answers
            text, arrow = output.sink.text, output.sink.arrow
            if arrow is not None:
                arrow.write_arrow(self._read(), batch)
            elif frame is None:
                raise InternalError("a sink that takes no Arrow batches has no frame")
            elif text is not None:
                self._write_text(output, text, frame, count, batch)
            elif count or (output.sink.needs.wants_empty and not output.letters):
                if output.sink.needs.may_keep:
                    self._write_own(output, batch)
                else:
                    output.sink.write(frame, batch)

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Read the answers of the first job."""
        files = AnswerFiles(tuple(map(str, self._workers.files(0))))
        return files.read(range(len(files.files)))

    def _write_own(self, output: AnswerOutput, batch: Batch) -> None:
        """Write a frame that only this batch has, from files with names of their own.

        The sink may keep the frame: Spark must not mistake it for that of another batch.
        """
        links = [link_answers(each, batch.number) for each in self._files()]
        try:
            output.sink.write(output.choose(self._rows(links)), batch)
        finally:
            for file in (each for own in links for each in own):
                file.unlink(missing_ok=True)

    def _write_text(
        self, output: AnswerOutput, sink: TextSink, lines: DataFrame, count: int, batch: Batch
    ) -> None:
        texts = self._text(output, sink.form, lines, count)
        if texts is None:
            sink.write_lines(lines, batch)
        else:
            sink.write_text(texts, batch)

    def _text(
        self, output: AnswerOutput, form: LineFormat, lines: DataFrame, count: int
    ) -> list[str] | None:
        """Return the lines of a batch, if they are few."""
        if not count:
            return []
        if count <= _VERY_FEW and output.variables is not None:
            found = self._spelled(form, output.variables)
            if found is not None:
                return found
        if count > _FEW:
            return None
        try:
            return list(lines.toArrow().column(0).to_pylist())
        except Exception as error:
            if not is_too_large(error):
                raise
            return None

    def _spelled(self, form: LineFormat, variables: Sequence[str]) -> list[str] | None:
        """Write the solutions of a batch as lines, if the driver can write this format."""
        found = pa.Table.from_batches(self._read())
        t, sign, *others = found.filter(pc.field(rows.SIGN).is_valid()).columns
        terms = [column.to_pylist() for column in others[: len(variables)]]
        bound = dict(zip(variables, terms, strict=True))
        return answer_text(form, t.to_pylist(), sign.to_pylist(), bound)


def is_too_large(error: Exception) -> bool:
    """Return whether Spark refused to collect rows because there are too many of them."""
    return any(reason in str(error) for reason in _TOO_LARGE)
