"""A kernel shard of a query, as Spark's state hosts it: with the times of its streams."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from quadweir.runtime.shard.hosting import HostingProcessor
from quadweir.runtime.wire.deadletters import sorted_out

if TYPE_CHECKING:
    from quadweir.kernel.answers import Answers
    from quadweir.kernel.events import Events
    from quadweir.runtime.host.bounded import ShardSpec
    from quadweir.runtime.wire.changes import Sender

# As in the kernel, which is not imported here.
_ALWAYS: Final = -(2**60)
_FOREVER: Final = 2**60
# How far a shard has come, and how long the digest of its static data is, which follows.
_SNAPSHOT: Final = "<qH"


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
    """How far time has come in each stream, when it was last heard of, and over which static data."""

    highest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    through: int = _ALWAYS
    told: dict[str, int] = field(default_factory=dict)
    static: str = ""

    def note(self, blobs: Iterable[bytes]) -> int:
        """Take the times of blobs; gives when the last of them was packed."""
        from quadweir.runtime.wire.pack import Header

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
        from quadweir.runtime.match.matching import END

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
        return json.dumps([self.highest, self.heard, self.through, self.told, self.static])

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
    """A shard with what it needs to take blobs: `hosting.Hosted`.

    State that was left over other static data is taken over as if that had always been as it is now.
    What a second stage was given by the first is then another: in the first batch every shard of the
    first sends all that it holds, and every shard of the second forgets what it had.
    """

    def __init__(self, spec: ShardSpec, timing: Timing, key: int) -> None:
        self._spec = spec
        self._key = key
        self._begin()
        self._writer = spec.writer
        self._timing = timing
        # In a second stage the blobs say how far time has come.
        self._streams = tuple(sorted({source.stream for source in self._shard.sources}))
        self._times = Times(static=spec.static_digest)
        # How far the shard has come: what is not later is late.
        self._through = _ALWAYS
        # What writes the next batch, if a second stage has to be given all that is held.
        self._anew: Sender | None = None

    def _begin(self) -> None:
        """Start with an empty shard."""
        self._shard = self._spec.make(self._key)
        self._reader = self._spec.reader(self._shard)
        # Whether what was logged is of no use until a batch brings all anew.
        self._is_void = False

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:
        began = time.monotonic()
        letters, blobs = sorted_out(blobs)
        times = self._times
        now = times.note(blobs)
        times.advance(self._streams, self._timing, now)
        after = self._through
        events, late = self._reader.events(blobs, after=after)
        answers = self._step(events, times.through)
        facts = {
            "late": late.matches,
            "through": times.through,
            "held": self._shard.held(),
            "kernel_ms": round((time.monotonic() - began) * 1000),
            "replayed": replayed,
        }
        found = (self._anew or self._writer).write(self._shard, answers, after, step)
        self._anew = None
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
        if self._is_void and events.before is None:
            self._through = mark
        else:
            self._step(events, mark)

    def _step(self, events: Events, through: int) -> Answers:
        if events.before is not None:
            self._begin()
            self._shard.step(replace(events, changes=events.before), self._through)
        answers = self._shard.step(events, through)
        self._through = through
        return answers

    def note(self) -> str:
        return self._times.as_text()

    def resume(self, note: str) -> None:
        from quadweir.runtime.wire.changes import Sender

        self._times = Times.of(note)
        known, self._times.static = self._times.static, self._spec.static_digest
        if known != self._spec.static_digest and isinstance(self._writer, Sender):
            snapshot = self._shard.snapshot()
            self._begin()
            changes = self._shard.take_over(snapshot)
            self._anew = replace(self._writer, before=(changes, self._shard.reported))

    def snapshot(self) -> bytes:
        static = self._spec.static_digest.encode()
        head = struct.pack(_SNAPSHOT, self._shard.through, len(static))
        return head + static + self._shard.snapshot()

    def restore(self, data: bytes) -> None:
        self._through, length = struct.unpack_from(_SNAPSHOT, data)
        at = struct.calcsize(_SNAPSHOT)
        static, snapshot = data[at : at + length].decode(), data[at + length :]
        # The driver has seen to it that the checkpoint is this query's.
        if static == self._spec.static_digest:
            self._shard.restore(snapshot)
        elif self._spec.is_given:
            # Its terms have numbers that may be others' now.
            self._is_void = True
        else:
            self._shard.take_over(snapshot)


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
