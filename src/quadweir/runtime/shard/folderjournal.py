"""A journal in a folder of the checkpoint, for shards in worker processes.

Spark repeats the batch during which it was stopped, so a shard must be found as it was before any
batch that Spark has not committed. When a batch begins, all earlier ones are committed: only then
are files removed that a newer snapshot replaces.

    lock            held by the process that has the shard
    snapshot-N      the shard after batch N: its note and its state
    log-N           an entry for each batch after that; log--1 begins with an empty shard

An entry that is not complete belongs to a batch that was not committed, and is ignored.
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
from quadweir.runtime.shard.base import Hosted
from quadweir.runtime.shard.journal import Journal, KeptShard, replay

_EMPTY: Final = -1
# The batch, and the lengths of the note and of the data; then a checksum of everything.
_ENTRY: Final = struct.Struct("<qQQ")
_CHECK: Final = struct.Struct("<I")
_HEAD: Final = _ENTRY.size + _CHECK.size
_WAIT_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.02


@final
class FolderJournal(Journal):
    """The folder of one shard, which belongs to one process at a time.

    Args:
        folder: the folder; it is created if it does not exist.
        wait_seconds: how long to wait until another process releases it.

    Raises:
        StateError: another process does not release it.
    """

    def __init__(self, folder: Path, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        super().__init__()
        self._folder = folder
        make_folder(folder)
        self._lock = (folder / "lock").open("w")
        try:
            _lock(self._lock.fileno(), folder, wait_seconds)
        except BaseException:
            self._lock.close()
            raise
        self._out: BinaryIO | None = None
        self._base = _EMPTY
        self._has_old_files = False

    def recover(self, hosted: Hosted, batch: int) -> int:
        """Bring an empty shard to its state before a batch; drop what is kept of later ones.

        Returns:
            How many entries of the log were replayed.

        Raises:
            StateError: the files do not reach that batch.
        """
        for number in [each for each in _snapshots(self._folder) if each >= batch]:
            self._drop(number)
        kept = read_kept(self._folder, batch)
        self._base = kept.batch - 1 - len(kept.entries)
        self._has_old_files = True
        if kept.snapshot is not None:
            hosted.restore(kept.snapshot)
            self.saved = len(kept.snapshot)
        self.entries = replay(hosted, kept.entries, kept.note)
        self.logged = kept.logged
        self._out = self._log_file.open("ab")
        self._out.truncate(kept.logged)
        return self.entries

    def append(self, hosted: Hosted, batch: int, blobs: list[bytes]) -> None:
        if self._has_old_files:
            for number in {*_snapshots(self._folder), _EMPTY} - {self._base}:
                self._drop(number)
            self._has_old_files = False
        super().append(hosted, batch, blobs)

    def close(self) -> None:
        """Release the folder."""
        if self._out is not None:
            self._out.close()
        self._lock.close()

    def _log(self, batch: int, note: str, entry: bytes) -> int:
        assert self._out is not None
        written = _written(batch, note, entry)
        self._out.write(written)
        self._out.flush()
        return len(written)

    def _save(self, batch: int, note: str, data: bytes) -> None:
        self._base = batch
        scratch = self._snapshot.with_suffix(".new")
        scratch.write_bytes(_written(batch, note, data))
        scratch.replace(self._snapshot)
        assert self._out is not None
        self._out.close()
        self._out = self._log_file.open("wb")
        self._has_old_files = True

    @property
    def _snapshot(self) -> Path:
        return self._folder / f"snapshot-{self._base}"

    @property
    def _log_file(self) -> Path:
        return self._folder / f"log-{self._base}"

    def _drop(self, number: int) -> None:
        for kind in ("log", "snapshot"):
            (self._folder / f"{kind}-{number}").unlink(missing_ok=True)


def journal_name(job: int, stage: int, shard: int) -> str:
    """Return the name of the folder of a journal; a single job has no number."""
    return f"{job}.{stage}-{shard}" if job else f"{stage}-{shard}"


def read_kept(folder: Path, batch: int) -> KeptShard:
    """Return what the journal in a folder keeps of the batches before one.

    Raises:
        StateError: the files do not reach that batch.
    """
    base = max((each for each in _snapshots(folder) if each < batch), default=_EMPTY)
    note: str | None = None
    snapshot: bytes | None = None
    if base != _EMPTY:
        found = next(_entries((folder / f"snapshot-{base}").read_bytes()), None)
        if found is None or found[0] != base:
            raise _incomplete(folder, batch)
        _, note, snapshot, _ = found
    last, end = base, 0
    entries = []
    log = folder / f"log-{base}"
    for number, noted, entry, after in _entries(log.read_bytes() if log.is_file() else b""):
        if number >= batch or number != last + 1:
            break
        entries.append(entry)
        last, note, end = number, noted, after
    if last != batch - 1:
        raise _incomplete(folder, batch)
    return KeptShard(batch, note, snapshot, tuple(entries), end)


def write_kept(folder: Path, kept: KeptShard) -> None:
    """Write a journal that keeps this, in a folder without one.

    Every entry gets the last note, which is the only one that is read.
    """
    make_folder(folder)
    base = kept.batch - 1 - len(kept.entries)
    note = kept.note or ""
    if kept.snapshot is not None:
        (folder / f"snapshot-{base}").write_bytes(_written(base, note, kept.snapshot))
    log = b"".join(
        _written(number, note, entry) for number, entry in enumerate(kept.entries, base + 1)
    )
    (folder / f"log-{base}").write_bytes(log)


def _snapshots(folder: Path) -> list[int]:
    names = [each.name.removeprefix("snapshot-") for each in folder.glob("snapshot-*")]
    return [int(each) for each in names if each.isdecimal()]


def _incomplete(folder: Path, batch: int) -> StateError:
    return StateError(
        f"the state in {folder} does not reach batch {batch}",
        detail="Some of its files are missing, or were changed.",
        hint="Restore the checkpoint from a backup, or start with a new one.",
    )


def _written(batch: int, note: str, data: bytes) -> bytes:
    noted = note.encode()
    head = _ENTRY.pack(batch, len(noted), len(data))
    check = zlib.crc32(data, zlib.crc32(noted, zlib.crc32(head)))
    return b"".join((head, _CHECK.pack(check), noted, data))


def _entries(data: bytes) -> Iterator[tuple[int, str, bytes, int]]:
    """Yield batch, note, data and end of each entry, up to one that is not complete."""
    at = 0
    while at + _HEAD <= len(data):
        batch, noted, length = _ENTRY.unpack_from(data, at)
        (check,) = _CHECK.unpack_from(data, at + _ENTRY.size)
        head, start = data[at : at + _ENTRY.size], at + _HEAD
        at = start + noted + length
        if at > len(data) or zlib.crc32(data[start:at], zlib.crc32(head)) != check:
            return
        yield batch, data[start : start + noted].decode(), data[start + noted : at], at


def _lock(file: int, folder: Path, seconds: float) -> None:
    """Wait for a lock: the previous owner of the shard may still finish its last batch."""
    ends = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() < ends:
                time.sleep(_LOOK_SECONDS)
                continue
            raise StateError(
                f"another run holds the checkpoint that {folder} belongs to",
                detail=os.strerror(error.errno or 0),
                hint="Stop it first, or start with another checkpoint.",
            ) from error
        return
