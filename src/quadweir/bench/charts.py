"""Charts as data: lines with bands of spread, groups of bars, boxes.

`svg()` draws a chart (`plot.py`), and `table()` gives its figures in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, final

_MOST_POINTS: Final = 600
# Characters that no XML document may contain.
_FORBIDDEN: Final = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def clean(text: str) -> str:
    """Replace the characters that no XML document may contain."""
    return _FORBIDDEN.sub("\ufffd", text)


class Chart(Protocol):
    """A chart that a page can show."""

    @property
    def title(self) -> str: ...

    def svg(self) -> str:
        """Draw it, as an SVG element."""
        ...

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """The chart's figures: the heading and the rows; no rows if there are too many to read."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A value to compare with: a dotted line across the chart."""

    name: str
    value: float


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
    """The cumulative share: for each x, the share of the values that is at most x.

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

    def svg(self) -> str:
        """Draw it."""
        from quadweir.bench import plot

        kept = [_visible(each, self) for each in self.series]
        named = replace(self, series=[replace(each, name=_named(each)) for each in self.series])
        return plot.svg(plot.lines(named, kept), self.title, _described(self.description, self))

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
    # Each stretch keeps its lowest and its highest point, so that no spike is lost.
    size = math.ceil(2 * len(points) / _MOST_POINTS)
    thinned: list[tuple[float, float]] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        ends = {min(stretch, key=lambda p: p[1]), max(stretch, key=lambda p: p[1])}
        thinned += sorted(ends)
    return thinned


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

    def svg(self) -> str:
        """Draw it."""
        from quadweir.bench import plot

        named = replace(self, series=[replace(each, name=_named(each)) for each in self.series])
        return plot.svg(plot.bars(named), self.title, _described(self.description, self))

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """One row for each group."""
        heading = [self.x, *(_named(each) for each in self.series)]
        rows = [
            [name, *(each.values[place] for each in self.series)]
            for place, name in enumerate(self.groups)
        ]
        return heading, rows


# -- boxes ---------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A distribution: its quartiles and the ends of its whiskers; None where a value is unknown."""

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

    def svg(self) -> str:
        """Draw it."""
        from quadweir.bench import plot

        drawn = plot.boxes(self, [_named(box) for box in self.boxes])
        return plot.svg(drawn, self.title, self.description or self.y)

    def table(self) -> tuple[Sequence[str], Sequence[Sequence[str | float | None]]]:
        """One row for each box."""
        rows = [[_named(b), b.low, b.lower, b.median, b.upper, b.high] for b in self.boxes]
        return ["", "low end", "lower quartile", "median", "upper quartile", "high end"], rows


def _described(description: str, chart: LineChart | BarChart) -> str:
    return description or f"{chart.y} by {chart.x or 'group'}"


def _named(one: Series | Bars | Box) -> str:
    return f"{one.name} (published)" if one.published else one.name


def standalone(chart: Chart) -> str:
    """The chart as the text of an SVG file."""
    return f"{chart.svg()}\n"
