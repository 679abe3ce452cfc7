"""The latest rows in the driver's memory, for tests, notebooks and displays."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, final

from quadweir.sinks.base import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from quadweir.sinks.base import Batch


@final
class MemorySink(Sink):
    """Keeps the last rows and drops older ones.

    Guarantee: each row once while the program runs; nothing is kept after that.

    Args:
        most_rows: how many rows are kept.
    """

    def __init__(self, most_rows: int = 10_000) -> None:
        self._rows: deque[Row] = deque(maxlen=most_rows)
        self._most_rows = most_rows
        self._schema: StructType | None = None
        self._last = -1
        self._lock = threading.Lock()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        rows = frame.tail(self._most_rows)
        with self._lock:
            if batch.number <= self._last:
                return
            self._last = batch.number
            self._schema = frame.schema
            self._rows.extend(rows)

    def rows(self) -> list[Row]:
        """Return the rows kept now, oldest first."""
        with self._lock:
            return list(self._rows)

    def clear(self) -> None:
        """Forget all rows."""
        with self._lock:
            self._rows.clear()

    def to_frame(self, spark: SparkSession) -> DataFrame | None:
        """Return the rows kept now as a frame; None before the first batch."""
        with self._lock:
            if self._schema is None:
                return None
            return spark.createDataFrame(list(self._rows), self._schema)
