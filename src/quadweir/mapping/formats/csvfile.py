"""Rows of comma-separated values, in any CSVW dialect.

Spec: https://www.w3.org/TR/tabular-data-model/#parsing
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from typing import TextIO

from quadweir.mapping.files import is_broken
from quadweir.mapping.formats.batches import MAX_RECORD_CHARACTERS, Row, bad_row
from quadweir.mapping.sources import CsvDialect


def header_of(text: TextIO, dialect: CsvDialect) -> list[str]:
    """Read the column names: the first row's, or 1, 2, 3 if the dialect has no header."""
    if not dialect.header:
        first = next(_rows(text, dialect), (0, [], None))[1]
        return [str(number) for number in range(1, len(first) + 1)]
    names = next(_rows(text, dialect), (0, [], None))[1]
    return [name.strip() for name in names]


def read_rows(text: TextIO, dialect: CsvDialect, wanted: Sequence[str]) -> Iterator[Row]:
    """Give the wanted columns of each row after the header."""
    rows = _rows(text, dialect)
    if dialect.header:
        names = [name.strip() for name in next(rows, (0, [], None))[1]]
    else:
        first = next(rows, None)
        if first is None:
            return
        names = [str(number) for number in range(1, len(first[1]) + 1)]
        rows = itertools.chain((first,), rows)
    places = [names.index(name) if name in names else -1 for name in wanted]
    width = len(names)
    for number, cells, problem in rows:
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
                yield Row(place, values, weight=sum(map(len, cells)))


def _rows(text: TextIO, dialect: CsvDialect) -> Iterator[tuple[int, list[str], str | None]]:
    """Give the line number, cells and fault of each row, the header's included."""
    for _ in range(dialect.skip_rows):
        text.readline()
    lines: Iterator[str] = iter(text)
    if dialect.comment_prefix:
        prefix = dialect.comment_prefix
        lines = (line for line in lines if not line.startswith(prefix))
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
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, [], f"not CSV: {error}"
            continue
        if not cells:
            continue  # A blank line is no row of one empty cell.
        if dialect.skip_columns:
            cells = cells[dialect.skip_columns :]
        if dialect.trim:
            cells = [cell.strip() for cell in cells]
        if dialect.skip_blank_rows and not any(cells):
            continue
        yield number, cells, None
