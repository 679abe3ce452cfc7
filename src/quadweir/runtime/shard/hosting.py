"""The Spark state processor around anything that works shard by shard: it moves blobs and state.

The state of a shard is a log: what arrived in each batch, since the last snapshot. A worker that
still holds the shard as the last batch left it only appends; one that holds it as a batch before left
it takes up what was logged since; any other begins with the snapshot. As which batch left it, is told
by a token that each batch writes anew: the number of the batch would not tell a batch that failed from
the one that took its place.

Spark starts a process beside the driver only to ask a processor for its state variables. It should
not have to load the kernel for that: the kernel is imported where it is used, and what a shard is
made from travels in a form of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, final

import pandas as pd
import pyarrow as pa
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from quadweir.runtime.spark.heap import settle

# All that a shard keeps is in one variable of Spark's: for each, every batch would make encoders anew.
# By number: the header, the log from 1 on, and before the header the parts of the snapshot.
_NUMBER: Final = StructType([StructField("number", LongType())])
_BYTES: Final = StructType([StructField("bytes", BinaryType())])
_HEADER: Final = (0,)
_PART: Final = 8 << 20
# A snapshot is taken once the log is as long as this, or has grown larger than the last snapshot: what
# a large batch brings is mostly gone from the windows by its end, and a snapshot is less to write, and
# less to take up again, than what arrived.
_LONGEST_LOG: Final = 50
_SMALLEST_SNAPSHOT: Final = 1 << 20


class Hosted(Protocol):
    """One shard, as a worker keeps it between batches."""

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:
        """Take the blobs of a batch in and give what comes out; gone through to its end.

        Args:
            blobs: what arrived.
            step: what tells this batch of this shard from any other.
            replayed: how many entries of the log were taken up before.
        """

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        """Those of the blobs just taken that have to be logged."""

    def mark(self) -> int:
        """A number to be logged with the blobs of the batch just taken, for `replay`."""

    def replay(self, blobs: list[bytes], mark: int) -> None:
        """Take blobs in again, as the batch that logged them did."""

    def note(self) -> str:
        """What is small and changes in every batch; kept beside the log."""

    def resume(self, note: str) -> None:
        """Take a note back, after the snapshot and the log."""

    def snapshot(self) -> bytes:
        """Write all that is held."""

    def restore(self, data: bytes) -> None:
        """Take a snapshot back."""


class HostSpec(Protocol):
    """What a worker makes shards from."""

    def host(self, key: int) -> Hosted:
        """Make the one of a shuffle key, empty."""


@final
@dataclass(frozen=True, slots=True)
class _Header:
    """What the state of a shard says of itself.

    Attributes:
        version: how many batches there were.
        tokens: those of the snapshot and of each entry of the log.
        parts: of the snapshot.
        saved: bytes in the snapshot.
        first: the first entry of the log.
        logged: bytes in the log.
        note: what the shard noted last.
    """

    version: int = 0
    tokens: list[str] = field(default_factory=list)
    parts: int = 0
    saved: int = 0
    first: int = 1
    logged: int = 0
    note: str | None = None


@final
@dataclass
class _Copy:
    """A shard in a worker's memory, as the batch with this token left it."""

    token: str
    hosted: Hosted
    replayed: int = 0
    used: float = 0.0


# Shards outlive batches in the workers that Spark uses again. Those used longest ago are dropped, and
# those not used for a while: their queries may have ended, and if not, their state brings them back.
_COPIES: dict[tuple[str, int], _Copy] = {}
_MOST_COPIES: Final = 64
_KEPT_SECONDS: Final = 120.0


