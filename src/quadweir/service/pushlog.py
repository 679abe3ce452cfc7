"""Keeps what clients push: it is on disk before they get the answer that it was accepted."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import StateError
from quadweir.private import make_folder
from quadweir.service.declarations import sync_folder
from quadweir.service.problems import ConflictError, PressureError
from quadweir.sources.pushlog import (
    HEAD_BYTES,
    READERS,
    SUFFIX,
    SYNCED,
    PushFrame,
    PushLogReader,
    head_at,
    packed_table,
    whole_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

SEGMENT_BYTES: Final = 16 * 2**20
# Between a key and the digest of its body; no header has it.
_APART: Final = b"\0"


@final
@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of a push.

    Attributes:
        first: the number of its first record.
        count: how many records it has.
        repeated: whether it was pushed before, with the same key.
    """

    first: int
    count: int
    repeated: bool = False


@final
class PushLog:
    """The log of one stream. Threads may append at the same time; they share a write to disk.

    Args:
        folder: its folder.
        most_bytes: how many bytes may wait to be read.
        kept_bytes: how many bytes are kept after they were read, for pushes that are repeated.
        segment_bytes: how large a segment is.

    Raises:
        StateError: another process writes the log, or the folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int = 2**30,
        kept_bytes: int = 64 * 2**20,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._kept_bytes = kept_bytes
        self._segment_bytes = segment_bytes
        self._writing = threading.Lock()
        self._syncing = threading.Lock()
        self._keys: dict[bytes, tuple[int, int, bytes]] = {}
        self._arrival_ms = 0
        self._readers: tuple[tuple[str, int], ...] = ()
        # Up to where all of them have read, as far as it is known; None if there are none.
        self._needed: int | None = None
        self.records = 0
        """How many records the log ever had."""
        self._rate: list[tuple[float, int]] = []
        try:
            make_folder(folder)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._mark = os.open(folder / SYNCED, os.O_RDWR | os.O_CREAT, 0o600)
            self._open()
        except OSError as error:
            raise StateError(
                f"the log of pushed records in {folder} cannot be written: {error.strerror}",
                hint="Only one service can use a folder of data.",
            ) from None

    def _open(self) -> None:
        """Read what is there; what a crash cut short is dropped: no push of it was accepted."""
        self._segments = PushLogReader(self.folder).segments()
        for begin, path in self._segments:
            data = path.read_bytes()
            is_last = path == self._segments[-1][1]
            end = whole_bytes(data) if is_last else len(data)
            self._note(data[:end])
            if end < len(data):
                os.truncate(path, end)
            self._end = begin + end
        if not self._segments:
            self._end = 0
            self._segments = [(0, self._path(0))]
        self._file = os.open(self._segments[-1][1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fsync(self._file)
        sync_folder(self.folder)
        self._synced = self._end
        self._tell_readers()
        self.forget()

    def _note(self, data: bytes) -> None:
        place = 0
        while place + HEAD_BYTES <= len(data):
            head = head_at(data, place)
            key = data[place + HEAD_BYTES : place + HEAD_BYTES + head.key_bytes]
            if key:
                spelled, _, digest = key.partition(_APART)
                self._keys[spelled] = (head.first, head.records, digest)
            self.records = head.first + head.records
            self._arrival_ms = head.arrival_ms
            place += head.size

    def _path(self, begin: int) -> Path:
        return self.folder / f"{begin:020d}{SUFFIX}"

    @property
    def end(self) -> int:
        """The byte up to which the log is on disk."""
        return self._synced

    @property
    def unread(self) -> int:
        """How many bytes wait to be read."""
        return self._end - self._needed if self._needed is not None else 0

    def append(
        self,
        values: list[str],
        times: list[int | None],
        *,
        now_ms: int,
        key: str = "",
        digest: bytes = b"",
    ) -> Pushed:
        """Add records; once this returns, they survive a crash.

        Args:
            values: their texts.
            times: their event times; None for the time of arrival, which never goes back.
            now_ms: the time now.
            key: recognises a push that is repeated; empty for none.
            digest: tells bodies of the same key apart.

        Raises:
            PressureError: too much waits to be read.
            StateError: the disk is full.
        """
        self._check_room()
        spelled = key.encode("utf-8", "surrogatepass")
        kept_key = spelled + _APART + digest if spelled else b""
        with self._writing:
            known = self._keys.get(spelled) if spelled else None
            if known is not None:
                first, count, other = known
                if (count, other) != (len(values), digest):
                    raise ConflictError(
                        "another body was pushed with this Idempotency-Key",
                        hint="Use a new key for each body.",
                    )
                written, found = self._end, Pushed(first, count, repeated=True)
            else:
                # Records in the order of the log are never late, whatever the clock and threads do.
                arrival = max(now_ms, self._arrival_ms)
                stamped = [arrival if each is None else each for each in times]
                table = packed_table(values, stamped)
                frame = PushFrame(self.records, len(values), arrival, kept_key, table)
                self._arrival_ms = arrival
                written = self._write(frame.framed())
                found = Pushed(self.records, len(values))
                self.records += len(values)
                self._rate.append((time.monotonic(), len(values)))
                if spelled:
                    self._keys[spelled] = (found.first, found.count, digest)
        self._sync(written)
        return found

    def _check_room(self) -> None:
        if self.unread >= self._most_bytes:
            self._look()
        if self.unread >= self._most_bytes:
            raise PressureError(
                f"{self.unread:,} bytes of this stream wait to be read", retry_after_s=5
            )

    def _write(self, frame: bytes) -> int:
        begin = self._segments[-1][0]
        if self._end - begin >= self._segment_bytes:
            self._roll()
            begin = self._end
        left = memoryview(frame)
        try:
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            os.ftruncate(self._file, self._end - begin)
            raise _full(self.folder, error) from error
        self._end += len(frame)
        return self._end

    def _roll(self) -> None:
        """Begin another segment; the last one must be on disk before."""
        os.fsync(self._file)
        os.close(self._file)
        path = self._path(self._end)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._segments.append((self._end, path))
        sync_folder(self.folder)

    def _sync(self, through: int) -> None:
        """Write everything to disk up to a byte; whoever comes first does it for all."""
        with self._syncing:
            if self._synced >= through:
                return
            with self._writing:
                end, file = self._end, os.dup(self._file)
            try:
                os.fsync(file)
            except OSError as error:
                raise _full(self.folder, error) from error
            finally:
                os.close(file)
            self._synced = end
            self._tell_readers()

    def _tell_readers(self) -> None:
        os.pwrite(self._mark, self._synced.to_bytes(8, "big"), 0)

    # --- readers ---

    def forget(self, readers: Iterable[tuple[str, int]] | None = None) -> None:
        """Drop the segments that all readers have read, and that are more than is kept.

        Args:
            readers: the runs that read the log, and where each began; None while that is not known.
        """
        if readers is None:
            return
        self._readers = tuple(readers)
        self._look()
        needed = self._needed if self._needed is not None else self._synced
        with self._writing:
            while len(self._segments) > 1:
                after = self._segments[1][0]
                if after > needed or self._end - after < self._kept_bytes:
                    break
                _, path = self._segments.pop(0)
                path.unlink(missing_ok=True)
                self._drop_keys()

    def _look(self) -> None:
        """Find out up to where all readers have read."""
        places = [max(begin, self.read_by(name)) for name, begin in self._readers]
        self._needed = min(places, default=None)

    def _drop_keys(self) -> None:
        """Forget keys of records that are gone."""
        with self._segments[0][1].open("rb") as file:
            data = file.read(HEAD_BYTES)
        if len(data) == HEAD_BYTES:
            first = head_at(data, 0).first
            self._keys = {key: at for key, at in self._keys.items() if at[0] >= first}

    def read_by(self, name: str) -> int:
        """Return up to which byte a run has read the log for good."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.folder / READERS / name).read_text(encoding="ascii"))
        return 0

    def rate(self, seconds: float = 10.0) -> float:
        """Return how many records were pushed in a second, lately."""
        now = time.monotonic()
        with self._writing:
            self._rate = [each for each in self._rate if each[0] >= now - seconds]
            return sum(count for _, count in self._rate) / seconds

    def close(self) -> None:
        """Let another process write it."""
        with self._syncing, self._writing:
            for handle in (self._file, self._mark, self._lock):
                os.close(handle)


def _full(folder: Path, error: OSError) -> StateError:
    return StateError(
        f"the log of pushed records in {folder} cannot be written: {error.strerror or error}",
        hint="Make room on its disk, and push again.",
    )
