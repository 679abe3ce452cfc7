"""Charts as SVG: lines with bands of spread, groups of bars, boxes; readable without colours.

A chart is a value; `svg()` draws it and `table()` gives its figures in words. Series differ by
dashes, markers and hatches as well as by colour; colours come from `STYLE`, which a page holds
once, together with the patterns of `PATTERNS`. `standalone` makes a file of one chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

from quadweir.bench.axes import Scale, fit
from quadweir.bench.chart_frame import Frame, Key, Mark
from quadweir.bench.chart_style import DASHES, KINDS, PATTERNS, STYLE, marker, places
from quadweir.bench.markup import Markup, element, joined

_MOST_POINTS: Final = 600
_MARKERS: Final = 9


class Chart(Protocol):
    """What a page can show."""

    @property
    def title(self) -> str: ...

    def svg(self) -> Markup:
        """Draw it."""
        ...

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """Its figures: the heading and the rows; no rows if there are too many to read."""
        ...


# -- lines ---------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points in the order of x; with `low` and `high`, one each per point, a band of spread."""

    name: str
    points: Sequence[tuple[float, float]]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    published: bool = False

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or len(self.low) not in {0, len(self.points)}:
            raise ValueError(f"{self.name}: {len(self.points)} points, {len(self.low)} of spread")


