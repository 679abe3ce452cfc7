"""A report as a Markdown page with its charts as SVG files, for a repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from quadweir.bench.charts import standalone
from quadweir.bench.page import (
    Cell,
    Figure,
    Note,
    PageTable,
    Part,
    Published,
    ReportPage,
    TargetResult,
    as_text,
)


def write_markdown(report: ReportPage, page: Path) -> list[Path]:
    """Write a page, and its charts into a folder of the same name; return the files written."""
    charts = page.with_suffix("")
    charts.mkdir(parents=True, exist_ok=True)
    for old in charts.glob("*.svg"):
        old.unlink()
    written = [page]
    lines = [f"# {report.title}", "", report.summary]
    for section in report.sections:
        lines += ["", f"## {section.title}"]
        for part in section.parts:
            lines.append("")
            if isinstance(part, Figure):
                file = charts / f"{_name(part.chart.title)}.svg"
                file.write_text(standalone(part.chart), encoding="utf-8")
                written.append(file)
                lines.append(f"![{part.chart.title}]({charts.name}/{file.name})")
                if part.caption:
                    lines += ["", part.caption]
            else:
                lines += _part(part)
    lines += ["", "## Machine, versions and how to repeat it", ""]
    facts = [[key.replace("_", " "), as_text(value)] for key, value in report.facts.items()]
    lines += _rows(["", ""], facts)
    if report.commands:
        lines += ["", "```console", *(f"$ {shlex.join(each)}" for each in report.commands), "```"]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return written


def _part(part: Part) -> list[str]:
    match part:
        case Note():
            return [part.text]
        case PageTable():
            rows = [[_cell(cell) for cell in row] for row in part.rows]
            note = ["", part.note] if part.note else []
            return [f"{part.title}:", "", *_rows(part.heading, rows), *note]
        case Figure():
            return [part.caption]
        case _:
            assert_never(part)


def _rows(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [_row(heading), f"|{'---|' * len(heading)}"]
    return lines + [_row(row) for row in rows]


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
