"""A gate that each batch passes before anything of it is computed and written.

A query that is stopped may be in the middle of a batch, and some of its answers may have left. When
it starts again, Spark repeats that batch. If the answers would then differ, as with other static
data, the query may be stopped only between two batches: once the gate is closed, the present batch
is finished, and the next one waits at the gate.
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
            # Spark's own thread sleeps. Stopping the query interrupts it, and that ends this call.
            context: Any = rows.sparkSession.sparkContext
            context._jvm.java.lang.Thread.sleep(_PAUSE_MS)

    def shut(self) -> None:
        """Close it without waiting for the present batch."""
        self._is_closed = True

    def close(self, query: StreamingQuery) -> None:
        """Close it, and wait until the present batch is committed or the query ends."""
        self._is_closed = True
        # Spark reports an active trigger also while it looks for new data.
        while query.isActive and not self._is_reached and query.status["isTriggerActive"]:
            time.sleep(_LOOK_SECONDS)
