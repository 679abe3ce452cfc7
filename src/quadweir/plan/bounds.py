"""The state of a plan's nodes: what they remember, when they forget it, and which windows grow
without bound.

Only windows limit the state: the nodes above them hold no more than the content of the windows
implies. A window that keeps a whole stream sets no limit. `algebra.analyze.refuse_unbounded` finds
queries whose meaning requires all of such a window; this module finds queries whose plan remembers
all of it. Both are refused, unless the user allows that window by name (W5).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

from quadweir.algebra.analyze import kept_whole
from quadweir.algebra.query import ContinuousQuery
from quadweir.plan.nodes import (
    AntiJoin,
    Closure,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    PlanNode,
    Project,
    Route,
    StaticRelation,
    Union,
    Window,
)
from quadweir.plan.program import Program
from quadweir.terms import IRI


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """The state of all nodes of one kind."""

    name: str
    count: int
    state: str
    forgets: str


_KINDS = (Join, Route, LeftJoin, AntiJoin, Group, Distinct, Closure)


def find_kept(program: Program) -> tuple[Kept, ...]:
    """The state of the nodes above the windows of a query."""
    counts = Counter(type(node) for node in program.nodes)
    return tuple(
        Kept(kind.name, counts[kind], kind.remembers, kind.forgets)
        for kind in _KINDS
        if counts[kind]
    )


def find_retained(program: Program) -> frozenset[Window]:
    """The windows that must keep the matches they have passed on.

    A match stays in its window until it leaves. But if no node above reads it again, because each
    answer rests on it alone or only totals are kept, it need not stay in memory. Only eager and
    endless windows drop their matches: all others forget at a known time.
    """
    if program.why_not is not None or program.sent is not None:
        return frozenset(program.windows)
    users: dict[PlanNode, list[PlanNode]] = {}
    for node in program.nodes:
        for each in node.inputs:
            users.setdefault(each, []).append(node)

    def is_asked_again(node: PlanNode) -> bool:
        """Whether rows are read again in a later step."""
        if node == program.root and not program.eager:
            return True
        return any(
            _looks_back(user, eager=program.eager)
            or (not (isinstance(user, Group) and user.is_total) and is_asked_again(user))
            for user in users.get(node, ())
        )

    return frozenset(
        window
        for window in program.windows
        if not (program.eager or window.is_endless) or is_asked_again(window)
    )


def _looks_back(node: PlanNode, *, eager: bool) -> bool:
    if isinstance(node, Join):
        # With static relations alone nothing is joined later.
        heard = [each for each in node.inputs if not isinstance(each, StaticRelation)]
        return not eager or len(heard) > 1
    is_passing = isinstance(node, Filter | Extend | Project | Union)
    return not is_passing and not (isinstance(node, Group) and node.is_total)


def find_endless(program: Program, *, in_stages: bool) -> frozenset[int]:
    """The windows, by their places in the query, that remember every element ever seen.

    In a plan of two stages, the second remembers all its input.
    """
    retained = find_retained(program)
    return frozenset(
        window.match.source.window
        for window in program.windows
        if window.is_endless and (in_stages or window in retained)
    )


def refuse_endless(
    query: ContinuousQuery,
    windows: frozenset[int],
    why_not: str | None,
    *,
    allowed: frozenset[IRI] = frozenset(),
) -> None:
    """Refuse a query whose plan would remember everything it has ever seen (W5).

    Args:
        query: The query.
        windows: The places of windows that are remembered completely.
        why_not: Why the query is evaluated from scratch at its reports, if it is.
        allowed: Names of windows, or IRIs of streams, whose state may grow without bound.

    Raises:
        UnboundedStateError: with the place of the first such window.
    """
    for place in sorted(windows):
        window = query.windows[place]
        if window.name not in allowed and window.stream not in allowed:
            why = (
                f" It is evaluated from scratch at each report: {why_not}."
                if why_not is not None
                else ""
            )
            raise kept_whole(window, why)
