"""Records of two streams to blobs for the shards of a join, and back.

Records of one key meet in one shard. Each task sends every shard its records and, of all records,
when time went on (`kernel/streamjoin/clock.py`), so that every shard finds the same watermark at the
same record. Records of a batch are ordered by arrival time, then by task, then as the task read them;
batches follow one another.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.streamjoin.clock import Heard
from quadweir.mapping.joins import KEY, SIDE
from quadweir.runtime.spark.heap import freeze_heap
from quadweir.runtime.wire.pack import BLOB, FIRST_TIME, MOST_BYTES, MOST_ROWS, SHARD_KEY

SHARD: Final = "shard"
"""The column with the number of the shard that a record goes to."""
_SEQUENCE: Final = "sequence"
NUMBERS: Final = (SIDE, rows.EVENT_TIME, rows.ARRIVAL, _SEQUENCE)
_HEAD: Final = struct.Struct("<qq")


@final
@dataclass
class _Profile:
    """Where time went on in the records of a task, in either stream or by the clock."""

    highest: list[int | None] = field(default_factory=lambda: [None, None])
    arrived: int | None = None
    parts: list[np.ndarray] = field(default_factory=list)

    def note(self, sequence: Ints, side: Ints, at: Ints, arrival: Ints) -> None:
        for which in (0, 1):
            mine = np.flatnonzero(side == which)
            if not len(mine):
                continue
            times, came = at[mine], arrival[mine]
            top = np.maximum.accumulate(times)
            known = self.highest[which]
            if known is not None:
                top = np.maximum(top, known)
            before = np.concatenate([[top[0] - 1 if known is None else known], top[:-1]])
            last = np.concatenate([[came[0] - 1], came[:-1]])
            noted = mine[(top > before) | (came > last)]
            self.highest[which] = int(top[-1])
            self.parts.append(np.stack([sequence[noted], side[noted], at[noted], arrival[noted]]))

    def taken(self) -> np.ndarray:
        """Return what was noted, in order, and forget it."""
        found = np.concatenate([np.empty((4, 0), dtype=np.int64), *self.parts], axis=1)
        self.parts = []
        return found[:, np.argsort(found[0], kind="stable")]


@final
@dataclass(frozen=True)
class JoinPacker:
    """Packs the records of one task.

    Attributes:
        keys: the shuffle keys of the shards, in their order.
        columns: the columns that come out of the join again.
    """

    keys: tuple[int, ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        number = task.partitionId() if task is not None else 0
        for blobs in self._packed(number, range(len(self.keys)), batches):
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(self.keys, pa.int32()),
                    pa.nulls(len(self.keys), pa.int64()),
                    pa.array(blobs, pa.binary()),
                ],
                names=[SHARD_KEY, FIRST_TIME, BLOB],
            )
        freeze_heap(JoinPacker)

    def for_shards(
        self,
        shards: Iterable[int],
        batches: Iterable[pa.RecordBatch],
        now: int,  # noqa: ARG002 - records carry their times of arrival
    ) -> list[list[bytes]]:
        """Pack all records of a batch, for some shards: `base.RowPacker`."""
        numbers = list(shards)
        found: list[list[bytes]] = [[] for _ in numbers]
        for blobs in self._packed(0, numbers, batches):
            for own, blob in zip(found, blobs, strict=True):
                own.append(blob)
        return found

    def _packed(
        self, task: int, shards: Sequence[int], batches: Iterable[pa.RecordBatch]
    ) -> Iterator[list[bytes]]:
        """Yield a blob for each shard, again and again while there are records."""
        waiting: list[pa.Table] = []
        count = done = size = 0
        arrived: int | None = None
        profile = _Profile()
        for batch in batches:
            if not batch.num_rows:
                continue
            # A clock that was set back must not change the order in which the source gave records.
            arrival = np.maximum.accumulate(batch.column(rows.ARRIVAL).to_numpy())
            arrival = arrival if arrived is None else np.maximum(arrival, arrived)
            arrived = int(arrival[-1])
            sequence = np.arange(done, done + batch.num_rows, dtype=np.int64)
            done += batch.num_rows
            side, at = batch.column(SIDE).to_numpy(), batch.column(rows.EVENT_TIME)
            timed = at.is_valid().to_numpy(zero_copy_only=False)
            at = at.fill_null(0).to_numpy()
            profile.note(sequence[timed], side[timed], at[timed], arrival[timed])
            table = pa.Table.from_batches([batch]).drop_columns([rows.ARRIVAL])
            table = table.append_column(rows.ARRIVAL, pa.array(arrival))
            waiting.append(table.append_column(_SEQUENCE, pa.array(sequence)))
            count += batch.num_rows
            size += batch.nbytes
            if count >= MOST_ROWS or size >= MOST_BYTES:
                yield self._pack(task, shards, waiting, profile.taken())
                waiting, count, size = [], 0, 0
        if waiting:
            yield self._pack(task, shards, waiting, profile.taken())

    def _pack(
        self, task: int, shards: Sequence[int], waiting: list[pa.Table], heard: np.ndarray
    ) -> list[bytes]:
        table = pa.concat_tables(waiting).combine_chunks()
        to = table.column(SHARD).to_numpy()
        table = table.select([KEY, *NUMBERS, *self.columns])
        is_alone = len(self.keys) == 1
        return [
            _blob(task, heard, table if is_alone else table.filter(pa.array(to == shard)))
            for shard in shards
        ]


def _blob(task: int, heard: np.ndarray, part: pa.Table) -> bytes:
    """Write the task, when time went on, and the records of one shard."""
    times = np.ascontiguousarray(heard, dtype="<i8").tobytes()
    return b"".join((_HEAD.pack(task, heard.shape[1]), times, write_table(part, "lz4")))


def write_table(table: pa.Table, compression: str | None = None) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def unpack(blobs: Sequence[bytes]) -> tuple[pa.Table, Ints, Heard]:
    """Return the records of blobs and when time went on, in one order of arrival."""
    tables, tasks, times, time_tasks = [], [], [], []
    for blob in blobs:
        task, count = _HEAD.unpack_from(blob)
        start = _HEAD.size + 32 * count
        times.append(np.frombuffer(blob, "<i8", 4 * count, _HEAD.size).reshape(4, count))
        time_tasks.append(np.full(count, task, dtype=np.int64))
        table = pa.ipc.open_stream(pa.py_buffer(blob)[start:]).read_all()
        tables.append(table)
        tasks.append(np.full(table.num_rows, task, dtype=np.int64))
    if not tables:
        return pa.table({}), ints(0), Heard(ints(0), ints(0), ints(0), ints(0))
    table = pa.concat_tables(tables)
    heard = np.concatenate(times, axis=1)
    count = table.num_rows
    arrival = np.concatenate([table.column(rows.ARRIVAL).to_numpy(), heard[3]])
    sequence = np.concatenate([table.column(_SEQUENCE).to_numpy(), heard[0]])
    # A record comes before the time that it brings: it finds the watermark before it.
    sorted_places = np.lexsort((sequence, np.concatenate([*tasks, *time_tasks]), arrival))
    order = ints(len(arrival))
    order[sorted_places] = np.arange(len(arrival))
    mine = sorted_places[sorted_places < count]
    theirs = sorted_places[sorted_places >= count] - count
    table = table.take(pa.array(mine)).combine_chunks()
    noted = Heard(order[count + theirs], heard[1][theirs], heard[2][theirs], heard[3][theirs])
    return table, order[mine], noted


def timed_only(table: pa.Table, order: Ints) -> tuple[pa.Table, Ints]:
    """Leave out records without a time: they meet nothing, and their dead letters leave as they came."""
    column = table.column(rows.EVENT_TIME)
    if not column.null_count:
        return table, order
    timed = column.is_valid()
    return table.filter(timed), order[timed.to_numpy()]