def ecdf(name: str, values: Iterable[float], *, published: bool = False) -> Series:
    """Make a series of how large a share of the values is at most x.

    >>> ecdf("latency", [3, 1, 2, 4]).points
    [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
    """
    ordered = sorted(float(each) for each in values if math.isfinite(each))
    count = len(ordered)
    places = range(count) if count <= 200 else [round(n * (count - 1) / 199) for n in range(200)]
    points = [(ordered[place], (place + 1) / count) for place in places]
    return Series(name=name, points=points, published=published)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Lines over x. A logarithmic axis leaves out what is not above zero."""

    title: str
    x: str
    y: str
    series: Sequence[Series]
    description: str = ""
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = True
    marks: Sequence[Mark] = ()

    def svg(self) -> Markup:
        """Draw it."""
        kept = [_visible(each, self) for each in self.series]
        spread = [value for each in self.series for value in (*each.low, *each.high)]
        ys = [y for points in kept for _, y in points] + spread + [m.value for m in self.marks]
        frame = Frame(
            self.title,
            self.description,
            self.x,
            self.y,
            ys,
            log_y=self.log_y,
            from_zero=self.from_zero,
            legend=_legend(self.series, self.marks, _line_key),
        )
        xs = [x for points in kept for x, _ in points]
        across = fit(xs, frame.left, frame.right, is_log=self.log_x, zero=False)
        if not self.log_x and xs and min(xs) < max(xs):
            across = Scale(min(xs), max(xs), frame.left, frame.right)
        parts = [frame.across(across), frame.marks(self.marks)]
        parts += [
            self._band(number, across, frame.up)
            for number, each in enumerate(self.series)
            if each.low
        ]
        parts += [
            _line(number, [(across.at(x), frame.up.at(y)) for x, y in points], each.published)
            for number, (points, each) in enumerate(zip(kept, self.series, strict=True))
            if points
        ]
        return frame.draw(parts)

    def _band(self, number: int, across: Scale, up: Scale) -> Markup:
        one = self.series[number]
        chosen = [
            (across.at(x), up.at(low), up.at(high))
            for (x, _), low, high in zip(one.points, one.low, one.high, strict=True)
            if (x > 0 or not self.log_x) and (low > 0 or not self.log_y)
        ]
        edge = [(x, high) for x, _, high in chosen] + [(x, low) for x, low, _ in reversed(chosen)]
        return element("polygon", points=places(edge), class_=f"b{number % KINDS}")

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """One row for each x; none if there are many."""
        columns = [dict(each.points) for each in self.series]
        xs = sorted({x for column in columns for x in column})
        heading = [self.x, *(_named(each) for each in self.series)]
        if len(xs) > 40:
            return heading, ()
        return heading, [[x, *(column.get(x) for column in columns)] for x in xs]


def _visible(series: Series, chart: LineChart) -> list[tuple[float, float]]:
    points = [
        (float(x), float(y))
        for x, y in series.points
        if math.isfinite(x)
        and math.isfinite(y)
        and (x > 0 or not chart.log_x)
        and (y > 0 or not chart.log_y)
    ]
    if len(points) <= _MOST_POINTS:
        return points
    # Of each stretch the lowest and the highest point stay, so that no spike is lost.
    size = math.ceil(2 * len(points) / _MOST_POINTS)
    thinned: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
        thinned += sorted(ends)
    return thinned


def _line(number: int, spots: Sequence[tuple[float, float]], published: bool) -> Markup:
    kind = number % KINDS
    path = element(
        "polyline", points=places(spots), class_=f"line s{kind}", stroke_dasharray=DASHES[kind]
    )
    every = max(1, math.ceil(len(spots) / _MARKERS)) if len(spots) > 25 else 1
    # Lines that lie on one another show each its own markers.
    first = (number * every) // 4 if every > 1 else 0
    shown = [marker(kind, x, y, published) for x, y in spots[first::every]]
    return joined(path, *shown)


def _line_key(kind: int, x: float, y: float, published: bool) -> Markup:
    stroke = element(
        "line",
        x1=x,
        y1=y,
        x2=x + 28,
        y2=y,
        class_=f"line s{kind}",
        stroke_dasharray=DASHES[kind],
    )
    return joined(stroke, marker(kind, x + 14, y, published))


# -- bars ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """One bar in each group, None where there is none; with `low` and `high` a whisker of spread."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    published: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Groups of bars, one bar of each series in each; figures of others are drawn hollow."""

    title: str
    y: str
    groups: Sequence[str]
    series: Sequence[Bars]
    x: str = ""
    description: str = ""
    log_y: bool = False
    marks: Sequence[Mark] = ()

    def __post_init__(self) -> None:
        for each in self.series:
            if len(each.values) != len(self.groups):
                raise ValueError(
                    f"{each.name}: {len(each.values)} values, {len(self.groups)} groups"
                )

    def svg(self) -> Markup:
        """Draw it."""
        ys = [
            value
            for each in self.series
            for value in (*each.values, *each.low, *each.high)
            if value is not None
        ]
        frame = Frame(
            self.title,
            self.description,
            self.x,
            self.y,
            ys + [mark.value for mark in self.marks],
            log_y=self.log_y,
            from_zero=True,
            legend=_legend(self.series, self.marks, _bar_key),
            groups=self.groups,
        )
        parts = [frame.marks(self.marks)]
        width = frame.group * 0.8 / max(1, len(self.series))
        for place in range(len(self.groups)):
            left = frame.left + frame.group * (place + 0.1)
            for number, each in enumerate(self.series):
                value = each.values[place]
                if value is not None and math.isfinite(value):
                    parts.append(self._bar(frame, number, place, left + number * width, width))
        return frame.draw(parts)

    def _bar(self, frame: Frame, number: int, place: int, left: float, width: float) -> Markup:
        one, kind = self.series[number], number % KINDS
        value = one.values[place]
        assert value is not None
        base = frame.up.at(frame.up.low if self.log_y else 0.0)
        top = frame.up.at(value if value > 0 or not self.log_y else frame.up.low)
        bar = element(
            "rect",
            element("title", f"{self.groups[place]}, {_named(one)}: {value:,.6g}"),
            x=left + width * 0.06,
            y=min(top, base),
            width=width * 0.88,
            height=max(abs(base - top), 0.5),
            class_=f"published s{kind}" if one.published else f"h{kind}",
        )
        low = one.low[place] if one.low else None
        high = one.high[place] if one.high else None
        if low is None or high is None:
            return bar
        middle, ends = left + width / 2, (frame.up.at(low), frame.up.at(high))
        return joined(bar, _whisker(middle, *ends, min(6.0, width / 4)))

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """One row for each group."""
        heading = [self.x, *(_named(each) for each in self.series)]
        rows = [
            [name, *(each.values[place] for each in self.series)]
            for place, name in enumerate(self.groups)
        ]
        return heading, rows


def _bar_key(kind: int, x: float, y: float, published: bool) -> Markup:
    look = f"published s{kind}" if published else f"h{kind}"
    return element("rect", x=x + 4, y=y - 6, width=20, height=12, class_=look)


