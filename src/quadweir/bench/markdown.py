"""A report as a Markdown page with its charts as SVG files, for a repository."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final, assert_never

from quadweir.bench.charts import standalone
from quadweir.bench.page import (
    Cell,
    Figure,
    Note,
    PagePart,
    PageTable,
    Published,
    ReportPage,
    TargetResult,
    as_text,
)

WIDTH: Final = 120
"""No line of a page has more columns."""


def write_markdown(report: ReportPage, page: Path) -> list[Path]:
    """Write a page, and its charts into a folder of the same name; return the files written."""
    charts = page.with_suffix("")
    charts.mkdir(parents=True, exist_ok=True)
    for old in charts.glob("*.svg"):
        old.unlink()
    written = [page]
    lines = [f"# {report.title}", "", *wrapped(report.summary)]
    for section in report.sections:
        lines += ["", f"## {section.title}"]
        for part in section.parts:
            lines.append("")
            if isinstance(part, Figure):
                file = charts / f"{_name(part.chart.title)}.svg"
                file.write_text(standalone(part.chart), encoding="utf-8")
                written.append(file)
                lines += wrapped(f"![{part.chart.title}]({charts.name}/{file.name})")
                if part.caption:
                    lines += ["", *wrapped(part.caption)]
            else:
                lines += _part(part)
    lines += ["", "## Machine, versions and how to repeat it", ""]
    for key, value in report.facts.items():
        lines += wrapped(f"- {key.replace('_', ' ')}: {as_text(value)}", indent="  ")
    if report.commands:
        lines += ["", "```console", *(f"$ {shlex.join(each)}" for each in report.commands), "```"]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return written


def _part(part: PagePart) -> list[str]:
    match part:
        case Note():
            return wrapped(part.text)
        case PageTable():
            rows = [[_cell(cell) for cell in row] for row in part.rows]
            note = ["", *wrapped(part.note)] if part.note else []
            return [*wrapped(f"{part.title}:"), "", *table(part.heading, rows), *note]
        case Figure():
            return wrapped(part.caption)
        case _:
            assert_never(part)


def wrapped(text: str, indent: str = "") -> list[str]:
    """The lines of a paragraph; lines after the first have an indent.

    >>> wrapped("a " * 70)[1:]
    ['a a a a a a a a a a']
    """
    return textwrap.wrap(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; a table that is too wide becomes several with the same first column.

    >>> table(["query", "rate"], [["Q1", "5"]])
    ['| query | rate |', '|---|---|', '| Q1 | 5 |']
    """
    lines: list[str] = []
    for columns in _groups([heading, *rows]):
        shown = [_row([row[column] for column in columns]) for row in (heading, *rows)]
        lines += [""] if lines else []
        lines += [shown[0], f"|{'---|' * len(columns)}", *shown[1:]]
    return lines


def _groups(rows: Sequence[Sequence[str]]) -> list[list[int]]:
    """The columns of each part of a table: the first column, and as many others as fit."""
    groups = [[0]]
    for column in range(1, len(rows[0])):
        tried = [*groups[-1], column]
        if len(tried) > 2 and any(len(_row([row[at] for at in tried])) > WIDTH for row in rows):
            tried = [0, column]
            groups.append(tried)
        else:
            groups[-1] = tried
    return groups


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _cell(cell: Cell) -> str:
    match cell:
        case Published(value=value):
            return f"*{as_text(value)}*"
        case TargetResult(value=value, reached=reached):
            return f"{as_text(value)} {'(reached)' if reached else '**(missed)**'}"
        case _:
            return as_text(cell)


def _name(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
