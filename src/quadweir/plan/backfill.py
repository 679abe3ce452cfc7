"""Backfill: what a query that joins a template can see of what the windows of its members hold.

A window holds the matches that some member asks for, for as long as the longest window of a member.
So a new query can begin with what is there if members before it have asked for the same, in windows
at least as long. Which instant it then sees elements from follows from when those joined.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, final

from quadweir.algebra.windows import is_stepped
from quadweir.plan.nodes import CLASS, Mode
from quadweir.plan.program import Program
from quadweir.plan.pushdown import find_asked

NO_DONORS: Final = "no query of its template runs"
DONORS_FAILED: Final = "queries failed whose windows it was to share; register it again"


@final
@dataclass(frozen=True, slots=True)
class Need:
    """What a pattern of a template holds: matches for the constants and lengths of its members.

    Attributes:
        window: the place of its window among the open windows; None if all members have the same.
        parameters: the places of the parameters whose constants a match must have.
    """

    window: int | None
    parameters: tuple[int, ...]


def find_needs(program: Program) -> tuple[Need, ...]:
    """Return what the patterns of a template need of its members, each once."""
    template = program.template
    assert template is not None, "only a template has members"
    asked = find_asked(program)
    found: dict[Need, None] = {}
    for place, window in enumerate(program.windows):
        source = window.match.source.window
        own = template.windows.index(source) if source in template.windows else None
        for pairs in asked.get(place, ((),)):
            parameters = {template.parameters.index(parameter) for _, parameter in pairs}
            found[Need(own, tuple(sorted(parameters)))] = None
    return tuple(found)


def why_not_backfilled(program: Program) -> str:
    """Return why no query can begin with what windows of a template hold; empty if it can.

    A query compares its first report with the one before (A2). What that one saw is known where
    every change is a report, or where nothing is compared.
    """
    report = program.report
    if CLASS not in report.columns or report.mode is not Mode.DIFFERENCES or not report.on_close:
        return ""
    windows = program.query.windows
    if program.query.tick.every_ms is None and all(is_stepped(each.scope) for each in windows):
        return ""
    return "its windows change between two reports, and what the last report saw is not held"


class Backfill(NamedTuple):
    """What a new query can see.

    Attributes:
        since: the instant after which it sees elements; None if nothing can be backfilled.
        reason: why not.
    """

    since: int | None
    reason: str = ""


Known: TypeAlias = tuple[Sequence[Hashable], Sequence[int], int]
"""The constants of a member, its window lengths, and the instant after which it sees elements."""


@final
class Donors:
    """The members of a template, for queries that want to see what they see.

    Args:
        needs: what the patterns of the template need.
        members: the members.

    >>> donors = Donors([Need(0, (0,))], [(("a",), (9,), 5), (("a",), (4,), 1)])
    >>> donors.find(("a",), (3,)), donors.find(("a",), (6,)).since
    (Backfill(since=1, reason=''), 5)
    >>> donors.find(("b",), (3,)).reason
    'no query of its template asks for the same constants'
    """

    def __init__(self, needs: Sequence[Need], members: Iterable[Known]) -> None:
        self._needs = tuple(needs)
        self._by_key: list[dict[Hashable, list[tuple[int, int]]]] = [{} for _ in self._needs]
        self._sorted: set[tuple[int, Hashable]] = set()
        self._is_empty = True
        for constants, ranges, since in members:
            self._is_empty = False
            for need, by_key in zip(self._needs, self._by_key, strict=True):
                # The longest come first.
                length = 0 if need.window is None else -ranges[need.window]
                key = tuple(constants[place] for place in need.parameters)
                by_key.setdefault(key, []).append((length, since))

    def find(self, constants: Sequence[Hashable], ranges: Sequence[int]) -> Backfill:
        """Return since when everything is held that a query with these constants and lengths sees."""
        if self._is_empty:
            return Backfill(None, NO_DONORS)
        latest = None
        for place, need in enumerate(self._needs):
            key = tuple(constants[each] for each in need.parameters)
            if key not in self._by_key[place]:
                return Backfill(None, "no query of its template asks for the same constants")
            own = self._earliest(place, key)
            length = 0 if need.window is None else -ranges[need.window]
            fitting = bisect_right(own, length, key=lambda each: each[0])
            if not fitting:
                return Backfill(
                    None, "no query of its template that asks for the same has windows as long"
                )
            since = own[fitting - 1][1]
            latest = since if latest is None else max(latest, since)
        return Backfill(latest)

    def _earliest(self, place: int, key: Hashable) -> list[tuple[int, int]]:
        """Return, for each length, since when a window that is at least as long is there."""
        found = self._by_key[place][key]
        if (place, key) not in self._sorted:
            self._sorted.add((place, key))
            found.sort()
            for at in range(1, len(found)):
                length, since = found[at]
                found[at] = (length, min(since, found[at - 1][1]))
        return found
