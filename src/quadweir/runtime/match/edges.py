"""A column that remembers earlier rows: whether a time is the earliest or latest of a task so far.

Spark has no function for this: a window function needs a shuffle, and over a stream it needs state.
Here a Java array, a literal in the plan, keeps the times. A task gets a copy of the array with the
plan, as the driver made it, so every task and every attempt starts with an empty array.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import gt, lt
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.runtime.spark.javacalls import JavaCalls

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_ARRAY: Final = "java.util.concurrent.atomic.AtomicLongArray"
# No time is further away than this.
_EDGE: Final = 2**62
# An inexact highest time may be wrong by 1/256 of the distance from the lowest to the highest.
_NEAR_BITS: Final = 8


def is_edge(
    spark: SparkSession, number: Column, value: Column, *, numbers: int, exact: bool = True
) -> Column:
    """Return whether a value is lower or higher than all earlier values of the same task.

    The rows that this keeps have the lowest and the highest value of all rows. If values rise from
    row to row, `exact` keeps every row. Otherwise a row is kept only if it exceeds the highest kept
    value by 1/256 of the distance between the lowest and the highest.

    Args:
        spark: the session.
        number: an integer below `numbers`; only rows with the same number are compared.
        value: the value, never NULL.
        numbers: how many different numbers there may be.
        exact: whether the highest value has to be kept; the lowest always is.
    """
    java = JavaCalls(spark)
    cells = getattr(java.jvm, _ARRAY)(2 * numbers)
    for place in range(numbers):
        cells.set(2 * place, -_EDGE)
        cells.set(2 * place + 1, _EDGE)

    def held(place: Column) -> Column:
        return java.call(java.literal(cells, _ARRAY), "get", "bigint", place, is_pure=False)

    def replaced(
        place: Column, is_beyond: Callable[[Column, Column], Column], new: Column
    ) -> Column:
        """Return whether the value is beyond that of a cell, and set the cell if so."""
        # Rarely reached. A call must have a result, so it returns the old value, which is compared
        # again.
        before = java.call(
            java.literal(cells, _ARRAY), "getAndSet", "bigint", place, new, is_pure=False
        )
        return is_beyond(value, held(place)) & is_beyond(value, before)

    high, low = 2 * number, 2 * number + 1
    bound = value
    if not exact:
        # Halves, and nothing above the edge: otherwise a difference or sum could overflow.
        span = F.shiftright(value, 1) - F.shiftright(held(low), 1)
        bound = F.least(value, F.lit(_EDGE)) + F.shiftright(span, _NEAR_BITS - 1)
    # The lowest is tested first. A value that is kept as the lowest is not also noted as the
    # highest. The other way round, the lowest of rising values would never be noted.
    return replaced(low, lt, value) | replaced(high, gt, bound)
