"""A shard of a stream join, as every host runs it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from quadweir import rows
from quadweir.errors import StateError
from quadweir.kernel.arrays import Ints
from quadweir.kernel.streamjoin.clock import Heard
from quadweir.kernel.streamjoin.windows import JoinTiming, JoinWindow
from quadweir.mapping.joins import KEY, shown_key
from quadweir.runtime.joins.pack import NUMBERS, timed_only, unpack, write_table
from quadweir.runtime.shard.base import Counts
from quadweir.runtime.shard.facts import Fold
from quadweir.runtime.wire.deadletters import late_reason
from quadweir.runtime.wire.pack import BLOB

if TYPE_CHECKING:
    from quadweir.kernel.streamjoin.join import Pairs, StreamJoin

TOTALS: Final = ("late", "without_key", "pairs", "held", "keys", "evictions", "bytes")
WINDOWS: Final = "windows"
JOIN_FACTS: Final[Mapping[str, Fold]] = {
    **dict.fromkeys(TOTALS, Fold.SUM),
    "through": Fold.LEAST,
    "kernel_ms": Fold.MOST,
    "replayed": Fold.SUM,
    WINDOWS: Fold.LIST,
}
"""What a shard of a join reports about a batch; `windows` lists those that hold most, as JSON."""
_MOST_WINDOWS: Final = 20
_MOST_PAIRS: Final = 1 << 16
"""How many pairs make a blob."""
PAIRS: Final = "_quadweir_pairs"
PAIR_TIMES: Final = ("_quadweir_child_time", "_quadweir_parent_time")
JOIN_OUTPUT: Final = StructType(
    [
        StructField(BLOB, BinaryType()),
        *(
            StructField(name, StringType() if fold is Fold.LIST else LongType())
            for name, fold in JOIN_FACTS.items()
        ),
    ]
)
"""Pairs leave as blobs, which cost Spark's state operator one row each instead of many."""


@final
@dataclass(frozen=True)
class JoinSpec:
    """What a worker needs to make a shard of a join: `base.StageSpec`.

    Attributes:
        window: which records may meet.
        timing: how late they may be.
        child: the columns that a child brings into a pair.
        parent: those that a parent brings.
        passed: the columns of dead letters.
        shards: the shuffle keys of the shards, in their order.
    """

    window: JoinWindow
    timing: JoinTiming
    child: tuple[str, ...]
    parent: tuple[str, ...]
    passed: tuple[str, ...]
    shards: tuple[int, ...]
    stage: int = field(default=0, init=False)
    sends: bool = field(default=False, init=False)

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns that records bring into pairs."""
        return self.child + self.parent

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that come out of the join again."""
        return self.carried + self.passed

    @property
    def output(self) -> StructType:
        return JOIN_OUTPUT

    @property
    def facts(self) -> Mapping[str, Fold]:
        return JOIN_FACTS

    def host(self, key: int) -> HostedJoin:  # noqa: ARG002 - all shards are alike
        return HostedJoin(self)

    def grow(self, parts: Iterable[Any]) -> None:
        """A stream join stays as it is."""

    def counted(self, batches: Sequence[pa.RecordBatch]) -> Counts:
        return Counts(sum(each.num_rows for each in batches))

    def make(self) -> StreamJoin:
        """Make the join of one shard, empty."""
        from quadweir.kernel.streamjoin.join import StreamJoin

        return StreamJoin(self.window, self.timing, self.child, self.parent)


