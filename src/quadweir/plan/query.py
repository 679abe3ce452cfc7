"""The plan of one continuous query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

from quadweir.algebra.analyze import subpatterns
from quadweir.algebra.dataset import Dataset
from quadweir.algebra.patterns import (
    Aggregation,
    Extend,
    Filter,
    Group,
    OrderBy,
    Project,
    TriplePattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import mentioned
from quadweir.algebra.solutions import is_time
from quadweir.algebra.windows import CountScope
from quadweir.entailment.table import Table
from quadweir.entailment.ways import Ways
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.fixed import StaticSource
from quadweir.kernel.network import LeafPlan, Source
from quadweir.kernel.shard import Shard
from quadweir.plan.bounds import Kept, find_endless, find_kept
from quadweir.plan.pushdown import Fixed, find_conditions, find_fixed
from quadweir.plan.shardkey import IN_ONE_PIECE, ShardKey, choose_key, find_static
from quadweir.plan.wanted import Wanted, find_wanted, ways_to
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class QueryPlan:
    """What is matched where, and how rows reach their shards.

    Attributes:
        query: The query, optimised.
        leaves: What is matched before the shuffle, in the order in which shards know it.
        sources: The windows over streams, in the order in which shards know them.
        trackers: The leaves that only tell when contents change; every shard gets their matches.
        elements: The sources of which every shard hears every element: count windows, and windows
            whose changes are reports.
        key: What rows are sharded by, and whether there is a second stage.
        sent: The columns that go to the second stage.
        wanted: The tests that statements go through.
        kept: What operators remember.
        endless: The windows of which every element ever seen is remembered.
        fixed: The static relations, and how they are used.
        divided: The operators of those of which every shard has only the rows of its own keys.
        eager: Whether answers leave as soon as their parts have arrived.
        why_not: Why the query is evaluated anew at its reports, if it is.
        table: What follows from statements, as far as the query can use it; None without a schema.
    """

    query: ContinuousQuery
    leaves: tuple[LeafPlan, ...]
    sources: tuple[Source, ...]
    trackers: frozenset[int]
    elements: frozenset[int]
    key: ShardKey
    sent: tuple[Variable, ...]
    wanted: tuple[Wanted, ...]
    kept: tuple[Kept, ...]
    endless: frozenset[int]
    fixed: tuple[Fixed, ...]
    divided: frozenset[int]
    eager: bool
    why_not: str | None
    table: Table | None = None

    def ways(self, leaf: LeafPlan) -> Ways:
        """Tell how statements match a leaf, besides by looking like it."""
        return ways_to(leaf, self.table)

    @property
    def held(self) -> str:
        """What a state of this plan consists of, and in which shards, as text.

        Over other static data the same query may have another plan. Its state is taken over if this
        is the same: the numbers of leaves and tests then mean the same, and rows lie where they did.
        Operators may be others, and with them the number of the one that the query is cut at.
        """
        lines = [
            *(
                f"leaf {_source_text(leaf.source)} {_pattern_text(leaf.pattern)} "
                f"{_names(leaf.variables)} {_names(leaf.times)} {leaf.carried}"
                for leaf in self.leaves
            ),
            *(f"source {_source_text(source)}" for source in self.sources),
            f"trackers {sorted(self.trackers)}",
            f"eager {self.eager}",
            f"rows {self.key.layout}",
            f"sent {_names(self.sent)}",
        ]
        return "\n".join(lines)

    def for_shards(self) -> QueryPlan:
        """Leave out what only matching looks at: it is as large as the schema and static data."""
        return replace(self, table=None, wanted=tuple(each.for_shards() for each in self.wanted))


def plan_query(
    query: ContinuousQuery,
    *,
    static: Dataset | StaticSource,
    streams: tuple[str, ...],
    table: Table | None = None,
    shards: int | None = None,
    like: str = "",
) -> QueryPlan:
    """Plan a query that was optimised.

    Args:
        query: The query.
        static: The static data that it sees.
        streams: The streams there are, for windows over a stream variable.
        table: What follows from statements, if there is a schema.
        shards: How many there may be, if that is known. With one, a key would be of no use.
        like: The layout (`ShardKey.layout`) that rows have already: it is kept if it can be. What is
            in one piece always can.
    """
    shard = Shard(query, static=static, streams=streams, runs=False)
    key = choose_key(shard, like)
    is_whole = like == IN_ONE_PIECE or (shards == 1 and key.cut is None)
    if key.variable is not None and is_whole:
        key = ShardKey(None, "there is one shard" if shards == 1 else "its state is in one piece")
    conditions = find_conditions(shard)
    placed = find_static(shard, key.variable)
    trackers = frozenset(shard.trackers)
    elements = {
        place
        for place, source in enumerate(shard.sources)
        if isinstance(query.windows[source.window].scope, CountScope)
        or any(leaf.source == source and leaf.pattern is None for leaf in shard.leaves)
    }
    sharded = {
        place: key.variable
        for place, leaf in enumerate(shard.leaves)
        if key.variable is not None and place not in trackers and key.variable in leaf.variables
    }
    return QueryPlan(
        query=query,
        leaves=shard.leaves,
        sources=shard.sources,
        trackers=trackers,
        elements=frozenset(elements),
        key=key,
        sent=_sent(shard, key.cut) if key.cut is not None else (),
        wanted=find_wanted(
            shard.leaves, shard.sources, sorted(elements), sharded, conditions, table
        ),
        kept=find_kept(shard),
        endless=find_endless(shard, in_stages=key.cut is not None),
        fixed=find_fixed(shard, conditions, placed),
        divided=frozenset(place for place, each in placed.items() if each.is_divided),
        eager=shard.eager,
        why_not=shard.why_not,
        table=table,
    )


def _source_text(source: Source) -> str:
    return f"{source.window} <{source.stream}> {source.event_time}"


def _pattern_text(pattern: TriplePattern | None) -> str:
    if pattern is None:
        return "all"
    return f"{pattern.subject} {pattern.predicate} {pattern.object}"


def _names(variables: Iterable[Variable]) -> str:
    return f"({' '.join(map(str, variables))})"


def _sent(shard: Shard, cut: int) -> tuple[Variable, ...]:
    """Choose the columns that a second stage is given: those that something above may look at."""
    assert shard.root is not None
    network = shard.network
    operator = network.operators[cut][0]
    above = network.below([network.place(shard.root)]) - network.below([cut])
    variables = tuple(each for each in operator.variables if not is_time(each))
    if any(isinstance(network.operators[place][0], Distinct) for place in above):
        return variables
    used = set(shard.variables)
    for each in subpatterns(shard.query.pattern):
        match each:
            case Filter(condition=expression) | Extend(expression=expression):
                used |= mentioned(expression)
            case Group(keys=keys, aggregates=aggregates):
                used |= {*keys, *(v for one in aggregates for v in _argument(one))}
            case OrderBy(keys=order):
                used |= {v for one in order for v in mentioned(one.expression)}
            case Project(variables=kept):
                used |= set(kept)
            case _:
                pass
    return tuple(each for each in variables if each in used)


def _argument(aggregation: Aggregation) -> frozenset[Variable]:
    argument = aggregation.call.argument
    return mentioned(argument) if argument is not None else frozenset()
