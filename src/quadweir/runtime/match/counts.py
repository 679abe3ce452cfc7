"""Counts of what a query reads, for Spark's `observe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quadweir import rows

if TYPE_CHECKING:
    from pyspark.sql import Column


def live_counts() -> tuple[Column, ...]:
    """Return the counts of statements, of dead letters, and of those too far ahead in time (S4)."""
    ahead = F.count_if(F.col(rows.REASON).startswith(rows.AHEAD))
    return (*_counts(), ahead.alias("ahead"))


def bounded_counts() -> tuple[Column, ...]:
    """Return the counts of statements and dead letters, and the earliest event time."""
    # Rows without a triple only report how far time has come.
    is_statement = F.col(rows.REASON).isNull() & F.col(rows.PREDICATE).isNotNull()
    earliest = F.min(F.when(is_statement, F.col(rows.EVENT_TIME)))
    return (*_counts(), earliest.alias("earliest"))


def _counts() -> tuple[Column, Column]:
    return (
        F.count(F.when(F.col(rows.REASON).isNull(), 1)).alias("statements"),
        F.count(rows.REASON).alias("dead_letters"),
    )
