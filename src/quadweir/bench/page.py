"""A report as one HTML page that needs nothing but itself, and its figures as JSON beside it.

A `Report` is sections of tables, charts and notes; `render` writes it, `write` puts page and JSON
into a folder. Whatever is text in a report stays text in the page.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, assert_never, final

from quadweir.bench.chart_style import PATTERNS, STYLE
from quadweir.bench.charts import Chart
from quadweir.bench.markup import Markup, element, joined

_STYLE: Final = Markup(
    "html{background:var(--qw-ground);color:var(--qw-ink);color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Arial,sans-serif;max-width:60rem;"
    "margin:0 auto;padding:1.5rem 1rem 4rem}"
    "h1{font-size:1.7rem;line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid var(--qw-faint)}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0;font-size:.9rem}"
    "caption{text-align:left;font-weight:600;padding:.3rem 0}"
    "th,td{padding:.25rem .7rem;border-bottom:1px solid var(--qw-faint);text-align:left;vertical-align:top}"
    "td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}"
    ".published{font-style:italic}.reached::before{content:'\\2713\\a0'}"
    ".missed{font-weight:700}.missed::before{content:'\\2717\\a0'}"
    "figure{margin:1rem 0}figcaption{font-size:.9rem}"
    "pre{overflow-x:auto;padding:.7rem;border:1px solid var(--qw-faint);font-size:.85rem}"
    "a{color:inherit}nav ul{columns:2;padding-left:1.2rem}"
    "@media print{body{max-width:none}h2{break-after:avoid}figure,tr{break-inside:avoid}"
    "details:not([open]){display:none}nav{display:none}pre{white-space:pre-wrap}}"
)


@final
@dataclass(frozen=True, slots=True)
class Published:
    """A figure that others reported: shown as such."""

    value: str | float


@final
@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure with a target, reached or not."""

    value: str | float
    reached: bool


Cell = str | int | float | bool | None | Published | Verdict


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a heading; a column whose cells are all numbers is set to the right."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, what it shows, and its figures to unfold."""

    chart: Chart
    caption: str = ""


@final
@dataclass(frozen=True, slots=True)
class Note:
    """A paragraph."""

    text: str


Part = Table | Figure | Note


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and what stands under it."""

    title: str
    parts: Sequence[Part]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole page.

    Attributes:
        title: what was measured.
        summary: what came out, in a paragraph.
        sections: in the order to be read.
        facts: machine, versions, commit: see `measure.machine`.
        commands: how to repeat it, each as the list of its words.
    """

    title: str
    summary: str
    sections: Sequence[Section]
    facts: Mapping[str, Any]
    commands: Sequence[Sequence[str]] = field(default=())


def write(report: Report, result: Mapping[str, Any], folder: Path, stem: str) -> tuple[Path, Path]:
    """Write `stem.html` and `stem.json` into a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    page, data = folder / f"{stem}.html", folder / f"{stem}.json"
    page.write_text(render(report), encoding="utf-8")
    text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False)
    data.write_text(text + "\n", encoding="utf-8")
    return page, data


def render(report: Report) -> str:
    """Write a report as HTML."""
    numbered = list(enumerate(report.sections, 1))
    links = [
        element("li", element("a", section.title, href=f"#s{number}"))
        for number, section in numbered
    ]
    facts = [
        element(
            "tr", element("th", key.replace("_", " "), scope="row"), element("td", as_text(value))
        )
        for key, value in report.facts.items()
    ]
    body = element(
        "body",
        element("svg", PATTERNS, width=0, height=0, aria_hidden="true", style="position:absolute"),
        element(
            "main",
            element("h1", report.title),
            element("p", report.summary),
            element("nav", element("ul", *links), aria_label="Sections"),
            *(_section(number, section) for number, section in numbered),
            element(
                "section",
                element("h2", "Machine, versions and how to repeat it"),
                element("div", element("table", element("tbody", *facts)), class_="wide"),
                element("pre", "\n".join(map(shlex.join, report.commands)))
                if report.commands
                else Markup(),
            ),
        ),
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element(
            "meta",
            http_equiv="Content-Security-Policy",
            content="default-src 'none'; style-src 'unsafe-inline'; img-src data:",
        ),
        element("title", report.title),
        # Else a browser asks the server for an icon.
        element("link", rel="icon", href="data:,"),
        element("style", STYLE, _STYLE),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _section(number: int, section: Section) -> Markup:
    heading = element("h2", section.title)
    return element("section", heading, *map(_part, section.parts), id=f"s{number}")


def _part(part: Part) -> Markup:
    match part:
        case Note():
            return element("p", part.text)
        case Table():
            note = element("p", part.note) if part.note else Markup()
            return joined(element("div", _table(part), class_="wide"), note)
        case Figure():
            return _figure(part)
        case _:
            assert_never(part)


def _figure(figure: Figure) -> Markup:
    heading, rows = figure.chart.table()
    unfolded = Markup()
    if rows:
        table = _table(Table(title="", heading=heading, rows=rows))
        unfolded = element(
            "details", element("summary", "The figures"), element("div", table, class_="wide")
        )
    caption = element("figcaption", figure.caption) if figure.caption else Markup()
    return element("figure", element("div", figure.chart.svg(), class_="wide"), caption, unfolded)


def _table(table: Table) -> Markup:
    numeric = [
        all(_is_number(row[column]) for row in table.rows if row[column] is not None)
        for column in range(len(table.heading))
    ]
    sides = ["number" if each else None for each in numeric]
    caption = element("caption", table.title) if table.title else Markup()
    heading = [
        element("th", name, scope="col", class_=side)
        for name, side in zip(table.heading, sides, strict=True)
    ]
    rows = [
        element("tr", *(_cell(cell, side) for cell, side in zip(row, sides, strict=True)))
        for row in table.rows
    ]
    return element(
        "table", caption, element("thead", element("tr", *heading)), element("tbody", *rows)
    )


def _cell(cell: Cell, side: str | None) -> Markup:
    match cell:
        case Published(value=value):
            shown = element("span", f"{as_text(value)} (published)", class_="published")
        case Verdict(value=value, reached=reached):
            words = f"{as_text(value)}, {'reached' if reached else 'missed'}"
            shown = element("span", words, class_="reached" if reached else "missed")
        case _:
            return element("td", as_text(cell), class_=side)
    return element("td", shown, class_=side)


def _is_number(cell: Cell) -> bool:
    if isinstance(cell, Published | Verdict):
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
