"""Which templates of a network run their joins together, and why others do not.

Templates that have a join in common are a *group*, and have one unit in each shard. A join runs once
for all of a group, over its longest windows. Where that would cost more than it saves, a template
begins a group of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from quadweir.plan.common import can_share, common_joins, windows_below

if TYPE_CHECKING:
    from quadweir.plan.nodes import Join
    from quadweir.plan.query import QueryPlan
    from quadweir.runtime.network.spec import TemplateSpec

MOST_RATIO: Final = 16
"""A join over windows that are longer by more than this would give a template mostly rows that are
too old for it."""
MOST_STATIC: Final = 100_000
"""More static rows are laid out once for the shards of one template, which a group cannot do."""


@final
@dataclass(frozen=True, slots=True)
class Grouping:
    """In which group a template runs.

    Attributes:
        group: the number of the group; None if it has no join that others could share.
        joins: its joins that others could share, by their names, as text.
        apart: why it is not in a group that has some of these joins; empty if there is none.
    """

    group: int | None = None
    joins: Mapping[str, str] | None = None
    apart: str = ""


@final
class Groups:
    """The groups of the templates of a network."""

    def __init__(self) -> None:
        self._templates: dict[int, tuple[int, frozenset[str], tuple[str, ...]]] = {}
        self._longest: dict[int, int] = {}

    def place(
        self,
        number: int,
        plan: QueryPlan,
        *,
        static_rows: int,
        longest_ms: int,
        group: int | None,
    ) -> Grouping:
        """Return the group of a template that is new here.

        Args:
            number: its number.
            plan: its plan.
            static_rows: how many rows the largest of its static relations has.
            longest_ms: the longest window of its first query.
            group: the group that it had before a restart, or None to choose one.
        """
        program = plan.first.program
        if not can_share(program) or plan.elements or len(plan.stages) > 1:
            return Grouping()
        joins = common_joins(program, plan.first.key)
        if not joins or static_rows > MOST_STATIC:
            return Grouping()
        streams = plan.matching.streams
        chosen, apart = self._chosen(number, frozenset(joins), streams, longest_ms)
        group = chosen if group is None else group
        self._templates[number] = (group, frozenset(joins), streams)
        self._longest[group] = max(longest_ms, self._longest.get(group, 0))
        return Grouping(group, {name: _text(join) for name, join in joins.items()}, apart)

    def _chosen(
        self, number: int, joins: frozenset[str], streams: tuple[str, ...], longest_ms: int
    ) -> tuple[int, str]:
        found: dict[int, int] = {}
        reasons = {}
        for other, (group, theirs, read) in self._templates.items():
            common = len(joins & theirs)
            if not common:
                continue
            lengths = sorted((longest_ms, self._longest[group]))
            if read != streams:
                reasons[other] = f"template {other} reads other streams, too, and waits for them"
            elif lengths[1] > MOST_RATIO * lengths[0]:
                reasons[other] = (
                    f"the windows of template {other} are {lengths[1] / lengths[0]:,.0f} times "
                    f"{'longer' if longest_ms == lengths[0] else 'shorter'}"
                )
            else:
                found[group] = max(found.get(group, 0), common)
        if found:
            return max(found, key=lambda each: (found[each], -each)), ""
        return number, "; ".join(reasons.values())

    def drop(self, number: int) -> None:
        """Forget a template."""
        group, _, _ = self._templates.pop(number, (None, None, None))
        if group is not None and all(each != group for each, _, _ in self._templates.values()):
            del self._longest[group]


def with_group(spec: TemplateSpec, found: Grouping) -> TemplateSpec:
    """Return a template in its group."""
    return replace(spec, group=found.group, joins=found.joins or {}, apart=found.apart)


def _text(join: Join) -> str:
    """Name a join by the patterns of its windows."""
    parts = []
    for each in windows_below(join):
        pattern = each.match.pattern
        named = "" if pattern is None else f"{pattern.subject} {pattern.predicate} {pattern.object}"
        parts.append(f"{named} in <{each.match.source.stream}>")
    return " and ".join(parts)