@final
class HostedJoin:
    """A shard of a join with what it needs to take blobs: `base.Hosted`."""

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._join = spec.make()

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - pairs need no names
        began = time.monotonic()
        table, order, heard = unpack(blobs)
        if blobs:
            yield from self._taken(table, order, heard)
        facts = {
            **self._join.facts(),
            "through": self._join.watermark,
            "kernel_ms": round((time.monotonic() - began) * 1000),
            "replayed": replayed,
        }
        yield _output(None, facts | {WINDOWS: self._windows()})

    def _taken(self, table: pa.Table, order: Ints, heard: Heard) -> Iterator[pa.RecordBatch]:
        timed = timed_only(table, order)
        for pairs in self._step(*timed, heard):
            yield _output(_listed(self._columns(pairs)))
        for letters in (self._letters(table), self._late(timed[0])):
            if letters.num_columns and letters.num_rows:
                columns = dict(zip(letters.column_names, letters.columns, strict=True))
                yield _output(_listed({PAIRS: np.arange(letters.num_rows), **columns}))

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        return blobs

    def mark(self) -> int:
        return 0

    def replay(self, blobs: list[bytes], mark: int) -> None:  # noqa: ARG002 - times are in the blobs
        table, order, heard = unpack(blobs)
        for _ in self._step(*timed_only(table, order), heard):
            pass

    @property
    def join(self) -> StreamJoin:
        """The join itself, for use outside of a run."""
        return self._join

    def note(self) -> str:
        return self._fingerprint()

    def resume(self, note: str) -> None:
        if note != self._fingerprint():
            raise StateError(
                "the checkpoint was made for another join, or for another number of shards",
                hint="Start with an empty checkpoint, or undo the change of the mapping and of "
                "spark.sql.shuffle.partitions.",
            )

    def snapshot(self) -> bytes:
        return self._join.snapshot()

    def restore(self, data: bytes) -> None:
        self._join.restore(data)

    def _fingerprint(self) -> str:
        return f"{self._join.fingerprint.hex()}/{len(self._spec.shards)}"

    def _columns(self, pairs: Pairs) -> dict[str, Ints | pa.ChunkedArray]:
        """Return which records met, and what each of them brings."""
        children, parents = pairs.children, pairs.parents
        found = {PAIRS: children.place << 32 | parents.place}
        for name, times in zip(PAIR_TIMES, (children.time, parents.time), strict=True):
            found[name] = times
        for each in (children, parents):
            assert each.carried is not None
            found |= dict(zip(each.carried.column_names, each.carried.columns, strict=True))
        return found

    def _letters(self, table: pa.Table) -> pa.Table:
        """Return the dead letters of single records."""
        passed = table.select(list(self._spec.passed))
        return passed.filter(passed.column(0).is_valid()) if passed.columns else passed

    def _late(self, table: pa.Table) -> pa.Table:
        """Return the dead letters of late records, if their texts came with them."""
        chosen = pa.array(self._join.late_rows)
        if not self._spec.passed or not len(chosen):
            return table.select([])
        late = table.take(chosen).combine_chunks()
        found = [
            late_reason(time, watermark)
            for time, watermark in zip(
                late.column(rows.EVENT_TIME).to_pylist(), self._join.late_watermarks, strict=True
            )
        ]
        reason, *others = self._spec.passed
        letters = late.select(others).append_column(reason, pa.array(found, pa.string()))
        return letters.filter(letters.column(others[0]).is_valid())

    def _step(self, table: pa.Table, order: Ints, heard: Heard) -> Iterator[Pairs]:
        from quadweir.kernel.streamjoin.join import Arrivals

        side, at, arrival = (table.column(name).to_numpy() for name in NUMBERS[:3])
        key = table.column(KEY).combine_chunks()
        arrivals = Arrivals(
            key if isinstance(key, pa.Array) else pa.concat_arrays(key.chunks),
            side.astype(np.int64),
            at,
            arrival,
            order,
            order,
            table.select(list(self._spec.carried)),
        )
        return self._join.step(arrivals, heard, most=_MOST_PAIRS)

    def _windows(self) -> str:
        """Return the windows that hold most, as JSON."""
        found = self._join.windows(_MOST_WINDOWS).to_pylist()
        return json.dumps([{**each, "key": shown_key(each["key"])} for each in found])


def _output(
    blob: bytes | None, facts: Mapping[str, object] = MappingProxyType({})
) -> pa.RecordBatch:
    """Return one output row: pairs or dead letters as a blob, or the facts of the shard."""
    return pa.RecordBatch.from_arrays(
        [
            pa.array([blob], pa.binary()),
            *(
                pa.array([facts.get(name)], pa.string() if fold is Fold.LIST else pa.int64())
                for name, fold in JOIN_FACTS.items()
            ),
        ],
        names=JOIN_OUTPUT.names,
    )


def _listed(columns: Mapping[str, Ints | pa.ChunkedArray]) -> bytes:
    """Write columns of any lengths as one row, in which each is a list."""
    lists = []
    for column in columns.values():
        values = pa.array(column) if isinstance(column, np.ndarray) else column.combine_chunks()
        lists.append(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values))
    return write_table(pa.table(lists, names=list(columns)))
