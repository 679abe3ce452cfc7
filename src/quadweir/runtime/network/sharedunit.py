"""The queries of a group of templates in one shard: equal joins of different templates run once."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.heads import HeadSpec
from quadweir.kernel.sharedshard import SharedShard
from quadweir.plan.backfill import Donors
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.network.unit import (
    Part,
    Stepped,
    UnitMember,
    as_members,
    described_members,
    early_members,
    joining_members,
    other_rows,
    read_members,
    reporting_later,
    written,
)
from quadweir.runtime.wire.unpack import ArrivedRows, Late, Unpacker

if TYPE_CHECKING:
    from quadweir.kernel.answers import Answers
    from quadweir.kernel.staticrelations import ShardShare
    from quadweir.plan.matchtests import MatchTest
    from quadweir.runtime.network.changes import Joining
    from quadweir.runtime.network.spec import TemplateSpec


@final
class SharedUnit:
    """All queries of the templates of a group, which come and go.

    All of them read the same streams, so they go through the same instants.

    Args:
        share: what this shard has of static relations that shards divide among them.
        letters: whether to write dead letters about late statements.

    Attributes:
        through: the instant through which it went.
    """

    def __init__(self, share: ShardShare | None, *, letters: bool = False) -> None:
        self.through = ALWAYS
        self._letters = letters
        self._shard = SharedShard(share=share)
        self._specs: dict[int, TemplateSpec] = {}
        self._members: dict[int, dict[int, UnitMember]] = {}
        # For a query with backfill, the instant at which it joined: it reports later than that.
        self._joined: dict[int, int] = {}
        self._bits: dict[int, tuple[int, ...]] = {}
        self._masks: dict[str, int] = {}
        self._reader: Unpacker | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return next(iter(self._specs.values())).streams

    @property
    def templates(self) -> list[int]:
        """The numbers of the templates that have queries here."""
        return list(self._specs)

    @property
    def members(self) -> list[int]:
        """The numbers of the queries."""
        return [number for own in self._members.values() for number in own]

    # --- queries ---

    def join(
        self, spec: TemplateSpec, joining: Joining, since: Mapping[int, int], joined: int
    ) -> None:
        """Let queries join; see `Unit.join`."""
        number, members = spec.number, joining_members(joining, since)
        if number in self._specs:
            self._shard.change_members(str(number), as_members(members), ())
        else:
            self._shard.add(_head(spec, members))
            self._specs[number], self._reader = spec, None
        self._members[number] = self._members.get(number, {}) | members
        self._joined |= early_members(since, joined)

    def donors(self, template: int) -> Donors:
        """Return the queries of a template, for those that want to see what they see."""
        return Donors(self._specs[template].needs, self._members[template].values())

    def leave(self, numbers: Collection[int]) -> None:
        """Let queries leave; numbers of others are ignored."""
        for template, members in list(self._members.items()):
            gone = [each for each in numbers if each in members]
            if len(gone) == len(members):
                self.drop(template)
            elif gone:
                self._shard.change_members(str(template), (), gone)
                for each in gone:
                    del members[each]
                    self._joined.pop(each, None)

    def drop(self, template: int) -> list[int]:
        """Let all queries of a template go at once; return their numbers."""
        if str(template) in self._shard.heads:
            self._shard.remove(str(template))
        self._specs.pop(template, None)
        self._reader = None
        gone = list(self._members.pop(template, {}))
        for each in gone:
            self._joined.pop(each, None)
        return gone

    # --- a batch ---

    def match(self, known: Mapping[int, tuple[int, ...]]) -> None:
        """Learn the numbers of the tests of each template, in the bits of a row."""
        bits = {each: known.get(each, self._bits.get(each, ())) for each in self._specs}
        if bits == self._bits and self._reader is not None:
            return
        self._bits = bits
        tests: dict[int, MatchTest] = {}
        for template, spec in self._specs.items():
            places = self._shard.places.of(str(template))
            for bit, test in zip(bits[template], spec.shards.plan.wanted, strict=True):
                leaves = tuple((places[leaf], parts) for leaf, parts in test.leaves)
                known_leaves = tests[bit].leaves if bit in tests else ()
                tests[bit] = replace(test, leaves=tuple(dict.fromkeys((*known_leaves, *leaves))))
        self._masks = {}
        for number in tests:
            name, bit = word_of(number)
            self._masks[name] = self._masks.get(name, 0) | 1 << bit
        self._reader = Unpacker(
            self._shard, [*tests.values()], numbers=[*tests], letters=self._letters
        )

    def step(self, arrived: ArrivedRows, through: int, paused: Collection[int]) -> Stepped:
        """Take a batch and return its answers; see `Unit.step`."""
        began = time.perf_counter()
        try:
            found, late = self._step(arrived, through)
        except Exception as error:  # whatever it is, the other queries go on
            return Stepped({}, Late(), {each: (self.drop(each), error) for each in self.templates})
        failed = {
            int(name): (self.drop(int(name)), error) for name, error in self._shard.failed.items()
        }
        batches = {
            template: written(found[str(template)], template, paused, self._joined)
            for template in self._specs
        }
        self._joined = reporting_later(self._joined, through)
        spent, held = self._shard.microseconds(), self._shard.held()
        # Reading rows and writing answers, in equal parts.
        others = (time.perf_counter() - began) * 1e6 - sum(spent.values())
        each = max(0.0, others) / max(1, len(batches))
        parts = {
            template: Part(own, round(spent[str(template)] + each), held[str(template)])
            for template, own in batches.items()
        }
        return Stepped(parts, late, failed)

    def replay(self, arrived: ArrivedRows, through: int) -> None:
        """Take a batch again, without answers."""
        self._step(arrived, through)
        for error in self._shard.failed.values():
            raise error
        self._joined = reporting_later(self._joined, through)

    def _step(self, arrived: ArrivedRows, through: int) -> tuple[dict[str, Answers], Late]:
        if self._reader is None:
            self.match(self._bits)
        assert self._reader is not None
        mine = arrived.passing(self._masks)
        if self._shard.since != ALWAYS:
            mine = mine.later_than(self._shard.since)
        events, late = self._reader.events_of(mine, after=self.through)
        self.through = through
        return self._shard.step(events, through), late

    # --- state ---

    def described(self) -> dict[str, Any]:
        """Return what a snapshot says besides the kernel's state."""
        members = [[template, described_members(own)] for template, own in self._members.items()]
        return {
            "templates": members,
            "through": self.through,
            "joined": [*self._joined.items()],
            "static": [
                [each, spec.shards.static_digest, spec.held] for each, spec in self._specs.items()
            ],
        }

    def snapshot(self) -> bytes:
        """Return the kernel's state."""
        return self._shard.snapshot()

    def restore(
        self, described: dict[str, Any], specs: Mapping[int, TemplateSpec], data: bytes
    ) -> None:
        """Take back what `described` and `snapshot` returned, maybe over other static data.

        Args:
            described: what `described` returned.
            specs: has the templates.
            data: what `snapshot` returned.

        Raises:
            UnsupportedError: with this static data, the shards of a template hold other rows.
            StateError: the state is damaged.
        """
        is_other = False
        for template, static, held in described.get("static", []):
            if specs[template].shards.static_digest != static:
                is_other = True
                if specs[template].held != held:
                    raise other_rows()
        self.through = described["through"]
        self._joined = dict(described.get("joined", []))
        for template, members in described["templates"]:
            self._specs[template] = specs[template]
            self._members[template] = read_members(members)
        heads = [_head(spec, self._members[each]) for each, spec in self._specs.items()]
        if is_other:
            self._shard.take_over(heads, data)
        else:
            self._shard.restore(heads, data)


def _head(spec: TemplateSpec, members: Mapping[int, UnitMember]) -> HeadSpec:
    stage = spec.shards.plan.first
    return HeadSpec(
        str(spec.number), stage.program, as_members(members), spec.shards.static, stage.key
    )
