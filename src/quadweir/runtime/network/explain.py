"""What the queries of a network share, as text and as a drawing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final, TypeAlias

from quadweir.plan.describe import describe
from quadweir.plan.shapes import answer_variables

if TYPE_CHECKING:
    from quadweir.plan.matchtests import MatchTest
    from quadweir.runtime.network.queries import NetworkQuery
    from quadweir.runtime.network.spec import TemplateSpec

_MOST_NAMED: Final = 12

SharedJoin: TypeAlias = tuple[str, int | None]
"""The name of a join, and the group of templates for which it runs once."""

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
    users, joined = _users_of_tests(specs, grouped), users_of_joins(specs, grouped)
    for number, members in grouped.items():
        lines += ["", *_template_lines(specs[number], members, users, joined)]
    return "\n".join(lines) + "\n"


def query_text(
    query: NetworkQuery, specs: Mapping[int, TemplateSpec], queries: Sequence[NetworkQuery]
) -> str:
    """Say with whom a query shares what, and how it runs."""
    spec, grouped = specs[query.template], _grouped(queries)
    own = zip(spec.template.parameters, query.constants, strict=True)
    lines = [f"query {query.id}"]
    columns = zip(answer_variables(spec.template.query), query.variables, strict=True)
    lines += [f"  column     ?{own}  ({theirs})" for theirs, own in columns]
    lines += [f"  constant   {constant}  ({parameter.name})" for parameter, constant in own]
    for place, length in zip(spec.template.windows, query.ranges, strict=True):
        lines.append(f"  window {place + 1}   {length:,} ms")
    if query.backfill is not None:
        since = query.backfill.since
        sees = "" if since is None else f", sees elements later than {since}"
        reason = f": {query.backfill.reason}" if query.backfill.reason else ""
        lines.append(f"  backfill   {query.backfill.state}{sees}{reason}")
    users, joined = _users_of_tests(specs, grouped), users_of_joins(specs, grouped)
    lines += ["", *_template_lines(spec, grouped[query.template], users, joined)]
    return (
        "\n".join(lines) + "\n\n" + describe(spec.shards.plan, shards=len(spec.shards.shards) or 1)
    )


def _template_lines(
    spec: TemplateSpec,
    members: Sequence[NetworkQuery],
    users: Mapping[Hashable, Sequence[int]],
    joined: Mapping[SharedJoin, Sequence[int]],
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
    for name, text in spec.joins.items():
        others = [each for each in joined[name, spec.group] if each != spec.number]
        if others:
            yield f"  runs once  {text}, with templates {', '.join(map(str, others[:_MOST_NAMED]))}"
    if spec.apart:
        yield f"  apart      {spec.apart}"
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


def users_of_joins(
    specs: Mapping[int, TemplateSpec], templates: Iterable[int]
) -> dict[SharedJoin, list[int]]:
    """Return which templates read each join that may be shared."""
    found: dict[SharedJoin, list[int]] = {}
    for number in templates:
        for name in specs[number].joins:
            found.setdefault((name, specs[number].group), []).append(number)
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
    """Draw streams, the joins that run once, templates and queries, and which reads which, as SVG."""
    grouped = _grouped(queries)
    known = list(streams)
    joined = {
        join: users for join, users in users_of_joins(specs, grouped).items() if len(users) > 1
    }
    rows = max(len(known), len(grouped), len(joined), 1)
    height = 2 * _MARGIN + rows * (_HEIGHT + _SPACE)
    # There is a column of joins only if templates share some.
    column = 2 if joined else 1
    width = 2 * _MARGIN + (column + 2) * _WIDTH + (column + 1) * _GAP
    at = {iri: _top(place, len(known), rows) for place, iri in enumerate(known)}
    parts = []
    tops = {join: _top(place, len(joined), rows) for place, join in enumerate(joined)}
    for join, users in joined.items():
        spec, count = specs[users[0]], len(users)
        text = spec.joins[join[0]]
        for stream in spec.streams:
            if f"<{stream}>" in text:
                parts.append(_line(0, at[stream], 1, tops[join]))
        parts.append(_box(1, tops[join], _short(text, 38), f"once for {count}", "#fce8e6"))
    for place, (number, members) in enumerate(grouped.items()):
        spec, top = specs[number], _top(place, len(grouped), rows)
        own = [each for name in spec.joins if (each := (name, spec.group)) in joined]
        parts += [_line(1, tops[join], column, top) for join in own]
        for stream in _read_apart(spec, [spec.joins[name] for name, _ in own]):
            parts.append(_line(0, at[stream], column, top))
        parts.append(_line(column, top, column + 1, top))
        shared = "constants, windows" if spec.is_open else "constants"
        what = f"shares all but {shared}" if len(members) > 1 else "one query"
        parts.append(_box(column, top, f"template {number}", what, "#e8f0fe"))
        named = _short(_named(members), 40)
        parts.append(_box(column + 1, top, named, _answers(spec), "#e6f4ea"))
    for iri in known:
        parts.append(_box(0, at[iri], _short(iri, 38), "stream", "#fef7e0"))
    # Lines first, so that boxes lie on them.
    parts.sort(key=lambda part: not part.startswith("<line"))
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}'>"
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>{''.join(parts)}</svg>\n"
    )


def _read_apart(spec: TemplateSpec, joins: Sequence[str]) -> Iterator[str]:
    """Yield the streams of which a template has windows that are in none of some joins."""
    for stream in spec.streams:
        windows = sum(each.source.stream == stream for each in spec.shards.plan.matches)
        if windows > sum(each.count(f"<{stream}>") for each in joins):
            yield stream


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
