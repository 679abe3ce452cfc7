"""Sets of terms that tasks of this Java look terms up in, and that change while a query runs.

A set in a plan is copied for every task, and a change of it means another plan. On one machine, tasks
run in the same Java as the driver, so they can share one set. It is found under a name among the
properties of this Java, which any class can reach, and which live as long as it does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.runtime.spark.javacalls import JavaCalls

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_SET: Final = "java.util.Set"


@final
class SharedSet:
    """A set of texts, each as often as it was added; none of them has a line feed.

    Args:
        spark: the session; all of it has to be on this machine.
        name: the name of the set, which no other one has.
    """

    def __init__(self, spark: SparkSession, name: str) -> None:
        self._java = JavaCalls(spark)
        self._name = name
        self._counts: Counter[str] = Counter()
        jvm = self._java.jvm
        self._held: Any = jvm.java.util.concurrent.ConcurrentHashMap.newKeySet()
        jvm.java.lang.System.getProperties().put(name, self._held)

    def add(self, texts: Iterable[str]) -> None:
        """Add texts."""
        given = list(texts)
        new = [text for text in set(given) if not self._counts[text]]
        self._counts.update(given)
        if new:
            self._held.addAll(self._values(new))

    def remove(self, texts: Iterable[str]) -> None:
        """Remove texts, each once; those that were added more often stay."""
        self._counts.subtract(texts)
        gone = [text for text, count in self._counts.items() if count <= 0]
        for text in gone:
            del self._counts[text]
        if gone:
            self._held.removeAll(self._values(gone))

    def has(self, text: Column) -> Column:
        """Return whether a column has one of the texts, as the set is when a task asks."""
        held = self._java.shared(self._name, _SET)
        return self._java.call(held, "contains", "boolean", text, is_pure=False)

    def close(self) -> None:
        """Drop the set; no task may ask it any more."""
        self._java.jvm.java.lang.System.getProperties().remove(self._name)

    def _values(self, texts: list[str]) -> Any:
        return self._java.texts(texts)
