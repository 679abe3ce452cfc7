"""Blocks of timed lines as Arrow columns: times read and elements told apart, many lines at once.

Spark's own text source knows no line numbers, and which lines form one element depends on the line
before; both come cheap where the file is read. The statements themselves are parsed by Spark
(`ntriples.parse_lines`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quadweir.errors import DataError
from quadweir.sources.lines import BLOCK_BYTES, Block, Fault, Line, lines_of, read_blocks
from quadweir.sources.statements import graph_name, is_blank
from quadweir.sources.streamfiles import FILE_SHIFT, split_time
from quadweir.times import parse_time

if TYPE_CHECKING:
    Longs = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

SCHEMA: Final = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("run", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64()),
        pa.field("cut", pa.int32(), nullable=False),
        pa.field("value", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""A line of a stream file: the file; its number; the position it has as an element of its own; the
position of the first line of its graph's run; its time; how many characters stand before the
statement; the line with its end; why it cannot be used."""

_NEWLINE: Final = 10
_SPACE: Final = 32
_TAB: Final = 9
_DIGIT: Final = 48
_MOST_DIGITS: Final = 15
_TAIL: Final = 8
_PLAIN_END: Final = np.frombuffer(b" .\n", dtype=np.uint8)
_LOOK_BACK_BYTES: Final = 4096


@final
@dataclass(frozen=True, slots=True)
class Part:
    """The lines of a file that begin at a byte in [start, end); None is the end of the file.

    Attributes:
        path: the file.
        index: its number in the stream.
        start: where the part begins.
        end: where it ends.
        number: the number of the first line that begins in it.
        size: how large the file was when it was found; None does not matter.
    """

    path: str
    index: int
    start: int = 0
    end: int | None = None
    number: int = 1
    size: int | None = None


@dataclass(slots=True)
class _Before:
    """What the next line must know of the one before it."""

    time: int | None = None
    graph: str | None = None
    run: int = 0


