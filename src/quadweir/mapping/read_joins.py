"""The window of a stream join: `rmls:joinConfig`, `rmls:windowType`, and our own parameters."""

from __future__ import annotations

import re
from typing import Final

from quadweir.errors import MappingError
from quadweir.mapping.graph import GraphTerm, MappingGraph, Statement
from quadweir.mapping.model import JoinWindowKind, JoinWindowMap
from quadweir.mapping.read_terms import TermReader
from quadweir.mapping.vocabulary import (
    DURATION_PARAMETERS,
    JOIN_PARAMETERS,
    NUMBER_PARAMETERS,
    short_name,
    suggest,
)
from quadweir.spans import Span

# The published text and its code spell the same windows differently.
_KINDS: Final = {
    "rmls:Tumbling": JoinWindowKind.TUMBLING,
    "rmls:TumblingWindow": JoinWindowKind.TUMBLING,
    "rmls:TumblingJoin": JoinWindowKind.TUMBLING,
    "rmls:TumblingWindowJoin": JoinWindowKind.TUMBLING,
    "rmls:Sliding": JoinWindowKind.SLIDING,
    "rmls:SlidingWindow": JoinWindowKind.SLIDING,
    "rmls:SlidingJoin": JoinWindowKind.SLIDING,
    "rmls:SlidingWindowJoin": JoinWindowKind.SLIDING,
    "rmls:Dynamic": JoinWindowKind.DYNAMIC,
    "rmls:DynamicWindow": JoinWindowKind.DYNAMIC,
    "rmls:DynamicJoin": JoinWindowKind.DYNAMIC,
    "rmls:DynamicWindowJoin": JoinWindowKind.DYNAMIC,
    "rmls:CrossJoin": JoinWindowKind.CROSS,
    "qw:Tumbling": JoinWindowKind.TUMBLING,
    "qw:Sliding": JoinWindowKind.SLIDING,
    "qw:Dynamic": JoinWindowKind.DYNAMIC,
    "qw:Interval": JoinWindowKind.INTERVAL,
}
# The parameters of each kind of window, except the times of records.
_OF_ALL: Final = frozenset(("timestamp", "parentTimestamp", "delay", "idle"))
_OF_KIND: Final = {
    JoinWindowKind.TUMBLING: frozenset(("size",)),
    JoinWindowKind.CROSS: frozenset(("size",)),
    JoinWindowKind.SLIDING: frozenset(("size", "slide")),
    JoinWindowKind.INTERVAL: frozenset(("distance",)),
}
_OF_DYNAMIC: Final = JOIN_PARAMETERS - _OF_ALL - {"slide", "distance", "policy"}
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SIMPLE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|min|h|d)?")
_UNITS: Final = {
    "ms": 1.0,
    "s": 1e3,
    "m": 6e4,
    "min": 6e4,
    "h": 3.6e6,
    "d": 8.64e7,
    "days": 8.64e7,
    "hours": 3.6e6,
    "minutes": 6e4,
    "seconds": 1e3,
}
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def read_window(
    graph: MappingGraph, terms: TermReader, statement: Statement
) -> JoinWindowMap | None:
    """The window of a referencing object map, or None."""
    node = statement.value
    span = statement.value_span or statement.property_span
    configured = graph.one(node, "rmls:joinConfig")
    nodes: list[GraphTerm] = [node]
    if configured is not None:
        nodes.append(configured.value)
        where = configured.value_span or configured.property_span
        terms.visit(configured.value, "join configuration", where)
    window_type: tuple[JoinWindowKind, Span | None] | None = None
    join_type: tuple[JoinWindowKind, Span | None] | None = None
    parameters: dict[str, str] = {}
    places: dict[str, Span | None] = {}
    policy: str | None = None
    for candidate in nodes:
        for found in graph.about(candidate):
            where = found.value_span or found.property_span or span
            if found.name == "rmls:windowType":
                window_type = _kind(found, where), where
            elif found.name == "rmls:joinType":
                join_type = _kind(found, where), where
            elif found.name == "qw:policy":
                policy = found.value.value
            elif found.name.removeprefix("qw:") in JOIN_PARAMETERS and found.name[:3] == "qw:":
                name = found.name.removeprefix("qw:")
                parameters[name] = _parameter(name, found.value.value, where)
                places[name] = where
    if configured is None and window_type is None and not parameters and policy is None:
        return None
    kind = _decide(window_type, join_type, parameters, policy, span)
    known = _OF_ALL | _OF_KIND.get(kind, _OF_DYNAMIC)
    for name in parameters:
        if name not in known:
            raise MappingError(
                f"qw:{name} has no meaning for a window that is {kind}",
                hint="It can have " + ", ".join(f"qw:{each}" for each in sorted(known)) + ".",
                span=places[name],
            )
    return JoinWindowMap(
        kind=kind, parameters=tuple(sorted(parameters.items())), policy=policy, span=span
    )


def _decide(
    window_type: tuple[JoinWindowKind, Span | None] | None,
    join_type: tuple[JoinWindowKind, Span | None] | None,
    parameters: dict[str, str],
    policy: str | None,
    span: Span | None,
) -> JoinWindowKind:
    if policy is not None:
        return JoinWindowKind.CUSTOM
    if window_type is not None and join_type is not None and window_type[0] != join_type[0]:
        if join_type[0] is JoinWindowKind.CROSS:
            return window_type[0]
        raise MappingError(
            f"a join is {join_type[0]} by its join type and {window_type[0]} by its window type",
            hint="Make rmls:joinType and rmls:windowType name the same window.",
            span=join_type[1] or window_type[1],
        )
    chosen = window_type or join_type
    if chosen is not None:
        return chosen[0]
    if "distance" in parameters:
        return JoinWindowKind.INTERVAL
    raise MappingError(
        "a join is configured, but its window has no type",
        hint="Give it rmls:windowType: rmls:Tumbling, rmls:Sliding, rmls:DynamicWindow "
        "or qw:Interval.",
        span=span,
    )


def _kind(statement: Statement, span: Span | None) -> JoinWindowKind:
    name = short_name(statement.value.value)
    if name not in _KINDS:
        guess = suggest(name, _KINDS)
        raise MappingError(
            f"{name} is not a kind of window",
            hint=f"Did you mean {guess}?" if guess else f"Use one of {', '.join(_KINDS)}.",
            span=span,
        )
    return _KINDS[name]


def _parameter(name: str, text: str, span: Span | None) -> str:
    if name in DURATION_PARAMETERS:
        milliseconds = read_duration(text)
        if milliseconds is None or (milliseconds == 0 and name in ("size", "slide", "minSize")):
            raise MappingError(
                f"qw:{name} is {text!r}, not a duration above zero",
                hint='Write it as "PT2S"^^xsd:duration, "2 s" or "500 ms".',
                span=span,
            )
        return str(milliseconds)
    if name in NUMBER_PARAMETERS and not _NUMBER.fullmatch(text):
        raise MappingError(
            f"qw:{name} is {text!r}, not a number of zero or more",
            hint="Write it as a plain number.",
            span=span,
        )
    return text


def read_duration(text: str) -> int | None:
    """Read a duration in whole milliseconds; a bare number counts milliseconds.

    >>> read_duration("PT2S"), read_duration("1.5 s"), read_duration("50"), read_duration("soon")
    (2000, 1500, 50, None)
    """
    simple = _SIMPLE.fullmatch(text.strip())
    if simple:
        return round(float(simple["number"]) * _UNITS[simple["unit"] or "ms"])
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groupdict().values()):
        return None
    return round(sum(float(v) * _UNITS[k] for k, v in match.groupdict().items() if v))
