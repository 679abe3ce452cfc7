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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final, final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from quadweir import rows
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import FOREVER, Ints
from quadweir.kernel.events import Changes, Events, MatchColumns
from quadweir.kernel.oneway import OneWay
from quadweir.kernel.shard import Shard
from quadweir.kernel.window import Elements
from quadweir.plan.query import QueryPlan
from quadweir.plan.wanted import Part, Wanted
from quadweir.runtime.answers import FACTS
from quadweir.runtime.garbage import settle
from quadweir.runtime.letters import of_late, packed, taken_out
from quadweir.runtime.matchbits import STREAM, TOLD, MatchBits, shard_by, word_of
from quadweir.runtime.matching import END, HASH, VALUES, stream_numbers

SHARD_KEY: Final = "shard_key"
FIRST: Final = "first_time"
BLOB: Final = "blob"
BLOB_SCHEMA: Final = f"{SHARD_KEY} int, {FIRST} bigint, {BLOB} binary"

_TIMES: Final = b"times"
_TOLD: Final = b"told"
_STAMP: Final = b"packed_at"
_SHARD: Final = b"shard"
_THROUGH: Final = b"through"
_REPORTS: Final = b"reports"
_BEFORE: Final = b"before"
# A blob of half a million rows is some ten megabytes; smaller ones let time go on within a batch.
MOST_ROWS: Final = 1 << 19
# Arrow and Spark hold at most 2 GiB in a column of blobs, and a row may go to every shard.
MOST_BYTES: Final = 1 << 26
_COLUMNS: Final = (rows.EVENT_TIME, rows.POSITION)
# Elements in runs longer than this are compared by hashing.
_NEAR: Final = 4
_MOST_RUNS: Final = 256


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
    """

    keys: tuple[int, ...]
    streams: tuple[str, ...]
    bits: MatchBits
    sent_by: tuple[Part | None, ...]

    @staticmethod
    def of(plan: QueryPlan, keys: tuple[int, ...]) -> Packer:
        """Make the packer of a plan."""
        streams = stream_numbers(plan)
        bits = MatchBits.of(plan.wanted, streams=len(streams), shards=len(keys))
        return Packer(keys, streams, bits, tuple(each.key for each in plan.wanted))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        waiting: list[pa.RecordBatch] = []
        count = size = 0
        times: Times = {}
        told: Told = {}
        sent = False
        tests = self._masks(lambda _: True)
        for arrived in batches:
            letters, batch = taken_out(arrived)
            if letters:
                yield letter_blob(self.keys, letters)
            self._note_times(times, told, batch)
            some = _any_of(batch, tests)
            found = np.count_nonzero(some)
            if not found:
                continue
            # Shards get what is theirs anyway; a few rows more may wait.
            waiting.append(batch if 2 * found > len(some) else batch.filter(pa.array(some)))
            count += waiting[-1].num_rows
            size += waiting[-1].nbytes
            if count >= MOST_ROWS or size >= MOST_BYTES:
                yield self._pack(waiting, times, told)
                waiting, count, size, times, sent = [], 0, 0, {}, True
        if waiting or times or told or not sent:
            yield self._pack(waiting, times, told)
        settle(Packer)

    def _note_times(self, times: Times, told: Told, batch: pa.RecordBatch) -> None:
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

    def _pack(self, waiting: list[pa.RecordBatch], times: Times, told: Told) -> pa.RecordBatch:
        table = pa.Table.from_batches(waiting) if waiting else None
        # Both are the same for all shards: they go on from instant to instant together, and find a
        # stream idle at the same time.
        first = min((first for name, (first, _) in times.items() if name != END), default=None)
        facts = {
            _TIMES: json.dumps(times).encode(),
            _TOLD: json.dumps(told).encode(),
            _STAMP: str(int(time.time() * 1000)).encode(),
        }
        blobs = [
            _blob(
                self._part(table, shard) if table is not None else None,
                facts | {_SHARD: str(shard).encode()},
            )
            for shard in range(len(self.keys))
        ]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.keys, pa.int32()),
                pa.array([first] * len(blobs), pa.int64()),
                pa.array(blobs, pa.binary()),
            ],
            names=[SHARD_KEY, FIRST, BLOB],
        )

    def _part(self, table: pa.Table, shard: int) -> pa.Table:
        """Keep what one shard is to hear of: a statement may pass a test for it, others not."""
        tests = self._masks(lambda _: True)
        everywhere = self._masks(lambda key: key is None or len(self.keys) == 1)
        passed = {name: table.column(name).to_numpy() for name in tests}
        mine = {name: each & everywhere.get(name, 0) for name, each in passed.items()}
        for key in {each for each in self.sent_by if each is not None and len(self.keys) > 1}:
            is_here = self.bits.read(shard_by(key), table) == shard
            for name, mask in self._masks(lambda each, key=key: each == key).items():  # type: ignore[misc]
                mine[name] |= np.where(is_here, passed[name] & mask, 0)
        some = reduce(np.bitwise_or, mine.values()) != 0
        table = table.drop_columns(self.bits.names)
        for name, each in mine.items():
            table = table.append_column(name, pa.array(each))
        return table if some.all() else table.filter(pa.array(some))

    def _masks(self, which: Callable[[Part | None], bool]) -> dict[str, int]:
        """Give the bits of tests that send by such terms, for each column of bits."""
        return self.bits.masks(map(which, self.sent_by))


def _any_of(batch: pa.RecordBatch, masks: Mapping[str, int]) -> np.ndarray:
    """Tell which rows have one of these bits."""
    found = [batch.column(name).to_numpy() & mask for name, mask in masks.items()]
    return reduce(np.bitwise_or, found) != 0 if found else np.zeros(batch.num_rows, dtype=bool)


def letter_blob(keys: tuple[int, ...], letters: Sequence[str]) -> pa.RecordBatch:
    """Pack letters for one of the shards; which, is of no account."""
    columns = [pa.array(keys[:1], pa.int32()), pa.nulls(1, pa.int64())]
    return pa.RecordBatch.from_arrays(
        [*columns, pa.array([packed(letters)], pa.binary())], names=[SHARD_KEY, FIRST, BLOB]
    )


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
        through = found.get(_THROUGH)
        return Header(
            _read_times(schema),
            json.loads(found[_TOLD]),
            int(found[_STAMP]),
            None if through is None else int(through),
        )


def _blob(part: pa.Table | None, facts: Mapping[bytes, bytes]) -> bytes:
    if part is None:
        part = pa.schema([pa.field(name, pa.int64()) for name in _COLUMNS]).empty_table()
    return _stream(part.replace_schema_metadata(facts))


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    # It goes through a shuffle and into the state; spellings have much in common.
    options = pa.ipc.IpcWriteOptions(compression="lz4" if table.num_rows else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@final
@dataclass
class Late:
    """What of blobs came too late: how many matches, and letters about them if these are wanted."""

    matches: int = 0
    letters: list[str] = field(default_factory=list)


@final
class Unpacker:
    """Turns blobs into the events of a shard.

    Args:
        shard: the shard.
        wanted: the tests that rows were put to.
        letters: whether to write letters about what is late.
    """

    def __init__(self, shard: Shard, wanted: Sequence[Wanted], *, letters: bool = False) -> None:
        self._shard = shard
        self._wanted = tuple(wanted)
        self._letters = letters
        self._waiting: pa.Table | None = None
        self._sources: dict[str, list[int]] = defaultdict(list)
        for place, source in enumerate(shard.sources):
            self._sources[source.stream].append(place)
        self._bare = [
            (place, shard.sources.index(leaf.source))
            for place, leaf in enumerate(shard.leaves)
            if leaf.pattern is None
        ]

    def events(
        self, blobs: Iterable[bytes], *, after: int, until: int = FOREVER
    ) -> tuple[Events, Late]:
        """Read blobs; elements not later than `after` are left out and told of.

        A triple that an element carries twice counts once (W8). Of an instant until which not all has
        been read, that cannot be told yet: what is later than `until` waits for the next call.
        """
        tables: list[pa.Table] = [] if self._waiting is None else [self._waiting]
        self._waiting = None
        seen: dict[int, tuple[int, int]] = {}
        is_first = True
        for blob in blobs:
            reader = pa.ipc.open_stream(blob)
            is_first = reader.schema.metadata[_SHARD] == b"0"
            for stream, (first, last) in _read_times(reader.schema).items():
                if last <= after:
                    continue
                for place in self._sources[stream]:
                    known = seen.get(place, (first, last))
                    seen[place] = (max(min(first, known[0]), after + 1), max(last, known[1]))
            table = reader.read_all()
            if table.num_rows:
                tables.append(table.replace_schema_metadata())
        if not tables:
            return Events(seen=seen), Late()
        table = pa.concat_tables(tables)
        if until < FOREVER:
            is_later = table.column(rows.EVENT_TIME).to_numpy() > until
            if is_later.any():
                self._waiting = table.filter(pa.array(is_later))
                table = table.filter(pa.array(~is_later))
        matches, elements, late = self._sorted_out(table, after, is_first)
        return Events(matches, elements, seen), late

    def _sorted_out(
        self, table: pa.Table, after: int, is_first: bool
    ) -> tuple[dict[int, MatchColumns], dict[int, Elements], Late]:
        """Give each leaf what is its own."""
        at, position = (table.column(name).to_numpy() for name in _COLUMNS)
        values = [
            self._shard.dictionary.encode(table.column(name))
            if name in table.column_names
            else None
            for name in VALUES
        ]
        matches: dict[int, MatchColumns] = {}
        elements: dict[int, Elements] = {}
        late = Late()
        for number, test in enumerate(self._wanted):
            name, bit = word_of(number)
            mine = (table.column(name).to_numpy() >> bit) & 1 != 0
            chosen = np.flatnonzero(mine) if not mine.all() else slice(None)
            times, positions = at[chosen], position[chosen]
            if not len(times):
                continue
            # An element has no terms; a hash tells its triples apart.
            cells = (
                {0: table.column(HASH).to_numpy()[chosen]}
                if test.elements
                else {place: values[place][chosen] for place in test.needed}  # type: ignore[index]
            )
            kept = _once(times, positions, list(cells.values()))
            is_late = times <= after
            if is_late.any():
                # What every shard gets is counted by one of them.
                if not test.elements and (test.key is not None or is_first):
                    lost = np.flatnonzero(is_late if kept is None else is_late & kept)
                    late.matches += len(lost)
                    if self._letters:
                        places = np.flatnonzero(mine)[lost]
                        late.letters += _letters(table.take(pa.array(places)), test, after)
                kept = ~is_late if kept is None else ~is_late & kept
            if kept is not None:
                times, positions = times[kept], positions[kept]
                cells = {place: each[kept] for place, each in cells.items()}
            if not len(times):
                continue
            if test.elements:
                elements.update(dict.fromkeys(test.elements, _elements(times, positions)))
            for leaf, parts in test.leaves:
                columns = [
                    cells[part] if isinstance(part, int) else self._everywhere(part, len(times))
                    for part in parts
                ]
                match = MatchColumns(times, positions, columns)
                matches[leaf] = _both(matches[leaf], match) if leaf in matches else match
        for leaf, source in self._bare:
            if source in elements:
                heard = elements[source]
                matches[leaf] = MatchColumns(heard.time, heard.position, [])
        return matches, elements, late

    def _everywhere(self, spelling: str, count: int) -> Ints:
        """Give the number of a term that is the same in all rows."""
        return np.repeat(self._shard.dictionary.numbers((spelling,)), count)


def _letters(table: pa.Table, test: Wanted, watermark: int) -> list[str]:
    """Write about statements that passed a test and are late."""
    at, position = (table.column(name).to_pylist() for name in _COLUMNS)
    terms = []
    for place, constant in enumerate(test.constants):
        told = None if constant is None else str(constant)
        if (test.way is None and told is not None) or VALUES[place] not in table.column_names:
            terms.append([told] * table.num_rows)
        else:
            terms.append(table.column(VALUES[place]).to_pylist())
    return [
        of_late(test.stream, time, place, spelled, watermark)
        for time, place, spelled in zip(at, position, zip(*terms, strict=True), strict=True)
    ]


@final
@dataclass(frozen=True)
class Sender:
    """Packs the changes that a shard of the first stage gives, for the shards of the second.

    Attributes:
        keys: the shuffle keys of the shards of the second stage, in their order.
        column: the place of the variable that they are sharded by; None if there is one shard.
        before: all changes until the step that is packed next, and the last report, if they are to
            take the place of what was sent until then.
    """

    keys: tuple[int, ...]
    column: int | None
    before: tuple[Answers, Ints] | None = None

    def letters(self, letters: Sequence[str]) -> pa.RecordBatch:
        """Hand letters on to the second stage."""
        batch = letter_blob(self.keys, letters)
        nothing = [pa.nulls(1, pa.int64()) for _ in FACTS]
        return pa.RecordBatch.from_arrays([*batch.columns, *nothing], names=self.schema.names)

    @property
    def schema(self) -> StructType:
        """A blob for each shard of the second stage, or facts about this one."""
        return StructType(
            [
                StructField(SHARD_KEY, IntegerType()),
                StructField(FIRST, LongType()),
                StructField(BLOB, BinaryType()),
                *(StructField(name, LongType()) for name in FACTS),
            ]
        )

    def write(self, shard: Shard, answers: Answers, after: int, salt: str) -> pa.RecordBatch:  # noqa: ARG002 - as for answers
        """Pack the changes of a step that began after an instant."""
        table = _as_table(answers)
        facts = {_TIMES: b"{}", _TOLD: b"{}", _STAMP: b"0"}
        facts[_THROUGH] = str(shard.through).encode()
        reports = shard.reported
        if self.before is not None:
            changes, report = self.before
            table = pa.concat_tables([_as_table(changes), table])
            reports = np.concatenate((report, reports))
            facts[_BEFORE] = str(after).encode()
        if shard.tells_reports:
            facts[_REPORTS] = reports.tobytes()
        table = table.replace_schema_metadata(facts)
        count = len(self.keys)
        to = None
        if self.column is not None:
            to = _numbered(table.column(str(self.column)).combine_chunks(), count)
        blobs = [
            _stream(table if to is None else table.filter(pa.array(to == number)))
            for number in range(count)
        ]
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self.keys, pa.int32()),
                pa.array([after + 1] * count, pa.int64()),
                pa.array(blobs, pa.binary()),
                *(pa.nulls(count, pa.int64()) for _ in FACTS),
            ],
            names=self.schema.names,
        )

    def facts(self, facts: Mapping[str, int]) -> pa.RecordBatch:
        """Give the row that says how a shard fares."""
        numbers = [pa.array([facts.get(name)], pa.int64()) for name in FACTS]
        nothing = [pa.nulls(1, kind) for kind in (pa.int32(), pa.int64(), pa.binary())]
        return pa.RecordBatch.from_arrays([*nothing, *numbers], names=self.schema.names)


def _as_table(changes: Answers) -> pa.Table:
    names = [rows.REPORT, rows.SIGN, *map(str, range(len(changes.values)))]
    return pa.table([pa.array(changes.t), pa.array(changes.sign), *changes.values], names=names)


def _numbered(column: pa.Array, shards: int) -> Ints:
    """Give the shard of each value, the same in every process."""
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_numpy(zero_copy_only=False).astype(object)
    found = (pd.util.hash_array(texts, categorize=False) % np.uint64(shards)).astype(np.int64)
    numbers: Ints = found[coded.indices.to_numpy()]
    return numbers


@final
class Receiver:
    """Turns the blobs of the first stage into the events of a shard of the second."""

    def events(
        self,
        blobs: Iterable[bytes],
        *,
        after: int,  # noqa: ARG002 - as for matches
        until: int = FOREVER,  # noqa: ARG002
    ) -> tuple[Events, Late]:
        """Read blobs; nothing in them is late, the first stage has seen to that."""
        tables, reports, anew = [], [], []
        for blob in blobs:
            reader = pa.ipc.open_stream(blob)
            told, before = (reader.schema.metadata.get(name) for name in (_REPORTS, _BEFORE))
            if told is not None:
                reports.append(np.frombuffer(told, dtype=np.int64))
            if before is not None:
                anew.append(int(before))
            tables.append(reader.read_all().replace_schema_metadata())
        if not tables:
            return Events(), Late()
        table = pa.concat_tables(tables)
        t, sign = (table.column(name).to_numpy() for name in (rows.REPORT, rows.SIGN))
        order = np.argsort(t * 2 + (sign > 0), kind="stable")
        columns = [each.combine_chunks().take(pa.array(order)) for each in table.columns[2:]]
        instants = np.unique(np.concatenate(reports)) if reports else None
        changes = Changes(t[order], sign[order], columns, instants)
        if not anew:
            return Events(changes=changes), Late()
        changes, later = changes.split(max(anew))
        return Events(changes=later, before=changes), Late()


def _both(one: MatchColumns, other: MatchColumns) -> MatchColumns:
    """Put together what passed two tests; what an element says in two ways counts once (N1)."""
    pairs = zip(
        (one.time, one.position, *one.columns),
        (other.time, other.position, *other.columns),
        strict=True,
    )
    times, positions, *columns = (np.concatenate(each) for each in pairs)
    kept = _once(times, positions, columns)
    if kept is not None:
        times, positions, *columns = (each[kept] for each in (times, positions, *columns))
    return MatchColumns(times, positions, columns)


def _elements(times: Ints, positions: Ints) -> Elements:
    """Count the triples of each element."""
    order = np.lexsort((positions, times))
    times, positions = times[order], positions[order]
    is_first = np.append(True, (times[1:] != times[:-1]) | (positions[1:] != positions[:-1]))
    starts = np.flatnonzero(is_first)
    return Elements(times[starts], positions[starts], np.diff(np.append(starts, len(times))))


def _once(times: Ints, positions: Ints, columns: Sequence[Ints]) -> np.ndarray | None:
    """Tell which rows to keep so that none is there twice; None to keep all.

    Rows of one element mostly lie together. Then it is enough to compare neighbours.
    """
    if _lies_together(positions):
        same = (positions[1:] == positions[:-1]) & (times[1:] == times[:-1])
        if not same.any():
            return None
        if not _in_row(same, _NEAR):
            again = np.zeros(len(times), dtype=bool)
            for step in range(1, _NEAR):
                equal = positions[step:] == positions[:-step]
                for column in (times, *columns):
                    equal &= column[step:] == column[:-step]
                again[step:] |= equal
            return ~again if again.any() else None
    cells = np.column_stack((times, positions, *columns))
    index = OneWay(cells.shape[1], capacity=len(cells))
    _, became = index.transitions(cells, np.ones(len(cells), dtype=np.int64))
    return None if became.all() else became > 0


def _lies_together(positions: Ints) -> bool:
    """Tell whether equal positions can only be neighbours: a few rising runs that do not overlap."""
    falls = np.flatnonzero(positions[1:] < positions[:-1])
    if len(falls) > _MOST_RUNS:
        return False
    first = positions[np.append(0, falls + 1)]
    last = positions[np.append(falls, len(positions) - 1)]
    order = np.argsort(first)
    return bool((first[order][1:] > last[order][:-1]).all())


def _in_row(flags: np.ndarray, count: int) -> bool:
    """Tell whether so many flags are set one after the other."""
    size = max(0, len(flags) - count + 1)
    found = np.logical_and.reduce([flags[at : at + size] for at in range(count)])
    return bool(found.any())


def _read_times(schema: pa.Schema) -> Times:
    found: Mapping[str, Any] = json.loads(schema.metadata[_TIMES])
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
