"""The last answers of a network, on disk and in memory, so that subscribers can resume.

Answers of a batch are a block. Blocks are appended to segment files; the oldest segments are removed
when all of them are larger than the ring. A block is on disk before Spark commits its batch, and a
batch that Spark repeats after a crash is recognised by its number. So every answer has one place for
ever: the number of its batch, and its number among the answers of its query in that batch.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, final

from quadweir.private import make_folder

MOST_BYTES: Final = 32 * 2**20
_SEGMENTS: Final = 4
_SUFFIX: Final = ".ring"
_HEAD: Final = '{"query":"'
_TIME_AT: Final = len('{"t":')
# A block that says which queries are gone, so that a later query of the name has no answers of them.
_FORGOTTEN: Final = -1


class AnswerPlace(NamedTuple):
    """Where an answer is among all answers of its query."""

    batch: int
    number: int


@final
@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """The answers of one batch.

    Attributes:
        sequence: its number in the ring, which only grows.
        batch: the number of the batch.
        answers: the answers of each query, as JSON.
        size: how many bytes they have.
    """

    sequence: int
    batch: int
    answers: Mapping[str, Sequence[str]]
    size: int


@final
class AnswerRing:
    """The last answers of the queries of a network.

    Args:
        folder: where the answers are kept.
        most_bytes: how many bytes are kept, about.
        tell: called with each new block, on the thread of the batch; it must not block.
    """

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int = MOST_BYTES,
        tell: Callable[[AnswerBlock], None] = lambda _block: None,
    ) -> None:
        make_folder(folder)
        self._folder = folder
        self._most_bytes = most_bytes
        self._tell = tell
        self._lock = threading.Lock()
        self._blocks: deque[AnswerBlock] = deque()
        self._bytes = 0
        self._sequence = 0
        self._batch = self._lost = -1
        self._segments: list[int] = []
        self._file: BinaryIO = self._load()

    # --- writing ---

    def add(self, lines: Iterable[str], batch: int) -> None:
        """Keep the answers of a batch; those of a batch that is repeated are kept already.

        Args:
            lines: answers as JSON that begins with the name of the query.
            batch: the number of the batch.
        """
        if batch <= self._batch:
            return
        answers = by_query(lines)
        if not answers:
            return
        payload = "\n".join(
            line for name, own in answers.items() for line in (f"{name}\t{len(own)}", *own)
        )
        with self._lock:
            block = self._append(batch, answers, payload.encode("utf-8", "surrogatepass"))
        self._tell(block)

    def forget(self, queries: Iterable[str]) -> None:
        """Forget the answers of queries."""
        gone = set(queries)
        with self._lock:
            if not any(gone & each.answers.keys() for each in self._blocks):
                return
            self._append(_FORGOTTEN, {}, "\n".join(sorted(gone)).encode())
            self._drop(gone)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    def _append(
        self, batch: int, answers: Mapping[str, Sequence[str]], payload: bytes
    ) -> AnswerBlock:
        head = b"%08x %d %d\n" % (zlib.crc32(payload), batch, len(payload))
        self._file.write(head + payload + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._file.tell() >= self._most_bytes // _SEGMENTS:
            self._roll()
        return self._take(batch, answers, len(payload))

    def _take(self, batch: int, answers: Mapping[str, Sequence[str]], size: int) -> AnswerBlock:
        self._sequence += 1
        block = AnswerBlock(self._sequence, batch, answers, size)
        if batch != _FORGOTTEN:
            self._batch = max(self._batch, batch)
            self._blocks.append(block)
            self._bytes += size
            while self._bytes > self._most_bytes:
                gone = self._blocks.popleft()
                self._bytes -= gone.size
                self._lost = gone.batch
        return block

    def _drop(self, gone: set[str]) -> None:
        for place, block in enumerate(self._blocks):
            if gone & block.answers.keys():
                kept = {name: own for name, own in block.answers.items() if name not in gone}
                self._blocks[place] = AnswerBlock(block.sequence, block.batch, kept, block.size)

    def _roll(self) -> None:
        self._file.close()
        self._segments.append(self._segments[-1] + 1)
        self._file = self._open(self._segments[-1])
        while len(self._segments) > _SEGMENTS + 1:
            self._path(self._segments.pop(0)).unlink(missing_ok=True)

    # --- reading ---

    def after(
        self,
        query: str,
        place: AnswerPlace | None,
        *,
        earliest: int | None = None,
        most_bytes: int | None = None,
    ) -> tuple[list[tuple[AnswerPlace, str]], int]:
        """Return the kept answers of a query after a place, and the number of the last block.

        Args:
            query: the name of the query.
            place: the place; None for all that are kept.
            earliest: leave out answers of earlier reports.
            most_bytes: about how many bytes to return at most.
        """
        found: list[tuple[AnswerPlace, str]] = []
        size = 0
        with self._lock:
            for block in self._blocks:
                if place is not None and block.batch < place.batch:
                    continue
                for number, line in enumerate(block.answers.get(query, ()), start=1):
                    at = AnswerPlace(block.batch, number)
                    if (place is not None and at <= place) or (
                        earliest is not None and report_of(line) < earliest
                    ):
                        continue
                    found.append((at, line))
                    size += len(line)
                    if most_bytes is not None and size >= most_bytes:
                        return found, self._sequence
            return found, self._sequence

    def last_report(self, query: str) -> list[str]:
        """Return the kept answers of the last report of a query that has any."""
        found: list[str] = []
        last: int | None = None
        with self._lock:
            for block in self._blocks:
                for line in block.answers.get(query, ()):
                    t = report_of(line)
                    if last is None or t > last:
                        last, found = t, []
                    if t == last:
                        found.append(line)
        return found

    @property
    def lost(self) -> int:
        """The last batch whose answers are no longer kept; -1 if there is none."""
        return self._lost

    @property
    def last_batch(self) -> int:
        """The number of the last batch with answers; -1 before the first."""
        return self._batch

    # --- files ---

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}{_SUFFIX}"

    def _open(self, number: int) -> BinaryIO:
        handle = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(handle, "ab")

    def _load(self) -> BinaryIO:
        found = sorted(int(path.stem) for path in self._folder.glob(f"*{_SUFFIX}"))
        self._segments = found or [0]
        for number in found:
            self._read(self._path(number))
        if self._segments[0] and self._blocks:
            self._lost = max(self._lost, self._blocks[0].batch - 1)
        return self._open(self._segments[-1])

    def _read(self, path: Path) -> None:
        data = path.read_bytes()
        end = 0
        for batch, payload, after in _blocks_of(data):
            end = after
            if batch == _FORGOTTEN:
                self._drop(set(payload.decode().split("\n")))
            else:
                text = payload.decode("utf-8", "surrogatepass")
                self._take(batch, dict(_answers_of(text)), len(payload))
        if end < len(data):
            # A crash cut the last block short; Spark repeats its batch.
            with path.open("r+b") as file:
                file.truncate(end)


def by_query(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return answers by the name of their query, without that name.

    >>> by_query(['{"query":"warm","t":5,"sign":"+","bindings":{}}'])
    {'warm': ['{"t":5,"sign":"+","bindings":{}}']}
    """
    found: dict[str, list[str]] = {}
    begin = len(_HEAD)
    for line in lines:
        # Names of queries have no characters that JSON escapes.
        end = line.index('"', begin)
        found.setdefault(line[begin:end], []).append("{" + line[end + 2 :])
    return found


def report_of(answer: str) -> int:
    """Return the report instant of an answer, which is its first member.

    >>> report_of('{"t":5,"sign":"+","bindings":{}}')
    5
    """
    return int(answer[_TIME_AT : answer.index(",", _TIME_AT)])


def _blocks_of(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Yield the batches, the contents and the ends of the whole blocks of a file."""
    place = 0
    while (line := data.find(b"\n", place)) >= 0:
        parts = data[place:line].split(b" ")
        if len(parts) != 3:
            return
        try:
            checksum, batch, size = int(parts[0], 16), int(parts[1]), int(parts[2])
        except ValueError:
            return
        payload = data[line + 1 : line + 1 + size]
        place = line + 1 + size + 1
        if place > len(data) or zlib.crc32(payload) != checksum:
            return
        yield batch, payload, place


def _answers_of(text: str) -> Iterator[tuple[str, list[str]]]:
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        name, _, count = lines[place].partition("\t")
        place += 1
        yield name, lines[place : place + int(count)]
        place += int(count)
