"""Draws charts with matplotlib, as SVG for every viewer: no style sheet, no variables.

Series differ by dashes, markers and hatches as well as by colour. Figures of others are hollow.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

from quadweir.bench.charts import clean
from quadweir.errors import EnvironmentProblem

try:
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
except ImportError as error:
    raise EnvironmentProblem(
        "the charts of a report need the package matplotlib", hint="pip install 'quadweir[bench]'"
    ) from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from quadweir.bench.charts import BarChart, BoxChart, LineChart, Mark

KINDS: Final = 8
"""How many series look different; nobody can tell more of them apart."""
_COLOURS: Final = (
    "#0072b2", "#d55e00", "#009e73", "#8a4fa0", "#a37500", "#222222", "#c2185b", "#0097a7",
)  # fmt: skip
_DASHES: Final[tuple[Any, ...]] = (
    "-", (0, (7, 4)), (0, (2, 3)), (0, (10, 3, 2, 3)), (0, (5, 2)), (0, (1, 4)), (0, (12, 4)),
    (0, (4, 2, 1, 2)),
)  # fmt: skip
_MARKERS: Final = "os^Dv_|>"
_HATCHES: Final = ("", "//", "..", "--", "xx", "||", "\\\\", "++")
_INK: Final = "#1c2024"
_SETTINGS: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "hatch.linewidth": 1.0,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#d5dade",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
}
_WIDTH: Final = 7.9
_HEIGHT: Final = 3.2
_CHARACTER: Final = 0.082
"""Upper bound of a character's mean width, in inches."""
_LINE: Final = 0.17
_MOST_MARKERS: Final = 9
_UNITS: Final = ((1e9, 1e9, " G"), (1e6, 1e6, " M"), (1e4, 1e3, " k"))


def svg(figure: Figure, title: str, description: str) -> str:
    """Write a figure as an SVG element."""
    written = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # The salt keeps the identifiers stable between runs and distinct between charts.
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": title}):
        figure.savefig(written, format="svg", metadata=nothing)
    text = written.getvalue()
    text = re.sub(r' id="[A-Za-z][A-Za-z0-9.]{2,}_\d{1,4}"', "", text[text.index("<svg") :])
    at = text.index(">") + 1
    words = f"<title>{escape(clean(title))}</title><desc>{escape(clean(description))}</desc>"
    head = text[: at - 1].replace("<svg", '<svg class="qw-chart" role="img"', 1)
    return f"{head}>{words}{text[at:]}"


def lines(chart: LineChart, kept: Sequence[Sequence[tuple[float, float]]]) -> Figure:
    """Draw lines with bands of spread; `kept` has the points of each series to draw."""
    with mpl.rc_context(_SETTINGS):
        names = [each.name for each in chart.series]
        figure, axes = _frame(chart.title, chart.x, chart.y, names, chart.marks)
        if chart.log_x:
            axes.set_xscale("log")
        for number, (one, points) in enumerate(zip(chart.series, kept, strict=True)):
            kind = number % KINDS
            if one.low:
                band = [
                    (x, low, high)
                    for (x, _), low, high in zip(one.points, one.low, one.high, strict=True)
                    if (x > 0 or not chart.log_x) and (low > 0 or not chart.log_y)
                ]
                xs, lows, highs = ([each[n] for each in band] for n in range(3))
                axes.fill_between(xs, lows, highs, color=_COLOURS[kind], alpha=0.18, linewidth=0)
            every = max(1, math.ceil(len(points) / _MOST_MARKERS)) if len(points) > 25 else 1
            # Where lines overlap, each shows its own markers.
            first = (number * every) // 4 if every > 1 else 0
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=_COLOURS[kind],
                linestyle=_DASHES[kind],
                linewidth=1.6,
                marker=_MARKERS[kind],
                markersize=5,
                markevery=(first, every),
                markerfacecolor="white" if one.published else _COLOURS[kind],
                label=_name(one.name),
            )
        _finish(figure, axes, chart.marks, log_y=chart.log_y, from_zero=chart.from_zero)
        if chart.log_x:
            _log_ticks(axes.xaxis, *axes.get_xlim())
        _spell(axes.xaxis)
    return figure


def bars(chart: BarChart) -> Figure:
    """Draw groups of bars, with whiskers of spread."""
    with mpl.rc_context(_SETTINGS):
        names = [each.name for each in chart.series]
        figure, axes = _frame(chart.title, chart.x, chart.y, names, chart.marks, chart.groups)
        if chart.log_y:
            axes.set_yscale("log")
        width = 0.8 / max(1, len(chart.series))
        for number, one in enumerate(chart.series):
            shown = [
                (place - 0.4 + (number + 0.5) * width, value, place)
                for place, value in enumerate(one.values)
                if value is not None and math.isfinite(value) and (value > 0 or not chart.log_y)
            ]
            axes.bar(
                [x for x, _, _ in shown],
                [value for _, value, _ in shown],
                width * 0.88,
                label=_name(one.name),
                **_look(number, one.published),
            )
            for x, _, place in shown:
                low = one.low[place] if one.low else None
                high = one.high[place] if one.high else None
                if low is not None and high is not None:
                    _whisker(axes, x, low, high)
        _finish(figure, axes, chart.marks, log_y=chart.log_y, from_zero=True)
    return figure


