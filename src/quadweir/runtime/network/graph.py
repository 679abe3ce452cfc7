"""A network as data: which streams feed which templates, and which templates which queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from quadweir.runtime.network.explain import users_of_joins

if TYPE_CHECKING:
    from quadweir.plan.matchtests import MatchTest
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.network.queries import NetworkQuery


@final
@dataclass(frozen=True, slots=True)
class TemplateFacts:
    """What a template of a network is.

    Attributes:
        number: its number.
        streams: the streams that its queries read.
        members: how many queries it has.
        key: the variable by which its rows are divided over shards; None if one shard has all.
        reason: why its queries share no more than they do; empty if they share all.
        patterns: the statements that it takes.
        shares: the streams in which another template takes some of the same statements.
        joins_with: the templates for which some of its joins run, too.
    """

    number: int
    streams: tuple[str, ...]
    members: int
    key: str | None
    reason: str
    patterns: tuple[str, ...]
    shares: frozenset[str]
    joins_with: tuple[int, ...] = ()


def template_facts(network: Network) -> list[TemplateFacts]:
    """Return the templates of a network that have queries.

    Raises:
        UsageError: the network was not started.
    """
    registry = network._known().registry
    specs = registry.templates()
    members = Counter(each.template for each in registry.queries())
    users: Counter[Hashable] = Counter()
    for number in members:
        if number in specs:
            users.update({_bare(test) for test in specs[number].shards.plan.matching.wanted})
    joined = users_of_joins(specs, [number for number in members if number in specs])
    found = []
    for number, count in sorted(members.items()):
        if number not in specs:
            continue
        spec = specs[number]
        plan = spec.shards.plan
        wanted = plan.matching.wanted
        key = plan.first.key
        found.append(
            TemplateFacts(
                number,
                spec.streams,
                count,
                str(key) if key is not None else None,
                spec.reason,
                tuple(dict.fromkeys(_pattern(test) for test in wanted)),
                frozenset(test.stream for test in wanted if users[_bare(test)] > 1),
                tuple(
                    sorted(
                        {each for name in spec.joins for each in joined[name, spec.group]}
                        - {number}
                    )
                ),
            )
        )
    return found


def find_query(network: Network, name: str) -> NetworkQuery | None:
    """Return a query of a network that was started, also one that was stopped.

    Raises:
        UsageError: the network was not started.
    """
    registry = network._known().registry
    stopped = (each for each in registry.stopped() if each.id == name)
    return registry.get(name) or next(stopped, None)


def all_queries(network: Network) -> list[NetworkQuery]:
    """Return the queries of a network that was started and that run or are paused.

    Raises:
        UsageError: the network was not started.
    """
    return network._known().registry.queries()


def _bare(test: MatchTest) -> Hashable:
    return (test.stream, test.constants, test.equal, test.view, test.way)


def _pattern(test: MatchTest) -> str:
    terms = ["?" if each is None else str(each) for each in test.constants[:3]]
    return f"{' '.join(terms)} in <{test.stream}>"
