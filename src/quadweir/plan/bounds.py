"""What each operator of a query remembers, and when it forgets it.

Only windows bound what is remembered: whatever stands above them holds no more than follows from what
is in them. A query with a window that keeps all of a stream is refused before it gets here
(`algebra.analyze.refuse_unbounded`), unless the user allows that window by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.multijoin import Join
from quadweir.kernel.negation import KeyNegation, Negation
from quadweir.kernel.paths import Closure
from quadweir.kernel.relation import Operator
from quadweir.kernel.shard import Shard


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
