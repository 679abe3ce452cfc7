"""The facts that shards report about each batch, and how those of all shards become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import Column


class Fold(Enum):
    """How the facts of several shards become one."""

    SUM = "sum"
    LEAST = "min"
    MOST = "max"
    LIST = "collect_list"

    def over(self, facts: Iterable[Any]) -> Any:
        """Fold the facts of several shards; None if there are none.

        >>> Fold.LEAST.over([3, 1])
        1
        """
        known = [each for each in facts if each is not None]
        match self:
            case Fold.LIST:
                return known
            case Fold.SUM:
                return sum(known) if known else None
            case Fold.LEAST:
                return min(known, default=None)
            case Fold.MOST:
                return max(known, default=None)


QUERY_FACTS: Final[Mapping[str, Fold]] = {
    "answers": Fold.SUM,
    "late": Fold.SUM,
    "through": Fold.LEAST,
    "held": Fold.SUM,
    "kernel_ms": Fold.MOST,
    "replayed": Fold.SUM,
}
"""What a shard of a query reports: answers, matches that were late, the instant through which everything is
known, mappings in its state, milliseconds in the kernel, and journal entries replayed."""

STATE_FACTS: Final[Mapping[str, Fold]] = {
    "state_rows": Fold.SUM,
    "state_bytes": Fold.SUM,
    "state_ms": Fold.MOST,
}
"""What a worker process reports about its journals: entries, bytes, and milliseconds to write."""


def folded(facts: Mapping[str, Fold], reports: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Fold the facts of several shards.

    >>> folded({"late": Fold.SUM}, [{"late": 2}, {"late": 3}])
    {'late': 5}
    """
    known = list(reports)
    return {name: fold.over(each[name] for each in known) for name, fold in facts.items()}


def fold_columns(facts: Mapping[str, Fold]) -> list[Column]:
    """Return the same as aggregates of Spark columns, for `DataFrame.observe`."""
    from pyspark.sql import functions

    found: Any = functions
    return [getattr(found, fold.value)(name).alias(name) for name, fold in facts.items()]