class HostingProcessor(StatefulProcessor):
    """Hosts the shards of one query or join.

    Args:
        name: what tells this run from any other in a worker's memory.
        spec: how shards are made.
    """

    def __init__(self, name: str, spec: HostSpec) -> None:
        self._name = name
        # Our own plan, as Spark would send it.
        self._spec = CloudPickleSerializer().dumps(spec)  # type: ignore[no-untyped-call]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # The process beside the driver would print what it does on our standard error.
        main = getattr(sys.modules["__main__"], "__spec__", None)
        if main is not None and main.name.endswith("transform_with_state_driver_worker"):
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good

    def init(self, handle: Any) -> None:
        self._kept = handle.getMapState("kept", _NUMBER, _BYTES)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        blobs = [bytes(blob) for frame in rows for blob in frame["blob"] if blob is not None]
        shard, header = int(key[0]), _Header()
        if self._kept.containsKey(_HEADER):
            header = _Header(**json.loads(self._read(_HEADER)))
        version, parts, first, logged = header.version, header.parts, header.first, header.logged
        saved = header.saved
        tokens = list(header.tokens)
        copy = self._copy(shard, tokens, version, parts, first, header.note)
        version += 1
        for batch in copy.hosted.take(blobs, f"{shard}.{version}", copy.replayed):
            # As Arrow's own columns: Spark takes them over without making objects of texts.
            yield batch.to_pandas(types_mapper=pd.ArrowDtype)
        copy.replayed = 0
        copy.token = secrets.token_hex(8)
        tokens.append(copy.token)
        lasting = copy.hosted.lasting(blobs)
        logged += sum(map(len, lasting))
        if snapshot_is_due(entries=version - first + 1, logged=logged, saved=saved):
            # What the snapshot holds need not be logged as well.
            parts, saved = self._save(copy.hosted, parts)
            for number in range(first, version):
                self._kept.removeKey((number,))
            first, logged, tokens = version + 1, 0, tokens[-1:]
        else:
            self._kept.updateValue((version,), (packed_entry(copy.hosted.mark(), lasting),))
        header = _Header(version, tokens, parts, saved, first, logged, copy.hosted.note())
        self._kept.updateValue(_HEADER, (json.dumps(asdict(header)).encode(),))
        self._keep(shard, copy)

    def close(self) -> None:
        """Keep the copies: the next batch may find them of use."""

    def _copy(
        self, key: int, tokens: list[str], version: int, parts: int, first: int, note: str | None
    ) -> _Copy:
        """Find the shard as the state says it is, or make it so.

        It is taken out of the copies: one that a step left half done must not be found again. Spark
        may have given batches since to another worker: what they logged is taken up.
        """
        copy = _COPIES.pop((self._name, key), None)
        if copy is not None and copy.token in tokens:
            behind = len(tokens) - 1 - tokens.index(copy.token)
            if not behind:
                return copy
        else:
            behind = version + 1 - first
            spec: HostSpec = CloudPickleSerializer().loads(self._spec)  # type: ignore[no-untyped-call]
            # All is loaded now, and there is no shard yet that would never be collected.
            settle(HostingProcessor)
            copy = _Copy("", spec.host(key))
            if parts:
                data = [self._read(_part(number)) for number in range(parts)]
                copy.hosted.restore(b"".join(data))
        for number in range(version + 1 - behind, version + 1):
            mark, blobs = unpacked_entry(self._read((number,)))
            copy.hosted.replay(blobs, mark)
            copy.replayed += 1
        if note is not None:
            copy.hosted.resume(note)
        return copy

    def _keep(self, key: int, copy: _Copy) -> None:
        copy.used = time.monotonic()
        _COPIES[self._name, key] = copy
        oldest = next(iter(_COPIES))
        while len(_COPIES) > _MOST_COPIES or copy.used - _COPIES[oldest].used > _KEPT_SECONDS:
            del _COPIES[oldest]
            oldest = next(iter(_COPIES))

    def _save(self, hosted: Hosted, before: int) -> tuple[int, int]:
        """Write a snapshot in parts that the state store can bear; gives these, and all their bytes."""
        data = hosted.snapshot()
        parts = -(-len(data) // _PART)
        for number in range(parts):
            part = data[number * _PART : (number + 1) * _PART]
            self._kept.updateValue(_part(number), (part,))
        for number in range(parts, before):
            self._kept.removeKey(_part(number))
        return parts, len(data)

    def _read(self, number: tuple[int]) -> bytes:
        return bytes(self._kept.getValue(number)[0])


def _part(number: int) -> tuple[int]:
    """Where a part of the snapshot is kept."""
    return (-1 - number,)


def snapshot_is_due(*, entries: int, logged: int, saved: int) -> bool:
    """Tell whether a snapshot is to take the place of a log.

    Args:
        entries: in the log.
        logged: their bytes.
        saved: bytes of the last snapshot.
    """
    return entries >= _LONGEST_LOG or logged > max(_SMALLEST_SNAPSHOT, saved)


def packed_entry(mark: int, blobs: list[bytes]) -> bytes:
    """Write what a batch logs as bytes."""
    lengths = struct.pack(f"<qq{len(blobs)}q", mark, len(blobs), *map(len, blobs))
    return b"".join((lengths, *blobs))


def unpacked_entry(entry: bytes) -> tuple[int, list[bytes]]:
    """Read what `packed_entry` wrote."""
    mark, count = struct.unpack_from("<qq", entry)
    lengths = struct.unpack_from(f"<{count}q", entry, 16)
    place, blobs = 16 + 8 * count, []
    for length in lengths:
        blobs.append(bytes(entry[place : place + length]))
        place += length
    return mark, blobs
