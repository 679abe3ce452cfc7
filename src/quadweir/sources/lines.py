"""Lines of a file, plain or gzip, with their numbers, in bounded memory.

A line that is too long, a binary file and an incomplete gzip stream become `Fault` values in the
sequence, so that the reader can continue with the rest (semantics P5). Lines end at a line feed;
carriage returns before it are dropped.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError

if TYPE_CHECKING:
    from typing import BinaryIO

MAX_LINE_BYTES: Final = 4 * 2**20
BLOCK_BYTES: Final = 2**20
EXCERPT_CHARACTERS: Final = 200
NOT_UTF8: Final = "not UTF-8"
_GZIP_MAGIC: Final = b"\x1f\x8b"
_BOM: Final = b"\xef\xbb\xbf"
# Text has no NUL; formats that are not text have one near their start.
_SNIFF_BYTES: Final = 8192


@final
@dataclass(frozen=True, slots=True)
class Line:
    """A line without its line feed; numbers start at 1."""

    number: int
    text: str


@final
@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a file that is no usable line: its place, the reason, and its beginning."""

    number: int
    reason: str
    excerpt: str | None = None


@final
@dataclass(frozen=True, slots=True)
class Block:
    """Several whole lines; only the last line of a file may lack its line feed."""

    number: int
    data: bytes


def read_lines(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Line | Fault]:
    """Yield the lines of a file.

    Raises:
        SourceError: the file cannot be opened or read.
    """
    for block in read_blocks(path, max_line_bytes=max_line_bytes):
        if isinstance(block, Fault):
            yield block
        else:
            yield from lines_of(block)


def lines_of(block: Block) -> Iterator[Line | Fault]:
    r"""Yield the lines of a block; a line that is not UTF-8 becomes a fault.

    >>> list(lines_of(Block(7, b"a\nb")))
    [Line(number=7, text='a'), Line(number=8, text='b')]
    """
    pieces = block.data.split(b"\n")
    if not pieces[-1]:
        del pieces[-1]
    for number, piece in enumerate(pieces, block.number):
        try:
            yield Line(number, piece.rstrip(b"\r").decode())
        except UnicodeDecodeError as error:
            yield Fault(number, f"not UTF-8 at byte {error.start + 1}", excerpt(piece))


def read_blocks(
    path: Path,
    *,
    start: int = 0,
    end: int | None = None,
    number: int = 1,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> Iterator[Block | Fault]:
    """Yield the lines that begin at a byte in [start, end), in blocks.

    Args:
        path: the file; gzip is recognised by its first bytes, not by its name.
        start: the first byte; a line that begins before it belongs to the part before.
        end: the byte to stop at; None is the end of the file. Gzip files are read as a whole.
        number: the number of the first line that begins at or after `start`.
        max_line_bytes: a longer line becomes a fault.

    Raises:
        SourceError: the file cannot be opened or read.
    """
    with open_bytes(path) as file:
        try:
            yield from _blocks(file, start, end, number, max_line_bytes)
        except OSError as error:
            raise SourceError(f"cannot read {path}: {error.strerror or error}") from error


def _blocks(
    file: BinaryIO, start: int, end: int | None, number: int, max_line_bytes: int
) -> Iterator[Block | Fault]:
    size = min(BLOCK_BYTES, max_line_bytes)
    carry = b""
    # Inside a line that belongs to the part before, or that is too long.
    skipping = start > 0
    counted = not skipping
    offset = max(0, start - 1)
    if offset:
        file.seek(offset)
    first = start == 0
    while True:
        try:
            data = file.read(size)
        except BrokenGzipError as error:
            if carry:
                yield Block(number, carry)
            yield Fault(number + bool(carry), str(error))
            return
        if not data:
            break
        if first:
            if b"\0" in data[:_SNIFF_BYTES]:
                yield Fault(1, "a binary file, not text")
                return
            offset = len(data) - len(data.removeprefix(_BOM))
            data = data[offset:]
            first = False
        if skipping:
            cut = data.find(b"\n") + 1
            if not cut:
                offset += len(data)
                if end is not None and offset >= end:
                    return
                continue
            offset += cut
            data = data[cut:]
            skipping = False
            number += counted
            counted = True
        # Here the first byte of carry + data is at `offset` and begins a line.
        if end is not None and offset >= end:
            return
        carry += data
        last = carry.rfind(b"\n") + 1
        if end is not None and offset + last > end:
            # The line with byte end - 1 is our last line.
            last = carry.find(b"\n", end - 1 - offset) + 1 or last
        stop = end is not None and last > 0 and offset + last >= end
        if not last:
            if len(carry) > max_line_bytes:
                yield _too_long(number, carry, max_line_bytes)
                offset += len(carry)
                carry, skipping = b"", True
            continue
        whole, carry = carry[:last], carry[last:]
        offset += last
        head = whole.find(b"\n") + 1
        if head - 1 > max_line_bytes:
            yield _too_long(number, whole, max_line_bytes)
            whole = whole[head:]
            number += 1
        if whole:
            yield Block(number, whole)
            number += whole.count(b"\n")
        if stop:
            return
    if carry:
        yield Block(number, carry)


def _too_long(number: int, data: bytes, limit: int) -> Fault:
    return Fault(number, f"a line of more than {limit} bytes", excerpt(data))


def excerpt(data: bytes) -> str:
    """Return the first characters of bytes, which may not be text."""
    return data[: 4 * EXCERPT_CHARACTERS].decode(errors="replace")[:EXCERPT_CHARACTERS]


def open_bytes(path: Path) -> BinaryIO:
    """Open a file without a buffer; gzip is decompressed.

    Raises:
        SourceError: the file cannot be opened.
    """
    try:
        if not path.is_file():
            raise SourceError(f"no such file: {path}", hint="Check the path.")
        file = path.open("rb", buffering=0)
        zipped = file.read(2) == _GZIP_MAGIC
        file.seek(0)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error
    return _Gunzip(file) if zipped else file  # type: ignore[return-value]


def is_gzip(path: Path) -> bool:
    """Whether a file begins like gzip."""
    with path.open("rb") as file:
        return file.read(2) == _GZIP_MAGIC


class BrokenGzipError(OSError):
    """A gzip stream is damaged or ends before its trailer."""


class _Gunzip(io.RawIOBase):
    """A gzip reader that returns everything it can decode before it reports a broken stream.

    The standard library's GzipFile raises before the last decoded bytes have been read.
    """

    def __init__(self, file: io.RawIOBase | BinaryIO) -> None:
        self._file = file
        self._input = b""
        self._member = zlib.decompressobj(wbits=31)
        self._inside = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while True:
            if not self._input:
                self._input = self._file.read(65536) or b""
            at_end = not self._input
            if not self._inside:
                # Zero bytes may pad the end of a member, as on tapes.
                self._input = self._input.lstrip(b"\0")
                if at_end:
                    return 0
                if not self._input:
                    continue
                self._member = zlib.decompressobj(wbits=31)
                self._inside = True
            try:
                data = self._member.decompress(self._input, len(buffer))
            except zlib.error as error:
                raise BrokenGzipError(f"the gzip file is damaged ({error})") from None
            if self._member.eof:
                self._input = self._member.unused_data
                self._inside = False
            else:
                self._input = self._member.unconsumed_tail
                if at_end and not data:
                    raise BrokenGzipError("the gzip file ends too early")
            if data:
                buffer[: len(data)] = data
                return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()
