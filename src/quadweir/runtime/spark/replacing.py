"""A frame over the rows of a batch, made again over those of the next without making its columns.

Making the columns of a match takes some hundred calls to Java, and each operation on a frame is
analysed by itself. Spark's plan of a frame can be taken as it is, with the rows of another batch in
its place: the columns of a stream have the same identity in every batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
class Replaced:
    """Makes the same frame over other rows.

    Args:
        make: makes the frame over the rows of the first batch.
    """

    def __init__(self, make: Callable[[DataFrame], DataFrame]) -> None:
        self._make = make
        self._rows: Any = None
        self._plan: Any = None

    def over(self, frame: DataFrame) -> DataFrame:
        """Return the frame over the rows of a batch."""
        from pyspark.sql import DataFrame

        rows = _analyzed(frame)
        if self._plan is None:
            made = self._make(frame)
            self._rows, self._plan = rows, _analyzed(made)
            return made
        jdf: Any = frame._jdf
        jvm: Any = frame.sparkSession._jvm
        plan = self._put(self._plan, rows, jvm)
        dataset = jvm.org.apache.spark.sql.classic.Dataset.ofRows(jdf.sparkSession(), plan)
        return DataFrame(dataset, frame.sparkSession)

    def _put(self, plan: Any, rows: Any, jvm: Any) -> Any:
        """Return a plan with other rows in the place of those of the first batch."""
        if plan.equals(self._rows):
            return rows
        children = plan.children()
        if children.isEmpty():
            return plan
        listed = jvm.java.util.ArrayList()
        for place in range(children.size()):
            listed.add(self._put(children.apply(place), rows, jvm))
        return plan.withNewChildren(
            jvm.scala.jdk.javaapi.CollectionConverters.asScala(listed).toSeq()
        )


def _analyzed(frame: DataFrame) -> Any:
    jdf: Any = frame._jdf
    return jdf.queryExecution().analyzed()
