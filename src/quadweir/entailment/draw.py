"""An epsilon network as text and as SVG."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from quadweir.entailment.epsilon import EpsilonLink, EpsilonNetwork, EpsilonNode
from quadweir.errors import LimitError

_PREFIXES: Final = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs",
    "http://www.w3.org/2002/07/owl#": "owl",
    "http://xmlns.com/foaf/0.1/": "foaf",
    "http://rdfs.org/sioc/ns#": "sioc",
}
_CUT: Final = re.compile(r"<(?P<base>.*[#/:])(?P<local>[^#/:]*)>")

MOST_ALONE: Final = 3
"""More nodes than this with the same links are drawn as one."""
MOST_DRAWN: Final = 300

_COLOURS: Final = {"S": "#1f6fb2", "O": "#c1531b", "SO": "#3a7d34", "OS": "#8a3ea8"}
# Distinct without colours, too.
_DASHES: Final = {"S": "none", "O": "7 3", "SO": "none", "OS": "2 3"}
_WIDTHS: Final = {"S": 1.2, "O": 1.2, "SO": 2.2, "OS": 1.6}


class Names:
    """Short names for nodes; `given` are prefixes by their namespaces.

    >>> names = Names(["<http://example.org/#a>"])
    >>> names.short("<http://example.org/#a>"), names.lines()
    ('n1:a', ['prefix n1: <http://example.org/#>'])
    """

    def __init__(self, spellings: Iterable[str]) -> None:
        bases = {match["base"] for each in spellings if (match := _CUT.fullmatch(each))}
        self._prefixes: dict[str, str] = {}
        for base in sorted(bases):
            unknown = [each for each in self._prefixes.values() if each not in _PREFIXES.values()]
            self._prefixes[base] = _PREFIXES.get(base, f"n{len(unknown) + 1}")

    def short(self, spelling: str) -> str:
        match = _CUT.fullmatch(spelling)
        if match is None or match["base"] not in self._prefixes:
            return spelling
        return f"{self._prefixes[match['base']]}:{match['local']}"

    def lines(self) -> list[str]:
        return [f"prefix {prefix}: <{base}>" for base, prefix in self._prefixes.items()]


def epsilon_text(full: EpsilonNetwork, reduced: EpsilonNetwork) -> str:
    """The full and the reduced epsilon network as lines of text."""
    names = Names(node.name for network in (full, reduced) for node in network.nodes)
    lines = names.lines()
    for title, network in (("full epsilon network", full), ("reduced epsilon network", reduced)):
        lines += ["", f"{title}: {network.count()}"]
        lines += [f"  {line}" for line in _lines(network, names)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _lines(network: EpsilonNetwork, names: Names) -> list[str]:
    lines = []
    for nodes, links in _alike(network):
        if not links and any(node == link.target for node in nodes for link in network.links):
            continue  # listed where a link reaches it
        what = "class" if nodes[0].is_class else "property"
        shown = [names.short(node.name) for node in nodes]
        if len(nodes) > MOST_ALONE:
            lines.append(f"{len(nodes):,} of {what} like {', '.join(shown[:2])}")
        else:
            lines.append(f"{what} {shown[0]}")
        lines += [f"  -{kind}-> {names.short(target.name)}" for kind, target in links]
    return lines


_Links = tuple[tuple[str, EpsilonNode], ...]


def _alike(network: EpsilonNetwork) -> list[tuple[Sequence[EpsilonNode], _Links]]:
    """Group nodes with the same outgoing links and no incoming ones, if there are many."""
    out: defaultdict[EpsilonNode, list[tuple[str, EpsilonNode]]] = defaultdict(list)
    reached = set()
    for link in network.links:
        out[link.source].append((link.kind, link.target))
        reached.add(link.target)
    groups: dict[tuple[bool, _Links], list[EpsilonNode]] = {}
    alone: list[tuple[list[EpsilonNode], _Links]] = []
    for node in network.nodes:
        links = tuple(out[node])
        if node in reached or not links:
            alone.append(([node], links))
        else:
            groups.setdefault((node.is_class, links), []).append(node)
    for (_, links), nodes in groups.items():
        if len(nodes) > MOST_ALONE:
            alone.append((nodes, links))
        else:
            alone += [([node], links) for node in nodes]
    return sorted(alone, key=lambda each: each[0][0])


def epsilon_svg(full: EpsilonNetwork, reduced: EpsilonNetwork) -> str:
    """Draw the full and the reduced epsilon network, one below the other.

    Raises:
        LimitError: there are too many nodes for a drawing.
    """
    names = Names(node.name for network in (full, reduced) for node in network.nodes)
    parts: list[str] = []
    top = 0
    width = 0
    for title, network in (("full epsilon network", full), ("reduced epsilon network", reduced)):
        body, own_width, height = _drawing(network, names, top + 44)
        label = escape(f"{title}: {network.count()}")
        parts.append(f'<text class="title" x="16" y="{top + 24}">{label}</text>')
        parts += body
        top += height + 60
        width = max(width, own_width, 16 + 8 * len(label))
    legend = "".join(
        f'<path class="link" d="M{16 + 110 * place} {top - 4}h34" {_stroke(kind)}/>'
        f'<text x="{56 + 110 * place}" y="{top}">{kind}-link</text>'
        for place, kind in enumerate(_COLOURS)
    )
    markers = "".join(
        f'<marker id="to-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for kind, colour in _COLOURS.items()
    )
    style = (
        "text{font:12px sans-serif;fill:#1b1b1b}.title{font-weight:bold;font-size:14px}"
        "rect{fill:#fff;stroke:#444}path.link{fill:none}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top + 16}" '
        f'width="{width}" height="{top + 16}"><style>{style}</style><defs>{markers}</defs>'
        f'<rect width="100%" height="100%" style="stroke:none"/>{"".join(parts)}{legend}</svg>\n'
    )


def _drawing(network: EpsilonNetwork, names: Names, top: int) -> tuple[list[str], int, int]:
    """Arrange nodes in columns, with links from left to right; return the drawing and its size."""
    groups = _alike(network)
    if len(groups) > MOST_DRAWN:
        raise LimitError(
            f"the epsilon network has {len(groups):,} nodes, too many for a drawing",
            hint="Leave the SVG out: the text lists all of them.",
        )
    place_of = {node: place for place, (nodes, _) in enumerate(groups) for node in nodes}
    levels = _levels(len(groups), place_of, network.links)
    texts = []
    for nodes, _ in groups:
        short = names.short(nodes[0].name)
        texts.append(short if len(nodes) == 1 else f"{len(nodes):,} like {short}")
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for place in range(len(groups)):
        columns[levels[place]].append(place)
    boxes: dict[int, tuple[int, int, int]] = {}
    x = 60  # links within the first column run to the left of it
    for level in sorted(columns):
        wide = max(7 * len(texts[place]) for place in columns[level]) + 20
        for row, place in enumerate(columns[level]):
            boxes[place] = (x, top + 34 * row, wide)
        x += wide + 90
    height = 34 * max((len(each) for each in columns.values()), default=0)
    parts = []
    for link in _distinct(network.links, place_of):
        source, kind, target = link
        parts.append(_arrow(boxes[source], boxes[target], kind))
    for place, (x_of, y, wide) in boxes.items():
        corner = 10 if not groups[place][0][0].is_class else 0
        parts.append(f'<rect x="{x_of}" y="{y}" width="{wide}" height="22" rx="{corner}"/>')
        parts.append(f'<text x="{x_of + 10}" y="{y + 15}">{escape(texts[place])}</text>')
    return parts, x, height


def _distinct(
    links: Iterable[EpsilonLink], place_of: dict[EpsilonNode, int]
) -> list[tuple[int, str, int]]:
    found = ((place_of[link.source], link.kind, place_of[link.target]) for link in links)
    return list(dict.fromkeys(found))


def _levels(
    count: int, place_of: dict[EpsilonNode, int], links: Iterable[EpsilonLink]
) -> list[int]:
    """Put every node to the right of those that lead to it, except in cycles."""
    levels = [0] * count
    # Inverse properties lead to each other; their order does not matter.
    found = _distinct(links, place_of)
    turned = {(a, b) for a, kind, b in found if kind == "OS"}
    edges = [(a, b) for a, kind, b in found if a != b and not (kind == "OS" and (b, a) in turned)]
    for _ in range(min(count, 12)):
        for source, target in edges:
            levels[target] = min(max(levels[target], levels[source] + 1), 12)
    used = {level: place for place, level in enumerate(sorted(set(levels)))}
    return [used[level] for level in levels]


def _arrow(source: tuple[int, int, int], target: tuple[int, int, int], kind: str) -> str:
    x1, y1 = source[0] + source[2], source[1] + 11
    x2, y2 = target[0], target[1] + 11
    if source == target:
        path = f"M{x1} {y1}c30 -20 30 20 0 8"
    elif x2 <= source[0]:  # back to the left, or within a column: from its left side
        x1 = source[0]
        path = f"M{x1} {y1}C{x1 - 50} {y1} {x2 - 50} {y2} {x2} {y2}"
    else:
        path = f"M{x1} {y1}C{x1 + 45} {y1} {x2 - 45} {y2} {x2} {y2}"
    return f'<path class="link" d="{path}" {_stroke(kind)}/>'


def _stroke(kind: str) -> str:
    return (
        f'stroke="{_COLOURS[kind]}" stroke-width="{_WIDTHS[kind]}" '
        f'stroke-dasharray="{_DASHES[kind]}" marker-end="url(#to-{kind})"'
    )
