"""Rows of comma-separated values, in any CSVW dialect.

Spec: https://www.w3.org/TR/tabular-data-model/#parsing
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, TextIO

from quadweir.errors import LimitError
from quadweir.mapping.files import is_broken
from quadweir.mapping.formats.batches import MAX_RECORD_CHARACTERS, RecordRow, bad_row
from quadweir.mapping.sources import CsvDialect

MAX_LINE_CHARACTERS: Final = 16 * 2**20
MAX_COLUMNS: Final = 10_000
"""How many columns a file may have; Spark takes minutes to plan for more."""
_NO_ROW: Final[tuple[int, list[str], str | None, list[str]]] = (0, [], None, [])


def header_of(text: TextIO, dialect: CsvDialect) -> list[str]:
    """The column names: those of the first row, or 1, 2, 3 if the dialect has no header."""
    if not dialect.header:
        first = next(_rows(text, dialect), _NO_ROW)[1]
        return [str(number) for number in range(1, _checked(len(first)) + 1)]
    names = next(_rows(text, dialect), _NO_ROW)[1]
    _checked(len(names))
    return [name.strip() for name in names]


def _checked(width: int) -> int:
    if width > MAX_COLUMNS:
        raise LimitError(
            f"the CSV file has {width:,} columns, and the limit is {MAX_COLUMNS:,}",
            hint="Check the delimiter, or cut the file into several.",
        )
    return width


def read_rows(
    text: TextIO, dialect: CsvDialect, wanted: Sequence[str], *, empty_is_missing: bool = False
) -> Iterator[RecordRow]:
    """The wanted columns of each row after the header.

    Args:
        text: the file.
        dialect: the CSV dialect.
        wanted: the names of the columns.
        empty_is_missing: an empty cell without quotes is no value.
    """
    rows = _rows(text, dialect)
    if dialect.header:
        names = [name.strip() for name in next(rows, _NO_ROW)[1]]
    else:
        first = next(rows, None)
        if first is None:
            return
        names = [str(number) for number in range(1, len(first[1]) + 1)]
        rows = itertools.chain((first,), rows)
    places = [names.index(name) if name in names else -1 for name in wanted]
    width = len(names)
    for number, cells, problem, lines in rows:
        place = f"line {number}"
        if problem is not None:
            yield bad_row(place, problem, dialect.delimiter.join(cells))
        elif len(cells) != width:
            yield bad_row(
                place,
                f"the row has {len(cells)} fields, and the header {width}",
                dialect.delimiter.join(cells),
            )
        else:
            values = tuple(cells[at] if at >= 0 else None for at in places)
            if any(value is not None and is_broken(value) for value in values):
                yield bad_row(place, "not in the file's encoding", dialect.delimiter.join(cells))
            else:
                if empty_is_missing and "" in values:
                    quoted = quoted_cells("".join(lines), dialect)[dialect.skip_columns :]
                    values = tuple(
                        None if value == "" and not quoted[at] else value
                        for value, at in zip(values, places, strict=True)
                    )
                yield RecordRow(place, values, weight=sum(map(len, cells)))


def quoted_cells(record: str, dialect: CsvDialect) -> list[bool]:
    """Whether each cell of a record is in quotes; Python's reader does not report that.

    >>> quoted_cells('a,"",,"b, ""c"" "', CsvDialect())
    [False, True, False, True]
    """
    quote, found, at = dialect.quote, [], 0
    while True:
        while dialect.skip_initial_space and record.startswith(" ", at):
            at += 1
        is_quoted = quote is not None and record.startswith(quote, at)
        found.append(is_quoted)
        if is_quoted and quote is not None:
            at += 1
            while at < len(record) and not (
                record[at] == quote
                and not (dialect.double_quote and record.startswith(quote, at + 1))
            ):
                skips = record[at] == (quote if dialect.double_quote else "\\")
                at += 2 if skips else 1
        at = record.find(dialect.delimiter, at)
        if at < 0:
            return found
        at += 1


def _rows(
    text: TextIO, dialect: CsvDialect
) -> Iterator[tuple[int, list[str], str | None, list[str]]]:
    """The line number, cells, fault and lines of each row, including the header.

    The lines are valid until the next row is read.
    """
    lines = _Lines(text)
    for _ in range(dialect.skip_rows):
        with suppress(csv.Error):
            next(lines, None)
    if dialect.comment_prefix:
        prefix = dialect.comment_prefix
        lines = _Lines(text, prefix)
    csv.field_size_limit(MAX_RECORD_CHARACTERS)
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        doublequote=dialect.double_quote,
        escapechar=None if dialect.double_quote else "\\",
        skipinitialspace=dialect.skip_initial_space,
        strict=True,
    )
    while True:
        number = reader.line_num + 1 + dialect.skip_rows
        lines.taken.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, [], f"not CSV: {error}", lines.taken
            continue
        if not cells:
            continue  # A blank line is not a row with one empty cell.
        if dialect.skip_columns:
            cells = cells[dialect.skip_columns :]
        if dialect.trim:
            cells = [cell.strip() for cell in cells]
        if dialect.skip_blank_rows and not any(cells):
            continue
        yield number, cells, None, lines.taken


class _Lines(Iterator[str]):
    """The lines of a text without comments, each limited to the memory of a record.

    A longer line is read to its end and dropped: a small packed file can hold one line of many
    gigabytes.
    """

    def __init__(self, text: TextIO, comment: str | None = None) -> None:
        self._text = text
        self._comment = comment
        self.taken: list[str] = []
        """The lines since the list was last emptied."""

    def __next__(self) -> str:
        while True:
            line = self._text.readline(MAX_LINE_CHARACTERS + 1)
            if not line:
                raise StopIteration
            if len(line) > MAX_LINE_CHARACTERS:
                while line and not line.endswith(("\n", "\r")):
                    line = self._text.readline(MAX_LINE_CHARACTERS)
                raise csv.Error(f"a line is longer than {MAX_LINE_CHARACTERS:,} characters")
            if self._comment is None or not line.startswith(self._comment):
                self.taken.append(line)
                return line
