"""A local log of received records, for sources that cannot send them again.

The log is a folder of segment files, each named by the number of its first record. Each record is a
frame with a checksum. A frame that a crash cut short is dropped when the folder is opened again. A
number is never used twice, even after all records have been forgotten.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
import uuid
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, final

from quadweir.errors import SourceError
from quadweir.private import make_folder

SEGMENT_BYTES: Final = 16 * 2**20
MOST_BYTES: Final = 2**30
# checksum of the rest; bytes of the payload; arrival; kind; bytes of the source's name
_HEAD: Final = struct.Struct(">IIqBH")
_CHECKED_FROM: Final = 4
_INDEX_EVERY: Final = 64 * 2**10
_PIECE_BYTES: Final = 4 * 2**20
_SUFFIX: Final = ".spool"

TEXT: Final = 0
FAULT: Final = 1


@final
@dataclass(frozen=True, slots=True)
class Received:
    """One record as it arrived.

    Attributes:
        source: the part of the source that it came from, such as a topic; may be empty.
        arrival_ms: when it arrived.
        payload: its bytes; for a fault, the reason.
        kind: `TEXT`, or `FAULT` for something that is no usable record.
    """

    source: str
    arrival_ms: int
    payload: bytes
    kind: int = TEXT


@dataclass(slots=True)
class _Segment:
    path: Path
    first: int
    end: int
    size: int = 0
    # An index of records, about one for every `_INDEX_EVERY` bytes: number and first byte.
    numbers: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    def note(self, number: int, place: int) -> None:
        if not self.places or place - self.places[-1] >= _INDEX_EVERY:
            self.numbers.append(number)
            self.places.append(place)


@final
class Spool:
    """The log of one source of one query; only one process can open it.

    One thread may append while another does everything else.

    Attributes:
        identity: a name that no other spool has, kept in the folder.
    """

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        most_bytes: int = MOST_BYTES,
        lock_timeout_s: float = 10.0,
    ) -> None:
        """Open or create the folder.

        Args:
            folder: the folder of the segments.
            segment_bytes: the size of a segment at which the next one begins.
            most_bytes: the size at which the spool is full.
            lock_timeout_s: how long to wait for another process that has it open; a process whose
                driver was killed keeps it open for a moment.

        Raises:
            SourceError: another process has it open, it cannot be written, or it is damaged.
        """
        self._folder = folder
        self._segment_bytes = segment_bytes
        # Whole segments are forgotten: with less than two, a full spool would stay full.
        self._most_bytes = max(most_bytes, 2 * segment_bytes)
        self._lock = threading.Condition()
        try:
            make_folder(folder)
            self._held = (folder / "lock").open("wb")
        except OSError as error:
            raise SourceError(
                f"cannot write the spool folder {folder}",
                detail=str(error),
                hint="Name a folder on a local disk with the source's option `spool`.",
            ) from error
        if not _take(self._held, lock_timeout_s):
            self._held.close()
            raise SourceError(
                f"the spool folder {folder} is in use by another query",
                hint="Give each query that reads the source a spool folder of its own.",
            )
        try:
            self.identity = _identity(folder)
            self._segments = self._scan()
            self._file = self._open_last()
        except BaseException:
            self._held.close()
            raise

    def _scan(self) -> list[_Segment]:
        paths = sorted(self._folder.glob(f"*{_SUFFIX}"))
        segments: list[_Segment] = []
        for path in paths:
            segment = _scan_segment(path, last=path == paths[-1])
            if segments and segments[-1].end != segment.first:
                raise _damaged(path)
            segments.append(segment)
        return segments or [self._new_segment(0)]

    def _new_segment(self, first: int) -> _Segment:
        path = self._folder / f"{first:020d}{_SUFFIX}"
        path.touch()
        handle = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(handle)  # the name must survive a crash, like the content
        finally:
            os.close(handle)
        return _Segment(path, first, first)

    def _open_last(self) -> BinaryIO:
        return self._segments[-1].path.open("ab")

    @property
    def folder(self) -> Path:
        """The folder of the segments."""
        return self._folder

    @property
    def first(self) -> int:
        """The number of the oldest record that is still kept."""
        return self._segments[0].first

    @property
    def end(self) -> int:
        """The number that the next record will have."""
        return self._segments[-1].end

    @property
    def size(self) -> int:
        """How many bytes of records are kept."""
        return sum(segment.size for segment in self._segments)

    @property
    def is_full(self) -> bool:
        """Whether the receiver should wait until something is forgotten."""
        return self.size >= self._most_bytes

    def append(self, record: Received) -> int:
        """Add a record and return its number; it survives a crash only after `sync`."""
        source = record.source.encode()
        frame = bytearray(
            _HEAD.pack(0, len(record.payload), record.arrival_ms, record.kind, len(source))
        )
        frame += source
        frame += record.payload
        struct.pack_into(">I", frame, 0, zlib.crc32(memoryview(frame)[_CHECKED_FROM:]))
        with self._lock:
            segment = self._segments[-1]
            if segment.size >= self._segment_bytes:
                segment = self._roll()
            self._file.write(frame)
            segment.note(segment.end, segment.size)
            segment.size += len(frame)
            segment.end += 1
            return segment.end - 1

    def _roll(self) -> _Segment:
        self._flush()
        self._file.close()
        self._segments.append(self._new_segment(self.end))
        self._file = self._open_last()
        return self._segments[-1]

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def sync(self) -> int:
        """Write all records to disk, so that they survive a crash, and return `end`."""
        with self._lock:
            self._flush()
            return self.end

    def limit(self, start: int, *, records: int, size: int) -> int:
        """Return the end of a batch from `start`: about `size` bytes, and at least one record."""
        with self._lock:
            most = min(self.end, start + records)
            taken = 0
            for segment in self._segments:
                if segment.end <= start:
                    continue
                ends = [*segment.places[1:], segment.size]
                next_numbers = [*segment.numbers[1:], segment.end]
                for place, end, following in zip(segment.places, ends, next_numbers, strict=True):
                    if following <= start:
                        continue
                    taken += end - place
                    if following >= most:
                        return most
                    if taken >= size:
                        return following
            return most

    def read(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield the frames of records from `start` up to, but not including, `end`, in runs.

        A run is the number of its first record and the bytes of whole frames (`unframe`).

        Raises:
            SourceError: some of these records are not in the spool, no longer or not yet.
        """
        if start >= end:
            return
        with self._lock:
            self._file.flush()
            if start < self.first or end > self.end:
                raise SourceError(
                    f"the spool holds records {self.first} to {self.end}, "
                    f"and the checkpoint asks for {start} to {end}",
                    detail=f"Its folder is {self._folder}.",
                    hint="Restore the folder, or start again with an empty checkpoint.",
                )
            segments = [one for one in self._segments if one.end > start and one.first < end]
            runs = [(one.path, *_bounds(one, start, end)) for one in segments]
        for path, number, place, stop in runs:
            with path.open("rb") as file:
                file.seek(place)
                data = file.read(stop - place)
            yield from _cut(number, data, start, end)

    def forget(self, before: int) -> None:
        """Remove the segments in which every record is below `before`."""
        with self._lock:
            if before >= self.end and self._segments[-1].size >= self._segment_bytes // 4:
                self._roll()
            while len(self._segments) > 1 and self._segments[0].end <= before:
                self._segments.pop(0).path.unlink(missing_ok=True)
            self._lock.notify_all()

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait while the spool is full; return whether there is room."""
        with self._lock:
            return self._lock.wait_for(lambda: not self.is_full, timeout_s)

    def close(self) -> None:
        """Write everything to disk, and let another process open the spool."""
        with self._lock:
            if self._held.closed:
                return
            with contextlib.suppress(OSError):
                self._flush()
            self._file.close()
            self._held.close()


def _take(held: BinaryIO, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)


def _identity(folder: Path) -> str:
    """Return the name of the spool, which keeps its numbers apart from those of another."""
    file = folder / "identity"
    if not file.is_file():
        scratch = file.with_suffix(".new")
        scratch.write_text(uuid.uuid4().hex[:16], encoding="ascii")
        scratch.replace(file)
    return file.read_text(encoding="ascii")


def unframe(number: int, data: bytes) -> Iterator[tuple[int, Received]]:
    """Yield the records of one run, with their numbers."""
    place = 0
    while place < len(data):
        _, length, arrival, kind, named = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        source = data[place : place + named].decode()
        place += named
        yield number, Received(source, arrival, data[place : place + length], kind)
        place += length
        number += 1


def _bounds(segment: _Segment, start: int, end: int) -> tuple[int, int, int]:
    """Return an indexed record at or before `start`, its byte, and a byte after the last record."""
    at = max(bisect_right(segment.numbers, start) - 1, 0)
    after = bisect_right(segment.numbers, end - 1)
    stop = segment.places[after] if after < len(segment.places) else segment.size
    return segment.numbers[at], segment.places[at], stop


def _cut(number: int, data: bytes, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yield the needed records of a run, in pieces that make good tasks."""
    place = begin = 0
    first = number
    while place < len(data) and number < end:
        _, length, _, _, named = _HEAD.unpack_from(data, place)
        after = place + _HEAD.size + named + length
        number += 1
        place = after
        if number <= start:
            begin, first = place, number
        elif place - begin >= _PIECE_BYTES:
            yield first, data[begin:place]
            begin, first = place, number
    if place > begin:
        yield first, data[begin:place]


def _scan_segment(path: Path, *, last: bool) -> _Segment:
    try:
        segment = _Segment(path, int(path.stem), int(path.stem))
    except ValueError:
        raise _damaged(path) from None
    total = path.stat().st_size
    with path.open("r+b") as file:
        while segment.size < total:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                break
            checksum, length, _, _, named = _HEAD.unpack(head)
            if length + named > total - segment.size:
                break
            rest = file.read(named + length)
            if zlib.crc32(rest, zlib.crc32(head[_CHECKED_FROM:])) != checksum:
                break
            segment.note(segment.end, segment.size)
            segment.size += _HEAD.size + len(rest)
            segment.end += 1
        if segment.size < total:
            # Only the last segment can have an incomplete frame, from a process that was killed.
            if not last:
                raise _damaged(path)
            file.truncate(segment.size)
    return segment


def _damaged(path: Path) -> SourceError:
    return SourceError(
        f"the spool file {path} is damaged",
        hint="Move its folder away and start with an empty checkpoint; what it held is lost.",
    )
