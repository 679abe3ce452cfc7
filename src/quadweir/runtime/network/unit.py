"""The queries of one template in one shard, and the kernel's shard that answers them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from quadweir.errors import UnsupportedError
from quadweir.kernel.arrays import ALWAYS, Ints
from quadweir.kernel.takeover import take_over
from quadweir.plan.backfill import Donors
from quadweir.plan.template import TemplateMember
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.network.spec import OUTPUT
from quadweir.runtime.wire.unpack import ArrivedRows, Late, Unpacker
from quadweir.terms import BlankNode, parse_term

if TYPE_CHECKING:
    from quadweir.kernel.answers import Answers
    from quadweir.runtime.network.changes import Joining
    from quadweir.runtime.network.spec import TemplateSpec
    from quadweir.terms import Ground

_SCHEMA: Final = to_arrow_schema(OUTPUT)
# More answers than this are handed on in several Arrow batches: a column holds at most 2 GiB.
_MOST_ROWS: Final = 1 << 19

UnitMember: TypeAlias = tuple[tuple[str, ...], tuple[int, ...], int]
"""The spellings of a query's constants, its window lengths, and the instant it sees elements after."""


class Part(NamedTuple):
    """What one template of a unit did in a batch.

    Attributes:
        batches: the answers of its queries.
        microseconds: how long that took.
        held: how many mappings it holds.
    """

    batches: list[pa.RecordBatch]
    microseconds: int
    held: int

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return sum(each.num_rows for each in self.batches)


class Stepped(NamedTuple):
    """What a unit did in a batch.

    Attributes:
        parts: what each of its templates did, by number.
        late: the late statements.
        failed: the templates that failed, and so are no more in the unit, and why.
    """

    parts: dict[int, Part]
    late: Late
    failed: dict[int, tuple[list[int], Exception]]


@final
class Unit:
    """The queries of one template that joined together, or of an open template all of them.

    Args:
        spec: the template.
        since: elements that are not later than this are not seen (J1).
        key: the number of the shard among those that divide the template; None if one has it whole.
        letters: whether to write dead letters about late statements.

    Attributes:
        through: the instant through which it went.
    """

    def __init__(
        self, spec: TemplateSpec, since: int, key: int | None, *, letters: bool = False
    ) -> None:
        self.spec = spec
        self._since = since
        self._letters = letters
        self._members: dict[int, UnitMember] = {}
        # For a query with backfill, the instant at which it joined: it reports later than that.
        self._joined: dict[int, int] = {}
        self.through = ALWAYS
        self._shard = spec.shards.make(key)
        # A template without tests has no bits either.
        self._bits: tuple[int, ...] | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        return self.spec.streams

    @property
    def templates(self) -> list[int]:
        """The numbers of the templates that have queries here."""
        return [self.spec.number] if self._members else []

    def match(self, known: Mapping[int, tuple[int, ...]]) -> None:
        """Learn the numbers of the tests of each template, in the bits of a row."""
        bits = known.get(self.spec.number, self._bits or ())
        if bits == self._bits:
            return
        self._bits = bits
        self._masks: dict[str, int] = {}
        for number in bits:
            name, bit = word_of(number)
            self._masks[name] = self._masks.get(name, 0) | 1 << bit
        wanted = self.spec.shards.plan.wanted
        self._reader = Unpacker(self._shard, wanted, numbers=bits, letters=self._letters)

    @property
    def members(self) -> list[int]:
        """The numbers of the queries."""
        return list(self._members)

    def join(
        self,
        spec: TemplateSpec,  # noqa: ARG002 - it has one template
        joining: Joining,
        since: Mapping[int, int],
        joined: int,
    ) -> None:
        """Let queries join.

        Args:
            spec: their template.
            joining: the queries.
            since: for each, the instant after which it sees elements; if that is earlier than it
                joined, it sees what windows hold (J5).
            joined: the instant at which they join; they report later than that.
        """
        self._add(joining_members(joining, since))
        self._joined |= early_members(since, joined)

    def donors(self, template: int) -> Donors:  # noqa: ARG002 - it has one template
        """Return the queries of a template, for those that want to see what they see."""
        return Donors(self.spec.needs, self._members.values())

    def _add(self, members: Mapping[int, UnitMember]) -> None:
        self._shard.change_members(as_members(members), ())
        self._members |= members

    def leave(self, numbers: Collection[int]) -> None:
        """Let queries leave; numbers of others are ignored."""
        gone = [each for each in numbers if each in self._members]
        if gone:
            self._shard.change_members((), gone)
            for each in gone:
                del self._members[each]
                self._joined.pop(each, None)

    def drop(self, template: int) -> list[int]:
        """Let all queries of a template go at once, since it failed; return their numbers."""
        assert template == self.spec.number
        gone, self._members = self._members, {}
        return list(gone)

    def step(self, arrived: ArrivedRows, through: int, paused: Collection[int]) -> Stepped:
        """Take a batch and return its answers.

        Args:
            arrived: the rows of all queries.
            through: the instant through which everything is known.
            paused: the numbers of queries that give no answers for now.
        """
        began = time.perf_counter()
        number = self.spec.number
        try:
            answers, late = self._step(arrived, through)
            batches = written(answers, number, paused, self._joined)
            self._joined = reporting_later(self._joined, through)
        except Exception as error:  # whatever it is, the other queries go on
            return Stepped({}, Late(), {number: (self.drop(number), error)})
        took = round((time.perf_counter() - began) * 1e6)
        return Stepped({number: Part(batches, took, self._shard.held())}, late, {})

    def replay(self, arrived: ArrivedRows, through: int) -> None:
        """Take a batch again, without answers."""
        self._step(arrived, through)
        self._joined = reporting_later(self._joined, through)

    def _step(self, arrived: ArrivedRows, through: int) -> tuple[Answers, Late]:
        mine = arrived.passing(self._masks)
        since = max(self._since, self._shard.since)
        if since != ALWAYS:
            mine = mine.later_than(since)
        events, late = self._reader.events_of(mine, after=self.through)
        self.through = through
        return self._shard.step(events, through), late

    # --- state ---

    def described(self) -> dict[str, Any]:
        """Return what a snapshot says besides the kernel's state."""
        return {
            "members": described_members(self._members),
            "through": self.through,
            "joined": [*self._joined.items()],
            "static": self.spec.shards.static_digest,
            "held": self.spec.held,
        }

    def snapshot(self) -> bytes:
        """Return the kernel's state."""
        return self._shard.snapshot()

    def restore(self, described: dict[str, Any], data: bytes) -> None:
        """Take back what `described` and `snapshot` returned, maybe over other static data.

        Raises:
            UnsupportedError: with this static data, the shards of the template hold other rows.
            StateError: the state is damaged.
        """
        static = self.spec.shards.static_digest
        is_other = described.get("static", static) != static
        if is_other and described["held"] != self.spec.held:
            raise other_rows()
        self._add(read_members(described["members"]))
        self.through = described["through"]
        self._joined = dict(described.get("joined", []))
        if is_other:
            take_over(self._shard, data)
        else:
            self._shard.restore(data)


