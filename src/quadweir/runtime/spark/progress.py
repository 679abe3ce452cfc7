"""Spark's progress reports, as far as more than one place has to understand them."""

from __future__ import annotations

from typing import Any


def is_batch(report: Any) -> bool:
    """Tell a report of a batch from one that says that nothing arrived.

    The latter has the number of the batch that is still to come, and a duration of its own.
    """
    return bool(report.numInputRows) or "addBatch" in report.durationMs
