"""How charts look: colours for light, dark and paper, hatches, dashes and markers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from quadweir.bench.markup import Markup, element

KINDS: Final = 8
"""How many series look different; more would not be told apart in any case."""
DASHES: Final = (None, "7 4", "2 3", "10 3 2 3", "5 2", "1 4", "12 4", "4 2 1 2")

_LIGHT: Final = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#8a4fa0",
    "#a37500",
    "#222222",
    "#c2185b",
    "#0097a7",
)
_DARK: Final = (
    "#56b4e9",
    "#ff9248",
    "#3ddbb0",
    "#d3a0e8",
    "#f0c345",
    "#eeeeee",
    "#ff80ab",
    "#4dd0e1",
)


def _colours(palette: Sequence[str], ink: str, faint: str, ground: str) -> str:
    numbered = "".join(f"--qw-{number}:{colour};" for number, colour in enumerate(palette))
    return f"{numbered}--qw-ink:{ink};--qw-faint:{faint};--qw-ground:{ground}"


STYLE: Final = Markup(
    f":root{{{_colours(_LIGHT, '#1c2024', '#d5dade', '#ffffff')}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_colours(_DARK, '#e6e9ec', '#3b434b', '#15191d')}}}}}"
    f"@media print{{:root{{{_colours(_LIGHT, '#000000', '#cccccc', '#ffffff')}}}}}"
    ".qw-chart{font:12px system-ui,-apple-system,'Segoe UI',Arial,sans-serif;max-width:100%;height:auto}"
    ".qw-chart text{fill:var(--qw-ink)}.qw-chart .title{font-weight:600;font-size:14px}"
    ".qw-chart .grid{stroke:var(--qw-faint);stroke-width:1}"
    ".qw-chart .axis{stroke:var(--qw-ink);stroke-width:1}"
    ".qw-chart .line{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".qw-chart .published{fill:none;stroke-width:2;stroke-dasharray:4 2}"
    ".qw-chart .mark{stroke:var(--qw-ink);stroke-width:1.5;stroke-dasharray:2 4}"
    ".qw-chart .whisker{stroke:var(--qw-ink);stroke-width:1.5}"
    + "".join(
        f".qw-chart .s{n}{{stroke:var(--qw-{n})}}.qw-chart .f{n}{{fill:var(--qw-{n})}}"
        f".qw-chart .b{n}{{fill:var(--qw-{n});opacity:.18}}"
        f".qw-chart .h{n}{{fill:url(#qw-hatch-{n});stroke:var(--qw-{n});stroke-width:1.5}}"
        for n in range(KINDS)
    )
)
"""The style sheet of all charts: light, dark, and for paper."""


def _pattern(number: int) -> Markup:
    paths = (
        None,
        "M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4",
        "M4,2.5 a1.5,1.5 0 1 0 .01,0 z",
        "M0,2 h8 M0,6 h8",
        "M0,0 l8,8 M0,8 l8,-8",
        "M2,0 v8 M6,0 v8",
        "M-2,6 l4,4 M0,0 l8,8 M6,-2 l4,4",
        "M0,4 h8 M4,0 v8",
    )
    colour = f"var(--qw-{number})"
    path = paths[number]
    ground = element("rect", width=8, height=8, style="fill:var(--qw-ground)")
    drawn = (
        element("rect", width=8, height=8, style=f"fill:{colour}")
        if path is None
        else element("path", d=path, style=f"stroke:{colour};stroke-width:1.6;fill:{colour}")
    )
    return element(
        "pattern",
        ground,
        drawn,
        id=f"qw-hatch-{number}",
        width=8,
        height=8,
        patternUnits="userSpaceOnUse",
    )


PATTERNS: Final = element("defs", *(_pattern(number) for number in range(KINDS)))
"""The hatches; a page holds them once."""


def marker(kind: int, x: float, y: float, published: bool) -> Markup:
    """Draw the sign of a series on a line."""
    shapes: tuple[Sequence[tuple[float, float]], ...] = (
        [(4 * math.cos(n * math.pi / 6), 4 * math.sin(n * math.pi / 6)) for n in range(12)],
        ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
        ((0, -5), (4.6, 3.4), (-4.6, 3.4)),
        ((0, -5.2), (5.2, 0), (0, 5.2), (-5.2, 0)),
        ((0, 5), (4.6, -3.4), (-4.6, -3.4)),
        ((-5, -1.4), (5, -1.4), (5, 1.4), (-5, 1.4)),
        ((-1.4, -5), (1.4, -5), (1.4, 5), (-1.4, 5)),
        ((-4, -5), (4, 0), (-4, 5)),
    )
    corners = [(x + dx, y + dy) for dx, dy in shapes[kind]]
    look = f"published s{kind}" if published else f"s{kind} f{kind}"
    return element("polygon", points=places(corners), class_=look)


def places(points: Iterable[tuple[float, float]]) -> str:
    """Spell places for SVG."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
