"""A kernel shard of a query, as every host runs it: with the clock of its streams."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from quadweir.kernel.takeover import take_over
from quadweir.runtime.shard.clock import ALWAYS, StreamClock
from quadweir.runtime.wire.deadletters import split_blobs

if TYPE_CHECKING:
    from quadweir.kernel.answers import Answers
    from quadweir.kernel.events import Events
    from quadweir.kernel.shard import Shard
    from quadweir.runtime.shard.spec import ShardSpec
    from quadweir.runtime.wire.changes import ChangeSender

# The instant through which the shard has come, and the length of the digest of its static data,
# which follows.
_SNAPSHOT: Final = "<qH"


@final
class HostedShard:
    """A shard of a query that takes blobs and gives rows: `base.Hosted`.

    A checkpoint may hold state that was made with other static data. The shard takes that state over
    as if the static data had always been as it is now. The first stage then gives other changes than
    it gave before, so in the first batch each of its shards sends everything that it holds, and each
    shard of the second stage forgets what it had.
    """

    def __init__(self, spec: ShardSpec, key: int | None) -> None:
        self._spec = spec
        self._key = key
        self._begin()
        self._writer = spec.writer
        # Without sources it is in a later stage, whose blobs carry the watermark.
        self._streams = tuple(sorted({source.stream for source in self._shard.sources}))
        self._clock = StreamClock(static=spec.static_digest)
        # Elements that are not later than this are late.
        self._through = ALWAYS
        # Writes the next batch, if the second stage needs everything that is held.
        self._resend: ChangeSender | None = None

    def _begin(self) -> None:
        """Start with an empty shard."""
        self._shard = self._spec.make(self._key)
        self._reader = self._spec.reader(self._shard)
        # Whether the log is ignored until a batch brings everything again.
        self._is_void = False

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:
        began = time.monotonic()
        letters, blobs = split_blobs(blobs)
        clock = self._clock
        now = clock.note(blobs)
        clock.advance(self._streams, self._spec.timing, now)
        after = self._through
        events, late = self._reader.events(blobs, after=after)
        answers = self._step(events, clock.through)
        facts = {
            "answers": 0 if self._spec.sends else len(answers),
            "late": late.matches,
            "through": clock.through,
            "held": self._shard.held(),
            "kernel_ms": round((time.monotonic() - began) * 1000),
            "replayed": replayed,
        }
        found = (self._resend or self._writer).write(self._shard, answers, after, step)
        self._resend = None
        if found.num_rows:
            yield found
        letters += late.letters
        if letters:
            yield self._writer.letters(letters)
        yield self._writer.facts(facts)

    def take_bounded(self, blobs: list[bytes], through: int, step: str) -> pa.RecordBatch:
        """Take blobs of bounded input, in which nothing is late, and go on to an instant."""
        after = self._shard.through
        events, _ = self._reader.events(blobs, after=ALWAYS, until=through)
        return self._writer.write(self._shard, self._shard.step(events, through), after, step)

    @property
    def through(self) -> int:
        """The instant through which the shard has come."""
        return self._shard.through

    @property
    def kernel(self) -> Shard:
        """The kernel shard, for use outside of a run."""
        return self._shard

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        return split_blobs(blobs)[1]

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
        return self._clock.as_text()

    def resume(self, note: str) -> None:
        self._clock = StreamClock.of(note)
        known, self._clock.static = self._clock.static, self._spec.static_digest
        if known != self._spec.static_digest and self._spec.sends:
            snapshot = self._shard.snapshot()
            self._begin()
            changes = take_over(self._shard, snapshot)
            self._resend = replace(self._spec.sender, before=(changes, self._shard.reported))

    def snapshot(self) -> bytes:
        return snapshot_over(self._spec.static_digest, self._shard.through, self._shard.snapshot())

    def restore(self, data: bytes) -> None:
        self._through, length = struct.unpack_from(_SNAPSHOT, data)
        at = struct.calcsize(_SNAPSHOT)
        static, snapshot = data[at : at + length].decode(), data[at + length :]
        # The driver has checked that the checkpoint belongs to this query.
        if static == self._spec.static_digest:
            self._shard.restore(snapshot)
        elif self._spec.receives:
            # The numbers of its terms may mean other terms now.
            self._is_void = True
        else:
            take_over(self._shard, snapshot)


def snapshot_over(static: str, through: int, frame: bytes) -> bytes:
    """Return the snapshot of a hosted shard.

    Args:
        static: the digest of the static data that the state was made with.
        through: the instant through which the shard has come.
        frame: the snapshot of the kernel.
    """
    digest = static.encode()
    return struct.pack(_SNAPSHOT, through, len(digest)) + digest + frame


def snapshot_through(snapshot: bytes) -> int:
    """Return the instant through which the shard of a snapshot has come."""
    through, _ = struct.unpack_from(_SNAPSHOT, snapshot)
    return int(through)
