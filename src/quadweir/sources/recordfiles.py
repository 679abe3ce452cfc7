"""The records of files: records that are not RDF, or statements without times.

A CSV record is a small CSV document, header and row, so that a mapping needs nothing else. Quoted
fields may contain line feeds.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from quadweir.errors import DataError, SourceError
from quadweir.sources.lines import (
    BLOCK_BYTES,
    MAX_LINE_BYTES,
    NOT_UTF8,
    BrokenGzipError,
    Fault,
    Line,
    open_bytes,
    read_lines,
)
from quadweir.times import parse_time

MAX_DOCUMENT_BYTES: Final = 256 * 2**20


@final
@dataclass(frozen=True, slots=True)
class NumberedRecord:
    """A record, and the number of its first line."""

    number: int
    text: str


def read_records(
    path: Path, *, is_csv: bool, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[NumberedRecord | Fault]:
    """Yield the records of a file; empty lines are not records.

    Raises:
        SourceError: the file cannot be read.
    """
    lines = read_lines(path, max_line_bytes=max_line_bytes)
    if is_csv:
        yield from _csv_records(lines, max_line_bytes)
        return
    for line in lines:
        if isinstance(line, Fault):
            yield line
        elif line.text and not line.text.isspace():
            yield NumberedRecord(line.number, line.text)


def read_document(path: Path, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> NumberedRecord | Fault:
    """Return the record of a file that is one record, such as an XML document.

    Raises:
        SourceError: the file cannot be read.
    """
    data = bytearray()
    try:
        with open_bytes(path) as file:
            while len(data) <= max_bytes and (piece := file.read(BLOCK_BYTES)):
                data += piece
    except BrokenGzipError as error:
        return Fault(1, str(error))
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > max_bytes:
        return Fault(1, f"the document is longer than {max_bytes} bytes")
    try:
        return NumberedRecord(1, data.decode())
    except UnicodeDecodeError:
        return Fault(1, NOT_UTF8, data[:MAX_LINE_BYTES].decode(errors="replace"))


def _csv_records(lines: Iterator[Line | Fault], limit: int) -> Iterator[NumberedRecord | Fault]:
    header: str | None = None
    for item in _csv_rows(lines, limit):
        if isinstance(item, Fault):
            yield item
        elif header is None:
            header = item.text
        else:
            yield NumberedRecord(item.number, f"{header}\n{item.text}")


def _csv_rows(lines: Iterator[Line | Fault], limit: int) -> Iterator[NumberedRecord | Fault]:
    parts: list[str] = []
    number, size, quotes = 0, 0, 0
    for line in lines:
        if isinstance(line, Fault):
            if parts:
                yield Fault(number, "a row that breaks off", "\n".join(parts)[:200])
                parts, size, quotes = [], 0, 0
            yield line
            continue
        if not parts:
            if not line.text or line.text.isspace():
                continue
            number = line.number
        parts.append(line.text)
        size += len(line.text)
        # A quote inside a quoted field is doubled, so a row is complete when its quotes are even.
        quotes += line.text.count('"')
        if quotes % 2 == 0:
            yield NumberedRecord(number, "\n".join(parts))
        elif size > limit:
            yield Fault(number, f"a row of more than {limit} bytes", parts[0][:200])
        else:
            continue
        parts, size, quotes = [], 0, 0
    if parts:
        yield Fault(number, "a row that breaks off", "\n".join(parts)[:200])


def column_time(text: str, column: str, *, is_csv: bool) -> int:
    r"""Return the event time in a column of a record.

    >>> column_time('{"at": 1500, "v": 2}', "at", is_csv=False)
    1500
    >>> column_time("at,v\n1970-01-01T00:00:02Z,2", "at", is_csv=True)
    2000

    Raises:
        DataError: the record does not have the column, or the column has no time.
    """
    value: object
    if is_csv:
        try:
            rows = list(csv.reader(text.split("\n"), strict=True))
        except csv.Error:
            raise DataError("not CSV") from None
        fields = dict(zip(rows[0], rows[1], strict=False)) if len(rows) > 1 else {}
        value = fields.get(column)
    else:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise DataError("not JSON") from None
        value = document.get(column) if isinstance(document, dict) else None
    if value is None or isinstance(value, (bool, float, dict, list)):
        raise DataError(f'no event time in the column "{column}"')
    return parse_time(str(value))
