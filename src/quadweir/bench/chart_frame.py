"""Title, axes, grid and key around a plot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from quadweir.bench.axes import Scale, fit, labels
from quadweir.bench.markup import Markup, element, joined

_WIDTH: Final = 760
_PLOT_HEIGHT: Final = 270
_LINE: Final = 17
_CHARACTER: Final = 6.9
"""Upper bound of a character's mean width at the charts' size of 12 pixels, in pixels."""
_RIGHT: Final = 18


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A value to be compared with: a dotted line across the chart."""

    name: str
    value: float


@final
@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the key: a name, and how its sign is drawn at a place."""

    name: str
    draw: Callable[[float, float], Markup]


@final
@dataclass(slots=True)
class Frame:
    """Title, axes, grid and key around a plot; places are computed from the texts' lengths."""

    title: str
    description: str
    x: str
    y: str
    values: Sequence[float]
    log_y: bool
    from_zero: bool
    legend: Sequence[Key]
    groups: Sequence[str] = ()
    left: float = field(init=False)
    right: float = field(init=False)
    up: Scale = field(init=False)
    group: float = field(init=False)
    _heading: list[str] = field(init=False)
    _names: list[list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self._heading = textwrap.wrap(self.title, 90) or [""]
        top = 20.0 + _LINE * (len(self._heading) + 1)
        bottom = top + _PLOT_HEIGHT
        self.up = fit(self.values, bottom, top, is_log=self.log_y, zero=self.from_zero)
        longest = max(len(each) for each in labels(self.up.ticks()))
        self.left = 16.0 + longest * _CHARACTER
        count = max(1, len(self.groups))
        words = [word for name in self.groups for word in name.split()]
        least = max((len(word) for word in words), default=0) * _CHARACTER + 8
        self.group = max((_WIDTH - _RIGHT - self.left) / count, least)
        self.right = self.left + self.group * count
        room = max(1, int((self.group - 6) / _CHARACTER))
        self._names = [textwrap.wrap(name, room) or [""] for name in self.groups]

    def across(self, scale: Scale) -> Markup:
        """Draw the ticks of a horizontal axis of values."""
        ticks = scale.ticks()
        parts = []
        reached = -math.inf
        for value, label in zip(ticks, labels(ticks), strict=True):
            x, half = scale.at(value), len(label) * _CHARACTER / 2
            parts.append(
                element("line", x1=x, x2=x, y1=self.up.end, y2=self.up.start, class_="grid")
            )
            if x - half > reached + 6 and x + half <= self.right + _RIGHT:
                parts.append(
                    element("text", label, x=x, y=self.up.start + _LINE, text_anchor="middle")
                )
                reached = x + half
        return joined(*parts)

    def marks(self, marks: Sequence[Mark]) -> Markup:
        """Draw the values to be compared with."""
        return joined(
            *(
                element("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="mark")
                for y in (self.up.at(mark.value) for mark in marks)
            )
        )

    def draw(self, parts: Sequence[Markup]) -> Markup:
        """Put everything together."""
        names = max((len(each) for each in self._names), default=1)
        below = self.up.start + _LINE * names + 8
        if self.x:
            below += _LINE
        key, height = self._key(below + 12)
        width = self.right + _RIGHT
        return element(
            "svg",
            element("title", self.title),
            element("desc", self.description or f"{self.y} by {self.x or 'group'}"),
            *(
                element("text", line, x=16, y=20 + _LINE * number, class_="title")
                for number, line in enumerate(self._heading)
            ),
            element("text", self.y, x=16, y=self.up.end - 12),
            self._grid(),
            self._group_names(),
            *parts,
            *(
                element("line", x1=a, y1=b, x2=c, y2=d, class_="axis")
                for a, b, c, d in (
                    (self.left, self.up.start, self.right, self.up.start),
                    (self.left, self.up.end, self.left, self.up.start),
                )
            ),
            *(
                [element("text", self.x, x=self.right, y=below - 2, text_anchor="end")]
                if self.x
                else []
            ),
            key,
            class_="qw-chart",
            role="img",
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=round(width),
            height=round(height),
            xmlns="http://www.w3.org/2000/svg",
        )

    def _grid(self) -> Markup:
        ticks = self.up.ticks()
        parts = []
        for value, label in zip(ticks, labels(ticks), strict=True):
            y = self.up.at(value)
            parts.append(element("line", x1=self.left, x2=self.right, y1=y, y2=y, class_="grid"))
            parts.append(element("text", label, x=self.left - 6, y=y + 4, text_anchor="end"))
        return joined(*parts)

    def _group_names(self) -> Markup:
        return joined(
            *(
                element(
                    "text",
                    line,
                    x=self.left + self.group * (place + 0.5),
                    y=self.up.start + _LINE * (number + 1),
                    text_anchor="middle",
                )
                for place, lines in enumerate(self._names)
                for number, line in enumerate(lines)
            )
        )

    def _key(self, top: float) -> tuple[Markup, float]:
        parts: list[Markup] = []
        x, y = self.left, top
        for each in self.legend:
            width = 34 + len(each.name) * _CHARACTER + 18
            if x + width > self.right + _RIGHT and x > self.left:
                x, y = self.left, y + _LINE + 3
            parts.append(each.draw(x, y))
            parts.append(element("text", each.name, x=x + 34, y=y + 4))
            x += width
        return joined(*parts), y + 14 if parts else top
