"""The queries of one template in one shard, and the kernel's shard that answers them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from quadweir.kernel.arrays import ALWAYS, Ints
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.network.spec import OUTPUT
from quadweir.runtime.wire.unpack import ArrivedRows, Late, Unpacker

if TYPE_CHECKING:
    from quadweir.kernel.answers import Answers
    from quadweir.runtime.network.changes import Joining
    from quadweir.runtime.network.spec import TemplateSpec

_SCHEMA: Final = to_arrow_schema(OUTPUT)
# More answers than this are handed on in several Arrow batches: a column holds at most 2 GiB.
_MOST_ROWS: Final = 1 << 19


@final
class Unit:
    """The queries of one template that joined together, or of an open template all of them.

    Args:
        spec: the template.
        since: elements that are not later than this are not seen (J1).
        key: the number of the shard among those that divide the template; None if one has it whole.
        letters: whether to write dead letters about late statements.

    Attributes:
        members: the numbers of the queries.
        bits: the numbers of the template's tests in the bits of a row.
        through: the instant through which it went.
    """

    def __init__(
        self, spec: TemplateSpec, since: int, key: int | None, *, letters: bool = False
    ) -> None:
        self.spec = spec
        self._since = since
        self._key = key
        self._letters = letters
        self.members: list[int] = []
        self.through = ALWAYS
        self._shard = spec.shards.make(key)
        # A template without tests has no bits either.
        self._bits: tuple[int, ...] | None = None

    @property
    def held(self) -> int:
        """How many mappings it holds."""
        return self._shard.held()

    @property
    def bits(self) -> tuple[int, ...]:
        return self._bits or ()

    @bits.setter
    def bits(self, bits: tuple[int, ...]) -> None:
        if bits == self._bits:
            return
        self._bits = bits
        self._masks: dict[str, int] = {}
        for number in bits:
            name, bit = word_of(number)
            self._masks[name] = self._masks.get(name, 0) | 1 << bit
        wanted = self.spec.shards.plan.wanted
        self._reader = Unpacker(self._shard, wanted, numbers=bits, letters=self._letters)

    def join(self, joining: Joining, since: int) -> None:  # noqa: ARG002 - for open templates
        """Let queries join."""
        self.members += joining.numbers

    def leave(self, numbers: Collection[int]) -> None:
        """Let queries leave; numbers of others are ignored."""
        self.members = [each for each in self.members if each not in numbers]

    def step(
        self, arrived: ArrivedRows, through: int, paused: Collection[int]
    ) -> tuple[list[pa.RecordBatch], Late]:
        """Take a batch and return its answers.

        Args:
            arrived: the rows of all queries.
            through: the instant through which everything is known.
            paused: the numbers of queries that give no answers for now.
        """
        answers, late = self._step(arrived, through)
        return self._written(answers, paused), late

    def replay(self, arrived: ArrivedRows, through: int) -> None:
        """Take a batch again, without answers."""
        self._step(arrived, through)

    def _step(self, arrived: ArrivedRows, through: int) -> tuple[Answers, Late]:
        mine = arrived.passing(self._masks)
        if self._since != ALWAYS:
            mine = mine.later_than(self._since)
        events, late = self._reader.events_of(mine, after=self.through)
        self.through = through
        return self._shard.step(events, through), late

    # --- answers ---

    def _written(self, answers: Answers, paused: Collection[int]) -> list[pa.RecordBatch]:
        count = len(answers)
        if not count:
            return []
        numbers = [each for each in self.members if each not in paused]
        place, query = _routed(answers, np.array(numbers, dtype=np.int64))
        found = []
        for at in range(0, len(place), _MOST_ROWS):
            here, whose = pa.array(place[at : at + _MOST_ROWS]), query[at : at + _MOST_ROWS]
            columns = {
                "query": pa.array(whose),
                "template": pa.array(np.full(len(whose), self.spec.number, dtype=np.int32)),
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

    # --- state ---

    def described(self) -> dict[str, Any]:
        """Return what a snapshot says besides the kernel's state."""
        return {"members": self.members, "through": self.through}

    def snapshot(self) -> bytes:
        """Return the kernel's state."""
        return self._shard.snapshot()

    def restore(self, described: dict[str, Any], data: bytes) -> None:
        """Take back what `described` and `snapshot` returned."""
        self.members = list(described["members"])
        self.through = described["through"]
        self._shard.restore(data)


def _routed(answers: Answers, members: Ints) -> tuple[Ints, Ints]:
    """Return which answer goes to which query, as two columns."""
    if answers.query is not None:
        chosen = np.flatnonzero(np.isin(answers.query, members))
        return chosen, answers.query[chosen]
    place = np.repeat(np.arange(len(answers)), len(members))
    return place, np.tile(members, len(answers))


def _lists(columns: list[pa.Array], count: int) -> pa.Array:
    """Return columns of equal length as one column of lists."""
    width = len(columns)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * width)
    if not width:
        return pa.ListArray.from_arrays(offsets, pa.array([], pa.string()))
    rows_first = np.arange(count * width).reshape(width, count).T.ravel()
    values = pa.concat_arrays([column.cast(pa.string()) for column in columns])
    return pa.ListArray.from_arrays(offsets, values.take(pa.array(rows_first)))
