"""The first answers of a query as a small table, whether its streams end or not."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.runtime.start import Started, StartOptions
from quadweir.sinks.memory import MemorySink

if TYPE_CHECKING:
    from pandas import DataFrame as Table
    from pyspark.sql import DataFrame

    from quadweir.runtime.answercolumns import AnswerColumns
    from quadweir.runtime.planned import PlannedQuery


def first_answers(
    planned: PlannedQuery, answers: DataFrame, columns: AnswerColumns, *, seconds: float, rows: int
) -> Table:
    """Return up to `rows` answers; a live query runs for up to `seconds`, over a checkpoint of its own.

    Args:
        planned: the query.
        answers: its answers with these columns, as a frame.
        columns: the columns.
        seconds: how long to wait for answers of a live query.
        rows: how many answers.
    """
    if not answers.isStreaming:
        return answers.limit(rows).toPandas()
    folder = Path(tempfile.mkdtemp(prefix="quadweir-preview-"))
    sink = MemorySink(rows)
    started = Started.of(planned, StartOptions(sink=sink, checkpoint=folder, columns=columns))
    try:
        end = time.monotonic() + seconds
        while len(sink.rows()) < rows and time.monotonic() < end:
            left = end - time.monotonic()
            if started.run.awaitTermination(max(1, min(2, int(left)))):
                break
    finally:
        started.run.stop()
        shutil.rmtree(folder, ignore_errors=True)
    spark = planned.spark
    return spark.createDataFrame(sink.rows()[:rows], answers.schema).toPandas()
