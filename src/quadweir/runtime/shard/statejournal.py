"""A journal in Spark's state store, for shards in executors.

Each batch writes a fresh token; it identifies the batch that last changed the state. The number of
the batch would not do: it is the same for a batch that failed and for the one that replaced it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, final

from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from quadweir.errors import StateError
from quadweir.runtime.shard.journal import Journal, KeptShard

# A shard keeps everything in one state variable of Spark's: each variable costs encoders in every
# batch. Keys are numbers: 0 is the header, the log begins at 1, and the parts of the snapshot have
# negative numbers.
NAME: Final = "kept"
KEY: Final = StructType([StructField("number", LongType())])
VALUE: Final = StructType([StructField("bytes", BinaryType())])
_HEADER: Final = (0,)
_PART: Final = 8 << 20


@final
@dataclass(frozen=True, slots=True)
class _Header:
    """What the state of a shard says about itself.

    Attributes:
        version: how many batches there were.
        tokens: those of the snapshot and of each entry of the log.
        parts: how many the snapshot has.
        saved: bytes of the snapshot.
        first: the number of the first entry of the log.
        logged: bytes of the log.
        note: the latest note of the shard.
    """

    version: int = 0
    tokens: list[str] = field(default_factory=list)
    parts: int = 0
    saved: int = 0
    first: int = 1
    logged: int = 0
    note: str | None = None


@final
class StateJournal(Journal):
    """The state of one shard, as one batch finds and leaves it.

    Args:
        store: a map state of Spark's with keys of `KEY` and values of `VALUE`.
    """

    def __init__(self, store: Any) -> None:
        super().__init__()
        self._store = store
        header = _Header()
        if store.containsKey(_HEADER):
            header = _Header(**json.loads(self._read(_HEADER)))
        self.version, self.tokens, self.note = header.version, list(header.tokens), header.note
        self._parts, self._first = header.parts, header.first
        self.entries = header.version + 1 - header.first
        self.logged, self.saved = header.logged, header.saved

    def snapshot(self) -> bytes | None:
        """Return the last snapshot; None if there is none."""
        if not self._parts:
            return None
        return b"".join(self._read(_part(number)) for number in range(self._parts))

    def latest(self, count: int) -> Iterator[bytes]:
        """Yield the latest entries of the log, oldest first."""
        for number in range(self.version + 1 - count, self.version + 1):
            yield self._read((number,))

    def commit(self, token: str) -> None:
        """Write the header, after `append`; `token` identifies the batch."""
        self.tokens = [*self.tokens, token] if self.entries else [token]
        header = _Header(
            self.version, self.tokens, self._parts, self.saved, self._first, self.logged, self.note
        )
        self._store.updateValue(_HEADER, (json.dumps(asdict(header)).encode(),))

    def _log(self, batch: int, note: str, entry: bytes) -> int:
        self.version, self.note = batch, note
        self._store.updateValue((batch,), (entry,))
        return len(entry)

    def _save(self, batch: int, note: str, data: bytes) -> None:
        before, self._parts = self._parts, -(-len(data) // _PART)
        for number in range(self._parts):
            part = data[number * _PART : (number + 1) * _PART]
            self._store.updateValue(_part(number), (part,))
        for number in range(self._parts, before):
            self._store.removeKey(_part(number))
        for number in range(self._first, batch):
            self._store.removeKey((number,))
        self.version, self.note, self._first = batch, note, batch + 1

    def _read(self, number: tuple[int]) -> bytes:
        return bytes(self._store.getValue(number)[0])


def as_values(kept: KeptShard) -> dict[int, bytes]:
    """Return what the state variable of a shard has, by number, if this is what its journal keeps."""
    if kept.note is None:
        return {}
    found: dict[int, bytes] = {}
    snapshot = kept.snapshot or b""
    parts = -(-len(snapshot) // _PART)
    for number in range(parts):
        (key,) = _part(number)
        found[key] = snapshot[number * _PART : (number + 1) * _PART]
    first = kept.batch + 1 - len(kept.entries)
    found |= dict(enumerate(kept.entries, first))
    # A worker that has the shard in memory must not take it for this one.
    tokens = [secrets.token_hex(8) for _ in range(len(kept.entries) + bool(parts))]
    logged = sum(map(len, kept.entries))
    header = _Header(kept.batch, tokens, parts, len(snapshot), first, logged, kept.note)
    return {_HEADER[0]: json.dumps(asdict(header)).encode(), **found}


def of_values(values: Mapping[int, bytes], batch: int) -> KeptShard:
    """Return what a journal keeps whose state variable has these values.

    Raises:
        StateError: something of it is missing, or it is not that of this batch.
    """
    try:
        header = _Header(**json.loads(values[_HEADER[0]]))
        if header.version != batch:
            raise ValueError(f"it is that of batch {header.version}, and not of batch {batch}")
        snapshot = b"".join(values[_part(number)[0]] for number in range(header.parts))
        entries = tuple(values[number] for number in range(header.first, batch + 1))
        if (len(snapshot), sum(map(len, entries))) != (header.saved, header.logged):
            raise ValueError("parts of it are too short or too long")
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(
            "the state of a shard in Spark's state store is not complete",
            detail=str(error),
            hint="Restore the checkpoint from a backup.",
        ) from error
    found = snapshot if header.parts else None
    return KeptShard(batch, header.note, found, entries, header.logged)


def _part(number: int) -> tuple[int]:
    """Return the key of a part of the snapshot."""
    return (-1 - number,)
