"""What the nodes of a plan remember, when they forget it, and which windows are never forgotten.

Only windows bound what is remembered: whatever stands above them holds no more than follows from what
is in them. A window that keeps all of a stream bounds nothing. Which queries over such a window have to
remember all of it by their meaning, `algebra.analyze.refuse_unbounded` says; which do so as they are
planned is known here. Both are refused, unless the user allows that window by name (W5).
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
    StaticRelation,
    Union,
    Window,
)
from quadweir.plan.program import Program
from quadweir.terms import IRI


@final
@dataclass(frozen=True, slots=True)
class Kept:
    """What nodes of one kind remember."""

    name: str
    count: int
    state: str
    forgets: str


_KINDS = (Join, LeftJoin, AntiJoin, Group, Distinct, Closure)


def find_kept(program: Program) -> tuple[Kept, ...]:
    """List what the nodes above the windows of a query remember."""
    counts = Counter(type(node) for node in program.nodes)
    return tuple(
        Kept(kind.name, counts[kind], kind.remembers, kind.forgets)
        for kind in _KINDS
        if counts[kind]
    )


def find_retained(program: Program) -> frozenset[Window]:
    """Find the windows that have to hold what they have handed on.

    A match stays in its window until it leaves. But where nothing above asks for it again, because each
    answer rests on it alone or only totals are kept, it need not stay in memory. Only eager and endless
    windows are let go of: of all others it is known when they forget.
    """
    if program.why_not is not None or program.sent is not None:
        return frozenset(program.windows)
    users: dict[PlanNode, list[PlanNode]] = {}
    for node in program.nodes:
        for each in node.inputs:
            users.setdefault(each, []).append(node)

    def is_asked_again(node: PlanNode) -> bool:
        """Tell whether rows are looked at in a later step than the one in which they came."""
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
    """List the windows, by their places in the query, of which every element ever seen is remembered.

    Of two stages the second remembers all that it was sent.
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
    """Refuse a query that would remember everything it has ever seen as it is planned (W5).

    Args:
        query: The query.
        windows: The places of windows of which all is remembered.
        why_not: Why the query is evaluated from scratch at its reports, if it is.
        allowed: Names of windows, or IRIs of streams, whose state may grow without bound.

    Raises:
        UnboundedStateError: with the place of the first window that is to blame.
    """
    for place in sorted(windows):
        window = query.windows[place]
        if window.name not in allowed and window.stream not in allowed:
            anew = (
                f" It is evaluated from scratch at each report: {why_not}."
                if why_not is not None
                else ""
            )
            raise kept_whole(window, anew)
