"""Joins of two streams on Spark: records go to shards as blobs, and so do pairs come back.

Records of one key meet in one shard. Each task sends every shard its own records and, of all
records, when time went on (`kernel.streamjoin.clock`), so that every shard finds the same watermark at the
same record. The order of arrival within a batch is by time of arrival, then by task, then as the
task read them; batches follow one another.
"""

from __future__ import annotations

import hashlib
import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from quadweir import rows
from quadweir.errors import StateError, UsageError
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.streamjoin.clock import Heard
from quadweir.kernel.streamjoin.windows import JoinTiming, JoinWindow
from quadweir.mapping.joins import KEY, SIDE, JoinInput, shown_key
from quadweir.runtime.shard.hosting import HostingProcessor
from quadweir.runtime.spark.heap import settle
from quadweir.runtime.wire.deadletters import late_reason
from quadweir.runtime.wire.pack import (
    BLOB,
    BLOB_SCHEMA,
    FIRST,
    MOST_BYTES,
    MOST_ROWS,
    SHARD_KEY,
    shard_keys,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.kernel.streamjoin.join import Pairs, StreamJoin

METRICS: Final = "quadweir_join_"
"""Under this name and a number Spark's progress tells how a join fares."""
TOTALS: Final = ("late", "without_key", "pairs", "held", "keys", "evictions", "bytes")
_FACTS: Final = (*TOTALS, "through", "kernel_ms", "replayed")
_WINDOWS: Final = "windows"
_SHARD: Final = "shard"
_SEQUENCE: Final = "sequence"
_NUMBERS: Final = (SIDE, rows.EVENT_TIME, rows.ARRIVAL, _SEQUENCE)
_MOST_WINDOWS: Final = 20
_HEAD: Final = struct.Struct("<qq")
_MOST_PAIRS: Final = 1 << 16
"""So many pairs make a blob."""
_PAIRS: Final = "_quadweir_pairs"
_PAIR: Final = "_quadweir_pair"
_TIMES: Final = ("_quadweir_child_time", "_quadweir_parent_time")
_SHARD_SCHEMA: Final = StructType(
    [
        StructField(BLOB, BinaryType()),
        *(StructField(name, LongType()) for name in _FACTS),
        StructField(_WINDOWS, StringType()),
    ]
)
"""What comes out of a shard: pairs as blobs, which cost Spark's state operator one row each instead
of many, and at the end of a batch how the shard fares."""


def host_join(asked: JoinInput) -> DataFrame:
    """Join two streams in a window, in Spark's state.

    Args:
        asked: both streams in one frame, and how they are to be joined.

    Returns:
        A row for each pair: what child and parent carried, and `rows.EVENT_TIME`, the later time.

    Raises:
        UsageError: the session has no shuffle partitions to put shards in.
    """
    frame = asked.frame
    spark = frame.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    if partitions < 1:
        raise UsageError(
            "there are no shuffle partitions", hint="Set spark.sql.shuffle.partitions."
        )
    shards = partitions if asked.is_keyed else 1
    spec = JoinSpec(asked.window, asked.timing, asked.child, asked.parent, asked.passed, shards)
    to = F.coalesce(F.pmod(F.xxhash64(KEY), F.lit(shards)), F.lit(0)).cast("int")
    packer = JoinPacker(shard_keys(spark, shards, partitions), spec.columns)
    blobs = frame.withColumn(_SHARD, to).mapInArrow(packer, BLOB_SCHEMA)
    met = met_schema(spec, frame.schema)
    name = hashlib.sha256(f"{asked.run}\n{asked.name}\n{spec!r}".encode()).hexdigest()[:16]
    raw = blobs.groupBy(SHARD_KEY).transformWithStateInPandas(
        statefulProcessor=HostingProcessor(name, spec),
        outputStructType=_SHARD_SCHEMA,
        outputMode="append",
        timeMode="none",
    )
    told = raw.observe(
        METRICS + asked.name,
        *(F.sum(name).alias(name) for name in TOTALS),
        F.min("through").alias("through"),
        F.max("kernel_ms").alias("kernel_ms"),
        F.sum("replayed").alias("replayed"),
        F.collect_list(_WINDOWS).alias(_WINDOWS),
    )
    packed = told.where(F.col(BLOB).isNotNull()).select(BLOB)
    return _paired(packed.mapInArrow(JoinUnpacker(met), met), spec)


def met_schema(spec: JoinSpec, records: StructType) -> StructType:
    """Some of the records that met, as arrays: which pairs they make, and what each side brings."""
    types = {field.name: field.dataType for field in records.fields}
    return StructType(
        [
            StructField(name, ArrayType(types.get(name, LongType())))
            for name in (_PAIRS, *_TIMES, *spec.columns)
        ]
    )


def _paired(met: DataFrame, spec: JoinSpec) -> DataFrame:
    """Make a row of each pair; only here, in columns, does a record appear as often as it met."""
    pairs = met.select(F.explode(_PAIRS).alias(_PAIR), *_TIMES, *spec.columns)
    child = F.shiftright(_PAIR, 32)
    parent = F.col(_PAIR).bitwiseAND(F.lit((1 << 32) - 1))
    times = (F.get(_TIMES[0], child), F.get(_TIMES[1], parent))
    return pairs.select(
        F.greatest(*times).alias(rows.EVENT_TIME),
        *(F.get(name, child).alias(name) for name in spec.child),
        *(F.get(name, parent).alias(name) for name in (*spec.parent, *spec.passed)),
    )


@final
@dataclass(frozen=True)
class JoinSpec:
    """What a worker needs to make a shard of a join: `hosting.HostSpec`."""

    window: JoinWindow
    timing: JoinTiming
    child: tuple[str, ...]
    parent: tuple[str, ...]
    passed: tuple[str, ...]
    shards: int

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns that records bring into pairs."""
        return self.child + self.parent

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that come out of the join again."""
        return self.carried + self.passed

    def host(self, key: int) -> HostedJoin:  # noqa: ARG002 - all shards are made alike
        return HostedJoin(self)

    def make(self) -> StreamJoin:
        from quadweir.kernel.streamjoin.join import StreamJoin

        return StreamJoin(self.window, self.timing, self.child, self.parent)


# --- to the shards ----------------------------------------------------------------------------


@final
@dataclass
class _Profile:
    """Where in a task's records time went on, in either stream or by the clock."""

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
            told = mine[(top > before) | (came > last)]
            self.highest[which] = int(top[-1])
            self.parts.append(np.stack([sequence[told], side[told], at[told], arrival[told]]))

    def taken(self) -> np.ndarray:
        """Give what was noted, in order, and begin anew."""
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
                yield self._pack(number, waiting, profile.taken())
                waiting, count, size = [], 0, 0
        if waiting:
            yield self._pack(number, waiting, profile.taken())
        settle(JoinPacker)

    def _pack(self, task: int, waiting: list[pa.Table], heard: np.ndarray) -> pa.RecordBatch:
        table = pa.concat_tables(waiting).combine_chunks()
        to = table.column(_SHARD).to_numpy()
        table = table.select([KEY, *_NUMBERS, *self.columns])
        blobs = []
        for shard in range(len(self.keys)):
            part = table if len(self.keys) == 1 else table.filter(pa.array(to == shard))
            blobs.append(_blob(task, heard, part))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.keys, pa.int32()),
                pa.nulls(len(self.keys), pa.int64()),
                pa.array(blobs, pa.binary()),
            ],
            names=[SHARD_KEY, FIRST, BLOB],
        )


