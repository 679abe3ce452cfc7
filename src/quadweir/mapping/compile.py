"""A mapping becomes DataFrames: one pass over each source for all that is mapped from it.

For each source the terms of all its triples maps are columns of one projection, and one generator
turns a record's row into its quads (`groups`). A referencing object map with join conditions is a
join of two such projections (`staticjoins`, `windowjoins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, final

from quadweir import rows
from quadweir.mapping.functions.registry import FUNCTIONS, Registry
from quadweir.mapping.generate import needs_type
from quadweir.mapping.groups import BAD, GOOD, Group, nothing, prepared
from quadweir.mapping.joins import Host, StreamTime, time_reference
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.model import (
    Reference,
    RefObjectMap,
    TriplesMap,
    expression_references,
)
from quadweir.mapping.quads import (
    TARGET,
    Entry,
    explode,
    explode_lines,
)
from quadweir.mapping.records import Records
from quadweir.mapping.sources import LogicalSource, LogicalTarget
from quadweir.mapping.staticjoins import StaticJoin
from quadweir.mapping.windowjoins import Hosting, StreamTimes, WindowJoin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

Explode: TypeAlias = Callable[["DataFrame", Sequence[Entry], bool, Sequence[str]], "DataFrame"]
"""Turns rows of terms into rows of quads."""
Open: TypeAlias = Callable[[LogicalSource, Mapping[str, bool]], Records]
"""Opens a source for some references, each with whether the type of its value matters."""


@final
@dataclass(slots=True)
class Compiled:
    """What a mapping becomes."""

    groups: list[Group]
    joins: list[StaticJoin | WindowJoin]
    targets: tuple[LogicalTarget, ...]

    def quads(
        self, observations: Sequence[Observation | None] = (), carry: Sequence[str] = ()
    ) -> DataFrame:
        """The quads of all sources as `rows.QUAD_SCHEMA`, with `TARGET` if there are targets.

        Args:
            observations: what `observations` gave, to count records and unusable ones with.
            carry: columns of the records, such as `rows.ARRIVAL`, to keep in front of the quads.
        """
        return self._exploded(explode, rows.TERMS, observations, carry)

    def lines(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads of all sources as lines of N-Quads, with `TARGET` if there are targets.

        Args:
            observations: what `observations` gave, to count records and unusable ones with.
        """
        return self._exploded(explode_lines, (rows.LINE,), observations, ())

    def _exploded(
        self,
        how: Explode,
        names: Sequence[str],
        observations: Sequence[Observation | None],
        carry: Sequence[str],
    ) -> DataFrame:
        with_target = bool(self.targets)
        frames: list[DataFrame] = []
        for number, group in enumerate(self.groups):
            observation = observations[number] if observations else None
            terms = group.terms(observation, carry)
            if group.entries:
                frames.append(how(terms, group.entries, with_target, carry))
            elif observation is not None:
                frames.append(nothing(terms, [*names, *([TARGET] if with_target else [])]))
        frames += [how(join.terms(carry), join.entries, with_target, carry) for join in self.joins]
        if not frames:
            names = [*names, *([TARGET] if with_target else [])]
            frames = [nothing(self.groups[0].terms(None, carry), names)]
        return _union(frames)

    def texts(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads of all sources as texts of one or more lines of N-Quads, without targets.

        Args:
            observations: what `observations` gave, to count records and unusable ones with.
        """
        if not all(group.is_flat for group in self.groups):
            return self.lines(observations)
        counted = observations or [None] * len(self.groups)
        frames = [
            group.texts(observation)
            for group, observation in zip(self.groups, counted, strict=True)
            if group.entries or observation is not None
        ]
        frames += [explode_lines(join.terms(), join.entries, False) for join in self.joins]
        return _union(frames) if frames else self.lines()

    def dead_letters(self) -> DataFrame:
        """The records that could not be used, or not wholly, as `rows.DEAD_LETTER_SCHEMA`."""
        return _union([group.dead_letters() for group in self.groups])

    def tagged(self) -> DataFrame:
        """Quads and dead letters in one pass, for streams, which are read only once.

        The rows have the columns of both schemas (and `TARGET` if there are targets); a row with a
        reason is a dead letter.
        """
        # What is only joined, tells of its dead letters as it goes into the join.
        told = {id(side) for join in self.joins for side in join.telling}
        frames = [
            group.tagged(bool(self.targets)) for group in self.groups if id(group) not in told
        ]
        frames += [join.tagged(bool(self.targets)) for join in self.joins]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

    def observations(self) -> list[Observation | None]:
        """What counts the records of each group; None where they have been counted already."""
        from pyspark.sql import Observation

        return [
            None if group.is_counted else Observation(f"quadweir-{number}")
            for number, group in enumerate(self.groups)
        ]

    def counts(self, observations: Iterable[Observation | None]) -> tuple[int, int]:
        """Add up the records, and those that were bad, after `observations` were made."""
        records, bad = 0, 0
        for group, observation in zip(self.groups, observations, strict=True):
            if observation is None:
                records += group.records.count or 0
            else:
                found = observation.get
                records, bad = records + found[GOOD], bad + found[BAD]
        return records, bad

    @property
    def is_streaming(self) -> bool:
        """Whether some source has no end."""
        return any(group.records.frame.isStreaming for group in self.groups)

    def explain(self) -> str:
        """Say what is read how, and what is joined."""
        lines: list[str] = []
        for group in self.groups:
            lines.extend(
                ("  " if number else "") + line for number, line in enumerate(group.records.how)
            )
            lines.append(f"  {len(group.entries)} quads for each record, in one pass")
        lines.extend(join.how for join in self.joins)
        return "\n".join(lines)


def compile_mapping(
    mapping: RmlMapping,
    open_source: Open,
    *,
    base: str | None = None,
    registry: Registry = FUNCTIONS,
    host: Host | None = None,
    stream_time: StreamTimes = lambda _: StreamTime(),
    run: str = "",
) -> Compiled:
    """Compile a mapping.

    Args:
        mapping: the mapping.
        open_source: opens a source; called once for each source of the mapping.
        base: what relative IRIs are put after, unless a triples map says otherwise.
        registry: the functions that it may call.
        host: joins streams in windows; without it no two streams can be joined.
        stream_time: says where the records of a stream have their times, as far as the mapping
            does not.
        run: what tells this run from others of the mapping, such as its checkpoint.
    """
    targets = mapping.targets()
    base = base if base is not None else mapping.base_iri
    groups: dict[LogicalSource, Group] = {}
    for logical, triples_maps in _by_source(mapping).items():
        wanted = _references(mapping, logical, triples_maps, stream_time)
        groups[logical] = Group(
            prepared(open_source(logical, wanted)),
            logical,
            base,
            registry,
            {t: n for n, t in enumerate(targets)},
        )
    joins: list[StaticJoin | WindowJoin] = []
    hosting = Hosting(mapping, host, stream_time, run)
    for triples_map in mapping.triples_maps:
        joins.extend(groups[triples_map.source].add(triples_map, mapping, groups, hosting))
    return Compiled(list(groups.values()), joins, targets)


def _by_source(mapping: RmlMapping) -> dict[LogicalSource, list[TriplesMap]]:
    found: dict[LogicalSource, list[TriplesMap]] = {}
    for triples_map in mapping.triples_maps:
        found.setdefault(triples_map.source, []).append(triples_map)
    return found


def _references(
    mapping: RmlMapping,
    logical: LogicalSource,
    triples_maps: Sequence[TriplesMap],
    stream_time: StreamTimes,
) -> dict[str, bool]:
    """Every reference into a source, and whether the type of its value matters."""
    found: dict[str, bool] = {}
    for triples_map in triples_maps:
        for reference in sorted(triples_map.references()):
            found.setdefault(reference, False)
        for term in triples_map.term_maps():
            if isinstance(term.expression, Reference) and needs_type(term):
                found[term.expression.reference] = True
    for triples_map in mapping.triples_maps:
        for item in triples_map.ref_object_maps():
            if mapping.triples_map(item.parent).source != logical:
                continue
            for condition in item.conditions:
                for reference in sorted(expression_references(condition.parent)):
                    found.setdefault(reference, False)
    for triples_map in mapping.triples_maps:
        for item in triples_map.ref_object_maps():
            if item.window is None:
                continue
            sides = (triples_map, mapping.triples_map(item.parent))
            for is_parent, side in enumerate(sides):
                if side.source == logical:
                    found.update(_window_references(item, bool(is_parent), stream_time(logical)))
    return found


def _window_references(item: RefObjectMap, is_parent: bool, known: StreamTime) -> dict[str, bool]:
    """What a join in a window reads of one side: keys with their types, and times."""
    assert item.window is not None
    found: dict[str, bool] = {}
    for condition in item.conditions:
        operand = condition.parent if is_parent else condition.child
        if isinstance(operand, Reference):
            found[operand.reference] = True
    timed = time_reference(item.window, is_parent=is_parent) or known.reference
    if timed is not None:
        found.setdefault(timed, False)
    return found


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)
