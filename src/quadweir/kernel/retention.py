"""Which leaves have to hold what they have handed on, and which may let go of it at once.

A match stays in its window until it leaves. But where nothing above will ask for it again, because each
answer rests on it alone or only totals are kept, it need not stay in memory; and a window that nothing
ever leaves (`ALL`) takes memory without end unless it can be let go of (W5).
"""

from __future__ import annotations

from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.multijoin import Join
from quadweir.kernel.network import LeafPlan, Network
from quadweir.kernel.relation import Operator
from quadweir.kernel.stateless import Extend, Filter, Project, RowFilter, Union
from quadweir.kernel.window import TimedLeaf

# Their rows are those of what they stand on.
_PASSING = (Filter, RowFilter, Extend, Project, Union)


def let_go(network: Network, root: Operator | None, *, eager: bool) -> None:
    """Tell leaves that need not hold what they have handed on.

    Args:
        network: the operators.
        root: the one whose rows are the solutions; None if all are read anew at every report.
        eager: whether answers leave as soon as their parts have arrived.
    """
    if root is None:
        return
    above: dict[int, list[int]] = {}
    for place, (_, inputs) in enumerate(network.operators):
        for each in inputs:
            above.setdefault(each, []).append(place)

    def is_asked_again(place: int) -> bool:
        """Tell whether rows are looked at in a later step than the one in which they came."""
        if network.operators[place][0] is root and not eager:
            return True
        return any(
            _looks_back(network, user, eager=eager)
            or (not _adds_up(network.operators[user][0]) and is_asked_again(user))
            for user in above.get(place, ())
        )

    for place, (operator, _) in enumerate(network.operators):
        if isinstance(operator, TimedLeaf) and (eager or operator.is_endless):
            operator.retain = is_asked_again(place)


def endless(network: Network, *, all_of_them: bool = False) -> list[LeafPlan]:
    """List what leaves want to hear of that would be held for good, or would be if none let go."""
    return [
        plan
        for plan, leaf in network.leaves
        if isinstance(leaf, TimedLeaf) and leaf.is_endless and (leaf.retain or all_of_them)
    ]


def _looks_back(network: Network, place: int, *, eager: bool) -> bool:
    operator, inputs = network.operators[place]
    if isinstance(operator, Join):
        # With static relations alone nothing is joined later.
        heard = sum(operator.hears(number) for number in range(len(inputs)))
        return not eager or heard > 1
    return not isinstance(operator, _PASSING) and not _adds_up(operator)


def _adds_up(operator: Operator) -> bool:
    return isinstance(operator, Aggregate) and operator.is_total
