"""Many queries in one place: those that differ in constants and window lengths share all their work.

Paper 004, its shared join and router. Queries are generalised to templates (`quadweir.sharing`);
every template has one shard, which keeps one set of windows, indexes and results for all of its
members. What cannot be shared has a shard of its own, so that any queries may be put together:
shared equals separate (P4).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pyarrow as pa

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.emptiness import needs_content
from quadweir.algebra.query import ContinuousQuery
from quadweir.errors import InternalError, PlanError, StateError
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ints
from quadweir.kernel.codec import StateKind, fingerprint, read_frame, write_frame
from quadweir.kernel.events import Events
from quadweir.kernel.shard import Shard
from quadweir.plan.nodes import Match, Source
from quadweir.plan.program import program_of
from quadweir.plan.shapes import answer_variables, is_eager
from quadweir.sharing import QueryTemplate, generalize


@final
@dataclass(frozen=True)
class _Part:
    """A shard, the queries that it answers, and where its leaves and sources stand."""

    shard: Shard
    queries: tuple[int, ...]
    leaves: tuple[int, ...]
    sources: tuple[int, ...]

    def events(self, events: Events) -> Events:
        """Pick what the shard is to hear, by its own places."""
        return Events(
            {n: events.matches[at] for n, at in enumerate(self.leaves) if at in events.matches},
            {n: events.elements[at] for n, at in enumerate(self.sources) if at in events.elements},
            {n: events.seen[at] for n, at in enumerate(self.sources) if at in events.seen},
        )


@final
class Group:
    """The windows, indexes and groups of many queries, with the interface of a `Shard`.

    Args:
        queries: The queries, at least one; all select the same variables. Best optimised.
        static: The static data that the engine holds.
        streams: The streams there are; only windows over a stream variable need them.
        records: Whether `delta` will be called.

    >>> from quadweir.syntax import parse
    >>> text = "SELECT ?x WHERE { STREAM <urn:s> [RANGE 1s] { <urn:user/%d> <urn:likes> ?x } }"
    >>> group = Group([parse(text % number, dialect="cqels") for number in range(1000)])
    >>> len(group.shards), len(group.leaves)
    (1, 1)
    """

    def __init__(
        self,
        queries: Sequence[ContinuousQuery],
        *,
        static: Dataset | None = None,
        streams: Sequence[str] = (),
        records: bool = True,
    ) -> None:
        if not queries:
            raise InternalError("a group without queries")
        self.queries = tuple(queries)
        self.variables = answer_variables(queries[0])
        for query in queries:
            if answer_variables(query) != self.variables:
                raise PlanError(
                    "queries of one group select different variables",
                    hint="Put them into different groups.",
                    span=query.span,
                )
        self._static = static
        self._streams = tuple(streams)
        self._records = records
        made = list(self._shards(range(len(queries)), elastic=True))
        self._parts: tuple[_Part, ...]
        self.leaves: tuple[Match, ...]
        self.sources: tuple[Source, ...]
        self._lay_out(made)
        self._steps = 0

    def _shards(
        self, numbers: Sequence[int], *, elastic: bool
    ) -> Iterable[tuple[Shard, tuple[int, ...]]]:
        """Make the shards of some of the queries, as few as there can be."""
        for template in generalize(
            (self.queries[number] for number in numbers), elastic=_is_elastic if elastic else _never
        ):
            mine = tuple(numbers[member.number] for member in template.members)
            if template.is_plain:
                yield self._shard(self.queries[mine[0]], None), mine
                continue
            renumbered = tuple(
                replace(member, number=number)
                for member, number in zip(template.members, mine, strict=True)
            )
            shard = self._shard(template.query, replace(template, members=renumbered))
            if shard.program.why_not is None or not (template.parameters or template.windows):
                yield shard, mine
            elif template.windows:
                yield from self._shards(mine, elastic=False)
            else:
                for number in mine:
                    yield self._shard(self.queries[number], None), (number,)

    def _shard(self, query: ContinuousQuery, template: QueryTemplate | None) -> Shard:
        program = program_of(query, streams=self._streams, template=template)
        return Shard(program, static=self._static, records=self._records)

    def _lay_out(self, made: list[tuple[Shard, tuple[int, ...]]]) -> None:
        """Return every leaf and source its place; what shards have in common has one."""
        if len(made) == 1:
            shard, queries = made[0]
            leaves, sources = range(len(shard.leaves)), range(len(shard.sources))
            self._parts = (_Part(shard, queries, tuple(leaves), tuple(sources)),)
            self.leaves, self.sources = shard.leaves, shard.sources
            return
        all_sources: dict[tuple[str, object], Source] = {}
        all_leaves: dict[Match, int] = {}
        parts = []
        for shard, queries in made:
            for source in shard.sources:
                found = replace(source, window=len(all_sources))
                all_sources.setdefault((source.stream, source.event_time), found)
            own = [all_sources[source.stream, source.event_time] for source in shard.sources]
            plans = [
                replace(plan, source=all_sources[plan.source.stream, plan.source.event_time])
                for plan in shard.leaves
            ]
            leaves_here = [all_leaves.setdefault(plan, len(all_leaves)) for plan in plans]
            parts.append(
                _Part(shard, queries, tuple(leaves_here), tuple(each.window for each in own))
            )
        self._parts = tuple(parts)
        self.leaves, self.sources = tuple(all_leaves), tuple(all_sources.values())

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards that do the work, one for each template."""
        return tuple(part.shard for part in self._parts)

    # --- running ---

    def step(self, events: Events, through: int) -> Answers:
        """Take what has arrived, and give the answers that are final, each with its query.

        Args:
            events: What has arrived, by the places of `leaves` and `sources`.
            through: The instant until which all is known; see `Shard.step`.
        """
        self._steps += 1
        if len(self._parts) == 1:
            (part,) = self._parts
            return _of_query(part.shard.step(events, through), part)
        found = [_of_query(p.shard.step(p.events(events), through), p) for p in self._parts]
        return Answers(
            self.variables,
            np.concatenate([each.t for each in found]),
            np.concatenate([each.sign for each in found]),
            tuple(
                pa.concat_arrays([each.values[column] for each in found])
                for column in range(len(self.variables))
            ),
            np.concatenate([each.query for each in found if each.query is not None]),
        )

    def held(self) -> int:
        """How many mappings are remembered, those of intermediate results included."""
        return sum(part.shard.held() for part in self._parts)

    # --- state ---

    @property
    def fingerprint(self) -> bytes:
        """Name the queries and all that their state depends on."""
        return fingerprint("group", *(part.shard.fingerprint for part in self._parts))

    def snapshot(self) -> bytes:
        """Return the whole state as bytes; they grow with what is held."""
        return self._together(StateKind.SNAPSHOT, [part.shard.snapshot() for part in self._parts])

    def delta(self) -> bytes:
        """Return what the last step changed as bytes; they grow with what it let in."""
        return self._together(StateKind.DELTA, [part.shard.delta() for part in self._parts])

    def _together(self, kind: StateKind, parts: list[bytes]) -> bytes:
        if len(parts) == 1:
            return parts[0]
        arrays = {str(n): np.frombuffer(each, dtype=np.uint8) for n, each in enumerate(parts)}
        return write_frame(kind, self.fingerprint, arrays)

    def restore(self, snapshot: bytes | None, deltas: Sequence[bytes] = ()) -> None:
        """Restore the state of a group of the same queries; it gives no answer twice.

        Args:
            snapshot: What `snapshot` returned; None to start with nothing.
            deltas: What `delta` returned after each step since then.

        Raises:
            StateError: Bytes are damaged, or belong to other queries, or to another release.
        """
        if self._steps:
            raise InternalError("state can only be restored before the first step")
        parts = [self._apart(StateKind.SNAPSHOT, snapshot)] if snapshot is not None else []
        changes = [self._apart(StateKind.DELTA, each) for each in deltas]
        for number, part in enumerate(self._parts):
            own = parts[0][number] if parts else None
            part.shard.restore(own, [each[number] for each in changes])

    def _apart(self, kind: StateKind, data: bytes) -> list[bytes]:
        if len(self._parts) == 1:
            return [data]
        arrays = read_frame(kind, self.fingerprint, data)
        try:
            return [arrays[str(number)].tobytes() for number in range(len(self._parts))]
        except KeyError as error:
            raise StateError(f"a {kind.name.lower()} that lacks parts") from error


def _of_query(answers: Answers, part: _Part) -> Answers:
    if answers.query is not None:
        return answers
    return replace(answers, query=ints(len(answers)) + part.queries[0])


def _is_elastic(query: ContinuousQuery) -> bool:
    """Return whether a query's answers can be picked out of those over longer windows (E1)."""
    return is_eager(query) and needs_content(query.pattern)


def _never(query: ContinuousQuery) -> bool:
    return False


__all__ = ["Group"]
