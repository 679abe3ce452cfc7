"""A kernel shard of a query, as Spark's state hosts it: with the times of its streams."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from quadweir.runtime.hosting import HostingProcessor
from quadweir.runtime.letters import sorted_out

if TYPE_CHECKING:
    from quadweir.runtime.bounded import ShardSpec

# As in the kernel, which is not imported here.
_ALWAYS: Final = -(2**60)
_FOREVER: Final = 2**60


@final
@dataclass(frozen=True)
class Timing:
    """How late elements of each stream may be, and after how long without any a stream is idle.

    Streams that are `told` say themselves how far time has come in them.
    """

    delay_ms: dict[str, int]
    idle_ms: dict[str, int | None]
    told: frozenset[str] = frozenset()


@final
@dataclass
class Times:
    """How far time has come in each stream, and when it was last heard of."""

    highest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    through: int = _ALWAYS
    told: dict[str, int] = field(default_factory=dict)

    def note(self, blobs: Iterable[bytes]) -> int:
        """Take the times of blobs; gives when the last of them was packed."""
        from quadweir.runtime.exchange import Header

        now = 0
        for blob in blobs:
            header = Header.of(blob)
            now = max(now, header.packed_at)
            if header.through is not None:
                self.through = max(self.through, header.through)
            for stream, (_, last) in header.times.items():
                self.highest[stream] = max(last, self.highest.get(stream, last))
            for stream, through in header.told.items():
                self.told[stream] = max(through, self.told.get(stream, through))
            for stream in (*header.times, *header.told):
                known = self.heard.get(stream, header.packed_at)
                self.heard[stream] = max(header.packed_at, known)
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
            if stream in timing.told:
                if stream not in self.told:
                    return
                known.append(self.told[stream])
                continue
            if stream not in self.highest:
                return
            delay = timing.delay_ms.get(stream, 0)
            # Without any delay the newest instant is not over before a later one is seen.
            known.append(self.highest[stream] - (delay if delay > 0 else 1))
        if known:
            self.through = max(self.through, min(known))

    def as_text(self) -> str:
        return json.dumps([self.highest, self.heard, self.through, self.told])

    @staticmethod
    def of(text: str) -> Times:
        return Times(*json.loads(text))


@final
@dataclass(frozen=True)
class _HostSpec:
    """What a worker makes a hosted shard from."""

    spec: ShardSpec
    timing: Timing

    def host(self, key: int) -> HostedShard:
        return HostedShard(self.spec, self.timing, key)


@final
class HostedShard:
    """A shard with what it needs to take blobs: `hosting.Hosted`."""

    def __init__(self, spec: ShardSpec, timing: Timing, key: int) -> None:
        self._shard = spec.make(key)
        self._reader = spec.reader(self._shard)
        self._writer = spec.writer
        self._timing = timing
        # In a second stage the blobs say how far time has come.
        self._streams = tuple(sorted({source.stream for source in self._shard.sources}))
        self._times = Times()
        # How far the shard has come: what is not later is late.
        self._through = _ALWAYS

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:
        began = time.monotonic()
        letters, blobs = sorted_out(blobs)
        times = self._times
        now = times.note(blobs)
        times.advance(self._streams, self._timing, now)
        after = self._through
        events, late = self._reader.events(blobs, after=after)
        answers = self._shard.step(events, times.through)
        self._through = times.through
        facts = {
            "late": late.matches,
            "through": times.through,
            "held": self._shard.held(),
            "kernel_ms": round((time.monotonic() - began) * 1000),
            "replayed": replayed,
        }
        found = self._writer.write(self._shard, answers, after, step)
        if found.num_rows:
            yield found
        letters += late.letters
        if letters:
            yield self._writer.letters(letters)
        yield self._writer.facts(facts)

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        return sorted_out(blobs)[1]

    def mark(self) -> int:
        return self._through

    def replay(self, blobs: list[bytes], mark: int) -> None:
        events, _ = self._reader.events(blobs, after=self._through)
        self._shard.step(events, mark)
        self._through = mark

    def note(self) -> str:
        return self._times.as_text()

    def resume(self, note: str) -> None:
        self._times = Times.of(note)

    def snapshot(self) -> bytes:
        return struct.pack("<q", self._shard.through) + self._shard.snapshot()

    def restore(self, data: bytes) -> None:
        (self._through,) = struct.unpack_from("<q", data)
        # The driver has seen to it that the checkpoint is this query's.
        self._shard.restore(data[8:], (), other_static=True)


@final
class ShardProcessor(HostingProcessor):
    """Hosts the shards of one query.

    Args:
        name: what tells this run of the query from any other in a worker's memory.
        spec: how shards are made.
        timing: delays and idle times of the streams.
    """

    def __init__(self, name: str, spec: ShardSpec, timing: Timing) -> None:
        super().__init__(name, _HostSpec(spec, timing))
