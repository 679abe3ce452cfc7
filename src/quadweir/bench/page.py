"""A report as one self-contained HTML page, and its figures as a JSON file.

A `ReportPage` is sections of tables, charts and notes; `render` writes it, `write` puts page and JSON
into a folder. Text of a report is escaped in the page.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from quadweir.bench.charts import Chart, clean
from quadweir.errors import EnvironmentProblem

# A long measurement must not end without its report, so the report's packages are loaded first.
try:
    import matplotlib  # noqa: F401
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise EnvironmentProblem(
        "a report needs the packages matplotlib and jinja2", hint="pip install 'quadweir[bench]'"
    ) from error


@final
@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others published; the page marks it."""

    value: str | float


@final
@dataclass(frozen=True, slots=True)
class TargetResult:
    """A figure with a target, reached or not."""

    value: str | float
    reached: bool


Cell = str | int | float | bool | None | Published | TargetResult


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """Rows under a heading; a column whose cells are all numbers is set to the right."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, its caption, and its figures in a fold-out table."""

    chart: Chart
    caption: str = ""


@final
@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph."""

    text: str


PagePart = PageTable | Figure | Note


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and its content."""

    title: str
    parts: Sequence[PagePart]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """A whole page.

    Attributes:
        title: what was measured.
        summary: the result, in a paragraph.
        sections: in the order to be read.
        facts: machine, versions, commit: see `measure.machine`.
        commands: the commands that repeat the measurement, each as a list of words.
    """

    title: str
    summary: str
    sections: Sequence[Section]
    facts: Mapping[str, Any]
    commands: Sequence[Sequence[str]] = field(default=())


def write(
    report: ReportPage, result: Mapping[str, Any], folder: Path, stem: str
) -> tuple[Path, Path]:
    """Write `stem.html` and `stem.json` into a folder; create the folder if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    page, data = folder / f"{stem}.html", folder / f"{stem}.json"
    page.write_text(render(report), encoding="utf-8")
    text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False)
    data.write_text(text + "\n", encoding="utf-8")
    return page, data


def render(report: ReportPage) -> str:
    """Write a report as HTML, with the template `report.html.j2`."""

    def cleaned(value: object) -> object:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return clean(str(value)) if is_text else value

    pages = Environment(
        loader=PackageLoader("quadweir.bench", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=cleaned,
    )
    pages.filters["text"] = as_text
    pages.globals.update(
        kind_of=lambda value: type(value).__name__.lower(),
        sides_of=_sides,
        shell=shlex.join,
        drawn=lambda chart: Markup(chart.svg()),  # noqa: S704, what is text in it is escaped
    )
    return f"{pages.get_template('report.html.j2').render(report=report)}\n"


def _sides(heading: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[bool]:
    """For each column, whether all its cells are numbers."""
    return [
        all(_is_number(row[column]) for row in rows if row[column] is not None)
        for column in range(len(heading))
    ]


def _is_number(cell: Cell) -> bool:
    if isinstance(cell, Published | TargetResult):
        cell = cell.value
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def as_text(value: object) -> str:
    """Write a figure as tables do."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float() if not math.isfinite(value):
            return "–"
        case float() if abs(value) >= 1000:
            return f"{value:,.0f}"
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)
