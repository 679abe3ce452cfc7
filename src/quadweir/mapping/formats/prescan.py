"""One quick scan of a whole file, to find which checks of its records can be left out.

A scan costs a few percent of mapping the file. If the file is plain, as most are, Spark reads it
with its fastest reader, and records skip the checks that cannot fail.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, final

import numpy as np

_Shape = TypeVar("_Shape")

_CHUNK: Final = 2**24
_NEWLINE: Final = 10
_RETURN: Final = 13
_BOM: Final = codecs.BOM_UTF8
MOST_BYTES: Final = 16 * 2**30
"""A larger file is not scanned: the driver alone would take longer than the workers save."""


class CsvShape(Enum):
    """The layout of a CSV file's rows."""

    ANY = auto()
    """A row may span several lines, or the file is not UTF-8."""
    LINES = auto()
    """Every line is a row."""
    PLAIN = auto()
    """Every line is a row, no cell is quoted, and only the first line is the header."""


class Look(NamedTuple, Generic[_Shape]):
    """The result of a scan."""

    shape: _Shape
    is_clean: bool = False
    """Whether everything is ASCII, and no value can hold a character that a literal must escape."""
    records: int | None = None
    """The number of records, if all of them certainly match the header."""


def look_at_json(path: Path) -> Look[bool]:
    """Whether every line is at most one object without nested objects and arrays.

    No brace or bracket stands anywhere else either, not even in a string, so no line can hold a
    second value, and no member an array or object. The file is UTF-8.
    """
    if path.stat().st_size > MOST_BYTES:
        return Look(False)
    before, is_open, is_clean = _NEWLINE, False, True
    for chunk in _utf8_chunks(path):
        if chunk is None or b"[" in chunk:
            return Look(False)
        # A string of JSON has quotes and control characters only behind a backslash.
        is_clean = is_clean and chunk.isascii() and b"\\" not in chunk and b"\x7f" not in chunk
        data = np.frombuffer(chunk, np.uint8)
        opening = np.flatnonzero(data == ord("{"))
        closing = np.flatnonzero(data == ord("}"))
        if is_open and data[0] not in (_NEWLINE, _RETURN):
            return Look(False)
        if opening.size:
            inner = opening[1:] if opening[0] == 0 else opening
            if opening[0] == 0 and before != _NEWLINE:
                return Look(False)
            if (data[inner - 1] != _NEWLINE).any():
                return Look(False)
        is_open = bool(closing.size) and closing[-1] == data.size - 1
        following = data[(closing[:-1] if is_open else closing) + 1]
        if not np.isin(following, (_NEWLINE, _RETURN)).all():
            return Look(False)
        before = int(data[-1])
    return Look(True, is_clean)


def look_at_csv(path: Path, quote: str | None, delimiter: str = ",") -> Look[CsvShape]:
    """How to find the rows of a CSV file, and whether all are as wide as its header."""
    mark = ord(quote or '"')
    if mark > 127:
        return Look(CsvShape.ANY)
    header = _first_line(path)
    is_plain = bool(header) and not header.startswith(_BOM)
    odd, seen, tail, is_clean = 0, 0, b"", True
    rows = _Rows(delimiter, header)
    for chunk in _utf8_chunks(path):
        if chunk is None:
            return Look(CsvShape.ANY)
        if is_plain:
            # Once inside of the chunk, and once across its start.
            seen += chunk.count(header) + (tail + chunk[: len(header) - 1]).count(header)
            tail = (tail + chunk[-len(header) :])[-len(header) + 1 :] if len(header) > 1 else b""
            is_plain = seen < 2
            is_clean = is_clean and _is_clean(chunk)
            rows.take(chunk)
        if mark not in chunk and not odd:
            continue
        is_plain = False
        data = np.frombuffer(chunk, np.uint8)
        before = (np.cumsum(data == mark) + odd) & 1
        if (before[data == _NEWLINE] == 1).any():
            return Look(CsvShape.ANY)
        odd = int(before[-1])
    return Look(CsvShape.PLAIN, is_clean, rows.count()) if is_plain else Look(CsvShape.LINES)


@final
class _Rows:
    """Counts the rows of a CSV file without quotes, as long as all are as wide as its header."""

    def __init__(self, delimiter: str, header: bytes) -> None:
        mark = delimiter.encode()
        # One column has no delimiters to count.
        self._is_same = len(mark) == 1 and mark not in b"\r\n" and mark in header
        self._row = mark * header.count(mark) + b"\n"
        self._others = bytes(byte for byte in range(256) if byte not in self._row)
        self._rows = 0
        self._rest = b""
        self._is_ended = False

    def take(self, chunk: bytes) -> None:
        """Scan a chunk: its delimiters and line ends must repeat the same sequence."""
        # Spark also ends lines at a carriage return.
        self._is_same = self._is_same and _RETURN not in chunk
        if not self._is_same:
            return
        kept = self._rest + chunk.translate(None, self._others)
        rows = len(kept) // len(self._row)
        whole = rows * len(self._row)
        self._is_same = kept[:whole] == self._row * rows
        self._is_ended = chunk.endswith(b"\n")
        self._rows += rows
        self._rest = kept[whole:]

    def count(self) -> int | None:
        """The number of rows after the header; None if some row has another width."""
        # The last row may lack its line end, but not its delimiters.
        if not self._is_same or self._rest != (b"" if self._is_ended else self._row[:-1]):
            return None
        return self._rows - 1 if self._is_ended else self._rows


def _is_clean(chunk: bytes) -> bool:
    """Whether, apart from line ends, there is no character that literals must escape."""
    if not chunk.isascii() or any(one in chunk for one in (b'"', b"\\", b"\x7f")):
        return False
    data = np.frombuffer(chunk, np.uint8)
    ends = np.count_nonzero(data == _NEWLINE) + (chunk.count(b"\r") if _RETURN in chunk else 0)
    return bool(np.count_nonzero(data < 0x20) == ends)


def first_line(path: Path) -> str:
    """The first line of a file that is UTF-8, without its end."""
    return _first_line(path).decode()


def _first_line(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(2**20)
    for at, byte in enumerate(head):
        if byte in (_NEWLINE, _RETURN):
            return head[:at]
    return b""


def _utf8_chunks(path: Path) -> Iterator[bytes | None]:
    """The bytes of a file in chunks; None as the last item if they are not UTF-8."""
    decoder: Any = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if not chunk.isascii() or decoder.getstate()[0]:
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    yield None
                    return
            yield chunk
    if decoder.getstate()[0]:
        yield None
