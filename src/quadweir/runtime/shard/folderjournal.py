"""What a shard beside the driver keeps on disk: a snapshot, and what arrived in each batch since.

Spark repeats the batch that it was at when it was stopped, so that a shard has to be found as it was
before any batch that Spark does not know to be done. When a batch begins, all before it are done: only
then goes what a newer snapshot has made superfluous.

    lock            held by the process that has the shard
    snapshot-N      the shard as batch N left it: its note, and all that it held
    log-N           an entry for each batch after that; log--1 begins with nothing

An entry that was not written to its end is of a batch that was not done, and does not count.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, final

from quadweir.errors import StateError
from quadweir.private import make_folder
from quadweir.runtime.shard.hosting import Hosted, packed_entry, snapshot_is_due, unpacked_entry

_NOTHING: Final = -1
# The batch, and how long the note and what follows it are; then a checksum of all of it.
_ENTRY: Final = struct.Struct("<qQQ")
_CHECK: Final = struct.Struct("<I")
_HEAD: Final = _ENTRY.size + _CHECK.size
_WAIT_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02


@final
class ShardLog:
    """The folder of one shard, which belongs to one process at a time.

    Args:
        folder: the folder; it is made if it is not there.
        wait_seconds: how long to wait for another process to let go of it.

    Raises:
        StateError: another process does not let go of it.
    """

    def __init__(self, folder: Path, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._folder = folder
        make_folder(folder)
        self._lock = (folder / "lock").open("w")
        try:
            _locked(self._lock.fileno(), folder, wait_seconds)
        except BaseException:
            self._lock.close()
            raise
        self._out: BinaryIO | None = None
        self._base = _NOTHING
        self._entries = self._logged = self._saved = 0
        self._is_superfluous = False

    def take_up(self, hosted: Hosted, batch: int) -> int:
        """Bring an empty shard to what it was before a batch; what was kept of later ones goes.

        Returns:
            How many batches of the log were taken up.

        Raises:
            StateError: what was kept does not reach until that batch.
        """
        known = self._snapshots()
        for number in [each for each in known if each >= batch]:
            self._drop(number)
        self._base = max((each for each in known if each < batch), default=_NOTHING)
        self._is_superfluous = True
        note: str | None = None
        last, self._saved = self._base, 0
        if self._base != _NOTHING:
            found = next(_entries(self._snapshot.read_bytes()), None)
            if found is None or found[0] != self._base:
                raise self._incomplete(batch)
            _, note, data, _ = found
            hosted.restore(data)
            self._saved = len(data)
        end = count = 0
        data = self._log.read_bytes() if self._log.is_file() else b""
        for number, told, entry, after in _entries(data):
            if number >= batch or number != last + 1:
                break
            mark, blobs = unpacked_entry(entry)
            hosted.replay(blobs, mark)
            last, note, end, count = number, told, after, count + 1
        if last != batch - 1:
            raise self._incomplete(batch)
        if note is not None:
            hosted.resume(note)
        self._entries, self._logged = count, end
        self._out = self._log.open("ab")
        self._out.truncate(end)
        return count

    def append(self, hosted: Hosted, batch: int, blobs: list[bytes]) -> None:
        """Keep what a batch brought, or what the shard holds after it; all before it is done."""
        if self._is_superfluous:
            for number in {*self._snapshots(), _NOTHING} - {self._base}:
                self._drop(number)
            self._is_superfluous = False
        size = sum(map(len, blobs))
        if snapshot_is_due(
            entries=self._entries + 1, logged=self._logged + size, saved=self._saved
        ):
            self._save(hosted, batch)
            return
        entry = _written(batch, hosted.note(), packed_entry(hosted.mark(), blobs))
        assert self._out is not None
        self._out.write(entry)
        self._out.flush()
        self._entries += 1
        self._logged += len(entry)

    @property
    def entries(self) -> int:
        """How many batches there are in the log."""
        return self._entries

    @property
    def size(self) -> int:
        """How many bytes are kept for the shard as it is."""
        return self._logged + self._saved

    def close(self) -> None:
        """Let go of the folder."""
        if self._out is not None:
            self._out.close()
        self._lock.close()

    def _save(self, hosted: Hosted, batch: int) -> None:
        data = hosted.snapshot()
        self._base = batch
        scratch = self._snapshot.with_suffix(".new")
        scratch.write_bytes(_written(batch, hosted.note(), data))
        scratch.replace(self._snapshot)
        assert self._out is not None
        self._out.close()
        self._out = self._log.open("wb")
        self._entries = self._logged = 0
        self._saved = len(data)
        self._is_superfluous = True

    @property
    def _snapshot(self) -> Path:
        return self._folder / f"snapshot-{self._base}"

    @property
    def _log(self) -> Path:
        return self._folder / f"log-{self._base}"

    def _snapshots(self) -> list[int]:
        names = [each.name.removeprefix("snapshot-") for each in self._folder.glob("snapshot-*")]
        return [int(each) for each in names if each.isdecimal()]

    def _drop(self, number: int) -> None:
        for kind in ("log", "snapshot"):
            (self._folder / f"{kind}-{number}").unlink(missing_ok=True)

    def _incomplete(self, batch: int) -> StateError:
        return StateError(
            f"what is kept in {self._folder} does not reach until batch {batch}",
            detail="Some of its files are missing, or were changed.",
            hint="Put the checkpoint back as it was, or start with a new one.",
        )


def _written(batch: int, note: str, data: bytes) -> bytes:
    told = note.encode()
    head = _ENTRY.pack(batch, len(told), len(data))
    check = zlib.crc32(data, zlib.crc32(told, zlib.crc32(head)))
    return b"".join((head, _CHECK.pack(check), told, data))


def _entries(data: bytes) -> Iterator[tuple[int, str, bytes, int]]:
    """Give batch, note, data and end of each entry, up to one that is not whole."""
    at = 0
    while at + _HEAD <= len(data):
        batch, noted, length = _ENTRY.unpack_from(data, at)
        (check,) = _CHECK.unpack_from(data, at + _ENTRY.size)
        head, start = data[at : at + _ENTRY.size], at + _HEAD
        at = start + noted + length
        if at > len(data) or zlib.crc32(data[start:at], zlib.crc32(head)) != check:
            return
        yield batch, data[start : start + noted].decode(), data[start + noted : at], at


def _locked(file: int, folder: Path, seconds: float) -> None:
    """Wait for a lock: who had the shard before may still be at its last batch."""
    ends = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() < ends:
                time.sleep(_LOOK_SECONDS)
                continue
            raise StateError(
                f"another run has the checkpoint that {folder} belongs to",
                detail=os.strerror(error.errno or 0),
                hint="Stop it first, or start with another checkpoint.",
            ) from error
        return
