"""The plan of one continuous query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import CountScope
from quadweir.entailment.table import Table
from quadweir.entailment.ways import NO_WAYS, Ways, ways_of
from quadweir.kernel.network import LeafPlan, Source
from quadweir.kernel.shard import Shard
from quadweir.plan.shardkey import ShardKey, choose_key


@final
@dataclass(frozen=True)
class QueryPlan:
    """What is matched where, and how rows reach their shards.

    Attributes:
        query: The query, optimised.
        leaves: What is matched before the shuffle, in the order in which shards know it.
        sources: The windows over streams, in the order in which shards know them.
        replicated: The leaves whose matches every shard gets.
        elements: The sources of which every shard hears every element: count windows, and windows
            whose changes are reports.
        key: The variable that rows are sharded by.
        eager: Whether answers leave as soon as their parts have arrived.
        why_not: Why the query is evaluated anew at its reports, if it is.
        table: What follows from statements, as far as the query can use it; None without a schema.
    """

    query: ContinuousQuery
    leaves: tuple[LeafPlan, ...]
    sources: tuple[Source, ...]
    replicated: frozenset[int]
    elements: frozenset[int]
    key: ShardKey
    eager: bool
    why_not: str | None
    table: Table | None = None

    def ways(self, leaf: LeafPlan) -> Ways:
        """Tell how statements match a leaf, besides by looking like it."""
        if self.table is None or leaf.pattern is None or leaf.carried:
            return NO_WAYS
        return ways_of(leaf.pattern, self.table)


def plan_query(
    query: ContinuousQuery,
    *,
    static: Dataset,
    streams: tuple[str, ...],
    table: Table | None = None,
) -> QueryPlan:
    """Plan a query that was optimised.

    Args:
        query: The query.
        static: The static data that it sees.
        streams: The streams there are, for windows over a stream variable.
        table: What follows from statements, if there is a schema.
    """
    shard = Shard(query, static=static, streams=streams)
    trackers = frozenset(shard.trackers)
    matched = tuple(
        leaf for place, leaf in enumerate(shard.leaves) if place not in trackers and leaf.pattern
    )
    key = choose_key(query, matched, shard.why_not)
    elements = {
        place
        for place, source in enumerate(shard.sources)
        if isinstance(query.windows[source.window].scope, CountScope)
        or any(leaf.source == source and leaf.pattern is None for leaf in shard.leaves)
    }
    return QueryPlan(
        query=query,
        leaves=shard.leaves,
        sources=shard.sources,
        replicated=trackers,
        elements=frozenset(elements),
        key=key,
        eager=shard.eager,
        why_not=shard.why_not,
        table=table,
    )
