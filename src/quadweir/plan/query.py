"""The plan of one continuous query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import final

from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windows import CountScope, PastScope, TimeScope, is_stepped
from quadweir.entailment.table import Table
from quadweir.entailment.ways import Ways
from quadweir.plan.bounds import Kept, find_endless, find_kept
from quadweir.plan.facts import NOTHING_KNOWN, StaticFacts
from quadweir.plan.matchtests import Grid, Matching, MatchTest, find_match_tests, ways_to
from quadweir.plan.nodes import Match, Source, StaticRelation
from quadweir.plan.program import Program, program_of
from quadweir.plan.pushdown import ValuesOf, find_conditions
from quadweir.plan.shardkey import IN_ONE_SHARD, Placed, ShardKey, choose_keys, find_static
from quadweir.plan.stages import Stage, stages_of
from quadweir.plan.template import QueryTemplate
from quadweir.terms import Variable


@final
@dataclass(frozen=True)
class QueryPlan:
    """The matches of a query, the sharding of its rows, and the programs of its shards.

    Attributes:
        query: The query, optimised.
        stages: The stages; the first has the windows, the last gives answers.
        elements: The sources whose elements go to every shard: count windows, and windows whose
        content decides about reports. With a grid, the latest element between two instants is enough.
        wanted: The tests that statements go through.
        kept: The state of nodes.
        endless: The windows that remember every element ever seen.
        placed: For each static relation, which shards have its rows, and why.
        table: The consequences of statements that the query can use; None without a schema.
    """

    query: ContinuousQuery
    stages: tuple[Stage, ...]
    elements: Mapping[int, Grid | None]
    wanted: tuple[MatchTest, ...]
    kept: tuple[Kept, ...]
    endless: frozenset[int]
    placed: tuple[tuple[StaticRelation, Placed], ...]
    table: Table | None = None

    @property
    def first(self) -> Stage:
        """The stage that has the windows."""
        return self.stages[0]

    def shards(self, most: int) -> tuple[int, ...]:
        """How many of the available shards each stage uses."""
        return tuple(stage.shards(most) for stage in self.stages)

    @property
    def matches(self) -> tuple[Match, ...]:
        """The matches before the shuffle, in the order in which shards know them."""
        return self.first.program.matches

    @property
    def sources(self) -> tuple[Source, ...]:
        """The windows over streams, in the order in which shards know them."""
        return self.first.program.sources

    @property
    def matching(self) -> Matching:
        """What statements are tested for."""
        return Matching(
            tuple(sorted({source.stream for source in self.sources})),
            self.wanted,
            self.first.program.report.on_close,
            self.table,
        )

    @property
    def trackers(self) -> frozenset[int]:
        """The matches that only track changes; every shard gets them."""
        return self.first.program.trackers

    @property
    def eager(self) -> bool:
        """Whether answers leave as soon as their parts have arrived."""
        return self.first.program.eager

    @property
    def why_not(self) -> str | None:
        """Why the query is evaluated from scratch at its reports, if it is."""
        return self.first.program.why_not

    @property
    def static(self) -> tuple[StaticRelation, ...]:
        """The static relations that the query reads."""
        return self.first.program.static

    @property
    def layout(self) -> str:
        """The sharding of rows over stages, in short."""
        return ", then ".join(stage.layout for stage in self.stages)

    def ways(self, match: Match) -> Ways:
        """The ways in which statements match, except the direct one."""
        return ways_to(match, self.table)

    @property
    def held(self) -> str:
        """The layout of this plan's state over shards, as text.

        With other static data the same query may have another plan. The state can be kept if this
        text is the same: then the numbers of matches and tests have the same meaning, and rows stay
        in their shards.
        """
        lines = [
            *(
                f"match {_source_text(each.source)} {_pattern_text(each)} "
                f"{_names(each.variables)} {_names(each.times)} {each.carried}"
                for each in self.matches
            ),
            *(f"source {_source_text(source)}" for source in self.sources),
            f"trackers {sorted(self.trackers)}",
            f"eager {self.eager}",
            f"rows {self.layout}",
        ]
        sent = [stage.program.sent for stage in self.stages]
        lines += [f"sent {_names(each.variables)}" for each in sent if each is not None]
        return "\n".join(lines)

    def resolved(self, values_of: ValuesOf) -> QueryPlan:
        """The plan with the values of static relations that early conditions use."""
        return replace(self, wanted=tuple(each.resolved(values_of) for each in self.wanted))

    def for_shards(self) -> QueryPlan:
        """The plan without the parts that only matching uses; they are as large as the schema and
        static data.
        """
        wanted = tuple(each.for_shards() for each in self.wanted)
        return replace(self, table=None, wanted=wanted, placed=())


def plan_query(
    query: ContinuousQuery,
    *,
    streams: tuple[str, ...],
    facts: StaticFacts = NOTHING_KNOWN,
    table: Table | None = None,
    shards: int | None = None,
    like: str = "",
    template: QueryTemplate | None = None,
) -> QueryPlan:
    """The plan of an optimised query.

    Args:
        query: The query.
        streams: The streams there are, for windows over a stream variable.
        facts: What is known of static data.
        table: What follows from statements, if there is a schema.
        shards: The most shards, if known. With one shard, no key is needed.
        like: The layout (`QueryPlan.layout`) of existing state; it is kept if possible. State in
        one shard can always be kept.
        template: The template, if the query is one. It has one stage; its members play no part.
    """
    program = program_of(query, streams=streams, facts=facts, template=template)
    first = None
    for key in _choices(program, shards=shards, like=like):
        placed = find_static(program, key.variable)
        stages = stages_of(program, key, placed)
        found = _planned(program, key, stages, placed, table)
        if found.layout == like:
            return found
        first = first or found
    assert first is not None
    return first


def _choices(program: Program, *, shards: int | None, like: str) -> Iterator[ShardKey]:
    """The ways to shard a query, the best first."""
    keys = choose_keys(program)
    best = keys[0]
    if program.template is not None and best.cut is not None:
        yield ShardKey(None, f"a template has one stage; {best.reason}")
    if like == IN_ONE_SHARD:
        yield ShardKey(None, "its state is in one shard")
    elif shards == 1 and best.variable is not None and best.cut is None:
        yield ShardKey(None, "there is one shard")
    yield best
    if like:
        for key in keys:
            yield key
            # A second stage in one shard can always stay so.
            yield replace(key, second=None, second_reason="its state is in one shard")


def _planned(
    program: Program,
    key: ShardKey,
    stages: tuple[Stage, ...],
    placed: Mapping[StaticRelation, Placed],
    table: Table | None,
) -> QueryPlan:
    query = program.query
    elements = {
        place: _grid(program, source)
        for place, source in enumerate(program.sources)
        if isinstance(query.windows[source.window].scope, CountScope)
        or any(each.source == source and each.pattern is None for each in program.matches)
    }
    sharded = {
        place: key.variable
        for place, each in enumerate(program.matches)
        if key.variable is not None
        and place not in program.trackers
        and key.variable in each.variables
    }
    return QueryPlan(
        query=query,
        stages=stages,
        elements=elements,
        wanted=find_match_tests(
            program.matches,
            program.sources,
            elements,
            sharded,
            find_conditions(program),
            table,
        ),
        kept=find_kept(program),
        endless=find_endless(program, in_stages=len(stages) > 1),
        placed=tuple(placed.items()),
        table=table,
    )


def _grid(program: Program, source: Source) -> Grid | None:
    """The instants at which a window's content changes, if all that counts is whether it is empty."""
    if not program.report.on_close or any(
        each.source == source and each.pattern is None and place not in program.trackers
        for place, each in enumerate(program.matches)
    ):
        return None
    scope = program.query.windows[source.window].scope
    match scope:
        case TimeScope(range_ms=length, step_ms=int(step)) if is_stepped(scope):
            return Grid(gcd(length, step), scope.origin_ms)
        case PastScope(from_ms=first, to_ms=last, step_ms=int(step)):
            return Grid(gcd(first, last, step), scope.origin_ms)
        case _:
            return None


def _source_text(source: Source) -> str:
    return f"{source.window} <{source.stream}> {source.event_time}"


def _pattern_text(match: Match) -> str:
    pattern = match.pattern
    if pattern is None:
        return "all"
    place = "" if match.graph is None else f" in {match.graph}"
    return f"{pattern.subject} {pattern.predicate} {pattern.object}{place}"


def _names(variables: Iterable[Variable]) -> str:
    return f"({' '.join(map(str, variables))})"
