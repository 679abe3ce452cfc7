"""One quick look at a whole file, to learn what every later look at its records can leave out.

A look costs a few percent of mapping the file. Where it shows that a file is as plain as most are,
Spark reads it by its fastest reader, and no record has to be checked for what the file cannot hold.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

Shape = TypeVar("Shape")

_CHUNK: Final = 2**24
_NEWLINE: Final = 10
_RETURN: Final = 13
_BOM: Final = codecs.BOM_UTF8
MOST_BYTES: Final = 16 * 2**30
"""A larger file is not looked at: the driver alone would take longer than the workers gain."""


class CsvShape(Enum):
    """What the rows of a CSV file are."""

    ANY = auto()
    """Some row may go over several lines, or the file is not UTF-8."""
    LINES = auto()
    """Every line is a row."""
    PLAIN = auto()
    """Every line is a row, no cell is quoted, and only the first line is the header."""


class Look(NamedTuple, Generic[Shape]):
    """What a file was seen to be."""

    shape: Shape
    is_clean: bool = False
    """Whether all is ASCII, and no value can hold a character that a literal spells as an escape."""


def look_at_json(path: Path) -> Look[bool]:
    """Tell whether every line is at most one object without objects and arrays in it.

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


def look_at_csv(path: Path, quote: str | None) -> Look[CsvShape]:
    """Tell how the rows of a CSV file can be found."""
    mark = ord(quote or '"')
    if mark > 127:
        return Look(CsvShape.ANY)
    header = _first_line(path)
    is_plain = bool(header) and not header.startswith(_BOM)
    odd, seen, tail, is_clean = 0, 0, b"", True
    for chunk in _utf8_chunks(path):
        if chunk is None:
            return Look(CsvShape.ANY)
        if is_plain:
            joined = tail + chunk
            seen += joined.count(header)
            tail = joined[-len(header) + 1 :] if len(header) > 1 else b""
            is_plain = seen < 2
            is_clean = is_clean and _is_clean(chunk)
        if mark not in chunk and not odd:
            continue
        is_plain = False
        data = np.frombuffer(chunk, np.uint8)
        before = (np.cumsum(data == mark) + odd) & 1
        if (before[data == _NEWLINE] == 1).any():
            return Look(CsvShape.ANY)
        odd = int(before[-1])
    return Look(CsvShape.PLAIN, is_clean) if is_plain else Look(CsvShape.LINES)


def _is_clean(chunk: bytes) -> bool:
    """Tell whether, outside of the ends of lines, nothing stands that literals escape."""
    if not chunk.isascii() or any(one in chunk for one in (b'"', b"\\", b"\x7f")):
        return False
    controls = np.count_nonzero(np.frombuffer(chunk, np.uint8) < 0x20)
    return int(controls) == chunk.count(b"\n") + chunk.count(b"\r")


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
    """Give the bytes of a file; None, and no more, where they are not UTF-8."""
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