def joining_members(joining: Joining, since: Mapping[int, int]) -> dict[int, UnitMember]:
    """Return queries that join, each with the instant after which it sees elements."""
    given = zip(joining.numbers, joining.constants, joining.ranges, strict=True)
    return {number: (constants, ranges, since[number]) for number, constants, ranges in given}


def early_members(since: Mapping[int, int], joined: int) -> dict[int, int]:
    """Return the queries that see elements of before they joined, with that instant."""
    return {number: joined for number, at in since.items() if at < joined}


def reporting_later(joined: Mapping[int, int], through: int) -> dict[int, int]:
    """Return those of these queries that may still have answers of before they joined."""
    return {number: at for number, at in joined.items() if at > through}


def as_members(members: Mapping[int, UnitMember]) -> list[TemplateMember]:
    """Return queries as the kernel knows them."""
    return [
        TemplateMember(number, tuple(map(_ground, constants)), ranges, since)
        for number, (constants, ranges, since) in members.items()
    ]


def described_members(members: Mapping[int, UnitMember]) -> list[list[Any]]:
    """Return queries as JSON can hold them."""
    return [[number, *each] for number, each in members.items()]


def read_members(described: Iterable[Sequence[Any]]) -> dict[int, UnitMember]:
    """Read what `described_members` returned."""
    return {
        number: (tuple(constants), tuple(ranges), since)
        for number, constants, ranges, since in described
    }


def written(
    answers: Answers, template: int, paused: Collection[int], joined: Mapping[int, int]
) -> list[pa.RecordBatch]:
    """Return the answers of a template as rows.

    Args:
        answers: the answers.
        template: the number of the template.
        paused: the numbers of queries that give no answers.
        joined: queries that report only later than some instant.
    """
    count = len(answers)
    if not count:
        return []
    assert answers.query is not None, "answers of a template name their queries"
    place, query = np.arange(count), answers.query
    if paused:
        place = np.flatnonzero(~np.isin(query, np.fromiter(paused, dtype=np.int64)))
        query = query[place]
    if joined:
        place = place[answers.t[place] > _instants_of(query, joined)]
        query = answers.query[place]
    found = []
    for at in range(0, len(place), _MOST_ROWS):
        here, whose = pa.array(place[at : at + _MOST_ROWS]), query[at : at + _MOST_ROWS]
        columns = {
            "query": pa.array(whose),
            "template": pa.array(np.full(len(whose), template, dtype=np.int32)),
            "t": pa.array(answers.t).take(here),
            "sign": pa.array(np.where(answers.sign > 0, "+", "-")).take(here),
            "values": _lists([column.take(here) for column in answers.values], len(whose)),
        }
        found.append(
            pa.RecordBatch.from_arrays(
                [
                    columns.get(each.name, pa.nulls(len(whose), each.type)).cast(each.type)
                    for each in _SCHEMA
                ],
                schema=_SCHEMA,
            )
        )
    return found


def _instants_of(query: Ints, joined: Mapping[int, int]) -> Ints:
    """Return the instant up to which each query does not report."""
    numbers = np.array(sorted(joined), dtype=np.int64)
    instants = np.array([joined[each] for each in numbers.tolist()], dtype=np.int64)
    at = np.minimum(np.searchsorted(numbers, query), len(numbers) - 1)
    return np.where(numbers[at] == query, instants[at], ALWAYS)


def other_rows() -> UnsupportedError:
    """Return the error of a template whose shards cannot continue over new static data."""
    return UnsupportedError(
        "with the new static data, the shards of the query would hold other rows",
        hint="Register it again: its windows then start empty.",
    )


def _ground(spelling: str) -> Ground:
    term = parse_term(spelling)
    assert not isinstance(term, BlankNode), "no query text names a blank node of a stream"
    return term


def _lists(columns: list[pa.Array], count: int) -> pa.Array:
    """Return columns of equal length as one column of lists."""
    width = len(columns)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    if not width:
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))
    rows_first = np.arange(count * width).reshape(width, count).T.ravel()
    values = pa.concat_arrays([column.cast(pa.string()) for column in columns])
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(rows_first)))
