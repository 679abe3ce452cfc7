"""The sinks through which a network hands answers and dead letters to the service.

They run on the thread of the batch: they keep what they get, and leave the rest to others.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.sinks.base import TextSink
from quadweir.sinks.lineformat import LineFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.service.answerring import AnswerRing
    from quadweir.sinks.base import Batch

MOST_LETTERS: Final = 1_000
TAP: Final = "_tap-"
"""How the names of queries begin that only look into streams; no query of a user begins so."""
_OF_TAP: Final = f'{{"query":"{TAP}'


@final
class RingSink(TextSink):
    """Keeps the answers of a network in a ring, and passes them to another sink, if there is one.

    Args:
        ring: keeps answers.
        taps: keeps the answers of taps, so that they do not displace those of queries.
        other: the other sink.
    """

    def __init__(self, ring: AnswerRing, taps: AnswerRing, other: TextSink | None = None) -> None:
        self._ring = ring
        self._taps = taps
        self._other = other

    @property
    def form(self) -> LineFormat:
        return LineFormat.ANSWERS_JSONL

    def prepare(self) -> None:
        if self._other is not None:
            self._other.prepare()

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        self.write_text([row[0] for row in lines.toLocalIterator()], batch)

    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        answers = [line for line in lines if not line.startswith(_OF_TAP)]
        if self._other is not None:
            self._other.write_text(answers, batch)
        if len(answers) < len(lines):
            self._taps.add([line for line in lines if line.startswith(_OF_TAP)], batch.number)
        self._ring.add(answers, batch.number)


@final
class DeadLetterBox:
    """The last dead letters of all networks.

    Args:
        tell: called with new letters, on the thread of a batch; it must not block.
    """

    def __init__(self, tell: Callable[[list[dict[str, Any]]], None] = lambda _new: None) -> None:
        self._tell = tell
        self._lock = threading.Lock()
        self._letters: deque[dict[str, Any]] = deque(maxlen=MOST_LETTERS)
        self._count = 0

    def add(self, network: str, lines: Sequence[str]) -> None:
        """Add dead letters, each a row of JSON."""
        now = time.time_ns() // 1_000_000
        found = []
        with self._lock:
            for line in lines:
                self._count += 1
                row = json.loads(line)
                found.append({"seq": self._count, "at": now, "network": network, **row})
            self._letters.extend(found)
        if found:
            self._tell(found[-MOST_LETTERS:])

    def letters(self, *, after: int = 0, limit: int = MOST_LETTERS) -> dict[str, Any]:
        """Return the last letters after a number, the newest last."""
        with self._lock:
            found = [each for each in self._letters if each["seq"] > after]
            return {"letters": found[-limit:], "total": self._count}


@final
class LetterSink(TextSink):
    """Puts the dead letters of a network into the box."""

    def __init__(self, box: DeadLetterBox, network: str) -> None:
        self._box = box
        self._network = network
        self._last = -1

    @property
    def form(self) -> LineFormat:
        return LineFormat.JSONL

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        # Too many to keep: the first ones say what is wrong.
        self.write_text([row[0] for row in lines.limit(MOST_LETTERS).collect()], batch)

    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        if batch.number > self._last:
            self._last = batch.number
            self._box.add(self._network, lines)
