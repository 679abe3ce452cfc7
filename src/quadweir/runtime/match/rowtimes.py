"""From which predicates a plan reads the event times of its streams."""

from __future__ import annotations

from quadweir.errors import NotImplementedYetError
from quadweir.plan.query import QueryPlan
from quadweir.terms import IRI


def event_times(plan: QueryPlan) -> dict[str, IRI | None]:
    """Return for each stream the predicate from which its event times are read; None for none.

    Raises:
        NotImplementedYetError: two windows use two different times of one stream.
    """
    found: dict[str, IRI | None] = {}
    for source in plan.sources:
        if found.setdefault(source.stream, source.event_time) != source.event_time:
            raise NotImplementedYetError(
                f"<{source.stream}> is read with two different event times",
                hint="Use one of them in all windows, or ask the oracle (--oracle).",
            )
    return found
