"""How to read Spark's progress reports."""

from __future__ import annotations

from typing import Any


def is_batch(report: Any) -> bool:
    """Return whether a report is about a batch, and not about a look for new data that found none.

    The latter has the number of the next batch, and a duration of its own.
    """
    return bool(report.numInputRows) or "addBatch" in report.durationMs
