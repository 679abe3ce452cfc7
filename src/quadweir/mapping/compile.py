"""Compiles a mapping to DataFrames, with one pass over each source.

For each source the terms of all its triples maps are columns of one projection, and one generator
turns a record's row into its quads (`groups`). A referencing object map with join conditions is a
join of two such projections (`staticjoins`, `windowjoins`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.mapping.elements import (
    ElementRule,
    has_several_graphs,
    no_time,
    tell_sources_apart,
    with_element,
)
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.generate import needs_type
from quadweir.mapping.groups import BAD, GOOD, SourceGroup, nothing, prepared, tagged_element
from quadweir.mapping.joins import JoinHost, StreamTime, time_reference
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.model import (
    Reference,
    RefObjectMap,
    TriplesMap,
    expression_references,
)
from quadweir.mapping.prune import MayMatch
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
OpenRecords: TypeAlias = Callable[[LogicalSource, Mapping[str, bool]], Records]
"""Opens a source for some references, each with whether the type of its value matters."""


@final
@dataclass(slots=True)
class Compiled:
    """A compiled mapping."""

    groups: list[SourceGroup]
    joins: list[StaticJoin | WindowJoin]
    targets: tuple[LogicalTarget, ...]

    def quads(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads of all sources as `rows.QUAD_SCHEMA`, with `TARGET` if there are targets.

        Args:
            observations: the result of `observations`, to count records and unusable ones.
        """
        return self._exploded(explode, rows.TERMS, observations, ())

    def statements(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads as elements of streams, `rows.STATEMENT_SCHEMA`, with `TARGET` if there are
        targets.

        The mapping must be compiled with `elements`. Quads of records without an event time are
        left out.
        """
        return self._exploded(explode, rows.TERMS, observations, rows.ELEMENT)

    def lines(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads of all sources as lines of N-Quads, with `TARGET` if there are targets.

        Args:
            observations: the result of `observations`, to count records and unusable ones.
        """
        return self._exploded(explode_lines, (rows.LINE,), observations, ())

    def _exploded(
        self,
        how: Explode,
        names: Sequence[str],
        observations: Sequence[Observation | None],
        element: Sequence[str],
    ) -> DataFrame:
        with_target = bool(self.targets)
        every = [*element, *names, *([TARGET] if with_target else [])]
        frames: list[DataFrame] = []
        for number, group in enumerate(self.groups):
            observation = observations[number] if observations else None
            if group.entries:
                terms = group.terms(observation, element)
                found = how(terms, group.entries, with_target, element)
                frames.append(_timed(group.apart(found)) if element else found)
            elif observation is not None:
                frames.append(nothing(group.terms(observation, ()), every))
        for join in self.joins:
            found = how(join.terms(element), join.entries, with_target, element)
            frames.append(_timed(join.apart(found)) if element else found)
        if not frames:
            frames = [nothing(self.groups[0].terms(None, ()), every)]
        return _union(frames)

    def texts(self, observations: Sequence[Observation | None] = ()) -> DataFrame:
        """The quads of all sources as texts of one or more lines of N-Quads, without targets.

        Args:
            observations: the result of `observations`, to count records and unusable ones.
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
        """The records that could not be used completely, as `rows.DEAD_LETTER_SCHEMA`."""
        return _union([group.dead_letters() for group in self.groups])

    def tagged(self) -> DataFrame:
        """Quads and dead letters in one pass, for streams, which are read only once.

        The rows have the columns of both schemas (and `TARGET` if there are targets); a row with a
        reason is a dead letter.
        """
        return tagged_union([*self.tagged_alone(), *self.tagged_in_windows()])

    def tagged_alone(self) -> list[DataFrame]:
        """The frames of `tagged` that need no join in a window."""
        # A group that is only joined reports its dead letters as it goes into the join.
        reported = {id(side) for join in self.joins for side in join.reporting}
        with_target = bool(self.targets)
        frames = [group.tagged(with_target) for group in self.groups if id(group) not in reported]
        joins = [join for join in self.joins if not isinstance(join, WindowJoin)]
        return [*frames, *(join.tagged(with_target) for join in joins)]

    def tagged_in_windows(self) -> list[DataFrame]:
        """The frames of `tagged` that are joined in windows."""
        joins = [join for join in self.joins if isinstance(join, WindowJoin)]
        return [join.tagged(bool(self.targets)) for join in joins]

    def tagged_elements(self) -> DataFrame:
        """Elements and dead letters in one pass without a shuffle, where there are no joins.

        An element is a row with its timed lines as one text, `rows.LINE`, and its position; a row with a
        reason is a dead letter.
        """
        return _union([tagged_element(group) for group in self.groups])

    def pruned(self, is_asked: MayMatch) -> Compiled:
        """Return the mapping without the quads that nobody asks for; those of joins stay.

        A record that makes only such quads makes a witness instead, so that its element stays known.
        The groups are changed: use the mapping for nothing else.
        """
        for group in self.groups:
            group.prune(is_asked)
        return self

    @property
    def left_out(self) -> str | None:
        """What `pruned` has left out, for people; None if nothing is."""
        found = [
            f"{group.records.shown}: {group.left_out} of {group.made} quads of a record are not made"
            for group in self.groups
            if group.left_out
        ]
        return "; ".join(found) or None

    def observations(self) -> list[Observation | None]:
        """The observation that counts the records of each group; None where the count is known."""
        from pyspark.sql import Observation

        return [
            None if group.is_counted else Observation(f"quadweir-{number}")
            for number, group in enumerate(self.groups)
        ]

    def counts(self, observations: Iterable[Observation | None]) -> tuple[int, int]:
        """The number of records and of bad records, after the query with `observations` has run."""
        records, bad = 0, 0
        for group, observation in zip(self.groups, observations, strict=True):
            if observation is None:
                records += group.records.count or 0
            else:
                found = observation.get
                records, bad = records + found[GOOD], bad + found[BAD]
        return records, bad

    @property
    def is_timed(self) -> bool:
        """Whether quads belong to elements of streams, since it was compiled with `elements`."""
        return any(group.is_timed for group in self.groups)

    @property
    def is_streaming(self) -> bool:
        """Whether some source is unbounded."""
        return any(group.records.frame.isStreaming for group in self.groups)

    def explain(self) -> str:
        """How each source is read, and which sources are joined."""
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
    open_source: OpenRecords,
    *,
    base: str | None = None,
    registry: MappingFunctions = FUNCTIONS,
    host: JoinHost | None = None,
    stream_time: StreamTimes = lambda _: StreamTime(),
    elements: ElementRule | None = None,
    run: str = "",
) -> Compiled:
    """Compile a mapping.

    Args:
        mapping: the mapping.
        open_source: opens a source; called once for each source of the mapping.
        base: the base of relative IRIs, unless a triples map has its own.
        registry: the functions that it may call.
        host: joins streams in windows; without it no two streams can be joined.
        stream_time: returns where the records of a stream have their times, if the mapping does not
        say so.
        elements: the streams of the records' elements, for `Compiled.statements` and
        `Compiled.tagged`; without it quads have no times.
        run: a name that distinguishes this run from others of the mapping, for example its
        checkpoint.

    Raises:
        MappingError: with `elements`, triples are made of records that have no event time.
    """
    targets = mapping.targets()
    base = base if base is not None else mapping.base_iri
    groups: dict[LogicalSource, SourceGroup] = {}
    for logical, triples_maps in _by_source(mapping).items():
        wanted = _references(mapping, logical, triples_maps, stream_time)
        timed = elements if _needs_time(mapping, logical, triples_maps) else None
        known = stream_time(logical)
        if timed is not None and known.reference is not None:
            wanted.setdefault(known.reference, False)
        groups[logical] = SourceGroup(
            prepared(_by_rules(open_source(logical, wanted), logical)),
            logical,
            base,
            registry,
            {t: n for n, t in enumerate(targets)},
        )
        if timed is not None:
            number = sum(group.is_timed for group in groups.values())
            _time(groups[logical], known, timed, number)
    joins: list[StaticJoin | WindowJoin] = []
    hosting = Hosting(mapping, host, stream_time, run)
    for triples_map in mapping.triples_maps:
        joins.extend(groups[triples_map.source].add(triples_map, mapping, groups, hosting))
    if elements is not None:
        _check_times(groups.values(), joins)
        for logical, triples_maps in _by_source(mapping).items():
            _tell_graphs(groups[logical], triples_maps, joins)
    return Compiled(list(groups.values()), joins, targets)


def _by_rules(records: Records, logical: LogicalSource) -> Records:
    """Read values by the rules of the source."""
    if not logical.has_plain_values:
        return records
    values = {reference: value.as_plain() for reference, value in records.values.items()}
    return replace(records, values=values)


def _needs_time(
    mapping: RmlMapping, logical: LogicalSource, triples_maps: Iterable[TriplesMap]
) -> bool:
    """Whether a source makes triples; otherwise joins without a window only look records up in
    it.
    """
    if any(one.subject.classes or one.predicate_objects for one in triples_maps):
        return True
    return any(
        item.window is not None and mapping.triples_map(item.parent).source == logical
        for one in mapping.triples_maps
        for item in one.ref_object_maps()
    )


def _time(group: SourceGroup, known: StreamTime, elements: ElementRule, number: int) -> None:
    """Turn the records of a source into elements, if their times are known."""
    stream = elements.stream(group.logical)
    found = with_element(group.records, known, stream, times_inside=elements.times_inside)
    if found is None:
        return
    records, problem = found
    group.is_timed = True
    # Several sources may make one stream.
    group.records = tell_sources_apart(records, number) if number else records
    if problem is not None:
        group.add_problem(problem)


def _tell_graphs(
    group: SourceGroup, triples_maps: Iterable[TriplesMap], joins: Iterable[StaticJoin | WindowJoin]
) -> None:
    """Record whether one record can make quads in several graphs, alone or in joins."""
    mine = [join for join in joins if join.child.logical == group.logical]
    entries = [*group.entries, *(entry for join in mine for entry in join.entries)]
    many = any(entry.graph is not None and entry.graph.many for entry in entries)
    for each in (group, *(join.child for join in mine)):
        each.has_several_graphs = many or has_several_graphs(triples_maps)


def _check_times(groups: Iterable[SourceGroup], joins: Iterable[StaticJoin | WindowJoin]) -> None:
    for group in groups:
        if group.entries and not group.is_timed:
            raise no_time(group.records.shown, group.logical)
    for join in joins:
        if not join.element:
            raise no_time(join.child.records.shown, join.child.logical)


def _timed(statements: DataFrame) -> DataFrame:
    """Leave out the quads of records without an event time."""
    return statements.where(F.col(rows.EVENT_TIME).isNotNull())


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
            if logical.has_plain_values:
                continue
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
    """The references that a window join reads from one side: keys with their types, and times."""
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


def tagged_union(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of frames that may lack some of the columns."""
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionByName(other), frames)
