"""How far time has come in the streams of a query (S4), as each of its shards knows it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, final

# As in the kernel, which Spark's driver worker does not load.
ALWAYS: Final = -(2**60)
FOREVER: Final = 2**60


@final
@dataclass(frozen=True)
class StreamTiming:
    """How late elements of each stream may be, and when a stream without elements is idle.

    Attributes:
        delay_ms: the allowed delay of each stream.
        idle_ms: after how long without elements a stream is idle; None is never.
        reporting: the streams that report themselves how far time has come in them.
    """

    delay_ms: dict[str, int] = field(default_factory=dict)
    idle_ms: dict[str, int | None] = field(default_factory=dict)
    reporting: frozenset[str] = frozenset()


@final
@dataclass
class StreamClock:
    """The watermark of a query, from what the blobs of all batches say.

    Attributes:
        highest: the highest event time of each stream.
        heard: when a stream last had elements, by the clock of batches.
        through: the instant through which everything is known.
        reported: the same of each stream that reports it itself.
        static: the digest of the static data that the state was made with.
    """

    highest: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    through: int = ALWAYS
    reported: dict[str, int] = field(default_factory=dict)
    static: str = ""

    def note(self, blobs: Iterable[bytes]) -> int:
        """Take the times that blobs carry; return when the last of them was packed."""
        from quadweir.runtime.wire.pack import Header

        now = 0
        for blob in blobs:
            header = Header.of(blob)
            now = max(now, header.packed_at)
            if header.through is not None:
                self.through = max(self.through, header.through)
            for stream, (_, last) in header.spans.items():
                self.highest[stream] = max(last, self.highest.get(stream, last))
            for stream, through in header.reported.items():
                self.reported[stream] = max(through, self.reported.get(stream, through))
            for stream in (*header.spans, *header.reported):
                known = self.heard.get(stream, header.packed_at)
                self.heard[stream] = max(header.packed_at, known)
        return now

    def advance(self, streams: Iterable[str], timing: StreamTiming, now: int) -> None:
        """Find the instant through which everything is known (S4); it never goes back."""
        self.through = max(self.through, self.reach(streams, timing, now))

    def reach(self, streams: Iterable[str], timing: StreamTiming, now: int) -> int:
        """Return the instant through which everything of some streams is known (S4)."""
        from quadweir.runtime.match.rowform import END

        if END in self.highest:
            return FOREVER
        known = []
        for stream in streams:
            idle = timing.idle_ms.get(stream)
            if idle is not None and now - self.heard.setdefault(stream, now) > idle:
                continue
            if stream in timing.reporting:
                if stream not in self.reported:
                    return ALWAYS
                known.append(self.reported[stream])
                continue
            if stream not in self.highest:
                return ALWAYS
            delay = timing.delay_ms.get(stream, 0)
            # Without any delay, the newest instant is over only when a later one is seen.
            known.append(self.highest[stream] - (delay if delay > 0 else 1))
        return min(known, default=ALWAYS)

    def as_text(self) -> str:
        """Write it, for the note of a journal."""
        return json.dumps([self.highest, self.heard, self.through, self.reported, self.static])

    @staticmethod
    def of(text: str) -> StreamClock:
        """Read what `as_text` wrote."""
        return StreamClock(*json.loads(text))
