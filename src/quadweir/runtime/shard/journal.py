"""What a shard keeps so that it survives: a snapshot, and the blobs of each batch since then.

There are two journals: a folder of the checkpoint (`folderjournal`), and Spark's state store
(`statejournal`). This module has what they share: when a snapshot replaces the log, and how the
log is replayed.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from quadweir.runtime.shard.base import Hosted

# A snapshot replaces the log when the log has this many entries, or more bytes than the last
# snapshot. Most of a large batch has left the windows by its end, so a snapshot is often less to
# write, and less to read again, than what arrived.
LONGEST_LOG: Final = 50
SMALLEST_SNAPSHOT: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class KeptShard:
    """All that a journal keeps of one shard, for use outside of a run.

    Attributes:
        batch: the number of the batch that comes next.
        note: the last note of the shard; None before the first batch.
        snapshot: the last snapshot; None if the log begins with an empty shard.
        entries: the log since then, an entry for each batch.
        logged: how many bytes of the file of the log these are.
    """

    batch: int
    note: str | None
    snapshot: bytes | None
    entries: tuple[bytes, ...]
    logged: int = 0

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return sum(map(len, self.entries)) + (len(self.snapshot) if self.snapshot else 0)


class Journal(ABC):
    """The state of one shard on disk, or wherever it survives.

    Attributes:
        entries: how many batches the log has.
        logged: the bytes of the log.
        saved: the bytes of the last snapshot.
    """

    def __init__(self) -> None:
        self.entries = self.logged = self.saved = 0

    @property
    def size(self) -> int:
        """How many bytes are kept for the shard."""
        return self.logged + self.saved

    def append(self, hosted: Hosted, batch: int, blobs: list[bytes]) -> None:
        """Keep what a batch brought, or a snapshot of the shard after it.

        Args:
            hosted: the shard, which has taken the batch.
            batch: the number of the batch.
            blobs: those that have to be kept (`Hosted.lasting`).
        """
        size = sum(map(len, blobs))
        if self.entries + 1 >= LONGEST_LOG or self.logged + size > max(
            SMALLEST_SNAPSHOT, self.saved
        ):
            data = hosted.snapshot()
            self._save(batch, hosted.note(), data)
            self.entries, self.logged, self.saved = 0, 0, len(data)
        else:
            self.logged += self._log(batch, hosted.note(), pack_entry(hosted.mark(), blobs))
            self.entries += 1

    @abstractmethod
    def _save(self, batch: int, note: str, data: bytes) -> None:
        """Write a snapshot, which replaces the log."""

    @abstractmethod
    def _log(self, batch: int, note: str, entry: bytes) -> int:
        """Write a log entry; return how many bytes it takes."""


def replay(hosted: Hosted, entries: Iterable[bytes], note: str | None) -> int:
    """Bring a shard from its snapshot to the present; return how many entries that took."""
    count = 0
    for entry in entries:
        mark, blobs = unpack_entry(entry)
        hosted.replay(blobs, mark)
        count += 1
    if note is not None:
        hosted.resume(note)
    return count


def pack_entry(mark: int, blobs: list[bytes]) -> bytes:
    """Write the log entry of a batch."""
    lengths = struct.pack(f"<qq{len(blobs)}q", mark, len(blobs), *map(len, blobs))
    return b"".join((lengths, *blobs))


def unpack_entry(entry: bytes) -> tuple[int, list[bytes]]:
    """Read what `pack_entry` wrote.

    >>> unpack_entry(pack_entry(7, [b"one", b"two"]))
    (7, [b'one', b'two'])
    """
    mark, count = struct.unpack_from("<qq", entry)
    lengths = struct.unpack_from(f"<{count}q", entry, 16)
    place, blobs = 16 + 8 * count, []
    for length in lengths:
        blobs.append(bytes(entry[place : place + length]))
        place += length
    return mark, blobs
