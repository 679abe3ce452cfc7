"""Facts about static data for the planner: the number of solutions of sub-patterns.

Without facts, the planner assumes that every pattern may match. That plan is right for any data; it
is slower only where C-SPARQL matches windows and static data as one graph (A1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from quadweir.algebra.query import ContinuousQuery


@final
@dataclass(frozen=True)
class StaticFacts:
    """The numbers of solutions of sub-patterns in static data.

    Attributes:
        counts: The number of solutions of each evaluated sub-pattern
        (`nodes.StaticRelation.query`).
        is_empty: Whether there is no static data at all.
    """

    counts: Mapping[ContinuousQuery, int] = field(default_factory=dict)
    is_empty: bool = False

    def may_match(self, query: ContinuousQuery) -> bool:
        """Whether a sub-pattern may have solutions."""
        return not self.is_empty and self.counts.get(query, 1) > 0


NOTHING_KNOWN: Final = StaticFacts()
NO_STATIC_DATA: Final = StaticFacts(is_empty=True)
