"""What the queries of a network share, as text and as a drawing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from quadweir.plan.describe import describe

if TYPE_CHECKING:
    from quadweir.plan.matchtests import MatchTest
    from quadweir.runtime.network.queries import NetworkQuery
    from quadweir.runtime.network.spec import TemplateSpec

_MOST_NAMED: Final = 12

# The drawing: columns of boxes, and the space between them.
_WIDTH: Final = 260
_GAP: Final = 90
_HEIGHT: Final = 46
_SPACE: Final = 14
_MARGIN: Final = 20
_FONT: Final = "font-family='sans-serif' font-size='12'"


def network_text(
    specs: Mapping[int, TemplateSpec],
    queries: Sequence[NetworkQuery],
    streams: Iterable[str],
    shards: int,
) -> str:
    """Say which queries share what, one paragraph for each template."""
    grouped = _grouped(queries)
    lines = [
        "network",
        f"  queries    {len(queries):,} in {len(grouped):,} templates",
        f"  streams    {', '.join(f'<{iri}>' for iri in streams)}",
        f"  shards     {shards}",
    ]
    users = _users_of_tests(specs, grouped)
    for number, members in grouped.items():
        lines += ["", *_template_lines(specs[number], members, users)]
    return "\n".join(lines) + "\n"


def query_text(
    query: NetworkQuery, specs: Mapping[int, TemplateSpec], queries: Sequence[NetworkQuery]
) -> str:
    """Say with whom a query shares what, and how it runs."""
    spec, grouped = specs[query.template], _grouped(queries)
    own = zip(spec.template.parameters, query.constants, strict=True)
    lines = [f"query {query.id}"]
    lines += [f"  constant   {constant}  ({parameter.name})" for parameter, constant in own]
    for place, length in zip(spec.template.windows, query.ranges, strict=True):
        lines.append(f"  window {place + 1}   {length:,} ms")
    lines += ["", *_template_lines(spec, grouped[query.template], _users_of_tests(specs, grouped))]
    return (
        "\n".join(lines) + "\n\n" + describe(spec.shards.plan, shards=len(spec.shards.shards) or 1)
    )


def _template_lines(
    spec: TemplateSpec,
    members: Sequence[NetworkQuery],
    users: Mapping[Hashable, Sequence[int]],
) -> Iterator[str]:
    plan, template = spec.shards.plan, spec.template
    yield f"template {spec.number}: {_named(members)}"
    if template.parameters:
        count = len(template.parameters)
        yield f"  own        constants for {count} parameter{'s' if count > 1 else ''}"
    if template.windows:
        places = ", ".join(str(place + 1) for place in template.windows)
        yield f"  own        lengths of windows {places}"
    if spec.is_open:
        yield "  joins      at any time"
    else:
        yield "  joins      apart from those that joined before, until they leave"
    if spec.reason:
        yield f"  because    {spec.reason}"
    key = plan.first.key
    yield f"  shards     {f'by {key}' if key is not None else f'shard {spec.home}'}"
    yield f"  answers    {'as their parts arrive' if plan.eager else 'when the watermark passes'}"
    for test in plan.matching.wanted:
        others = [each for each in users[_bare(test)] if each != spec.number]
        if others:
            shown = ", ".join(map(str, others[:_MOST_NAMED]))
            yield f"  matching   {_pattern(test)}, shared with templates {shown}"


def _grouped(queries: Sequence[NetworkQuery]) -> dict[int, list[NetworkQuery]]:
    found: dict[int, list[NetworkQuery]] = {}
    for each in sorted(queries, key=lambda query: query.template):
        found.setdefault(each.template, []).append(each)
    return found


def _users_of_tests(
    specs: Mapping[int, TemplateSpec], grouped: Mapping[int, object]
) -> dict[Hashable, list[int]]:
    """Return which templates ask for each test of statements."""
    found: dict[Hashable, list[int]] = {}
    for number in grouped:
        for test in specs[number].shards.plan.matching.wanted:
            found.setdefault(_bare(test), []).append(number)
    return found


def _bare(test: MatchTest) -> Hashable:
    return (test.stream, test.constants, test.equal, test.view, test.way)


def _pattern(test: MatchTest) -> str:
    terms = ["?" if each is None else str(each) for each in test.constants[:3]]
    return f"{' '.join(terms)} in <{test.stream}>"


def _named(members: Sequence[NetworkQuery]) -> str:
    names = ", ".join(each.id for each in members[:_MOST_NAMED])
    more = len(members) - _MOST_NAMED
    count = f"{len(members):,} queries" if len(members) > 1 else "1 query"
    return f"{count}: {names}{f' and {more:,} more' if more > 0 else ''}"


# --- drawing --------------------------------------------------------------------------------------


def network_svg(
    specs: Mapping[int, TemplateSpec], queries: Sequence[NetworkQuery], streams: Iterable[str]
) -> str:
    """Draw streams, templates and queries, and which reads which, as SVG."""
    grouped = _grouped(queries)
    known = list(streams)
    rows = max(len(known), len(grouped), 1)
    height = 2 * _MARGIN + rows * (_HEIGHT + _SPACE)
    width = 2 * _MARGIN + 3 * _WIDTH + 2 * _GAP
    at = {iri: _top(place, len(known), rows) for place, iri in enumerate(known)}
    parts = []
    for place, (number, members) in enumerate(grouped.items()):
        spec, top = specs[number], _top(place, len(grouped), rows)
        for stream in spec.streams:
            parts.append(_line(0, at[stream], 1, top))
        parts.append(_line(1, top, 2, top))
        shared = "constants, windows" if spec.is_open else "constants"
        what = f"shares all but {shared}" if len(members) > 1 else "one query"
        parts.append(_box(1, top, f"template {number}", what, "#e8f0fe"))
        parts.append(_box(2, top, _short(_named(members), 40), _answers(spec), "#e6f4ea"))
    for iri in known:
        parts.append(_box(0, at[iri], _short(iri, 38), "stream", "#fef7e0"))
    # Lines first, so that boxes lie on them.
    parts.sort(key=lambda part: not part.startswith("<line"))
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>"
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>{''.join(parts)}</svg>\n"
    )


def _answers(spec: TemplateSpec) -> str:
    return "eager answers" if spec.shards.plan.eager else "answers at reports"


def _top(place: int, count: int, rows: int) -> float:
    """Return where a box begins; the boxes of a column are spread over its height."""
    step = rows / max(1, count)
    return _MARGIN + (place * step + (step - 1) / 2) * (_HEIGHT + _SPACE)


def _left(column: int) -> int:
    return _MARGIN + column * (_WIDTH + _GAP)


def _box(column: int, top: float, title: str, below: str, fill: str) -> str:
    left = _left(column)
    return (
        f"<g><rect x='{left}' y='{top:g}' width='{_WIDTH}' height='{_HEIGHT}' rx='6' "
        f"fill='{fill}' stroke='#5f6368'/>"
        f"<text x='{left + 10}' y='{top + 19:g}' {_FONT} fill='#202124'>{escape(title)}</text>"
        f"<text x='{left + 10}' y='{top + 36:g}' {_FONT} fill='#5f6368'>{escape(below)}</text></g>"
    )


def _line(column: int, top: float, other: int, below: float) -> str:
    middle = _HEIGHT / 2
    return (
        f"<line x1='{_left(column) + _WIDTH}' y1='{top + middle:g}' x2='{_left(other)}' "
        f"y2='{below + middle:g}' stroke='#9aa0a6' stroke-width='1.5'/>"
    )


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
