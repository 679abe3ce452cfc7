"""The queries of a network, and how one version of the registry differs from another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from quadweir.runtime.network.changes import Joining

if TYPE_CHECKING:
    from quadweir.algebra.query import ConstructForm
    from quadweir.errors import QuadweirError
    from quadweir.runtime.network.querytext import QueryText


@final
@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a query sees that was registered with backfill (J5).

    Attributes:
        state: `waiting` until its first batch; then `done`, or `none` if its windows began empty.
        since: it sees elements later than this instant; None if it sees all, or if it waits.
        reason: why its windows began empty.
    """

    state: str = "waiting"
    since: int | None = None
    reason: str = ""


@final
@dataclass(slots=True)
class NetworkQuery:
    """A query of a network.

    Attributes:
        number: its number, which no other query ever gets.
        id: its name, which is unique among the queries that run.
        text: what was registered.
        template: the number of its template.
        constants: the spellings of its constants, by the parameters of the template.
        ranges: the lengths of its windows, where those of the template may differ.
        variables: the names of its answers' columns.
        construct: the triples that it makes of a solution; None if its answers are solutions.
        is_paused: whether it gives no answers for now.
        stopped: why it was stopped, if it was; it then gives no more answers.
        backfill: what became of the wish to see what windows hold already; None if it has none.
    """

    number: int
    id: str
    text: QueryText
    template: int
    constants: tuple[str, ...]
    ranges: tuple[int, ...]
    variables: tuple[str, ...]
    construct: ConstructForm | None = None
    is_paused: bool = False
    stopped: str | None = None
    backfill: Backfilled | None = None


@final
@dataclass(slots=True)
class VersionChange:
    """What one version of the registry has more or less than the one before."""

    joining: list[NetworkQuery] = field(default_factory=list)
    leaving: list[NetworkQuery] = field(default_factory=list)
    paused: list[int] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)

    @staticmethod
    def of(changes: Iterable[VersionChange]) -> VersionChange:
        """Return what several changes come to; a query that joins and leaves again does neither."""
        joining: dict[int, NetworkQuery] = {}
        found = VersionChange()
        paused: dict[int, bool] = {}
        for change in changes:
            joining |= {each.number: each for each in change.joining}
            for each in change.leaving:
                if joining.pop(each.number, None) is None:
                    found.leaving.append(each)
            paused |= dict.fromkeys(change.paused, True) | dict.fromkeys(change.resumed, False)
        found.joining = [*joining.values()]
        found.paused = [number for number, is_paused in paused.items() if is_paused]
        found.resumed = [number for number, is_paused in paused.items() if not is_paused]
        return found

    def joinings(self) -> Iterator[Joining]:
        """Group the queries that join by template."""
        grouped: dict[int, list[NetworkQuery]] = {}
        for query in self.joining:
            grouped.setdefault(query.template, []).append(query)
        for template, queries in grouped.items():
            yield Joining(
                template,
                tuple(each.number for each in queries),
                tuple(each.constants for each in queries),
                tuple(each.ranges for each in queries),
                tuple(each.number for each in queries if each.text.backfill),
            )


def of_query(name: str, error: QuadweirError) -> QuadweirError:
    """Return an error that says which query it is about."""
    return type(error)(
        f"the query {name!r}: {error.message}",
        detail=error.detail,
        hint=error.hint,
        span=error.span,
    )
