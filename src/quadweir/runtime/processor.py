"""The Spark state processor around a kernel shard: it moves blobs and state, and nothing else.

The state of a shard is a log: what arrived in each batch, since the last snapshot. A worker that
still holds the shard as the last batch left it only appends; any other brings its copy up to date
from the snapshot and the log. Whether a copy is the right one is told by a token that each batch
writes anew: the number of the batch would not tell a batch that failed from the one that took its
place.

Spark starts a process beside the driver only to ask a processor for its state variables. It should
not have to load the kernel for that: the kernel is imported where it is used, and the plan travels
in a form of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from quadweir.kernel.shard import Shard
    from quadweir.runtime.answers import Shape
    from quadweir.runtime.bounded import ShardSpec
    from quadweir.runtime.exchange import Unpacker

_HEADER: Final = StructType(
    [
        StructField("version", LongType()),
        StructField("token", StringType()),
        StructField("parts", LongType()),
        StructField("first", LongType()),
        StructField("logged", LongType()),
        StructField("times", StringType()),
    ]
)
_NUMBER: Final = StructType([StructField("number", LongType())])
_BYTES: Final = StructType([StructField("bytes", BinaryType())])
_PART: Final = 8 << 20
# As in the kernel, which is not imported here.
_ALWAYS: Final = -(2**60)
_FOREVER: Final = 2**60
# A snapshot is taken once the log is as long as this, or has grown as large as the last snapshot.
_LONGEST_LOG: Final = 50
_SMALLEST_SNAPSHOT: Final = 1 << 20


@final
@dataclass(frozen=True)
class Timing:
    """How late elements of each stream may be, and after how long without any a stream is idle."""

    delay_ms: dict[str, int]
    idle_ms: dict[str, int | None]


@final
@dataclass
class Times:
    """How far time has come in each stream, and when it was last heard of."""

    highest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    through: int = _ALWAYS

    def note(self, blobs: Iterable[bytes]) -> int:
        """Take the times of blobs; gives when the last of them was packed."""
        from quadweir.runtime.exchange import Unpacker

        now = 0
        for blob in blobs:
            times, packed_at = Unpacker.times(blob)
            now = max(now, packed_at)
            for stream, (_, last) in times.items():
                self.highest[stream] = max(last, self.highest.get(stream, last))
                self.heard[stream] = max(packed_at, self.heard.get(stream, packed_at))
        return now

    def advance(self, streams: Iterable[str], timing: Timing, now: int) -> None:
        """Find the instant until which all is known (S4); it never goes back."""
        from quadweir.runtime.matching import END

        if END in self.highest:
            self.through = _FOREVER
            return
        known = []
        for stream in streams:
            idle = timing.idle_ms.get(stream)
            if idle is not None and now - self.heard.setdefault(stream, now) > idle:
                continue
            if stream not in self.highest:
                return
            delay = timing.delay_ms.get(stream, 0)
            # Without any delay the newest instant is not over before a later one is seen.
            known.append(self.highest[stream] - (delay if delay > 0 else 1))
        if known:
            self.through = max(self.through, min(known))

    def as_text(self) -> str:
        return json.dumps([self.highest, self.heard, self.through])

    @staticmethod
    def of(text: str) -> Times:
        return Times(*json.loads(text))


@final
@dataclass
class _Copy:
    """A shard in a worker's memory, as the batch with this token left it."""

    token: str
    shard: Shard
    unpacker: Unpacker
    shape: Shape
    through: int
    replayed: int = 0


# Shards outlive batches in the workers that Spark uses again. Those used longest ago are dropped:
# their queries may have ended, and if not, their state brings them back.
_COPIES: dict[tuple[str, int], _Copy] = {}
_MOST_COPIES: Final = 64


