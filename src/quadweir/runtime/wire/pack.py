"""Rows to Arrow blobs, one for each shard: how they are packed, and what they say besides.

Only blobs are shuffled: a row of a batch each would cost more than all that a shard does with it.
A blob holds the matches that one task found for one shard, and how far time has come in each
stream as that task saw it. Every task sends every shard a blob, be it empty of matches, so that
all shards know the same times.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.plan.query import QueryPlan
from quadweir.plan.wanted import Part
from quadweir.runtime.match.bits import STREAM, TOLD, MatchBits, shard_by
from quadweir.runtime.match.matching import END, stream_numbers
from quadweir.runtime.spark.heap import settle
from quadweir.runtime.wire.deadletters import packed, taken_out

SHARD_KEY: Final = "shard_key"
FIRST: Final = "first_time"
BLOB: Final = "blob"
BLOB_SCHEMA: Final = f"{SHARD_KEY} int, {FIRST} bigint, {BLOB} binary"

# What is said in the schema of a blob.
TIMES: Final = b"times"
TOLD_TIMES: Final = b"told"
PACKED_AT: Final = b"packed_at"
SHARD: Final = b"shard"
THROUGH: Final = b"through"
REPORTS: Final = b"reports"
BEFORE: Final = b"before"
# On the way to Python a blob counts once more for every so many bytes, as a power of two: the most rows
# that Spark hands over at once (`handover`) then hold a gibibyte, and a column can hold two.
UNIT_BITS: Final = 14
# A blob of half a million rows is some ten megabytes; smaller ones let time go on within a batch.
MOST_ROWS: Final = 1 << 19
# Arrow and Spark hold at most 2 GiB in a column of blobs, and a row may go to every shard.
MOST_BYTES: Final = 1 << 26
ELEMENT_COLUMNS: Final = (rows.EVENT_TIME, rows.POSITION)
_BATCH: Final = "streaming.sql.batchId"
# Where nothing is shuffled, what is larger goes into no log either, but into a snapshot (`hosting`).
_SMALL: Final = 1 << 20


Times = dict[str, tuple[int, int]]
"""For each stream the earliest and the latest event time."""
Told = dict[str, int]
"""For streams that tell it themselves, the instant through which all is known."""


@final
@dataclass(frozen=True)
class Packer:
    """Packs the rows of one task.

    Attributes:
        keys: the shuffle keys of the shards, in their order.
        streams: the streams, in the order of their numbers.
        bits: what stands where in the bits of a row.
        sent_by: for each test the term that says where it sends a row; None for every shard.
        clock: the folder in which Spark notes when it began each batch; default: the time of packing.
    """

    keys: tuple[int, ...]
    streams: tuple[str, ...]
    bits: MatchBits
    sent_by: tuple[Part | None, ...]
    clock: str = ""

    @staticmethod
    def of(plan: QueryPlan, keys: tuple[int, ...], *, clock: str = "") -> Packer:
        """Make the packer of a plan."""
        streams = stream_numbers(plan)
        bits = MatchBits.of(plan.wanted, streams=len(streams), shards=len(keys))
        sent_by = tuple(each.key for each in plan.wanted)
        return Packer(keys, streams, bits, sent_by, clock=clock)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = _Gathered(self)
        sent = False
        for arrived in batches:
            letters = gathered.add(arrived)
            if letters:
                yield letter_blob(self.keys, letters)
            if gathered.count >= MOST_ROWS or gathered.size >= MOST_BYTES:
                yield self._pack(gathered)
                gathered, sent = _Gathered(self, gathered.told), True
        if gathered.rows or gathered.times or gathered.told or not sent:
            yield self._pack(gathered)
        settle(Packer)

    def for_shards(
        self, shards: Iterable[int], batches: Iterable[pa.RecordBatch], now: int
    ) -> tuple[list[str], list[bytes]]:
        """Pack all rows of a batch, a blob for each of some shards.

        Args:
            shards: their numbers.
            batches: the rows.
            now: when that is.

        Returns:
            The letters among the rows, which are no shard's, and the blobs.
        """
        gathered = _Gathered(self)
        letters = [each for batch in batches for each in gathered.add(batch)]
        table = gathered.table
        blobs = [
            _blob(
                self._part(table, shard) if table is not None else None,
                _facts(gathered, now, shard),
                at_most=_SMALL,
            )
            for shard in shards
        ]
        return letters, blobs

    def note_times(self, times: Times, told: Told, batch: pa.RecordBatch) -> None:
        """Note how far time has come in rows."""
        if not batch.num_rows:
            return
        numbers = self.bits.read(STREAM, batch)
        at = batch.column(rows.EVENT_TIME).to_numpy()
        is_told = self.bits.read(TOLD, batch) != 0
        if is_told.any():
            for number in np.unique(numbers[is_told]):
                stream = self.streams[number]
                through = int(at[is_told & (numbers == number)].max())
                told[stream] = max(through, told.get(stream, through))
            numbers, at = numbers[~is_told], at[~is_told]
        for number, stream in enumerate(self.streams):
            here = numbers == number
            mine = at if here.all() else at[here]
            if len(mine):
                known = times.get(stream, (mine[0], mine[0]))
                times[stream] = (
                    int(min(known[0], mine.min())),
                    int(max(known[1], mine.max())),
                )

    def _pack(self, gathered: _Gathered) -> pa.RecordBatch:
        table = gathered.table
        # All of this is the same for all shards: they go on from instant to instant together, and find
        # a stream idle at the same time.
        times = gathered.times.items()
        first = min((first for name, (first, _) in times if name != END), default=None)
        now = _batch_began(self.clock)
        blobs = [
            _blob(
                self._part(table, shard) if table is not None else None,
                _facts(gathered, now, shard),
            )
            for shard in range(len(self.keys))
        ]
        return blob_rows(self.keys, first, blobs)

    def _part(self, table: pa.Table, shard: int) -> pa.Table:
        """Keep what one shard is to hear of: a statement may pass a test for it, others not."""
        tests = self.bits.masks(True for _ in self.sent_by)
        is_alone = len(self.keys) == 1
        everywhere = self.bits.masks(key is None or is_alone for key in self.sent_by)
        passed = {name: table.column(name).to_numpy() for name in tests}
        mine = {name: each & everywhere.get(name, 0) for name, each in passed.items()}
        for key in {each for each in self.sent_by if each is not None and not is_alone}:
            is_here = self.bits.is_(shard_by(key), shard, table)
            for name, mask in self.bits.masks(each == key for each in self.sent_by).items():
                mine[name] |= (passed[name] & mask) * is_here
        some = reduce(np.bitwise_or, mine.values()) != 0
        table = table.drop_columns(self.bits.names)
        for name, each in mine.items():
            table = table.append_column(name, pa.array(each))
        return table if some.all() else table.filter(pa.array(some))


class _Gathered:
    """Rows that wait to be packed, and how far time has come in them.

    Args:
        packer: what they are packed by.
        told: what streams told themselves before.
    """

    def __init__(self, packer: Packer, told: Told | None = None) -> None:
        self._packer = packer
        self._tests = packer.bits.masks(True for _ in packer.sent_by)
        self.rows: list[pa.RecordBatch] = []
        self.count = self.size = 0
        self.times: Times = {}
        self.told: Told = {} if told is None else told

    def add(self, arrived: pa.RecordBatch) -> list[str]:
        """Take rows in; gives the letters among them."""
        letters, batch = taken_out(arrived)
        self._packer.note_times(self.times, self.told, batch)
        some = _any_of(batch, self._tests)
        found = np.count_nonzero(some)
        if found:
            # Shards get what is theirs anyway; a few rows more may wait.
            kept = batch if 2 * found > len(some) else batch.filter(pa.array(some))
            self.rows.append(kept)
            self.count += kept.num_rows
            self.size += kept.nbytes
        return letters

    @property
    def table(self) -> pa.Table | None:
        return pa.Table.from_batches(self.rows) if self.rows else None


def _facts(gathered: _Gathered, now: int, shard: int) -> dict[bytes, bytes]:
    """Give what a blob says besides its rows."""
    return {
        TIMES: json.dumps(gathered.times).encode(),
        TOLD_TIMES: json.dumps(gathered.told).encode(),
        PACKED_AT: str(now).encode(),
        SHARD: str(shard).encode(),
    }


def _batch_began(folder: str) -> int:
    """Tell when the batch of this task was first begun, as Spark's log of offsets says.

    Which streams are idle depends on it, and a batch that is repeated after a crash must come to the
    same. Where the log cannot be read from here, as in an object store, it is now.
    """
    from pyspark import TaskContext

    task = TaskContext.get()
    batch = task.getLocalProperty(_BATCH) if task is not None else None
    if folder and batch is not None:
        try:
            _, told, *_ = (Path(folder) / batch).read_text(encoding="utf-8").split("\n")
            return int(json.loads(told)["batchTimestampMs"])
        except (OSError, ValueError, KeyError):
            pass
    return int(time.time() * 1000)


def _any_of(batch: pa.RecordBatch, masks: Mapping[str, int]) -> np.ndarray:
    """Tell which rows have one of these bits."""
    found = [batch.column(name).to_numpy() & mask for name, mask in masks.items()]
    return reduce(np.bitwise_or, found) != 0 if found else np.zeros(batch.num_rows, dtype=bool)


def blob_rows(keys: Sequence[int], first: int | None, blobs: Sequence[bytes]) -> pa.RecordBatch:
    """Give a row for each blob, and behind one that is large others that have none.

    Where Spark counts rows rather than bytes on the way to Python (`handover`), a blob counts by these.
    """
    sizes = [1 + (len(blob) >> UNIT_BITS) for blob in blobs]
    rows_of = [each for blob, size in zip(blobs, sizes, strict=True) for each in _alone(blob, size)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.repeat(np.array(keys, dtype=np.int32), sizes)),
            pa.array([first] * len(rows_of), pa.int64()),
            pa.array(rows_of, pa.binary()),
        ],
        names=[SHARD_KEY, FIRST, BLOB],
    )


def _alone(blob: bytes, size: int) -> list[bytes | None]:
    return [blob, *[None] * (size - 1)]


def letter_blob(keys: tuple[int, ...], letters: Sequence[str]) -> pa.RecordBatch:
    """Pack letters for one of the shards; which, is of no account."""
    return blob_rows(keys[:1], None, [packed(letters)])


@final
@dataclass(frozen=True, slots=True)
class Header:
    """What a blob says besides what is in it.

    Attributes:
        times: how far time had come as the task saw it.
        told: how far it had come in streams that say so themselves.
        packed_at: when that was.
        through: in a second stage, the instant through which all is known in the first.
    """

    times: Times
    told: Told
    packed_at: int
    through: int | None

    @staticmethod
    def of(blob: bytes) -> Header:
        schema = pa.ipc.open_stream(blob).schema
        found = schema.metadata
        through = found.get(THROUGH)
        return Header(
            read_times(schema),
            json.loads(found[TOLD_TIMES]),
            int(found[PACKED_AT]),
            None if through is None else int(through),
        )


def _blob(
    part: pa.Table | None, facts: Mapping[bytes, bytes], *, at_most: int | None = None
) -> bytes:
    if part is None:
        part = pa.schema([pa.field(name, pa.int64()) for name in ELEMENT_COLUMNS]).empty_table()
    return to_bytes(part.replace_schema_metadata(facts), at_most=at_most)


def to_bytes(table: pa.Table, *, at_most: int | None = None) -> bytes:
    """Write a table, with what its schema says of it, as the bytes of a blob.

    Args:
        table: the table.
        at_most: compress it only if it is not larger than so many bytes.
    """
    sink = pa.BufferOutputStream()
    # It goes through a shuffle and into the state; spellings have much in common.
    is_small = at_most is None or table.nbytes <= at_most
    options = pa.ipc.IpcWriteOptions(compression="lz4" if table.num_rows and is_small else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_times(schema: pa.Schema) -> Times:
    """Read how far time had come as the task saw it that packed a blob."""
    found: Mapping[str, Any] = json.loads(schema.metadata[TIMES])
    return {stream: (int(first), int(last)) for stream, (first, last) in found.items()}


def shard_keys(spark: Any, shards: int, partitions: int) -> tuple[int, ...]:
    """Choose a shuffle key for each shard so that no two shards share a partition.

    Spark puts a key into the partition `pmod(hash(key), partitions)`; there must be at least as
    many partitions as shards.
    """
    from pyspark.sql import functions as F

    found: dict[int, int] = {}
    most = max(64, partitions * 32)
    while not all(place in found for place in range(shards)):
        frame = spark.range(most).select(
            F.col("id").cast("int").alias("key"),
            F.pmod(F.hash(F.col("id").cast("int")), F.lit(partitions)).alias("place"),
        )
        for key, place in frame.collect():
            found.setdefault(place, key)
        most *= 4
    return tuple(found[place] for place in range(shards))
