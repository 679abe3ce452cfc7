"""A column that remembers the rows before: which times are the earliest or latest of a task so far.

Spark has no function for that: a window function would need a shuffle, and over a stream a state.
An array of Java's own, put into the plan as a literal, does it. A task gets its copy of the array with
the plan, as the driver made it, so that every task and every attempt begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import gt, lt
from typing import TYPE_CHECKING, Final

from quadweir.runtime.javacalls import JavaCalls

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_ARRAY: Final = "java.util.concurrent.atomic.AtomicLongArray"
# No time is earlier or later.
_EDGE: Final = 2**62


def is_edge(spark: SparkSession, number: Column, value: Column, *, numbers: int) -> Column:
    """Tell whether a value is lower or higher than all that the same task saw before it.

    Of rows that this keeps, the lowest and the highest value are those of all rows.

    Args:
        spark: the session.
        number: an integer below `numbers`; of rows with different ones none counts for the other.
        value: what is compared; no NULL.
        numbers: how many different numbers there may be.
    """
    java = JavaCalls(spark)
    cells = getattr(java.jvm, _ARRAY)(2 * numbers)
    for place in range(numbers):
        cells.set(2 * place, -_EDGE)
        cells.set(2 * place + 1, _EDGE)

    def replaced(place: Column, is_beyond: Callable[[Column, Column], Column]) -> Column:
        """Tell whether the value is beyond what a cell holds, and put it there if so."""
        array = java.literal(cells, _ARRAY)
        held = java.call(array, "get", "bigint", place, is_pure=False)
        # Seldom reached; what was held is asked for again since a call has to give something.
        before = java.call(array, "getAndSet", "bigint", place, value, is_pure=False)
        return is_beyond(value, held) & is_beyond(value, before)

    return replaced(2 * number, gt) | replaced(2 * number + 1, lt)
