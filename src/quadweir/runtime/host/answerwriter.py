"""The answers of worker processes, written to sinks.

Spark takes longer to write three answers than everything else takes. So few answers are written by
the driver: as text where the sink takes text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.runtime.host.answerfiles import AnswerFiles, answers_in, link_answers
from quadweir.sinks.answertext import answer_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.runtime.host.base import Output
    from quadweir.runtime.host.workergroup import WorkerGroup
    from quadweir.runtime.shard.base import Counts
    from quadweir.sinks.base import Batch, TextSink
    from quadweir.sinks.lines import LineFormat

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
    """

    def __init__(
        self, spark: SparkSession, outputs: Sequence[Output], workers: WorkerGroup
    ) -> None:
        self._spark = spark
        self._outputs = outputs
        self._workers = workers
        self._lines: list[DataFrame | None] = []

    def prepare(self) -> None:
        """Check the sinks, and plan the lines of those that take text.

        They are planned once: that takes longer than a small batch.
        """
        for output in self._outputs:
            output.sink.prepare()
        answers = answers_in(self._spark, self._workers.files, self._workers.output)
        self._lines = [
            each.sink.text.lines(each.choose(answers)) if each.sink.text is not None else None
            for each in self._outputs
        ]

    def write(self, counts: Counts, batch: Batch) -> None:
        """Write the answers and dead letters of a batch."""
        for output, lines in zip(self._outputs, self._lines, strict=True):
            count = counts.letters if output.letters else counts.answers
            text = output.sink.text
            if text is not None and lines is not None:
                self._write_text(output, text, lines, count, batch)
            elif count or (output.sink.needs.wants_empty and not output.letters):
                self._write_frame(output, batch)

    def _write_frame(self, output: Output, batch: Batch) -> None:
        # The files get names of their own: Spark must not mistake one batch for another that it keeps.
        files = link_answers(self._workers.files, batch.number)
        try:
            frame = answers_in(self._spark, files, self._workers.output)
            output.sink.write(output.choose(frame), batch)
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def _write_text(
        self, output: Output, sink: TextSink, lines: DataFrame, count: int, batch: Batch
    ) -> None:
        texts = self._text(output, sink.form, lines, count)
        if texts is None:
            sink.write_lines(lines, batch)
        else:
            sink.write_text(texts, batch)

    def _text(
        self, output: Output, form: LineFormat, lines: DataFrame, count: int
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
        files = AnswerFiles(tuple(map(str, self._workers.files)))
        found = pa.Table.from_batches(files.read(range(len(files.files))))
        t, sign, *others = found.filter(pc.field(rows.SIGN).is_valid()).columns
        terms = [column.to_pylist() for column in others[: len(variables)]]
        bound = dict(zip(variables, terms, strict=True))
        return answer_text(form, t.to_pylist(), sign.to_pylist(), bound)


def is_too_large(error: Exception) -> bool:
    """Return whether Spark refused to collect rows because there are too many of them."""
    return any(reason in str(error) for reason in _TOO_LARGE)
