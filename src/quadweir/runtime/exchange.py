"""Rows to Arrow blobs, one for each shard, and back.

Only blobs are shuffled: a row of a batch each would cost more than all that a shard does with it.
A blob holds the matches that one task found for one shard, and how far time has come in each
stream as that task saw it. Every task sends every shard a blob, be it empty of matches, so that
all shards know the same times.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir import rows
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.shard import Shard
from quadweir.kernel.window import Elements
from quadweir.runtime.matching import ALL_SHARDS, ELEMENT, LEAF, SHARD, SOURCE, VALUES

SHARD_KEY: Final = "shard_key"
FIRST: Final = "first_time"
BLOB: Final = "blob"
BLOB_SCHEMA: Final = f"{SHARD_KEY} int, {FIRST} bigint, {BLOB} binary"

_TIMES: Final = b"times"
_STAMP: Final = b"packed_at"
# A blob of a million rows is some ten megabytes; smaller ones let time go on within a batch.
_MOST_ROWS: Final = 1 << 19
_PACKED: Final = (LEAF, SOURCE, rows.EVENT_TIME, rows.POSITION, *VALUES)


Times = dict[str, tuple[int, int]]
"""For each stream the earliest and the latest event time."""


@final
@dataclass(frozen=True)
class Packer:
    """Packs the rows of one task; `keys` are the shuffle keys of the shards, in their order."""

    keys: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        count = 0
        times: Times = {}
        sent = False
        for batch in batches:
            _note_times(times, batch)
            matched = batch.filter(pc.not_equal(batch.column(LEAF), -1))
            if not matched.num_rows:
                continue
            waiting.append(matched)
            count += matched.num_rows
            if count >= _MOST_ROWS:
                yield self._pack(waiting, times)
                waiting, count, sent = [], 0, True
        if waiting or times or not sent:
            yield self._pack(waiting, times)

    def _pack(self, waiting: list[pa.RecordBatch], times: Times) -> pa.RecordBatch:
        table = pa.Table.from_batches(waiting).combine_chunks() if waiting else None
        blobs, firsts = [], []
        # The same for all shards, so that all find a stream idle at the same time.
        packed_at = int(time.time() * 1000)
        for shard in range(len(self.keys)):
            part = _part(table, shard) if table is not None else None
            blobs.append(_blob(part, times, packed_at))
            # Of no rows the least time is none.
            first = pc.min(part.column(rows.EVENT_TIME)).as_py() if part is not None else None
            firsts.append(first)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.keys, pa.int32()),
                pa.array(firsts, pa.int64()),
                pa.array(blobs, pa.binary()),
            ],
            names=[SHARD_KEY, FIRST, BLOB],
        )


def _part(table: pa.Table, shard: int) -> pa.Table:
    to = table.column(SHARD)
    mask = pc.or_(pc.equal(to, shard), pc.equal(to, ALL_SHARDS))
    return table.filter(mask).select(_PACKED)


def _note_times(times: Times, batch: pa.RecordBatch) -> None:
    if not batch.num_rows:
        return
    table = pa.table({name: batch.column(name) for name in (rows.STREAM, rows.EVENT_TIME)})
    grouped = table.group_by(rows.STREAM).aggregate(
        [(rows.EVENT_TIME, "min"), (rows.EVENT_TIME, "max")]
    )
    for row in grouped.to_pylist():
        stream = row[rows.STREAM]
        first, last = row[f"{rows.EVENT_TIME}_min"], row[f"{rows.EVENT_TIME}_max"]
        if stream in times:
            first, last = min(first, times[stream][0]), max(last, times[stream][1])
        times[stream] = (first, last)


def _blob(part: pa.Table | None, times: Times, packed_at: int) -> bytes:
    if part is None:
        empty = [pa.field(name, pa.int64()) for name in _PACKED[:4]]
        part = pa.schema(empty + [pa.field(name, pa.string()) for name in VALUES]).empty_table()
    columns = [
        part.column(name).combine_chunks().dictionary_encode()
        if name in VALUES
        else part.column(name).cast(pa.int64())
        for name in _PACKED
    ]
    table = pa.table(columns, names=list(_PACKED))
    table = table.replace_schema_metadata(
        {_TIMES: json.dumps(times).encode(), _STAMP: str(packed_at).encode()}
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@final
class Unpacker:
    """Turns blobs into the events of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._sources: dict[str, list[int]] = defaultdict(list)
        for place, source in enumerate(shard.sources):
            self._sources[source.stream].append(place)
        self._bare = [
            (place, shard.sources.index(leaf.source))
            for place, leaf in enumerate(shard.leaves)
            if leaf.pattern is None
        ]

    @staticmethod
    def times(blob: bytes) -> tuple[Times, int]:
        """Read how far time had come as the task of a blob saw it, and when that was."""
        schema = pa.ipc.open_stream(blob).schema
        return _read_times(schema), int(schema.metadata[_STAMP])

    def events(self, blobs: Iterable[bytes], *, after: int) -> tuple[Events, int]:
        """Read blobs; elements not later than `after` are left out and counted.

        A triple that an element carries twice counts once (W8).
        """
        parts: list[np.ndarray] = []
        seen: dict[int, tuple[int, int]] = {}
        for blob in blobs:
            reader = pa.ipc.open_stream(blob)
            for stream, (first, last) in _read_times(reader.schema).items():
                if last <= after:
                    continue
                for place in self._sources[stream]:
                    known = seen.get(place, (first, last))
                    seen[place] = (max(min(first, known[0]), after + 1), max(last, known[1]))
            table = reader.read_all()
            if table.num_rows:
                parts.append(self._numbers(table))
        if not parts:
            return Events(seen=seen), 0
        cells = np.concatenate(parts)
        late = cells[:, 2] <= after
        lost = int(np.count_nonzero(late & (cells[:, 0] != ELEMENT)))
        cells = _once(cells[~late] if late.any() else cells)
        order = np.argsort(cells[:, 0], kind="stable")
        cells = cells[order]
        matches = {}
        for place, leaf in enumerate(self._shard.leaves):
            start, end = np.searchsorted(cells[:, 0], (place, place + 1))
            if end > start:
                mine = cells[start:end]
                columns = [mine[:, 4 + column].copy() for column in range(len(leaf.variables))]
                matches[place] = MatchColumns(mine[:, 2].copy(), mine[:, 3].copy(), columns)
        elements = self._elements(cells[: np.searchsorted(cells[:, 0], ELEMENT + 1)])
        for place, source in self._bare:
            if source in elements:
                heard = elements[source]
                matches[place] = MatchColumns(heard.time, heard.position, [])
        return Events(matches, elements, seen), lost

    def _numbers(self, table: pa.Table) -> np.ndarray:
        cells = np.empty((table.num_rows, len(_PACKED)), dtype=np.int64)
        is_element = table.column(LEAF).to_numpy() == ELEMENT
        for place, name in enumerate(_PACKED):
            column = table.column(name).combine_chunks()
            if name not in VALUES:
                cells[:, place] = column.to_numpy()
            else:
                cells[:, place] = self._encode(column, is_element if name == VALUES[0] else None)
        return cells

    def _encode(self, column: pa.DictionaryArray, hashes: np.ndarray | None) -> Ints:
        if hashes is None or not hashes.any():
            return self._shard.dictionary.encode(column)
        # The hash of an element's triple is a number already.
        found = ints(len(column))
        terms = pc.filter(column, pa.array(~hashes))
        found[~hashes] = self._shard.dictionary.encode(_compact(terms))
        texts = pc.filter(column, pa.array(hashes)).cast(pa.string()).to_pylist()
        found[hashes] = np.array([int(each, 16) for each in texts], dtype=np.uint64).view(np.int64)
        return found

    def _elements(self, cells: np.ndarray) -> dict[int, Elements]:
        """Count the different triples of each element."""
        found = {}
        for source in np.unique(cells[:, 1]):
            mine = cells[cells[:, 1] == source]
            keys, counts = np.unique(mine[:, 2:4], axis=0, return_counts=True)
            found[int(source)] = Elements(keys[:, 0].copy(), keys[:, 1].copy(), counts)
        return found


def _compact(column: pa.DictionaryArray) -> pa.DictionaryArray:
    return column.cast(pa.string()).dictionary_encode()


def _read_times(schema: pa.Schema) -> Times:
    found: Mapping[str, Any] = json.loads(schema.metadata[_TIMES])
    return {stream: (int(first), int(last)) for stream, (first, last) in found.items()}


def _once(cells: np.ndarray) -> np.ndarray:
    """Leave out rows that are there twice."""
    index = OneWay(cells.shape[1], capacity=len(cells))
    _, became = index.transitions(cells, np.ones(len(cells), dtype=np.int64))
    return cells if became.all() else cells[became > 0]


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
