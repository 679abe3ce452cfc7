"""A query as a picture and as a small page, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.times import format_time

if TYPE_CHECKING:
    from quadweir.plan.query import QueryPlan

_WIDTH: Final = 250
_HEIGHT: Final = 46
_SPACE: Final = 12
_GAP: Final = 46
_MARGIN: Final = 8
_MOST_LETTERS: Final = 34
_FONT: Final = "font-family='sans-serif' font-size='12'"
_SHOWN: Final = (
    ("input_rate", "statements per second"),
    ("answer_rate", "answers per second"),
    ("statements", "statements"),
    ("answers", "answers"),
    ("dead_letters", "dead letters"),
    ("late", "late"),
    ("held", "mappings held"),
    ("batches", "batches"),
)


@final
@dataclass(frozen=True, slots=True)
class PictureBox:
    """A box of a picture: what it is, what is said below, and its colour."""

    title: str
    below: str
    fill: str


def plan_svg(plan: QueryPlan) -> str:
    """Draw the windows of a query, the stages of its shards and its answers as SVG."""
    windows = [
        PictureBox(str(plan.query.windows[each.window].name), f"over <{each.stream}>", "#fef7e0")
        for each in plan.sources
    ]
    stages = [
        PictureBox(
            f"stage {number}" if len(plan.stages) > 1 else "shards",
            f"by {stage.key}" if stage.key is not None else "one shard",
            "#e8f0fe",
        )
        for number, stage in enumerate(plan.stages, start=1)
    ]
    when = "as soon as they are known" if plan.eager else "at reports"
    how = "from scratch" if plan.why_not is not None else "incremental"
    answers = PictureBox("answers", f"{when}, {how}", "#e6f4ea")
    return columns_svg([windows, *([each] for each in stages), [answers]])


def columns_svg(columns: Sequence[Sequence[PictureBox]]) -> str:
    """Draw columns of boxes; each box leads to those of the next column."""
    columns = [each for each in columns if each]
    rows = max(len(each) for each in columns)
    height = 2 * _MARGIN + rows * (_HEIGHT + _SPACE) - _SPACE
    width = 2 * _MARGIN + len(columns) * (_WIDTH + _GAP) - _GAP
    lines, boxes = [], []
    for column, own in enumerate(columns):
        for place, box in enumerate(own):
            top = _top(place, len(own), rows)
            boxes.append(_drawn(column, top, box))
            if column + 1 < len(columns):
                after = columns[column + 1]
                lines += [
                    _line(column, top, _top(other, len(after), rows)) for other in range(len(after))
                ]
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>{''.join(lines)}{''.join(boxes)}</svg>"
    )


def handle_html(
    title: str, state: str, metrics: Mapping[str, Any], picture: str, notes: Iterable[str] = ()
) -> str:
    """Return the page of a handle: its state, rates and watermark, and its picture."""
    through = metrics.get("through")
    cells = [("state", state)]
    if through is not None:
        cells.append(("watermark", format_time(through)))
    for name, shown in _SHOWN:
        value = metrics.get(name)
        if value is not None:
            cells.append((shown, f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"))
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in cells
    )
    said = "".join(f"<p>{escape(each)}</p>" for each in notes)
    return f"<div><b>{escape(title)}</b><table>{rows}</table>{said}{picture}</div>"


def _top(place: int, count: int, rows: int) -> float:
    """Return where a box begins; the boxes of a column are spread over its height."""
    step = rows / max(1, count)
    return _MARGIN + (place * step + (step - 1) / 2) * (_HEIGHT + _SPACE)


def _left(column: int) -> int:
    return _MARGIN + column * (_WIDTH + _GAP)


def _drawn(column: int, top: float, box: PictureBox) -> str:
    left = _left(column)
    return (
        f"<rect x='{left}' y='{top:g}' width='{_WIDTH}' height='{_HEIGHT}' rx='6' "
        f"fill='{box.fill}' stroke='#5f6368'/>"
        f"<text x='{left + 10}' y='{top + 19:g}' {_FONT} fill='#202124'>"
        f"{escape(_short(box.title))}</text>"
        f"<text x='{left + 10}' y='{top + 36:g}' {_FONT} fill='#5f6368'>"
        f"{escape(_short(box.below))}</text>"
    )


def _line(column: int, top: float, below: float) -> str:
    middle = _HEIGHT / 2
    return (
        f"<line x1='{_left(column) + _WIDTH}' y1='{top + middle:g}' x2='{_left(column + 1)}' "
        f"y2='{below + middle:g}' stroke='#9aa0a6' stroke-width='1.5'/>"
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
