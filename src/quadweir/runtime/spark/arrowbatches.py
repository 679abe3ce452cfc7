"""How Spark cuts rows into Arrow batches on their way to Python.

An Arrow batch must not grow without bounds. Spark can ask for the size of every column after every
row, which takes a fifth of Java's time for matching. In a run that hands nothing else to Python,
Spark only counts rows instead. Long rows are then followed by padding rows, one per KiB, so that
Spark's row count approximates bytes (`match/matched.py`, `wire/pack.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_ROWS: Final = 1 << 16  # as `session` sets it
_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
# The highest value that Spark accepts; with it, Spark asks for no sizes.
_NO_LIMIT: Final = str(2**31 - 1)
_IN_PYTHON: Final = ("MapIn", "FlatMapGroupsIn", "FlatMapCoGroupsIn", "TransformWithState")
_STARTING: Final = threading.Lock()


@contextmanager
def counting_rows(spark: SparkSession, *, when: bool = True) -> Iterator[None]:
    """Let Spark count rows instead of bytes, in what is started meanwhile.

    Settings of the user stay as they are. Other starts wait, because settings belong to the whole
    session.
    """
    with _STARTING:
        if not when or not _can_count(spark):
            yield
            return
        spark.conf.set(_BYTES, _NO_LIMIT)
        try:
            yield
        finally:
            spark.conf.unset(_BYTES)


def count_rows_in(spark: SparkSession) -> None:
    """Let Spark count rows instead of bytes, in a session that one query has for itself."""
    if _can_count(spark):
        spark.conf.set(_BYTES, _NO_LIMIT)


def _can_count(spark: SparkSession) -> bool:
    return 0 < int(spark.conf.get(_ROWS) or 0) <= _MOST_ROWS and _BYTES not in spark.conf.getAll


def stages_in_python(frame: DataFrame) -> int | None:
    """Count how often rows go to Python; None if Python computes single columns, too."""
    context: Any = frame.sparkSession.sparkContext
    called = context._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    found, waiting = 0, [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        if node.nodeName().startswith(_IN_PYTHON):
            found += 1
        elif any(each.containsPattern(called) for each in _listed(node.expressions())):
            return None
        waiting += _listed(node.children())
    return found


def _listed(found: Any) -> list[Any]:
    """Return the items of a Scala sequence."""
    return [found.apply(place) for place in range(found.size())]
