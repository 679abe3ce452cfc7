"""What each operator of a query remembers, and when it forgets it.

Only windows bound what is remembered: whatever stands above them holds no more than follows from what
is in them. A window that keeps all of a stream bounds nothing. Which queries over one have to remember
all of it by their meaning, `algebra.analyze.refuse_unbounded` says; which do so as they are planned, is
known here. Both are refused, unless the user allows that window by name (W5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from quadweir.algebra.analyze import kept_whole
from quadweir.algebra.query import ContinuousQuery
from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.multijoin import Join
from quadweir.kernel.negation import KeyNegation, Negation
from quadweir.kernel.paths import Closure
from quadweir.kernel.relation import Operator
from quadweir.kernel.retention import endless
from quadweir.kernel.shard import Shard
from quadweir.terms import IRI


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """What operators of one kind remember."""

    name: str
    count: int
    state: str
    forgets: str


_KEPT: Final[Mapping[type[Operator], tuple[str, str, str]]] = {
    Join: ("join", "where rows of its inputs lie, and results", "a result when a part of it goes"),
    Aggregate: ("group", "the values of each group", "a group when its last row goes"),
    Distinct: ("distinct rows", "each with a count", "a row when its last equal goes"),
    Negation: ("negation", "a counter for each left row", "a left row when it goes"),
    KeyNegation: ("negation", "left rows, and a counter for each key", "a key with its last row"),
    Closure: ("path", "the edges, and the pairs of nodes they lead to", "an edge when it goes"),
}


def find_kept(shard: Shard) -> tuple[Kept, ...]:
    """List what the operators of a query remember, those that remember nothing left out."""
    counts = Counter(type(operator) for operator, _ in shard.network.operators)
    return tuple(
        Kept(_KEPT[kind][0], counts[kind], *_KEPT[kind][1:]) for kind in _KEPT if counts[kind]
    )


def find_endless(shard: Shard, *, in_stages: bool) -> frozenset[int]:
    """List the windows, by their places, of which every element ever seen is remembered.

    Of two stages the second remembers all that it was told.
    """
    return frozenset(plan.source.window for plan in endless(shard.network, all_of_them=in_stages))


def refuse_endless(
    query: ContinuousQuery,
    windows: frozenset[int],
    why_not: str | None,
    *,
    allowed: frozenset[IRI] = frozenset(),
) -> None:
    """Refuse a query that would remember everything it has ever seen as it is planned (W5).

    Args:
        query: The query.
        windows: The places of windows of which all is remembered.
        why_not: Why the query is evaluated anew at its reports, if it is.
        allowed: Names of windows, or IRIs of streams, whose state may grow without bound.

    Raises:
        UnboundedStateError: with the place of the first window that is to blame.
    """
    for place in sorted(windows):
        window = query.windows[place]
        if window.name not in allowed and window.stream not in allowed:
            anew = (
                f" It is evaluated anew at each report: {why_not}." if why_not is not None else ""
            )
            raise kept_whole(window, anew)
