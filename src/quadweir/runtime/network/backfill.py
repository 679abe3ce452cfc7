"""Backfill in the driver: which new queries will see what windows hold, and which of them did.

Shards decide, from the queries that ran in the batch before (J6). The driver knows these queries too,
but not the instants at which they joined. So it can say at once what will not be possible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadweir.plan.backfill import Donors
from quadweir.runtime.network.queries import Backfilled, NetworkQuery
from quadweir.runtime.shard.clock import ALWAYS

if TYPE_CHECKING:
    from quadweir.runtime.network.registry import QueryRegistry


def find_not_backfilled(
    registry: QueryRegistry, running: int | None, made: Iterable[NetworkQuery]
) -> dict[str, str]:
    """Return which new queries will not see what windows hold, though they ask for it, and why.

    Args:
        registry: the queries.
        running: the version that the present batch runs with; None before the first, when there is
            nothing to see.
        made: the new queries.
    """
    asking = [each for each in made if each.text.backfill]
    if not asking or running is None:
        return {}
    members: dict[int, list[NetworkQuery]] = {each.template: [] for each in asking}
    for query in registry.queries_at(running).values():
        if query.template in members and query.stopped is None:
            members[query.template].append(query)
    specs = registry.templates()
    donors = {
        template: Donors(
            specs[template].needs, ((each.constants, each.ranges, ALWAYS) for each in queries)
        )
        for template, queries in members.items()
    }
    found = {}
    for query in asking:
        found[query.id] = (
            specs[query.template].not_backfilled
            or donors[query.template].find(query.constants, query.ranges).reason
        )
    return {name: reason for name, reason in found.items() if reason}


def note_backfilled(registry: QueryRegistry, facts: Iterable[tuple[int, int, str]]) -> None:
    """Take what shards report about queries that asked for backfill and joined.

    Args:
        registry: the queries.
        facts: the number of each query, the instant after which it sees elements, and why it sees no
            more than others.
    """
    for number, since, reason in facts:
        query = registry.by_number(number)
        if query is not None:
            seen = None if since == ALWAYS else since
            query.backfill = Backfilled("none" if reason else "done", seen, reason)
