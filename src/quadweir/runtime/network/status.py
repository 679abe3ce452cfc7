"""What a network says about its queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, final

from quadweir.errors import QuadweirError

if TYPE_CHECKING:
    from quadweir.runtime.network.queries import Backfilled, NetworkQuery


@final
@dataclass(frozen=True, slots=True)
class Registration:
    """What became of queries that were registered in one call.

    Attributes:
        registered: the names of the queries that are new or replaced.
        refused: the errors of the others, by name.
        not_backfilled: queries that asked for backfill and whose windows begin empty, with the
            reasons, as far as that is known before they join; `Network.status` knows it then.
    """

    registered: tuple[str, ...]
    refused: Mapping[str, QuadweirError]
    not_backfilled: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class QueryStatus:
    """How a query of a network is.

    Attributes:
        id: its name.
        state: `running`, `paused` or `stopped`.
        reason: why it was stopped.
        template: the number of the template that it shares with others.
        shared_with: how many other queries there are of this template.
        answers: how many answers it gave since the network was started here.
        backfill: what it sees of what windows held when it joined; None if it did not ask for that.
    """

    id: str
    state: str
    reason: str | None
    template: int
    shared_with: int
    answers: int
    backfill: Backfilled | None = None


@final
@dataclass(frozen=True, slots=True)
class QueryCost:
    """What a query of a network costs.

    Attributes:
        id: its name.
        batch_ms: its share of the time that shards took for the last batch, in milliseconds.
        share: the same as a part of the time of all queries.
        held: its share of the mappings that shards hold.
        answers: how many answers it gave since the network was started here.
    """

    id: str
    batch_ms: float
    share: float
    held: float
    answers: int


class UnitFacts(NamedTuple):
    """What a shard reports about one template and one batch."""

    template: int
    answers: int
    held: int
    microseconds: int
    late: int


def status_of(query: NetworkQuery, members: int, answers: int) -> QueryStatus:
    """Return how a query is, that shares its template with `members` queries, itself included."""
    state = "paused" if query.is_paused else "running"
    return QueryStatus(
        query.id,
        state if query.stopped is None else "stopped",
        query.stopped,
        query.template,
        max(0, members - 1),
        answers,
        query.backfill,
    )


def costs_of(
    queries: Iterable[NetworkQuery], units: Sequence[UnitFacts], answers: Mapping[int, int]
) -> list[QueryCost]:
    """Return what queries cost, the most expensive first.

    The queries of a template run together: each is charged with an equal share of its time and
    state, and with its own answers.
    """
    listed = list(queries)
    members = Counter(each.template for each in listed)
    spent: Counter[int] = Counter()
    held: Counter[int] = Counter()
    for unit in units:
        spent[unit.template] += unit.microseconds
        held[unit.template] += unit.held
    total = spent.total() or 1
    found = [
        QueryCost(
            each.id,
            spent[each.template] / members[each.template] / 1000,
            spent[each.template] / members[each.template] / total,
            held[each.template] / members[each.template],
            answers.get(each.number, 0),
        )
        for each in listed
    ]
    return sorted(found, key=lambda each: (-each.batch_ms, -each.answers))
