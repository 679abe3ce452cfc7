"""The templates of a network: what its queries share, planned once for all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, final

import pyarrow as pa

from quadweir.entailment.table import Table
from quadweir.errors import NotImplementedYetError, UsageError
from quadweir.kernel.xxhash import shard_numbers
from quadweir.optimize.pipeline import optimize
from quadweir.plan.backfill import find_needs, why_not_backfilled
from quadweir.plan.matchtests import Matching, MatchTest
from quadweir.runtime.network.grouping import Groups, with_group
from quadweir.runtime.network.spec import TemplateSpec
from quadweir.runtime.planned import PlannedQuery
from quadweir.runtime.static.shared import SharedSolutions
from quadweir.sharing.shapes import Shapes, template_of
from quadweir.sharing.skeletons import KnownShapes
from quadweir.sources.declare import undeclared
from quadweir.terms import Variable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.entailment.schema import Schema
    from quadweir.runtime.match.feeds import Feed
    from quadweir.runtime.static.data import StaticData
    from quadweir.sharing.shapes import QueryShape, Shaped


@final
@dataclass(frozen=True)
class NetworkInputs:
    """What all queries of a network read.

    Attributes:
        spark: the session.
        feeds: the streams, by IRI.
        static: the static data.
        schema: what else follows from the triples of streams and static data (N1).
        shards: the number of shards.
    """

    spark: SparkSession
    feeds: Mapping[str, Feed]
    static: StaticData
    schema: Schema | None
    shards: int


class TemplateKey(NamedTuple):
    """What tells templates apart: queries share one only if they may keep the same windows whole."""

    shape: QueryShape
    allowed: tuple[str, ...]


@final
class Templates:
    """Plans templates, each once.

    Args:
        inputs: what they read.
    """

    def __init__(self, inputs: NetworkInputs) -> None:
        self._inputs = inputs
        self._planned: dict[int, PlannedQuery] = {}
        self._groups = Groups()
        self._shared = SharedSolutions()
        self._shapes = Shapes(tuple(sorted(inputs.feeds)))
        self._known = KnownShapes()
        schema = inputs.schema
        # All consequences: a template that looks them up may need any of them.
        self._table = Table.of(schema) if schema is not None else None

    def shape_of(
        self, query: ContinuousQuery, allow_unbounded: Collection[str] = ()
    ) -> tuple[TemplateKey, Shaped]:
        """Return which template a query, as it was parsed, belongs to, and what is its own.

        Args:
            query: the query.
            allow_unbounded: its windows, or streams, that may be kept whole.
        """
        if not allow_unbounded:
            shaped = self._known.of(query, lambda: self._shapes.of(_optimized(query)))
            return TemplateKey(shaped.shape, ()), shaped
        optimized = _optimized(query)
        shaped = self._shapes.of(optimized)
        # Windows of a shape have other names, in the same order.
        windows = zip(optimized.windows, shaped.shape.query.windows, strict=True)
        allowed = tuple(
            plain.name.value
            for window, plain in windows
            if {window.name.value, getattr(window.stream, "value", "")} & {*allow_unbounded}
        )
        return TemplateKey(shaped.shape, allowed), shaped

    def plan(
        self, wanted: TemplateKey, number: int, *, longest_ms: int = 1, group: int | None = None
    ) -> TemplateSpec:
        """Plan a template.

        Args:
            wanted: what its queries have in common.
            number: its number.
            longest_ms: the longest window of its first query.
            group: the group of templates that it was in before a restart; None if it is new.

        Raises:
            UsageError: it reads a stream that the network does not.
            PlanError: it cannot be planned.
        """
        shape, allowed = wanted
        inputs, query = self._inputs, shape.query
        for window in query.windows:
            self._check_times(window.stream, window.event_time)
        template = template_of(shape)
        planned = PlannedQuery(
            inputs.spark,
            query,
            inputs.feeds,
            static=inputs.static,
            shards=inputs.shards,
            allow_unbounded=allowed,
            schema=inputs.schema,
            template=template,
            shared=self._shared,
        )
        planned.keep_in_one_stage()
        home = None
        plan = planned.plan
        counts = planned.now.prepared.facts.counts
        static_rows = max((counts.get(each.query, 0) for each in plan.static), default=0)
        grouping = self._groups.place(
            number, plan, static_rows=static_rows, longest_ms=longest_ms, group=group
        )
        if plan.shards(inputs.shards)[0] == 1:
            # Those of a group are in one place.
            home = (number if grouping.group is None else grouping.group) % inputs.shards
            key = _home_key(home, inputs.shards)
            plan = replace(plan, wanted=tuple(replace(each, key=key) for each in plan.wanted))
        shards = () if home is not None else tuple(range(inputs.shards))
        spec = replace(planned.spec, plan=plan, shards=shards)
        # Static data exists as long as the planned query does.
        self._planned[number] = planned
        (stage,) = plan.stages
        found = TemplateSpec(
            number,
            spec,
            home,
            template,
            shape.reason,
            needs=find_needs(stage.program),
            not_backfilled=why_not_backfilled(stage.program),
        )
        return with_group(found, grouping)

    def drop(self, number: int) -> None:
        """Let the static data of a template go."""
        self._planned.pop(number, None)
        self._groups.drop(number)

    def _check_times(self, stream: object, event_time: object) -> None:
        feed = self._inputs.feeds.get(getattr(stream, "value", ""))
        if feed is None:
            if hasattr(stream, "value"):
                raise undeclared(stream.value, self._inputs.feeds)
            raise NotImplementedYetError(
                "a window over a stream variable cannot be in a network yet",
                hint="Name the stream, or run the query alone.",
            )
        own = getattr(event_time, "value", None)
        if own is not None and own != feed.timed_by:
            raise UsageError(
                f"a window takes the times of <{feed.iri}> from <{own}>, and the network reads the "
                "stream with its own times",
                hint="Declare the stream with this predicate as its time.",
            )

    def merged(
        self, templates: Iterable[TemplateSpec]
    ) -> tuple[Matching, dict[int, tuple[int, ...]]]:
        """Return the tests of some templates, each once, and where the tests of each template are."""
        found: dict[MatchTest, int] = {}
        merged: list[MatchTest] = []
        bits = {}
        exact = False
        for template in templates:
            matching = template.shards.plan.matching
            exact = exact or matching.exact_times
            places = []
            for test in matching.wanted:
                bare = replace(
                    test, leaves=(), conditions=(), elements=(0,) if test.elements else ()
                )
                place = found.setdefault(bare, len(merged))
                alone = _alone(test, template.number)
                if place == len(merged):
                    merged.append(alone)
                else:
                    merged[place] = _both(merged[place], alone)
                places.append(place)
            bits[template.number] = tuple(places)
        streams = tuple(sorted(self._inputs.feeds))
        looks_up = any(each.follows for each in merged)
        table = self._table if looks_up else None
        return Matching(streams, tuple(merged), exact, table), bits


def _optimized(query: ContinuousQuery) -> ContinuousQuery:
    return optimize(replace(query, name=None)).query


def _alone(test: MatchTest, template: int) -> MatchTest:
    """Return a test that names no leaf of a template, only the terms that leaves need."""
    conditions = tuple(
        (
            bound,
            replace(
                condition,
                parameters=tuple(
                    (variable, parameter_of(template, parameter))
                    for variable, parameter in condition.parameters
                ),
                # Static data may be reloaded while windows hold what does not join with it now.
                values=(),
            ),
        )
        for bound, condition in test.conditions
    )
    return replace(
        test,
        leaves=tuple((0, parts) for _, parts in test.leaves),
        elements=(0,) if test.elements else (),
        conditions=conditions,
    )


def parameter_of(template: int, parameter: Variable) -> Variable:
    """Return a name of a parameter that no other template has."""
    return Variable(f"{template} {parameter.name}")


def _both(one: MatchTest, other: MatchTest) -> MatchTest:
    """Return a test for the leaves of two; without a condition, every match is needed."""
    return replace(
        one,
        leaves=tuple(dict.fromkeys((*one.leaves, *other.leaves))),
        conditions=(*one.conditions, *other.conditions)
        if one.conditions and other.conditions
        else (),
    )


@cache
def _home_key(shard: int, shards: int) -> str:
    """Return a key that sends rows to one shard; no term is equal to it."""
    keys = [f"home {number}" for number in range(64 * shards)]
    place: int = shard_numbers(pa.array(keys), shards).tolist().index(shard)
    return keys[place]