@final
class ShardProcessor(StatefulProcessor):
    """Hosts the shards of one query.

    Args:
        name: what tells this run of the query from any other in a worker's memory.
        spec: how shards are made.
        timing: delays and idle times of the streams.
    """

    def __init__(self, name: str, spec: ShardSpec, timing: Timing) -> None:
        self._name = name
        # Our own plan, as Spark would send it.
        self._spec = CloudPickleSerializer().dumps(spec)  # type: ignore[no-untyped-call]
        self._timing = timing
        self._streams = tuple(sorted({source.stream for source in spec.plan.sources}))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # The process beside the driver would print what it does on our standard error.
        main = getattr(sys.modules["__main__"], "__spec__", None)
        if main is not None and main.name.endswith("transform_with_state_driver_worker"):
            sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for good

    def init(self, handle: Any) -> None:
        self._header = handle.getValueState("header", _HEADER)
        self._log = handle.getMapState("log", _NUMBER, _BYTES)
        self._snapshot = handle.getMapState("snapshot", _NUMBER, _BYTES)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        began = time.monotonic()
        blobs = [bytes(blob) for frame in rows for blob in frame["blob"]]
        header = self._header.get() if self._header.exists() else None
        version, token, parts, first, logged, text = header or (0, "", 0, 1, 0, None)
        times = Times.of(text) if text is not None else Times()
        copy = self._copy(int(key[0]), token, version, parts, first)
        now = times.note(blobs)
        times.advance(self._streams, self._timing, now)
        events, late = copy.unpacker.events(blobs, after=copy.through)
        answers = copy.shard.step(events, times.through)
        copy.through = times.through
        kernel_ms = round((time.monotonic() - began) * 1000)
        copy.token = secrets.token_hex(8)
        version += 1
        entry = _packed(times.through, blobs)
        self._log.updateValue((version,), (entry,))
        logged += len(entry)
        if version - first + 1 >= _LONGEST_LOG or logged > max(_SMALLEST_SNAPSHOT, parts * _PART):
            parts = self._save(copy.shard, parts)
            for number in range(first, version + 1):
                self._log.removeKey((number,))
            first, logged = version + 1, 0
        self._header.update((version, copy.token, parts, first, logged, times.as_text()))
        if len(answers):
            yield copy.shape.batch(answers, f"{key[0]}.{version}").to_pandas()
        facts = {
            "late": late,
            "through": times.through,
            "held": copy.shard.held(),
            "kernel_ms": kernel_ms,
            "replayed": copy.replayed,
        }
        copy.replayed = 0
        self._keep(int(key[0]), copy)
        yield copy.shape.facts(facts).to_pandas()

    def close(self) -> None:
        """Keep the copies: the next batch may find them of use."""

    def _copy(self, key: int, token: str, version: int, parts: int, first: int) -> _Copy:
        """Find the shard as the state says it is, or make it so.

        It is taken out of the copies: one that a step left half done must not be found again.
        """
        place = (self._name, key)
        copy = _COPIES.pop(place, None)
        if copy is not None and copy.token == token:
            return copy
        from quadweir.runtime.exchange import Unpacker

        spec: ShardSpec = CloudPickleSerializer().loads(self._spec)  # type: ignore[no-untyped-call]
        shard = spec.make()
        copy = _Copy(token, shard, Unpacker(shard), spec.shape, _ALWAYS)
        if parts:
            data = b"".join(self._snapshot.getValue((number,))[0] for number in range(parts))
            (copy.through,) = struct.unpack_from("<q", data)
            shard.restore(data[8:], ())
        for number in range(first, version + 1):
            through, blobs = _unpacked(self._log.getValue((number,))[0])
            events, _ = copy.unpacker.events(blobs, after=copy.through)
            shard.step(events, through)
            copy.through = through
            copy.replayed += 1
        return copy

    def _keep(self, key: int, copy: _Copy) -> None:
        _COPIES[self._name, key] = copy
        while len(_COPIES) > _MOST_COPIES:
            del _COPIES[next(iter(_COPIES))]

    def _save(self, shard: Shard, before: int) -> int:
        """Write a snapshot in parts that the state store can bear."""
        data = struct.pack("<q", shard.through) + shard.snapshot()
        parts = -(-len(data) // _PART)
        for number in range(parts):
            part = data[number * _PART : (number + 1) * _PART]
            self._snapshot.updateValue((number,), (part,))
        for number in range(parts, before):
            self._snapshot.removeKey((number,))
        return parts


def _packed(through: int, blobs: list[bytes]) -> bytes:
    lengths = struct.pack(f"<qq{len(blobs)}q", through, len(blobs), *map(len, blobs))
    return b"".join((lengths, *blobs))


def _unpacked(entry: bytes) -> tuple[int, list[bytes]]:
    through, count = struct.unpack_from("<qq", entry)
    lengths = struct.unpack_from(f"<{count}q", entry, 16)
    place, blobs = 16 + 8 * count, []
    for length in lengths:
        blobs.append(bytes(entry[place : place + length]))
        place += length
    return through, blobs
