"""A gate that batches pass before anything of them is computed and written.

A query that is stopped may be in the middle of a batch, and some of its answers may be out. Begun anew,
Spark takes that batch once more. If answers would then be others, as over other static data, the query
is to be stopped between two batches only: once the gate is closed, the batch that has begun is
finished, and the next waits at the gate.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_PAUSE_MS: Final = 1_000
_LOOK_SECONDS: Final = 0.01


@final
class Gate:
    """Open, until it is closed for good."""

    def __init__(self) -> None:
        self._is_closed = False
        self._is_reached = False

    def pass_with(self, rows: DataFrame) -> None:
        """Let a batch go on; if the gate is closed, wait until its query is stopped."""
        while self._is_closed:
            self._is_reached = True
            # Spark's thread waits, which stopping the query interrupts, and that ends this call too.
            context: Any = rows.sparkSession.sparkContext
            context._jvm.java.lang.Thread.sleep(_PAUSE_MS)

    def close(self, query: StreamingQuery) -> None:
        """Close it, and wait until the batch that the query is at is committed, or the query ends."""
        self._is_closed = True
        # Spark tells that it is at a batch also while it looks whether there is one.
        while query.isActive and not self._is_reached and query.status["isTriggerActive"]:
            time.sleep(_LOOK_SECONDS)
