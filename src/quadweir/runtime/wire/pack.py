"""Matched rows to Arrow blobs, one for each shard.

Only blobs are shuffled: one Spark row for each match would cost more than all work of the shard.
A blob holds the matches that one task found for one shard, and the event times that the task saw
in each stream. Every task sends every shard a blob, even one without matches, so that all shards
know the same times.
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
from quadweir.plan.matchtests import Grid, Matching, StatementTerm
from quadweir.runtime.match.bits import REPORTS_TIME, STREAM, MatchBits, shard_by, word_of
from quadweir.runtime.match.rowform import END, stream_numbers
from quadweir.runtime.spark.heap import freeze_heap
from quadweir.runtime.wire.deadletters import letter_blob, split_rows

SHARD_KEY: Final = "shard_key"
FIRST_TIME: Final = "first_time"
BLOB: Final = "blob"
BLOB_SCHEMA: Final = f"{SHARD_KEY} int, {FIRST_TIME} bigint, {BLOB} binary"

# The metadata in the Arrow schema of a blob.
SPANS: Final = b"times"
REPORTED: Final = b"told"
PACKED_AT: Final = b"packed_at"
SHARD: Final = b"shard"
THROUGH: Final = b"through"
REPORTS: Final = b"reports"
BEFORE: Final = b"before"
# On the way to Python, long blobs are followed by padding rows, one per 16 KiB (a power of two), so
# that Spark's row count approximates bytes (`spark/arrowbatches.py`). The most rows that Spark hands
# over at once then hold a gibibyte, and a column can hold two.
UNIT_BITS: Final = 14
# A blob of half a million rows is some ten megabytes; smaller ones let time go on within a batch.
MOST_ROWS: Final = 1 << 19
# Arrow and Spark hold at most 2 GiB in a column of blobs, and a row may go to every shard.
MOST_BYTES: Final = 1 << 26
ELEMENT_COLUMNS: Final = (rows.EVENT_TIME, rows.POSITION)
_BATCH: Final = "streaming.sql.batchId"
# Without a shuffle, larger blobs are not compressed: they cause a snapshot and are not logged.
_SMALL: Final = 1 << 20


Spans = dict[str, tuple[int, int]]
"""For each stream, the earliest and the latest event time."""
Reported = dict[str, int]
"""For streams that report it themselves, the instant through which everything is known."""


@final
@dataclass(frozen=True)
class Packer:
    """Packs the rows of one task.

    Attributes:
        keys: the shuffle keys of the shards, in their order.
        streams: the streams, in the order of their numbers.
        bits: the layout of the bits of a row.
        sent_by: for each test, the term by which a row is sharded; None if it goes to every shard.
        grids: the tests of elements that need only the latest of a time, with the times.
        clock: the folder of Spark's offsets, which record when each batch began; default: the time of
            packing.
    """

    keys: tuple[int, ...]
    streams: tuple[str, ...]
    bits: MatchBits
    sent_by: tuple[StatementTerm | None, ...]
    grids: tuple[tuple[int, Grid], ...] = ()
    clock: str = ""

    @staticmethod
    def of(matching: Matching, keys: tuple[int, ...], *, clock: str = "") -> Packer:
        """Make the packer of rows that pass some tests."""
        streams = stream_numbers(matching)
        bits = MatchBits.of(matching.wanted, streams=len(streams), shards=len(keys))
        sent_by = tuple(each.key for each in matching.wanted)
        grids = tuple((n, each.grid) for n, each in enumerate(matching.wanted) if each.grid)
        return Packer(keys, streams, bits, sent_by, grids, clock)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered = _Gathered(self)
        has_sent = False
        for arrived in batches:
            letters = gathered.add(arrived)
            if letters:
                yield letter_rows(self.keys, letters)
            if gathered.count >= MOST_ROWS or gathered.size >= MOST_BYTES:
                yield self._pack(gathered)
                gathered, has_sent = _Gathered(self, gathered.reported), True
        if gathered.rows or gathered.spans or gathered.reported or not has_sent:
            yield self._pack(gathered)
        freeze_heap(Packer)

    def for_shards(
        self, shards: Iterable[int], batches: Iterable[pa.RecordBatch], now: int
    ) -> list[list[bytes]]:
        """Pack all rows of a batch, for some shards: `base.RowPacker`."""
        numbers, gathered = list(shards), _Gathered(self)
        letters = [each for batch in batches for each in gathered.add(batch)]
        table = gathered.table
        found = [
            [
                _blob(
                    self._part(table, shard) if table is not None else None,
                    _facts(gathered, now, shard),
                    at_most=_SMALL,
                )
            ]
            for shard in numbers
        ]
        # Dead letters belong to no shard: the first one reports them.
        if letters and 0 in numbers:
            found[numbers.index(0)].insert(0, letter_blob(letters))
        return found

    def note_times(self, spans: Spans, reported: Reported, batch: pa.RecordBatch) -> None:
        """Note the event times of rows."""
        if not batch.num_rows:
            return
        numbers = self.bits.read(STREAM, batch)
        at = batch.column(rows.EVENT_TIME).to_numpy()
        reports = self.bits.read(REPORTS_TIME, batch) != 0
        if reports.any():
            for number in np.unique(numbers[reports]):
                stream = self.streams[number]
                through = int(at[reports & (numbers == number)].max())
                reported[stream] = max(through, reported.get(stream, through))
            numbers, at = numbers[~reports], at[~reports]
        for number, stream in enumerate(self.streams):
            here = numbers == number
            mine = at if here.all() else at[here]
            if len(mine):
                known = spans.get(stream, (mine[0], mine[0]))
                spans[stream] = (
                    int(min(known[0], mine.min())),
                    int(max(known[1], mine.max())),
                )

    def _pack(self, gathered: _Gathered) -> pa.RecordBatch:
        table = gathered.table
        # This is the same for all shards: they go from instant to instant together, and find a stream
        # idle at the same time.
        spans = gathered.spans.items()
        first = min((first for name, (first, _) in spans if name != END), default=None)
        now = task_batch_began(self.clock)
        blobs = [
            _blob(
                self._part(table, shard) if table is not None else None,
                _facts(gathered, now, shard),
            )
            for shard in range(len(self.keys))
        ]
        return blob_rows(self.keys, first, blobs)

    def _part(self, table: pa.Table, shard: int) -> pa.Table:
        """Keep the rows for one shard, and of their bits only those of tests that send them there."""
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
    """Rows that wait to be packed, and their event times.

    Args:
        packer: packs them.
        reported: the times that streams reported themselves before.
    """

    def __init__(self, packer: Packer, reported: Reported | None = None) -> None:
        self._packer = packer
        self._tests = packer.bits.masks(True for _ in packer.sent_by)
        self.rows: list[pa.RecordBatch] = []
        self.count = self.size = 0
        self.spans: Spans = {}
        self.reported: Reported = {} if reported is None else reported

    def add(self, arrived: pa.RecordBatch) -> list[str]:
        """Take rows; return the dead letters among them."""
        letters, batch = split_rows(arrived)
        self._packer.note_times(self.spans, self.reported, batch)
        batch = latest_on_grids(batch, self._packer.grids)
        some = _any_of(batch, self._tests)
        found = np.count_nonzero(some)
        if found:
            # Each shard gets only its own rows later: some more rows do no harm here.
            kept = batch if 2 * found > len(some) else batch.filter(pa.array(some))
            self.rows.append(kept)
            self.count += kept.num_rows
            self.size += kept.nbytes
        return letters

    @property
    def table(self) -> pa.Table | None:
        return pa.Table.from_batches(self.rows) if self.rows else None


def latest_on_grids(batch: pa.RecordBatch, grids: Iterable[tuple[int, Grid]]) -> pa.RecordBatch:
    """Return rows of which only the latest between two instants of a grid pass a test of elements.

    It keeps the latest, because earlier ones may be late when the latest is not.
    """
    times = batch.column(rows.EVENT_TIME).to_numpy()
    for test, grid in grids:
        name, bit = word_of(test)
        words = batch.column(name).to_numpy()
        passed = np.flatnonzero(words >> bit & 1)
        passed = passed[np.argsort(times[passed], kind="stable")]
        spans = (times[passed] - grid.origin_ms - 1) // grid.step_ms
        cleared = words.copy()
        cleared[passed[:-1][spans[1:] == spans[:-1]]] &= ~(1 << bit)
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, name, pa.array(cleared))
    return batch


def _facts(gathered: _Gathered, now: int, shard: int) -> dict[bytes, bytes]:
    """Return the metadata of a blob."""
    return {
        SPANS: json.dumps(gathered.spans).encode(),
        REPORTED: json.dumps(gathered.reported).encode(),
        PACKED_AT: str(now).encode(),
        SHARD: str(shard).encode(),
    }


def task_batch_began(folder: str) -> int:
    """Return when the batch of this task began, in milliseconds."""
    from pyspark import TaskContext

    task = TaskContext.get()
    batch = task.getLocalProperty(_BATCH) if task is not None else None
    return batch_began(folder, batch) if folder and batch is not None else _now()


def batch_began(folder: str, batch: int | str) -> int:
    """Return when a batch first began, as Spark's log of offsets says.

    Whether a stream is idle depends on it, and a batch that is repeated after a crash must give the
    same answers. If the log cannot be read from here, as in an object store, the answer is now.
    """
    try:
        _, noted, *_ = (Path(folder) / str(batch)).read_text(encoding="utf-8").split("\n")
        return int(json.loads(noted)["batchTimestampMs"])
    except (OSError, ValueError, KeyError):
        return _now()


def _now() -> int:
    return int(time.time() * 1000)


def _any_of(batch: pa.RecordBatch, masks: Mapping[str, int]) -> np.ndarray:
    """Return which rows have one of these bits."""
    found = [batch.column(name).to_numpy() & mask for name, mask in masks.items()]
    return reduce(np.bitwise_or, found) != 0 if found else np.zeros(batch.num_rows, dtype=bool)


def blob_rows(keys: Sequence[int], first: int | None, blobs: Sequence[bytes]) -> pa.RecordBatch:
    """Return a row for each blob; long blobs are followed by padding rows, one per 16 KiB.

    With them, Spark's row count approximates bytes (`spark/arrowbatches.py`).
    """
    sizes = [1 + (len(blob) >> UNIT_BITS) for blob in blobs]
    rows_of = [
        each
        for blob, size in zip(blobs, sizes, strict=True)
        for each in (blob, *[None] * (size - 1))
    ]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.repeat(np.array(keys, dtype=np.int32), sizes)),
            pa.array([first] * len(rows_of), pa.int64()),
            pa.array(rows_of, pa.binary()),
        ],
        names=[SHARD_KEY, FIRST_TIME, BLOB],
    )


def letter_rows(keys: tuple[int, ...], letters: Sequence[str]) -> pa.RecordBatch:
    """Return dead letters as a row for the first shard; any shard would do."""
    return blob_rows(keys[:1], None, [letter_blob(letters)])


@final
@dataclass(frozen=True, slots=True)
class Header:
    """The metadata of a blob.

    Attributes:
        spans: the event times that the task saw.
        reported: how far time has come in streams that report it themselves.
        packed_at: when the batch began.
        through: in a later stage, the instant through which everything is known in the one before.
    """

    spans: Spans
    reported: Reported
    packed_at: int
    through: int | None

    @staticmethod
    def of(blob: bytes) -> Header:
        schema = pa.ipc.open_stream(blob).schema
        found = schema.metadata
        through = found.get(THROUGH)
        return Header(
            read_spans(schema),
            json.loads(found[REPORTED]),
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
    """Write a table with its metadata as a blob.

    Args:
        table: the table.
        at_most: compress it only if it has no more bytes than this.
    """
    sink = pa.BufferOutputStream()
    # Blobs go through a shuffle and into the state, and terms repeat.
    is_small = at_most is None or table.nbytes <= at_most
    options = pa.ipc.IpcWriteOptions(compression="lz4" if table.num_rows and is_small else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def read_spans(schema: pa.Schema) -> Spans:
    """Return the event times in the metadata of a blob."""
    found: Mapping[str, Any] = json.loads(schema.metadata[SPANS])
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
