"""A column that remembers the rows before: which times are the earliest or latest of a task so far.

Spark has no function for that: a window function would need a shuffle, and over a stream a state.
An array of Java's own, put into the plan as a literal, does it. A task gets its copy of the array with
the plan, as the driver made it, so that every task and every attempt begins anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    context: Any = spark.sparkContext
    cells = getattr(context._jvm, _ARRAY)(2 * numbers)
    for place in range(numbers):
        cells.set(2 * place, -_EDGE)
        cells.set(2 * place + 1, _EDGE)
    is_highest = _swapped(context, cells, 2 * number, F.greatest, value) < value
    is_lowest = _swapped(context, cells, 2 * number + 1, F.least, value) > value
    return is_highest | is_lowest


def _swapped(context: Any, cells: Any, place: Column, better: Any, value: Column) -> Column:
    """Put the better of a cell's content and a value into the cell; gives what it held before."""
    jvm = context._jvm
    types = jvm.org.apache.spark.sql.types
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    inside = jvm.org.apache.spark.sql.classic.ExpressionUtils
    kind = types.ObjectType(jvm.java.lang.Class.forName(_ARRAY))
    array = expressions.Literal(cells, kind)
    number, time = types.DataTypes.IntegerType, types.DataTypes.LongType

    def listed(*parts: Any) -> Any:
        found = jvm.java.util.ArrayList()
        for part in parts:
            found.add(part)
        return jvm.scala.jdk.javaapi.CollectionConverters.asScala(found).toSeq()

    def call(method: str, arguments: Any, kinds: Any) -> Column:
        # NULL makes NULL, the result is none, and another call may give another result.
        made = expressions.objects.Invoke(array, method, time, arguments, kinds, True, False, False)
        return Column(inside.column(made))

    at = inside.expression(place._jc)
    held = call("get", listed(at), listed(number))
    new = inside.expression(better(held, value)._jc)
    return call("getAndSet", listed(at, new), listed(number, time))
