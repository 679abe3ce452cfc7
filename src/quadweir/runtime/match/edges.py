"""A column that remembers the rows before: which times are the earliest or latest of a task so far.

Spark has no function for that: a window function would need a shuffle, and over a stream a state.
An array of Java's own, put into the plan as a literal, does it. A task gets its copy of the array with
the plan, as the driver made it, so that every task and every attempt begins anew.
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
# No time is earlier or later.
_EDGE: Final = 2**62
# Where the highest need not be exact, it is so to one part in 256 of all that lies between.
_NEAR_BITS: Final = 8


def is_edge(
    spark: SparkSession, number: Column, value: Column, *, numbers: int, exact: bool = True
) -> Column:
    """Tell whether a value is lower or higher than all that the same task saw before it.

    Of rows that this keeps, the lowest and the highest value are those of all rows. Where values rise
    from row to row that is every row: so if it need not be `exact`, a row is kept only if it is higher
    than the highest kept before by a 256th of the distance between that and the lowest.

    Args:
        spark: the session.
        number: an integer below `numbers`; of rows with different ones none counts for the other.
        value: what is compared; no NULL.
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
        """Tell whether the value is beyond what a cell holds, and let it hold a new one if so."""
        # Seldom reached; what was held is asked for again since a call has to give something.
        before = java.call(
            java.literal(cells, _ARRAY), "getAndSet", "bigint", place, new, is_pure=False
        )
        return is_beyond(value, held(place)) & is_beyond(value, before)

    high, low = 2 * number, 2 * number + 1
    bound = value
    if not exact:
        # Halves, and none above the edge: the difference or sum of two integers may be none.
        span = F.shiftright(value, 1) - F.shiftright(held(low), 1)
        bound = F.least(value, F.lit(_EDGE)) + F.shiftright(span, _NEAR_BITS - 1)
    # The lowest first: a value that is kept as such is not noted as the highest, and in values that
    # rise it would never be noted the other way round.
    return replaced(low, lt, value) | replaced(high, gt, bound)