def boxes(chart: BoxChart, names: Sequence[str]) -> Figure:
    """Draw distributions side by side."""
    with mpl.rc_context(_SETTINGS):
        figure, axes = _frame(chart.title, "", chart.y, (), chart.marks, names)
        if chart.log_y:
            axes.set_yscale("log")
        for place, box in enumerate(chart.boxes):
            _whisker(axes, place, box.low, box.high)
            if box.lower is not None and box.upper is not None:
                height = box.upper - box.lower
                axes.bar(place, height, 0.5, box.lower, zorder=3, **_look(place, box.published))
            axes.hlines(box.median, place - 0.25, place + 0.25, "white", linewidth=5, zorder=4)
            axes.hlines(box.median, place - 0.25, place + 0.25, _INK, linewidth=2.5, zorder=5)
        _finish(figure, axes, chart.marks, log_y=chart.log_y, from_zero=True)
    return figure


def _look(number: int, published: bool) -> dict[str, Any]:
    colour, hatch = _COLOURS[number % KINDS], _HATCHES[number % KINDS]
    if published:
        return {
            "facecolor": "none",
            "edgecolor": colour,
            "linewidth": 1.6,
            "linestyle": (0, (4, 2)),
        }
    face = "white" if hatch else colour
    return {"facecolor": face, "edgecolor": colour, "hatch": hatch, "linewidth": 1.2}


def _whisker(axes: Axes, x: float, low: float, high: float) -> None:
    axes.plot([x, x], [low, high], color=_INK, linewidth=1.2, marker="_", markersize=6)


def _frame(
    title: str,
    x: str,
    y: str,
    names: Sequence[str],
    marks: Sequence[Mark],
    groups: Sequence[str] | None = None,
) -> tuple[Figure, Axes]:
    words = [word for name in groups or () for word in clean(name).split()]
    longest = max((len(word) for word in words), default=0)
    count = max(1, len(groups or ()))
    width = max(_WIDTH, 0.9 + count * (longest + 1.5) * _CHARACTER)
    room = max(1, int((width - 0.9) / count / _CHARACTER - 1))
    labels = [textwrap.fill(clean(name), room) for name in groups or ()]
    heading = textwrap.fill(clean(title), 84)
    keys = [*names, *(mark.name for mark in marks)]
    columns = _columns(keys, width)
    more = heading.count("\n") + max((each.count("\n") for each in labels), default=0)
    more += math.ceil(len(keys) / columns)
    figure = Figure(figsize=(width, _HEIGHT + 0.4 + _LINE * more), layout="constrained")
    axes = figure.subplots()
    axes.set_title(heading, loc="left", fontweight="bold", fontsize=10, pad=10)
    axes.set_xlabel(clean(x), loc="right")
    axes.set_ylabel(textwrap.fill(clean(y), 44))
    if groups is not None:
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlim(-0.5, max(count, 1) - 0.5)
        axes.grid(visible=False, axis="x")
        axes.tick_params(axis="x", length=0)
    return figure, axes


def _columns(keys: Sequence[str], width: float) -> int:
    longest = max((len(each) for each in keys), default=0)
    return max(1, min(len(keys), int(width / ((longest + 8) * _CHARACTER))))


def _finish(
    figure: Figure, axes: Axes, marks: Sequence[Mark], *, log_y: bool, from_zero: bool
) -> None:
    for mark in marks:
        axes.axhline(
            mark.value, color=_INK, linewidth=1.2, linestyle=(0, (2, 4)), label=_name(mark.name)
        )
    if log_y:
        axes.set_yscale("log")
        _log_ticks(axes.yaxis, *axes.get_ylim())
    elif from_zero:
        low, high = axes.get_ylim()
        axes.set_ylim(
            min(low, 0.0) if low < 0 and _lowest(axes) < 0 else 0.0, max(high, 0.0) or 1.0
        )
    _spell(axes.yaxis)
    handles, names = axes.get_legend_handles_labels()
    if handles:
        columns = _columns(names, figure.get_figwidth())
        figure.legend(handles, names, loc="outside lower left", ncols=columns)


def _log_ticks(axis: Any, low: float, high: float) -> None:
    # Over a few decades, powers of ten alone would be too few.
    if high / low < 1000:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _lowest(axes: Axes) -> float:
    return float(axes.dataLim.y0)


def _name(name: str) -> str:
    # Matplotlib leaves names that begin with an underscore out of the legend.
    return clean(name).lstrip("_") or " "


def _spell(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())


def short(value: float) -> str:
    """Spell a value of an axis.

    >>> [short(each) for each in (0, 0.25, 1_000, 20_000, 3e6)]
    ['0', '0.25', '1,000', '20 k', '3 M']
    """
    for least, by, unit in _UNITS:
        if abs(value) >= least:
            return f"{value / by:.6g}{unit}"
    return f"{value:,.6g}"
