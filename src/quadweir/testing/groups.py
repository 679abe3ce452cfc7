"""Many queries over the same streams that come and go, as a running network has them.

What Spark does for a network, this does for tests: it finds the shape of each query, keeps a shard
for each template, drops late elements, and hands every answer to its query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias, final

import pyarrow as pa

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.query import ContinuousQuery
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.events import Events
from quadweir.kernel.heads import HeadSpec
from quadweir.kernel.shard import Shard
from quadweir.kernel.sharedshard import SharedShard
from quadweir.kernel.takeover import take_over
from quadweir.plan.backfill import Donors, find_needs, why_not_backfilled
from quadweir.plan.common import can_share
from quadweir.plan.program import Program, program_of
from quadweir.plan.shapes import answer_variables
from quadweir.sharing import QueryShape, Shaped, Shapes, TemplateMember, template_of
from quadweir.sources.streamfiles import Element
from quadweir.testing.answers import Answer
from quadweir.testing.elements import event_time
from quadweir.testing.shards import as_answers, events_of

Saved: TypeAlias = dict[tuple[QueryShape, int | None], bytes]


@final
class QueryGroup:
    """The queries of a network without Spark.

    Args:
        static: The static data.
        streams: The streams there are.
        delay_ms: The allowed delay (S4).
        together: Whether templates share a network, if they can.

    Attributes:
        since: The instant after which each query that ever was there sees elements (J1, J5).
        joined: The instant after which each query reports; earlier only with backfill.
        taken: The elements that were not late, with their times, in order of arrival.
        shards: The shard of each template, with the instant at which its members joined, if that
        must be one.
        answers: The answers of each query so far.
    """

    def __init__(
        self,
        *,
        static: Dataset,
        streams: Sequence[str],
        delay_ms: int,
        together: bool = False,
    ) -> None:
        self.static = static
        self.streams = tuple(streams)
        self.delay_ms = delay_ms
        self.since: dict[int, int] = {}
        self.joined: dict[int, int] = {}
        self.taken: list[tuple[int, Element]] = []
        self.shards: dict[tuple[QueryShape, int | None], Shard] = {}
        self.answers: dict[int, list[Answer]] = defaultdict(list)
        self.shared = SharedShard() if together else None
        self._shapes = Shapes(self.streams)
        self._queries: dict[int, ContinuousQuery] = {}
        self._members: dict[tuple[QueryShape, int | None], dict[int, TemplateMember]] = {}
        self._highest: dict[str, int] = {}

    @property
    def watermark(self) -> int:
        """The lowest of the streams' highest times, less the delay."""
        if any(stream not in self._highest for stream in self.streams):
            return ALWAYS
        return min(self._highest[stream] for stream in self.streams) - self.delay_ms

    # --- queries ---

    def change(
        self,
        added: Mapping[int, ContinuousQuery],
        removed: Collection[int],
        *,
        backfilled: Collection[int] = (),
    ) -> None:
        """Let queries come and go, by their numbers.

        Args:
            added: Those that come.
            removed: Those that go.
            backfilled: Those that see what windows hold already, where they can (J5).
        """
        coming: dict[tuple[QueryShape, int | None], list[TemplateMember]] = defaultdict(list)
        leaving: dict[tuple[QueryShape, int | None], list[int]] = defaultdict(list)
        joined = max(self._highest.values(), default=ALWAYS)
        for number, query in added.items():
            shaped = self._shapes.of(query)
            since = self._backfill(shaped) if number in backfilled else None
            since = joined if since is None else since
            key = (shaped.shape, since if shaped.shape.one_since else None)
            coming[key].append(shaped.member(number, since))
            self._queries[number] = query
            self.since[number], self.joined[number] = since, joined
        for key, members in self._members.items():
            for number in [each for each in members if each in removed]:
                leaving[key].append(number)
                del members[number]
        for key, new in coming.items():
            self._members.setdefault(key, {}).update({each.number: each for each in new})
        for key in {**coming, **leaving}:
            program = self._program(key[0])
            if self.shared is not None and can_share(program):
                if key[0].name not in self.shared.heads:
                    head = HeadSpec(key[0].name, program, coming[key], self.static)
                    self.shared.add(head)
                else:
                    self.shared.change_members(key[0].name, coming[key], leaving[key])
                if not self._members[key]:
                    self.shared.remove(key[0].name)
                continue
            if key not in self.shards:
                self.shards[key] = Shard(program, static=self.static)
            self.shards[key].change_members(coming[key], leaving[key])

    def _backfill(self, shaped: Shaped) -> int | None:
        """Return since when a query can see what is held."""
        program = self._program(shaped.shape)
        if why_not_backfilled(program):
            return None
        needs = find_needs(program)
        found = []
        for (shape, _), members in self._members.items():
            if shape == shaped.shape:
                known = ((each.constants, each.ranges, each.since) for each in members.values())
                since = Donors(needs, known).find(shaped.constants, shaped.ranges).since
                found += [] if since is None else [since]
        return min(found, default=None)

    def _program(self, shape: QueryShape, members: Iterable[TemplateMember] = ()) -> Program:
        template = template_of(shape, members)
        return program_of(template.query, streams=self.streams, template=template)

    # --- elements ---

    def push(self, elements: Iterable[Element]) -> None:
        """Take elements in the order in which they arrive."""
        taken: list[tuple[int, Element]] = []
        for element in elements:
            time = event_time(element, None)
            highest = self._highest.get(element.stream, time)
            if time <= self.watermark and not time == highest == self.watermark:
                continue
            self._highest[element.stream] = max(time, highest)
            taken.append((time, element))
        self.taken += taken
        through = self.watermark if self.delay_ms > 0 else max(self.watermark - 1, ALWAYS)
        for shard in self.shards.values():
            self._give(shard.step(events_of(shard, self._by_source(shard, taken)), through))
        if self.shared is not None:
            events = events_of(self.shared, self._by_source(self.shared, taken))
            for answers in self.shared.step(events, through).values():
                self._give(answers)

    def _by_source(
        self, shard: Shard | SharedShard, taken: list[tuple[int, Element]]
    ) -> dict[int, list[tuple[int, Element]]]:
        found = {
            place: [each for each in taken if each[1].stream == source.stream]
            for place, source in enumerate(shard.sources)
        }
        return {place: these for place, these in found.items() if these}

    def finish(self) -> None:
        """End all streams."""
        for shard in self.shards.values():
            self._give(shard.step(Events(), FOREVER))
        if self.shared is not None:
            for answers in self.shared.step(Events(), FOREVER).values():
                self._give(answers)

    def _give(self, answers: Answers) -> None:
        assert answers.query is not None
        for number in set(answers.query.tolist()):
            own = (answers.query == number) & (answers.t > self.joined[number])
            mask = pa.array(own)
            values = tuple(column.filter(mask) for column in answers.values)
            query = self._queries[number]
            # A template has other names for the variables, in the same order.
            variables = answer_variables(query)
            mine = Answers(variables, answers.t[own], answers.sign[own], values)
            self.answers[number] += as_answers(mine, query)

    # --- state ---

    def saved(self) -> Saved:
        """The snapshots of all shards."""
        return {key: shard.snapshot() for key, shard in self.shards.items()}

    def deltas(self) -> Saved:
        """What the last step changed, for all shards."""
        return {key: shard.delta() for key, shard in self.shards.items()}

    def reload(self) -> None:
        """Read static data again: all shards take over what their windows held."""
        for key, before in self.shards.items():
            shard = Shard(self._program(key[0], self._members[key].values()), static=self.static)
            take_over(shard, before.snapshot())
            self.shards[key] = shard
        if self.shared is not None:
            again = SharedShard()
            again.take_over(self._heads(self.shared), self.shared.snapshot())
            self.shared = again

    def restart(self, snapshots: Saved, deltas: Sequence[Saved]) -> None:
        """Make all shards again, with the members of now and the state that was saved."""
        for key in self.shards:
            shard = Shard(self._program(key[0], self._members[key].values()), static=self.static)
            shard.restore(snapshots.get(key), [each[key] for each in deltas if key in each])
            self.shards[key] = shard
        if self.shared is not None:
            again = SharedShard()
            again.restore(self._heads(self.shared), self.shared.snapshot())
            self.shared = again

    def _heads(self, shared: SharedShard) -> list[HeadSpec]:
        heads = []
        for name in reversed(shared.heads):  # it makes no difference who comes first
            (key,) = (each for each in self._members if each[0].name == name)
            members = tuple(self._members[key].values())
            heads.append(HeadSpec(name, self._program(key[0]), members, self.static))
        return heads