def read_part(part: Part, *, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """Read a part of a file as batches of `SCHEMA`.

    Raises:
        SourceError: the file cannot be read.
    """
    return _read(part, _run_before(part, max_line_bytes), max_line_bytes)


def _read(part: Part, before: _Before, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """Read a part; `before` follows along and ends as the last line leaves it."""
    for block in _blocks(part, max_line_bytes):
        for piece in _sound(block):
            if isinstance(piece, Fault):
                before.time = before.graph = None
                yield _fault_batch(part, piece)
            else:
                yield _batch(part, piece, before)


def _blocks(part: Part, max_line_bytes: int) -> Iterator[Block | Fault]:
    return read_blocks(
        Path(part.path),
        start=part.start,
        end=part.end,
        number=part.number,
        max_line_bytes=max_line_bytes,
    )


def _sound(block: Block | Fault) -> Iterator[Block | Fault]:
    """Cut a block so that what is not UTF-8 stands alone."""
    if isinstance(block, Fault) or block.data.isascii():
        yield block
        return
    try:
        block.data.decode()
        yield block
        return
    except UnicodeDecodeError:
        pass
    lines = block.data.split(b"\n")
    kept: list[bytes] = []
    first = block.number
    for item in lines_of(block):
        if isinstance(item, Line):
            kept.append(lines[item.number - block.number])
            continue
        if kept:
            yield Block(first, b"\n".join(kept) + b"\n")
            kept = []
        yield item
        first = item.number + 1
    if kept:
        yield Block(first, b"\n".join(kept) + b"\n")


def _fault_batch(part: Part, fault: Fault) -> pa.RecordBatch:
    position = (part.index << FILE_SHIFT) + fault.number
    row: dict[str, Any] = {
        "source": part.path,
        "line": fault.number,
        "position": position,
        "run": position,
        "event_time": None,
        "cut": 0,
        "value": fault.excerpt,
        "reason": fault.reason,
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def _batch(part: Part, block: Block, before: _Before) -> pa.RecordBatch:
    data = np.frombuffer(block.data, dtype=np.uint8)
    ends = np.flatnonzero(data == _NEWLINE) + 1
    if len(ends) == 0 or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    starts = np.concatenate(([0], ends[:-1]))
    numbers = block.number + np.arange(len(ends), dtype=np.int64)
    own = (part.index << FILE_SHIFT) + numbers

    texts = _Texts(block.data, starts, ends)
    times, known, cuts = _times(data, starts, ends, texts)
    kept, reasons = _reasons(known, texts)
    run = _runs(data, texts, times, known, cuts, own, before)
    offsets = np.append(starts, len(data)).astype(np.int32)
    values = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(block.data))
    batch = pa.RecordBatch.from_arrays(
        [
            pa.repeat(pa.scalar(part.path), len(ends)),
            pa.array(numbers),
            pa.array(own),
            pa.array(run),
            pa.array(times, mask=~known),
            pa.array(cuts.astype(np.int32)),
            values,
            reasons,
        ],
        schema=SCHEMA,
    )
    return batch if kept is None else batch.filter(pa.array(kept))


@final
@dataclass(frozen=True, slots=True)
class _Texts:
    """The lines of a block as Python text, for the few that need a closer look."""

    data: bytes
    starts: Longs
    ends: Longs

    def __getitem__(self, index: int) -> str:
        return self.data[self.starts[index] : self.ends[index]].decode().rstrip("\r\n")


def _times(
    data: npt.NDArray[np.uint8], starts: Longs, ends: Longs, texts: _Texts
) -> tuple[Longs, Flags, Longs]:
    """The time of each line, whether it has one, and how many characters stand before the rest."""
    gaps = np.append(np.flatnonzero((data == _SPACE) | (data == _TAB)), len(data))
    stops = gaps[np.searchsorted(gaps, starts)]
    lengths = stops - starts
    times = np.zeros(len(starts), dtype=np.int64)
    known = np.zeros(len(starts), dtype=bool)
    inside = stops < ends - 1
    for length in np.unique(lengths[inside & (lengths > 0) & (lengths <= _MOST_DIGITS)]):
        rows = np.flatnonzero(inside & (lengths == length))
        digits = data[starts[rows][:, None] + np.arange(length)].astype(np.int64) - _DIGIT
        numeric = ((digits >= 0) & (digits <= 9)).all(axis=1)
        times[rows] = digits @ (10 ** np.arange(length - 1, -1, -1, dtype=np.int64))
        known[rows] = numeric
    seen: dict[bytes, int | None] = {}
    for row in np.flatnonzero(inside & ~known & (lengths > 0)):
        word = texts.data[starts[row] : stops[row]]
        if word not in seen:
            seen[word] = _time_or_none(word)
        time = seen[word]
        if time is not None:
            times[row], known[row] = time, True
    cuts = np.where(known, lengths + 1, 0)
    padded = np.append(data, np.uint8(0))
    more = known.copy()
    while more.any():
        after = padded[np.minimum(starts + cuts, len(data))]
        more &= ((after == _SPACE) | (after == _TAB)) & (starts + cuts < ends)
        cuts += more
    return times, known, cuts


def _time_or_none(word: bytes) -> int | None:
    try:
        return parse_time(word.decode())
    except DataError:
        return None


def _reasons(known: Flags, texts: _Texts) -> tuple[Flags | None, pa.Array]:
    """Which lines to keep (None: all), and why those without a time cannot be used."""
    if known.all():
        return None, pa.nulls(len(known), pa.string())
    kept = np.ones(len(known), dtype=bool)
    reasons: list[str | None] = [None] * len(known)
    for row in np.flatnonzero(~known).tolist():
        text = texts[row]
        if is_blank(text):
            kept[row] = False
            continue
        try:
            split_time(text)
            reasons[row] = "no statement"
        except DataError as error:
            reasons[row] = error.message
    return kept, pa.array(reasons, pa.string())


def _runs(
    data: npt.NDArray[np.uint8],
    texts: _Texts,
    times: Longs,
    known: Flags,
    cuts: Longs,
    own: Longs,
    before: _Before,
) -> Longs:
    """The position of the first line of each line's run: equal time, equal graph name, adjacent."""
    continues = np.zeros(len(own), dtype=bool)
    continues[1:] = known[1:] & known[:-1] & (times[1:] == times[:-1])
    if b"\\u" not in texts.data and b"\\U" not in texts.data:
        continues[1:] &= _may_share_graph(data, texts)
    graphs: dict[int, str | None] = {}

    def graph(row: int) -> str | None:
        if row not in graphs:
            graphs[row] = graph_name(texts[row][cuts[row] :])
        return graphs[row]

    for row in np.flatnonzero(continues).tolist():
        continues[row] = graph(row) is not None and graph(row) == graph(row - 1)
    first = np.where(continues, 0, own)
    if (
        known[0]
        and before.time == times[0]
        and before.graph is not None
        and graph(0) == before.graph
    ):
        first[0] = before.run
    run = np.maximum.accumulate(first)
    last = len(own) - 1
    before.time = int(times[last]) if known[last] else None
    before.graph = graph(last) if known[last] else None
    before.run = int(run[last])
    return run


def _may_share_graph(data: npt.NDArray[np.uint8], texts: _Texts) -> Flags:
    """Rule out, from a few bytes, most neighbours that cannot stand in one graph.

    Only lines that end plainly in a dot are judged; the others get the closer look.
    """
    starts, ends = texts.starts, texts.ends
    window = len(_PLAIN_END) + _TAIL
    if len(data) < window:
        return np.ones(len(starts) - 1, dtype=bool)
    tails = data[np.maximum(ends - window, 0)[:, None] + np.arange(window)]
    plain = (tails[:, -len(_PLAIN_END) :] == _PLAIN_END).all(axis=1) & (ends - starts >= window)
    closing = tails[:, -len(_PLAIN_END) - 1]
    brackets = np.flatnonzero(data == ord("<"))
    up_to = np.searchsorted(brackets, ends)
    count = up_to - np.searchsorted(brackets, starts)
    last = brackets[up_to - 1] if len(brackets) else np.zeros_like(starts)
    # A line that ends in a quote or in a datatype has no graph name.
    typed = (closing == ord(">")) & (count > 0) & (data[last - 1] == ord("^"))
    triple = plain & ((closing == ord('"')) | typed)
    if b"_:" not in texts.data:
        quotes = np.flatnonzero(data == ord('"'))
        unquoted = np.searchsorted(quotes, starts) == np.searchsorted(quotes, ends)
        triple |= plain & unquoted & (count == 3)
    named = plain & (closing == ord(">"))
    same = (tails[1:] == tails[:-1]).all(axis=1)
    ruled_out: Flags = triple[1:] | triple[:-1] | (named[1:] & named[:-1] & ~same)
    return ~ruled_out


def _run_before(part: Part, max_line_bytes: int) -> _Before:
    """What the first line of a part must know: look back to where the run of the line before began.

    Almost always a few lines; only a graph as long as the part costs as much as the part again.
    """
    window = _LOOK_BACK_BYTES
    while True:
        found = _Before()
        if part.start == 0:
            return found
        start = max(0, part.start - window)
        ghost = Part(part.path, part.index, start, part.start)
        count = sum(
            1 if isinstance(block, Fault) else sum(1 for _ in lines_of(block))
            for block in _blocks(ghost, max_line_bytes)
        )
        ghost = Part(part.path, part.index, start, part.start, part.number - count)
        for _ in _read(ghost, found, max_line_bytes):
            pass
        # A run that reaches back to the first line seen may begin earlier still; a window without
        # any line lies inside a long one.
        first = (part.index << FILE_SHIFT) + ghost.number
        if start == 0 or (count and (found.graph is None or found.run > first)):
            return found
        window *= 8


def count_lines(path: Path, starts: list[int]) -> list[int]:
    """The number of the first line that begins at or after each byte; `starts` must ascend."""
    numbers = []
    newlines = 0
    at = 0
    with path.open("rb", buffering=0) as file:
        for start in starts:
            # A line begins after a newline, so one at start - 1 still counts for this part.
            while at < start - 1:
                data = file.read(min(BLOCK_BYTES, start - 1 - at))
                if not data:
                    break
                newlines += data.count(b"\n")
                at += len(data)
            numbers.append(newlines + 2 if start else 1)
    return numbers
