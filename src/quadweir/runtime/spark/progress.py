"""How to read Spark's progress reports."""

from __future__ import annotations

from typing import Any


def is_batch(report: Any) -> bool:
    """Whether a report is about a batch.

    Spark also reports when it looked for new data and found none. Such a report has the number of
    the next batch.
    """
    return bool(report.numInputRows) or "addBatch" in report.durationMs
