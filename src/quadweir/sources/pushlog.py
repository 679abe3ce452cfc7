"""A log of records that clients push over HTTP: written by the service, read by any number of runs.

The log is a folder of segment files, each named by its first byte in the whole log. What was pushed
at once is a frame with a checksum: a table of records, as Arrow writes it. The file `synced` says up
to which byte the frames are on disk; nobody reads further. A place in the log is a byte, and it never
means something else.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from quadweir.errors import SourceError

if TYPE_CHECKING:
    import pyarrow as pa

# checksum of the rest; bytes of the table; records; bytes of the key; arrival; number of the first record
_HEAD: Final = struct.Struct(">IIIHqQ")
_CHECKED_FROM: Final = 4
HEAD_BYTES: Final = _HEAD.size
SUFFIX: Final = ".push"
SYNCED: Final = "synced"
READERS: Final = "readers"
_PIECE_BYTES: Final = 4 * 2**20


@final
@dataclass(frozen=True, slots=True)
class PushFrame:
    """What was pushed at once.

    Attributes:
        first: the number of its first record in the log.
        count: how many records it has.
        arrival_ms: when it arrived.
        key: the key by which a repeated push is recognised; may be empty.
        table: the records, as Arrow's stream format has them (`TABLE`).
    """

    first: int
    count: int
    arrival_ms: int
    key: bytes
    table: bytes

    def framed(self) -> bytes:
        """Return the bytes of the frame."""
        head = _HEAD.pack(
            0, len(self.table), self.count, len(self.key), self.arrival_ms, self.first
        )
        frame = bytearray(head + self.key + self.table)
        struct.pack_into(">I", frame, 0, zlib.crc32(memoryview(frame)[_CHECKED_FROM:]))
        return bytes(frame)


class FrameHead(NamedTuple):
    """The head of a frame, without its checksum."""

    table_bytes: int
    records: int
    key_bytes: int
    arrival_ms: int
    first: int

    @property
    def size(self) -> int:
        """The bytes of the whole frame."""
        return HEAD_BYTES + self.key_bytes + self.table_bytes


def head_at(data: bytes | memoryview, place: int) -> FrameHead:
    """Read the head of a frame."""
    return FrameHead(*_HEAD.unpack_from(data, place)[1:])


def frames_of(data: bytes) -> Iterator[PushFrame]:
    """Yield whole frames."""
    place = 0
    while place + HEAD_BYTES <= len(data):
        head = head_at(data, place)
        begin = place + HEAD_BYTES + head.key_bytes
        place += head.size
        key = data[begin - head.key_bytes : begin]
        yield PushFrame(head.first, head.records, head.arrival_ms, key, data[begin:place])


def whole_bytes(data: bytes) -> int:
    """Return how many bytes of a segment are whole frames; a crash may have cut the last one."""
    place = 0
    while place + HEAD_BYTES <= len(data):
        end = place + head_at(data, place).size
        checked = memoryview(data)[place + _CHECKED_FROM : end]
        if end > len(data) or zlib.crc32(checked) != struct.unpack_from(">I", data, place)[0]:
            break
        place = end
    return place


def table_schema() -> pa.Schema:
    """Return the columns of pushed records: the text, and the event time."""
    import pyarrow as pa

    return pa.schema([pa.field("value", pa.string()), pa.field("time", pa.int64())])


def packed_table(values: list[str], times: list[int]) -> bytes:
    """Return records as the table of a frame."""
    import pyarrow as pa

    schema = table_schema()
    batch = pa.RecordBatch.from_arrays(
        [pa.array(values, pa.string()), pa.array(times, pa.int64())], schema=schema
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def records_of(frame: PushFrame) -> Iterator[pa.RecordBatch]:
    """Yield the records of a frame."""
    import pyarrow as pa

    with pa.ipc.open_stream(frame.table) as stream:
        yield from stream


@final
class PushLogReader:
    """Reads a log that another process may write.

    Args:
        folder: the folder of the log.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def end(self) -> int:
        """Return the byte up to which frames are on disk."""
        try:
            return int.from_bytes((self._folder / SYNCED).read_bytes()[:8], "big")
        except FileNotFoundError:
            return 0

    def segments(self) -> list[tuple[int, Path]]:
        """Return the segments with their first bytes, in order."""
        return sorted((int(path.stem), path) for path in self._folder.glob(f"*{SUFFIX}"))

    def first(self) -> int:
        """Return the first byte that is still kept."""
        return next((begin for begin, _ in self.segments()), 0)

    def limit(self, start: int, *, size: int, count: int) -> int:
        """Return the end of a batch from `start`: whole frames, and at least one if there is one."""
        end = place = start
        records = 0
        for place, head in self.heads(start, self.end()):
            records += head.records
            if place > start and (place + head.size - start > size or records > count):
                return place
            end = place + head.size
        return end

    def heads(self, start: int, end: int) -> Iterator[tuple[int, FrameHead]]:
        """Yield the places and the heads of the frames between two places, without their records."""
        place = start
        for begin, path in self._between(start, end):
            with path.open("rb") as file:
                while place < end:
                    file.seek(place - begin)
                    data = file.read(HEAD_BYTES)
                    if len(data) < HEAD_BYTES:
                        break
                    head = head_at(data, 0)
                    yield place, head
                    place += head.size

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the frames between two places, in pieces that make good tasks.

        Raises:
            SourceError: they are no longer kept.
        """
        if start >= end:
            return
        if start < self.first() or end > self.end():
            raise SourceError(
                f"the log of pushed records in {self._folder} has bytes {self.first()} to "
                f"{self.end()}, and the checkpoint asks for {start} to {end}",
                hint="Restore the folder, or start again with an empty checkpoint.",
            )
        for begin, path in self._between(start, end):
            with path.open("rb") as file:
                file.seek(max(0, start - begin))
                data = file.read(end - max(begin, start))
            yield from _pieces(data)

    def _between(self, start: int, end: int) -> list[tuple[int, Path]]:
        found = self.segments()
        ends = [*(begin for begin, _ in found[1:]), max(end, start) + 1]
        return [
            each for each, after in zip(found, ends, strict=True) if after > start and each[0] < end
        ]


def _pieces(data: bytes) -> Iterator[bytes]:
    place = begin = 0
    while place + HEAD_BYTES <= len(data):
        place += head_at(data, place).size
        if place - begin >= _PIECE_BYTES:
            yield data[begin:place]
            begin = place
    if place > begin:
        yield data[begin:place]


def raw_batches(data: bytes, source: str) -> Iterator[dict[str, Any]]:
    """Yield the columns of frames: texts, times, numbers and arrivals of records."""
    import numpy as np

    for frame in frames_of(data):
        for batch in records_of(frame):
            yield {
                "source": source,
                "numbers": np.arange(frame.first, frame.first + batch.num_rows, dtype=np.int64),
                "arrival_ms": frame.arrival_ms,
                "values": batch.column("value"),
                "times": batch.column("time"),
            }