def _whisker(x: float, start: float, end: float, half: float) -> Markup:
    lines = ((x, start, x, end), (x - half, start, x + half, start), (x - half, end, x + half, end))
    return joined(
        *(element("line", x1=a, y1=b, x2=c, y2=d, class_="whisker") for a, b, c, d in lines)
    )


# -- boxes ---------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A distribution: its quartiles, and the ends of its whiskers; None where nobody told."""

    name: str
    low: float
    median: float
    high: float
    lower: float | None = None
    upper: float | None = None
    published: bool = False

    @classmethod
    def of(cls, name: str, values: Iterable[float]) -> Box:
        """Take the quartiles, the least value and the 99th percentile.

        >>> Box.of("x", range(101)).upper, Box.of("x", range(101)).high
        (75.0, 99.0)
        """
        ordered = sorted(float(each) for each in values if math.isfinite(each))
        if not ordered:
            raise ValueError(f"{name}: no values")
        at = [ordered[round(share * (len(ordered) - 1))] for share in (0, 0.25, 0.5, 0.75, 0.99)]
        return cls(name=name, low=at[0], lower=at[1], median=at[2], upper=at[3], high=at[4])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoxChart:
    """Distributions side by side."""

    title: str
    y: str
    boxes: Sequence[Box]
    description: str = ""
    log_y: bool = False
    marks: Sequence[Mark] = ()

    def svg(self) -> Markup:
        """Draw it."""
        frame = Frame(
            self.title,
            self.description,
            "",
            self.y,
            [value for box in self.boxes for value in (box.low, box.high)]
            + [mark.value for mark in self.marks],
            log_y=self.log_y,
            from_zero=True,
            legend=_legend((), self.marks, _bar_key),
            groups=[_named(box) for box in self.boxes],
        )
        parts = [frame.marks(self.marks)]
        half = min(frame.group * 0.3, 40.0)
        for place, box in enumerate(self.boxes):
            middle, kind = frame.left + frame.group * (place + 0.5), place % KINDS
            parts.append(_whisker(middle, frame.up.at(box.low), frame.up.at(box.high), half / 2))
            if box.lower is not None and box.upper is not None:
                top, bottom = frame.up.at(box.upper), frame.up.at(box.lower)
                parts.append(
                    element(
                        "rect",
                        x=middle - half,
                        y=top,
                        width=2 * half,
                        height=max(bottom - top, 1.0),
                        class_=f"published s{kind}" if box.published else f"h{kind}",
                    )
                )
            at = frame.up.at(box.median)
            ends = {"x1": middle - half, "x2": middle + half, "y1": at, "y2": at}
            parts.append(element("line", **ends, style="stroke:var(--qw-ground);stroke-width:6"))
            parts.append(element("line", **ends, class_="whisker", style="stroke-width:3"))
        return frame.draw(parts)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """One row for each box."""
        rows = [[_named(b), b.low, b.lower, b.median, b.upper, b.high] for b in self.boxes]
        return ["", "low end", "lower quartile", "median", "upper quartile", "high end"], rows


def _legend(
    series: Sequence[Series | Bars],
    marks: Sequence[Mark],
    draw: Callable[[int, float, float, bool], Markup],
) -> list[Key]:
    keys = []
    for number, each in enumerate(series):

        def one(x: float, y: float, n: int = number % KINDS, p: bool = each.published) -> Markup:
            return draw(n, x, y, p)

        keys.append(Key(_named(each), one))

    def dotted(x: float, y: float) -> Markup:
        return element("line", x1=x, x2=x + 28, y1=y, y2=y, class_="mark")

    return keys + [Key(mark.name, dotted) for mark in marks]


def _named(one: Series | Bars | Box) -> str:
    return f"{one.name} (published)" if one.published else one.name


def standalone(chart: Chart) -> str:
    """Give a chart as a file of its own, with style and patterns inside."""
    drawn = chart.svg()
    cut = drawn.index(">") + 1
    ground = "svg{background:var(--qw-ground)}"
    return f"{drawn[:cut]}{element('style', STYLE, Markup(ground))}{PATTERNS}{drawn[cut:]}\n"
