"""Reads blocks of timed lines into Arrow columns: times, elements, and the terms of plain statements.

A file is read here and not by Spark's own text source, which knows no line numbers; and which lines
form one element depends on the line before. Most statements are cut into terms on the way
(`plainlines.py`). The others are parsed by Spark (`ntriples.parse_lines`).
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
from quadweir.sources.plainlines import (
    BLANK,
    ODD,
    PLAIN,
    UNTIMED,
    Lines,
    cut_out,
    look_at,
    share_graphs,
)
from quadweir.sources.plaintimes import Bytes
from quadweir.sources.statements import graph_name
from quadweir.sources.streamfiles import FILE_SHIFT, split_time

if TYPE_CHECKING:
    Longs = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

SCHEMA: Final = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("run", pa.int64(), nullable=False),
        pa.field("event_time", pa.int64()),
        pa.field("lead", pa.string()),
        pa.field("value", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("plain_subject", pa.string()),
        pa.field("plain_predicate", pa.string()),
        pa.field("plain_object", pa.string()),
        pa.field("plain_graph", pa.string()),
    ]
)
"""A line of a stream file: the file; its number; the position of its element, which is that of the
first line of its graph's run; its time; what is written before the statement, NULL for the time in
milliseconds and a space; the statement, NULL if it is plain; why the line cannot be used; the terms
of a plain statement."""

TEXTS: Final = pa.schema(
    [SCHEMA.field(name) for name in ("source", "line", "run", "event_time", "value", "reason")]
)
"""A line of a stream file as it is written, without its end; otherwise as in `SCHEMA`."""

_LOOK_BACK_BYTES: Final = 4096


@final
@dataclass(frozen=True, slots=True)
class FilePart:
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


def read_part(part: FilePart, *, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """Read a part of a file as batches of `SCHEMA`.

    Raises:
        SourceError: the file cannot be read.
    """
    for piece in _read(part, _run_before(part, max_line_bytes), max_line_bytes):
        yield unusable_line(part, piece) if isinstance(piece, Fault) else piece.statements()


def read_texts(part: FilePart, *, max_line_bytes: int) -> Iterator[pa.RecordBatch]:
    """Read a part of a file as batches of `TEXTS`.

    Raises:
        SourceError: the file cannot be read.
    """
    for piece in _read(part, _run_before(part, max_line_bytes), max_line_bytes):
        if isinstance(piece, Fault):
            yield unusable_line(part, piece).select(TEXTS.names)
        else:
            yield piece.texts()


def _read(part: FilePart, before: _Before, max_line_bytes: int) -> Iterator[_Seen | Fault]:
    """Read a part; `before` follows along and ends as the last line leaves it."""
    for block in _blocks(part, max_line_bytes):
        for piece in _sound(block):
            if isinstance(piece, Fault):
                before.time = before.graph = None
                yield piece
            else:
                yield _Seen.of(part, piece, before)


def _blocks(part: FilePart, max_line_bytes: int) -> Iterator[Block | Fault]:
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


def unusable_line(part: FilePart, fault: Fault) -> pa.RecordBatch:
    """A batch of `SCHEMA` with one line that cannot be used."""
    row: dict[str, Any] = {
        "source": part.path,
        "line": fault.number,
        "run": (part.index << FILE_SHIFT) + fault.number,
        "lead": "",
        "value": fault.excerpt.rstrip("\r\n") if fault.excerpt is not None else None,
        "reason": fault.reason,
    }
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


@final
@dataclass(frozen=True, slots=True)
class _Seen:
    """The lines of a block that say something, and what was seen of them.

    Attributes:
        path: the file.
        data: the bytes of the block.
        lines: the places of the lines in it.
        numbers: the numbers of the lines in the file.
        run: the positions of their elements.
        reasons: why lines cannot be used, by their places in `lines`.
    """

    path: str
    data: Bytes
    lines: Lines
    numbers: Longs
    run: Longs
    reasons: dict[int, str]

    @staticmethod
    def of(part: FilePart, block: Block, before: _Before) -> _Seen:
        """Look at a block; `before` follows along."""
        data, lines = look_at(block.data)
        numbers = block.number + np.arange(len(lines), dtype=np.int64)
        run = _runs(data, lines, (part.index << FILE_SHIFT) + numbers, before)
        kept = lines["kind"] != BLANK
        if not kept.all():
            lines, numbers, run = lines[kept], numbers[kept], run[kept]
        untimed = np.flatnonzero(lines["kind"] == UNTIMED).tolist()
        reasons = {row: _why_untimed(_text(data, lines, row)) for row in untimed}
        return _Seen(part.path, data, lines, numbers, run, reasons)

    def statements(self) -> pa.RecordBatch:
        """Give a batch of `SCHEMA`."""
        lines = self.lines
        plain = lines["kind"] == PLAIN
        usual = plain & (lines["usual"] != 0)
        named = plain & (lines["graph"] != 0)
        statement, end = lines["statement"], lines["end"]
        object_end = np.where(named, lines["graph"] - 1, end - 2)
        return pa.RecordBatch.from_arrays(
            [
                *self._places(),
                self._strings(lines["start"], statement, ~usual),
                self._strings(statement, end, ~plain),
                self._reasons(),
                self._strings(statement, lines["predicate"] - 1, plain),
                self._strings(lines["predicate"], lines["object"] - 1, plain),
                self._strings(lines["object"], object_end, plain),
                self._strings(lines["graph"], end - 2, named),
            ],
            schema=SCHEMA,
        )

    def texts(self) -> pa.RecordBatch:
        """Give a batch of `TEXTS`."""
        every = np.ones(len(self.lines), dtype=bool)
        values = self._strings(self.lines["start"], self.lines["end"], every)
        return pa.RecordBatch.from_arrays([*self._places(), values, self._reasons()], schema=TEXTS)

    def _places(self) -> list[pa.Array]:
        return [
            pa.repeat(pa.scalar(self.path), len(self.lines)),
            pa.array(self.numbers),
            pa.array(self.run),
            pa.array(self.lines["time"], mask=self.lines["kind"] == UNTIMED),
        ]

    def _strings(self, begins: Longs, ends: Longs, there: Flags) -> pa.Array:
        """Give pieces of the block as texts, NULL where they are not there."""
        if not there.any():
            return pa.nulls(len(there), pa.string())
        every = bool(there.all())
        offsets, copied = cut_out(
            self.data, begins, ends if every else np.where(there, ends, begins)
        )
        mask = None if every else pa.py_buffer(np.packbits(there, bitorder="little"))
        return pa.StringArray.from_buffers(
            len(there), pa.py_buffer(offsets), pa.py_buffer(copied), mask
        )

    def _reasons(self) -> pa.Array:
        if not self.reasons:
            return pa.nulls(len(self.lines), pa.string())
        return pa.array([self.reasons.get(row) for row in range(len(self.lines))], pa.string())


def _text(data: Bytes, lines: Lines, row: int, field: str = "start") -> str:
    return data[lines[field][row] : lines["end"][row]].tobytes().decode()


def _why_untimed(text: str) -> str:
    try:
        split_time(text)
    except DataError as error:
        return error.message
    return "no statement"


def _runs(data: Bytes, lines: Lines, own: Longs, before: _Before) -> Longs:
    """The position of the first line of each line's run: equal time, equal graph name, adjacent."""

    def graph(row: int) -> str | None:
        if lines["kind"][row] == ODD:
            return graph_name(_text(data, lines, row, "statement"))
        # A plain name has no escapes to undo.
        named = lines["kind"][row] == PLAIN and lines["graph"][row]
        return _text(data, lines, row, "graph").removesuffix(" .") if named else None

    shared = share_graphs(data, lines)
    name: tuple[int, str | None] = -1, None
    for row in np.flatnonzero(shared < 0).tolist():
        last = name[1] if name[0] == row - 1 else graph(row - 1)
        name = row, graph(row)
        shared[row] = last is not None and name[1] == last
    first = np.where(shared != 0, 0, own)
    if (
        lines["kind"][0] >= ODD
        and before.time == lines["time"][0]
        and before.graph is not None
        and graph(0) == before.graph
    ):
        first[0] = before.run
    run: Longs = np.maximum.accumulate(first)
    timed = lines["kind"][-1] >= ODD
    before.time = int(lines["time"][-1]) if timed else None
    before.graph = graph(len(lines) - 1) if timed else None
    before.run = int(run[-1])
    return run


def _run_before(part: FilePart, max_line_bytes: int) -> _Before:
    """What the first line of a part must know: look back to where the run of the line before began.

    Almost always a few lines; only a graph as long as the part costs as much as the part again.
    """
    window = _LOOK_BACK_BYTES
    while True:
        found = _Before()
        if part.start == 0:
            return found
        start = max(0, part.start - window)
        ghost = FilePart(part.path, part.index, start, part.start)
        count = sum(
            1 if isinstance(block, Fault) else sum(1 for _ in lines_of(block))
            for block in _blocks(ghost, max_line_bytes)
        )
        ghost = FilePart(part.path, part.index, start, part.start, part.number - count)
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