def _blob(task: int, heard: np.ndarray, part: pa.Table) -> bytes:
    """Which task, when time went on, and the records of one shard."""
    times = np.ascontiguousarray(heard, dtype="<i8").tobytes()
    return b"".join((_HEAD.pack(task, heard.shape[1]), times, _written(part, "lz4")))


def _written(table: pa.Table, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(blobs: Sequence[bytes]) -> tuple[pa.Table, Ints, Heard]:
    """Give the records of blobs and what was heard, in one order of arrival."""
    tables, tasks, times, time_tasks = [], [], [], []
    for blob in blobs:
        task, count = _HEAD.unpack_from(blob)
        start = _HEAD.size + 32 * count
        times.append(np.frombuffer(blob, "<i8", 4 * count, _HEAD.size).reshape(4, count))
        time_tasks.append(np.full(count, task, dtype=np.int64))
        table = pa.ipc.open_stream(pa.py_buffer(blob)[start:]).read_all()
        tables.append(table)
        tasks.append(np.full(table.num_rows, task, dtype=np.int64))
    table = pa.concat_tables(tables)
    heard = np.concatenate(times, axis=1)
    count = table.num_rows
    arrival = np.concatenate([table.column(rows.ARRIVAL).to_numpy(), heard[3]])
    sequence = np.concatenate([table.column(_SEQUENCE).to_numpy(), heard[0]])
    # Of a record and what was heard of it, the record is first: it finds the time before it.
    sorted_places = np.lexsort((sequence, np.concatenate([*tasks, *time_tasks]), arrival))
    order = ints(len(arrival))
    order[sorted_places] = np.arange(len(arrival))
    mine = sorted_places[sorted_places < count]
    theirs = sorted_places[sorted_places >= count] - count
    table = table.take(pa.array(mine)).combine_chunks()
    told = Heard(order[count + theirs], heard[1][theirs], heard[2][theirs], heard[3][theirs])
    return table, order[mine], told


def _timed(table: pa.Table, order: Ints) -> tuple[pa.Table, Ints]:
    """Leave out records without a time: they meet nothing, and are told of as they came."""
    column = table.column(rows.EVENT_TIME)
    if not column.null_count:
        return table, order
    timed = column.is_valid()
    return table.filter(timed), order[timed.to_numpy()]


# --- in a shard -------------------------------------------------------------------------------


@final
class HostedJoin:
    """A shard of a join with what it needs to take blobs: `hosting.Hosted`."""

    def __init__(self, spec: JoinSpec) -> None:
        self._spec = spec
        self._join = spec.make()

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 - pairs need no names
        began = time.monotonic()
        table, order, heard = _unpacked(blobs)
        timed = _timed(table, order)
        for pairs in self._step(*timed, heard):
            yield _output(_listed(self._columns(pairs)))
        for letters in (self._told(table), self._late(timed[0])):
            if letters.num_columns and letters.num_rows:
                columns = dict(zip(letters.column_names, letters.columns, strict=True))
                yield _output(_listed({_PAIRS: np.arange(letters.num_rows), **columns}))
        facts = {
            **self._join.facts(),
            "through": self._join.watermark,
            "kernel_ms": round((time.monotonic() - began) * 1000),
            "replayed": replayed,
        }
        yield _output(None, facts, self._windows())

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        return blobs

    def mark(self) -> int:
        return 0

    def replay(self, blobs: list[bytes], mark: int) -> None:  # noqa: ARG002 - times are in the blobs
        table, order, heard = _unpacked(blobs)
        for _ in self._step(*_timed(table, order), heard):
            pass

    def note(self) -> str:
        return self._fingerprint()

    def resume(self, note: str) -> None:
        if note != self._fingerprint():
            raise StateError(
                "the checkpoint is that of another join, or of another number of shards",
                hint="Start anew with an empty checkpoint, or undo the change of the mapping and of "
                "spark.sql.shuffle.partitions.",
            )

    def snapshot(self) -> bytes:
        return self._join.snapshot()

    def restore(self, data: bytes) -> None:
        self._join.restore(data)

    def _fingerprint(self) -> str:
        return f"{self._join.fingerprint.hex()}/{self._spec.shards}"

    def _columns(self, pairs: Pairs) -> dict[str, Ints | pa.ChunkedArray]:
        """Which records met, and what each of them brings."""
        children, parents = pairs.children, pairs.parents
        found = {_PAIRS: children.place << 32 | parents.place}
        for name, times in zip(_TIMES, (children.time, parents.time), strict=True):
            found[name] = times
        for each in (children, parents):
            assert each.carried is not None
            found |= dict(zip(each.carried.column_names, each.carried.columns, strict=True))
        return found

    def _told(self, table: pa.Table) -> pa.Table:
        """What is told of single records."""
        passed = table.select(list(self._spec.passed))
        return passed.filter(passed.column(0).is_valid()) if passed.columns else passed

    def _late(self, table: pa.Table) -> pa.Table:
        """What is told of records that came too late, if their texts came with them."""
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
        told = late.select(others).append_column(reason, pa.array(found, pa.string()))
        return told.filter(told.column(others[0]).is_valid())

    def _step(self, table: pa.Table, order: Ints, heard: Heard) -> Iterator[Pairs]:
        from quadweir.kernel.streamjoin.join import Arrivals

        side, at, arrival = (table.column(name).to_numpy() for name in _NUMBERS[:3])
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
        """The windows that hold most, as Spark's progress can tell of them."""
        found = self._join.windows(_MOST_WINDOWS).to_pylist()
        return json.dumps([{**each, "key": shown_key(each["key"])} for each in found])


# --- from the shards --------------------------------------------------------------------------


def _output(
    blob: bytes | None, facts: Mapping[str, int] | None = None, windows: str | None = None
) -> pa.RecordBatch:
    """One row out of a shard: pairs or dead letters, or how it fares."""
    told = facts or {}
    return pa.RecordBatch.from_arrays(
        [
            pa.array([blob], pa.binary()),
            *(pa.array([told.get(name)], pa.int64()) for name in _FACTS),
            pa.array([windows], pa.string()),
        ],
        names=_SHARD_SCHEMA.names,
    )


def _listed(columns: Mapping[str, Ints | pa.ChunkedArray]) -> bytes:
    """Write columns of any lengths: one row, in which each is a list."""
    lists = []
    for column in columns.values():
        values = pa.array(column) if isinstance(column, np.ndarray) else column.combine_chunks()
        lists.append(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values))
    return _written(pa.table(lists, names=list(columns)))


@final
@dataclass(frozen=True)
class JoinUnpacker:
    """Makes a row of arrays of each blob.

    Attributes:
        schema: the columns of a row; a blob has some of them, the others are NULL.
    """

    schema: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self.schema)
        for batch in batches:
            for blob in batch.column(BLOB):
                table = pa.ipc.open_stream(blob.as_buffer()).read_all()
                columns = [
                    table.column(field.name).cast(field.type)
                    if field.name in table.column_names
                    else pa.nulls(table.num_rows, field.type)
                    for field in wanted
                ]
                yield from pa.table(columns, schema=wanted).combine_chunks().to_batches()
