"""A query with its streams and static data, planned; nothing runs yet.

Static data is read when something asks for the plan, and again by `replan`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from quadweir.algebra.analyze import analyze, refuse_unbounded
from quadweir.algebra.warn import warnings_of
from quadweir.entailment.close import refuse_transitive, static_closure
from quadweir.entailment.needs import needs_of
from quadweir.entailment.table import Table
from quadweir.errors import UnsupportedError, UsageError
from quadweir.optimize.pipeline import optimize
from quadweir.plan.bounds import refuse_endless
from quadweir.plan.facts import NO_STATIC_DATA, NOTHING_KNOWN, StaticFacts
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.plan.shardkey import IN_ONE_SHARD
from quadweir.runtime.checkpoint import EXECUTORS, Fingerprint
from quadweir.runtime.match.feeds import AllAsked, Feed
from quadweir.runtime.portable.planfile import StoredPlan
from quadweir.runtime.shard.functions import packed_functions
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.runtime.static.data import Prepared, StaticData
from quadweir.terms import IRI

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.entailment.schema import Schema
    from quadweir.plan.template import QueryTemplate
    from quadweir.runtime.static.shared import SharedSolutions


@final
@dataclass(frozen=True, slots=True)
class Planned:
    """A query planned over static data as it was at some time.

    Attributes:
        plan: the plan.
        spec: what shards are made from.
        prepared: the static data, which exists as long as this does.
        like: the layout that the plan had to keep, because rows lie like that already; or "".
    """

    plan: QueryPlan
    spec: ShardSpec
    prepared: Prepared
    like: str


@final
class PlannedQuery:
    """A continuous query with its streams and static data.

    Args:
        spark: the session.
        query: the query as it was parsed.
        feeds: the streams that exist, by IRI.
        static: the static data.
        shards: how many shards to use, at most.
        allow_unbounded: windows and streams that may be kept whole.
        schema: what else follows from the triples of streams and static data (N1).
        template: the template, if the query is one.
        shared: solutions of static sub-patterns that other queries share; then static data is not
            read again.

    Attributes:
        query: the query as it was parsed.
        warnings: what in the query is legal but probably not meant, such as unknown functions.

    Raises:
        UnboundedStateError: the query would have to keep a stream whole.
        UnsupportedError: a window would need the closure of a transitive property.
        PlanError: it cannot be planned.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: ContinuousQuery,
        feeds: Mapping[str, Feed],
        *,
        static: StaticData | None = None,
        shards: int | None = None,
        allow_unbounded: Iterable[str] = (),
        schema: Schema | None = None,
        template: QueryTemplate | None = None,
        shared: SharedSolutions | None = None,
    ) -> None:
        analyze(query)
        self.query = query
        self.warnings = warnings_of(query)
        allowed = frozenset(map(IRI, allow_unbounded))
        refuse_unbounded(query, allowed=allowed)
        if shards is not None and shards < 1:
            raise UsageError(f"{shards} shards cannot hold anything", hint="Ask for 1 or more.")
        self.spark = spark
        self.feeds = dict(feeds)
        self._static = static or StaticData()
        self._schema = schema
        self._template = template
        self._shared = shared
        self._optimized = optimize(query).query
        if schema is not None:
            refuse_transitive(schema, query)
        self.partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        self.most_shards = shards or self.partitions
        # Right for any static data; none of it is read yet.
        self._draft = self._planned_by(NO_STATIC_DATA if self._static.is_empty else NOTHING_KNOWN)
        refuse_endless(self._optimized, self._draft.endless, self._draft.why_not, allowed=allowed)
        self._now: Planned | None = None

    @property
    def now(self) -> Planned:
        """The plan over static data as it was last read; the first call reads it."""
        if self._now is None:
            self._now = self._plan(self._prepare())
        return self._now

    @property
    def plan(self) -> QueryPlan:
        """The plan over static data as it was last read."""
        return self.now.plan

    @property
    def spec(self) -> ShardSpec:
        """What shards are made from, over static data as it was last read."""
        return self.now.spec

    @property
    def asked(self) -> AllAsked:
        """All that this query can ask of its streams, also over other static data."""
        tests = (*self._draft.matching.wanted, *self.plan.matching.wanted)
        return AllAsked(tests, self.plan.table)

    def left_out(self) -> str:
        """Say which statements its streams do not make for this query; "" if they make all."""
        asked, found = self.asked, []
        for iri in self.plan.matching.streams:
            feed = self.feeds.get(iri)
            if feed is None or feed.asked is None:
                continue
            only = feed.asked(asked.of(iri))
            said = only.left_out() if only.left_out is not None else None
            if said is not None:
                found.append(f"  <{iri}>: {said}, since no pattern can match them")
        return "\n".join(["mappings", *found, ""]) if found else ""

    @property
    def shards(self) -> int:
        """How many shards the first stage has."""
        return self.plan.shards(self.most_shards)[0]

    def _prepare(self) -> Prepared:
        """Read static data as it is now."""
        schema = self._schema
        follows = static_closure(schema, self.query) if schema is not None else None
        return self._static.prepare(
            self.spark, self._optimized, self._streams, follows=follows, shared=self._shared
        )

    def _plan(self, prepared: Prepared, *, like: str = "") -> Planned:
        """Plan over static data; `like` is the layout of rows that are there already."""
        plan = self._planned_by(prepared.facts, like=like).resolved(prepared.values_of)
        functions = packed_functions(plan.query)
        spec = ShardSpec(plan, prepared.source, prepared.digest, functions=functions)
        return Planned(plan, spec, prepared, like)

    def _planned_by(
        self, facts: StaticFacts, *, like: str = "", for_several: bool = False
    ) -> QueryPlan:
        """Plan with what is known about static data, with the shards there are or for several."""
        schema = self._schema
        return plan_query(
            self._optimized,
            streams=self._streams,
            facts=facts,
            table=Table.of(schema, needs_of(self.query)) if schema is not None else None,
            shards=None if for_several else self.most_shards,
            like=like,
            template=self._template,
        )

    @property
    def _streams(self) -> tuple[str, ...]:
        return tuple(sorted(self.feeds))

    # --- the queries whose answers it reads ---

    def feeding(self) -> list[PlannedQuery]:
        """List the queries whose answers it reads itself, in the order of their streams."""
        read = {source.stream for source in self._draft.sources}
        made = [self.feeds[iri].made_by for iri in sorted(read & self.feeds.keys())]
        return [each for each in made if isinstance(each, PlannedQuery)]

    def with_feeding(self) -> list[PlannedQuery]:
        """List this query and all queries that it reads from, each once."""
        found = [self]
        for query in self.feeding():
            found += query.with_feeding()
        return list(dict.fromkeys(found))

    # --- checkpoints and reloads ---

    def fingerprint(self, host: str, partitions: int) -> Fingerprint:
        """Return what the state of this query depends on.

        Args:
            host: where its shards are.
            partitions: over how many partitions of Spark state is spread.
        """
        return Fingerprint.of(
            self.plan,
            shards=self.most_shards,
            partitions=partitions,
            static=self.now.prepared.digest,
            # Spark runs the queries that it reads from in its executors.
            inputs=tuple(each.fingerprint(EXECUTORS, each.partitions) for each in self.feeding()),
            schema=self._schema.digest if self._schema is not None else "",
            shards_in=host,
        )

    @property
    def stored_plan(self) -> StoredPlan:
        """What a checkpoint says about the plan, for use while nothing runs."""
        plan = self.plan
        if self.most_shards > 1:
            return StoredPlan(plan)
        wide = self._planned_by(self.now.prepared.facts, for_several=True)
        return StoredPlan(plan, wide if wide.layout != plan.layout else None)

    def keep_in_one_stage(self) -> None:
        """Plan the query in one shard, if it would need a second stage."""
        if len(self.plan.stages) > 1:
            self._now = self._plan(self.now.prepared, like=IN_ONE_SHARD)

    def settle(self, known: Fingerprint | None) -> None:
        """Plan with the layout that a checkpoint has, as far as there is a choice.

        With other static data, rows could lie in another way, but rows in a checkpoint stay where they
        are. If the checkpoint was made for another number of shards, the user has to decide.
        """
        like = known.layout if known is not None and known.most == self.most_shards else ""
        if like not in (self.now.like, self.plan.layout):
            self._now = self._plan(self.now.prepared, like=like)
        # If other queries feed it now, the checkpoint is refused later.
        left = known.inputs if known is not None else ()
        for query, then in itertools.zip_longest(self.feeding(), left):
            if query is not None:
                query.settle(then)

    def replan(self, running: Mapping[PlannedQuery, Planned]) -> None:
        """Read static data again, for this query and those that it reads from.

        Args:
            running: the plans that run now; their shards must be able to continue.

        Raises:
            UnsupportedError: with the new data, shards would have to hold something else.
        """
        found = {}
        for query in self.with_feeding():
            then = running.get(query)
            # Rows stay where they are, if they can.
            like = then.plan.layout if then is not None else ""
            found[query] = query._plan(query._prepare(), like=like)
            now = found[query].plan
            if then is not None and now.held != then.plan.held:
                raise UnsupportedError(
                    "with the new static data, the shards of the query would hold other rows",
                    detail=_difference(then.plan, now),
                    hint="It continues with the old data. Stop it, and start it with another "
                    "checkpoint.",
                )
        for query, planned in found.items():
            then = running.get(query, query.now)
            is_same = planned.prepared.digest == then.prepared.digest
            query._now = then if is_same and (running or not then.like) else planned


def _difference(then: QueryPlan, now: QueryPlan) -> str:
    """Say how two plans differ in what they hold."""
    if then.layout != now.layout:
        return f"Rows are sharded {then.layout}, and would be sharded {now.layout}."
    if then.eager != now.eager:
        when = {True: "as soon as their parts arrive", False: "when the watermark passes them"}
        return f"Answers leave {when[then.eager]}, and would leave {when[now.eager]}."
    known = then.held.splitlines()
    others = [line for line in now.held.splitlines() if line not in known]
    return f"The shards would hold: {'; '.join(others) or 'less'}."
