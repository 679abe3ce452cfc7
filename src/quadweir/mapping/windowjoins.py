"""Joins of two streams in a mapping: which groups are joined, and the quads of the pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import MappingError
from quadweir.mapping.elements import PARENT, pair_position
from quadweir.mapping.joinframes import (
    LETTER,
    OBJECT,
    REASONS,
    SEVERAL,
    Side,
    as_array,
    as_text,
    both,
    call_problems,
    join_keys,
    letter_reasons,
    operands_of,
    time_of,
)
from quadweir.mapping.joins import JoinHost, JoinInput, StreamTime, timing_of, window_of
from quadweir.mapping.model import (
    JoinWindowMap,
    PredicateObjectMap,
    RefObjectMap,
    TriplesMap,
)
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.quads import Entry, flatten
from quadweir.mapping.sources import LogicalSource
from quadweir.mapping.values import Terms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.mapping.groups import SourceGroup

StreamTimes: TypeAlias = Callable[[LogicalSource], StreamTime]
"""Returns where the records of a stream have their times."""


@final
@dataclass(slots=True)
class Hosting:
    """The function that joins streams, and the known facts about them."""

    mapping: RmlMapping
    host: JoinHost | None
    stream_time: StreamTimes
    run: str
    _count: int = 0

    def _is_only_joined(self, logical: LogicalSource) -> bool:
        """Whether a source is used only by one join."""
        joins = 0
        for triples_map in self.mapping.triples_maps:
            is_own = triples_map.source == logical
            if is_own and triples_map.subject.classes:
                return False
            for pair in triples_map.predicate_objects:
                for item in pair.objects:
                    parent = item.parent if isinstance(item, RefObjectMap) else None
                    sources = [triples_map.source]
                    if parent is not None:
                        sources.append(self.mapping.triples_map(parent).source)
                    if is_own and (parent is None or sources[0] == sources[1]):
                        return False
                    joins += logical in sources
        return joins == 1

    def join(
        self,
        child: SourceGroup,
        other: SourceGroup,
        triples_map: TriplesMap,
        pair: PredicateObjectMap,
        item: RefObjectMap,
        parent: TriplesMap,
    ) -> WindowJoin:
        """Join two streams in the window that a referencing object map names."""
        window = self._check(triples_map, item)
        # A source with other uses is joined as a separate group, with only the terms that pairs
        # need.
        mine, theirs = (
            each if self._is_only_joined(each.logical) else each.alone() for each in (child, other)
        )
        makers = mine.generator(triples_map), theirs.generator(parent)
        keys = [join_keys(condition, item, *makers) for condition in item.conditions]
        times = []
        for number, (group, operand) in enumerate(((mine, child), (theirs, other))):
            known = self.stream_time(group.logical)
            at, problem = time_of(group.records, window, known, is_parent=bool(number))
            times.append(at)
            if problem is not None:
                operand.add_problem(problem)
        guard = makers[0].condition(item.condition) if item.condition is not None else None
        for operand, maker, operands in zip((child, other), makers, operands_of(item), strict=True):
            for problem in call_problems(maker, operands):
                operand.add_problem(problem)
        for problem in guard.problems if guard is not None else ():
            child.add_problem(problem)
        return WindowJoin(
            child=mine,
            parent=theirs,
            found=theirs.subject(parent).as_many(),
            keys=keys,
            guard=guard.holds if guard is not None else None,
            times=(times[0], times[1]),
            window=window,
            hosting=self,
            entries=list(mine.pairs(triples_map, pair, item, Terms(F.col(OBJECT)))),
            name=self._name(),
            how=f"join of {child.records.shown} with {other.records.shown} in a window: "
            f"{window_of(window)}, "
            + (f"on {len(keys)} conditions" if keys else "without conditions: every pair"),
            reporting=tuple(one for one in (mine, theirs) if one in (child, other)),
        )

    def _name(self) -> str:
        """Name a join; the same join has the same name whenever the mapping is compiled."""
        self._count += 1
        return str(self._count)

    def _check(self, triples_map: TriplesMap, item: RefObjectMap) -> JoinWindowMap:
        """The window of a stream join.

        Raises:
            MappingError: there is no window, or the run has no function that joins.
        """
        span = item.span or triples_map.span
        if item.window is None:
            raise MappingError(
                f"triples map {triples_map.name} joins two streams without a window",
                detail="Every record of both would have to be kept forever.",
                hint="Give the object map rmls:windowType, or join a stream with a file.",
                span=span,
            )
        if self.host is None:
            raise MappingError(
                f"triples map {triples_map.name} joins two streams, for which this run has no state",
                hint="Run it with `quadweir map --live`, or give quadweir.mapping.apply.apply "
                "host=quadweir.runtime.joins.frames.host_join.",
                span=span,
            )
        return item.window


@final
@dataclass(slots=True, kw_only=True)
class WindowJoin:
    """Triples whose objects are the subjects of another triples map, over two streams."""

    child: SourceGroup
    parent: SourceGroup
    found: Terms
    keys: list[tuple[Terms, Terms]]
    guard: Column | None
    times: tuple[Column, Column]
    window: JoinWindowMap
    hosting: Hosting
    entries: list[Entry]
    name: str
    how: str
    reporting: tuple[SourceGroup, ...] = ()

    def tagged(self, with_target: bool) -> DataFrame:
        """The quads of all pairs, and the dead letters of the sides that report them here."""
        frame = self._joined(with_letters=True)
        reasons = F.coalesce(letter_reasons(), F.array().cast("array<string>"))
        usable = F.col(REASONS).isNull()
        shown = F.col(rows.SOURCE)
        return self.apart(
            flatten(frame, reasons, usable, self.entries, with_target, shown, self.element)
        )

    @property
    def element(self) -> tuple[str, ...]:
        """The columns that identify a quad's element."""
        return self.child.element

    def apart(self, quads: DataFrame) -> DataFrame:
        """Set a position for each graph of one pair's quads."""
        return self.child.apart(quads)

    def terms(self, element: Sequence[str] = ()) -> DataFrame:
        """The terms of each pair of joined records; each pair is a new element."""
        del element
        return self._joined(with_letters=False)

    def _joined(self, *, with_letters: bool) -> DataFrame:
        is_timed = bool(self.element)
        # A join carries only texts.
        names = (rows.STREAM, rows.POSITION) if is_timed else ()
        brought = {name: F.col(name).cast("string") for name in names}
        # If only the window knows the parent's time, the parent's terms distinguish the pairs.
        theirs = F.col(rows.POSITION) if self.parent.is_timed else F.xxhash64(OBJECT)
        positioned = {PARENT + rows.POSITION: theirs.cast("string")} if is_timed else {}
        left, right = (
            each.with_letters(reports_bad=each in self.reporting) if with_letters else each.frame
            for each in (self.child, self.parent)
        )
        if self.guard is not None:
            left = left.where(self.guard)
        found = F.explode_outer(self.found.column) if self.found.many else self.found.column
        right = right.withColumns(dict(self.parent.columns)).withColumn(OBJECT, found)
        child = Side(
            frame=left,
            keys=[mine for mine, _ in self.keys],
            time=self.times[0],
            carried={**brought, **self._columns()},
        )
        other = Side(
            frame=right,
            keys=[theirs for _, theirs in self.keys],
            time=self.times[1],
            carried={OBJECT: F.col(OBJECT), **positioned},
        )
        host, known = self.hosting.host, self.hosting.stream_time
        assert host is not None
        streams = (known(self.child.logical), known(self.parent.logical))
        joined = host(
            JoinInput(
                frame=both(child, other),
                window=window_of(self.window),
                timing=timing_of(self.window, *streams),
                child=tuple(child.carried),
                parent=tuple(other.carried),
                passed=LETTER if with_letters else (),
                is_keyed=bool(self.keys),
                name=self.name,
                run=self.hosting.run,
            )
        )
        joined = joined.withColumns({name: as_array(F.col(name)) for name in self._arrays()})
        # The time is the later record's, as the join found it.
        return joined.withColumn(rows.POSITION, pair_position()) if is_timed else joined

    def _arrays(self) -> list[str]:
        return [name for name in self.child.columns if name.endswith(SEVERAL)]

    def _columns(self) -> dict[str, Column]:
        """The child's terms; arrays are carried as texts."""
        arrays = {name: as_text(self.child.columns[name]) for name in self._arrays()}
        return {**self.child.columns, **arrays}
