"""By which variable the rows of a query are sharded, and why.

Once a variable is chosen, matches that bind it go to the shard that its value names, and all other
matches go to every shard. Going through the operators of the query then tells where their rows are:
those that carry the variable lie in the shard of its value; some lie in one shard or another without
showing why; and some are the same in every shard. Static rows are in every shard unless they are
matched together with rows that are not: then they are divided by the variable too. Where rows would
have to meet that lie apart (a group, DISTINCT, a comparison of reports), the query is cut: what lies
below runs sharded, and its changes go on to a second stage, sharded anew or in one piece.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final, final

from quadweir.kernel.aggregate import Aggregate
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.multijoin import Join
from quadweir.kernel.negation import FixedNegation, KeyNegation, Negation
from quadweir.kernel.relation import Operator
from quadweir.kernel.shard import Shard
from quadweir.kernel.stateless import Extend, Filter, Project, RowFilter, Static, Union
from quadweir.kernel.window import Leaf
from quadweir.terms import Variable

IN_ONE_PIECE: Final = "in one piece"


class Spread(Enum):
    """Where the rows of an operator lie."""

    KEYED = auto()
    """Each in the shard that its value of the key names."""
    APART = auto()
    """Each in one shard."""
    EVERYWHERE = auto()
    """Each in every shard."""
    UNKNOWN = auto()
    """Neither: the shards together would not have what one alone has."""


@final
@dataclass(frozen=True, slots=True)
class ShardKey:
    """How rows are sharded, and the reason in words.

    Attributes:
        variable: What rows are sharded by; None for one shard.
        reason: Why.
        replicated: The leaves whose matches go to every shard although there is a key.
        cut: The place of the operator whose changes go on to a second stage; None for one stage.
        second: What the rows of the second stage are sharded by; None for one shard.
        second_reason: Why.
    """

    variable: Variable | None
    reason: str
    replicated: frozenset[int] = frozenset()
    cut: int | None = None
    second: Variable | None = None
    second_reason: str = ""

    @property
    def layout(self) -> str:
        """Say in short how rows are spread over shards and stages.

        Which operator stands last in the first stage is left out: it may have another number over
        other static data.
        """
        if self.variable is None:
            return IN_ONE_PIECE
        everywhere = ", ".join(map(str, sorted(self.replicated)))
        found = f"by {self.variable}"
        found += f", leaves {everywhere} in every shard" if everywhere else ""
        if self.cut is None:
            return found
        then = f"by {self.second}" if self.second is not None else IN_ONE_PIECE
        return f"{found}, and in a second stage {then}"


@final
@dataclass(frozen=True, slots=True)
class Placed:
    """Which shards have the rows of a static relation.

    Attributes:
        is_divided: Whether each has only the rows of its own keys.
        text: The same in words, and why.
    """

    is_divided: bool
    text: str


_PARTED: Final = frozenset({Spread.KEYED, Spread.APART})
# What a second stage is made of: operators that look at the values of changes alone.
_ABOVE: Final = (Filter, Extend, Project, Aggregate, Distinct)
# What is worth a stage of its own.
_HEAVY: Final = (Join, Negation, KeyNegation, FixedNegation, Aggregate, Distinct)


def choose_key(shard: Shard, like: str = "") -> ShardKey:
    """Choose how the rows of a query are sharded.

    Of all ways the simplest is taken: by a variable that all patterns bind; by such a one, with a
    second stage; by one that some bind, the matches of the others going to every shard; the same
    with a second stage; and if there is none, one shard. What static data matches too will not come
    from streams often: rather that goes to every shard than what comes from streams alone.

    Args:
        shard: The query's operators.
        like: The layout that is wanted if it can be: rows lie so already. A second stage in one piece
            always can stay so.
    """
    if shard.why_not is not None:
        return ShardKey(None, f"the query is evaluated as a whole: {shard.why_not}")
    root = shard.root
    leaves = [place for place in range(len(shard.leaves)) if place not in shard.trackers]
    matched = [place for place in leaves if shard.leaves[place].pattern is not None]
    if root is None or not matched:
        return ShardKey(None, "no pattern is matched in a window")
    operators = shard.network.operators
    at = shard.network.place(root)
    streamed = _streamed(shard)
    best: tuple[tuple[int, int, int, int], ShardKey] | None = None
    refused: list[str] = []
    for variable in _candidates(shard, matched):
        without = frozenset(
            place for place in matched if variable not in shard.leaves[place].variables
        )
        spreads = find_spreads(shard, variable)
        why = _apart(shard, spreads, variable)
        said = f"{variable} occurs in every windowed pattern"
        if without:
            also = "" if without & streamed else ", which static data matches too,"
            said = (
                f"no variable occurs in every windowed pattern: those with {variable} are sharded "
                f"by it, the others{also} go to every shard"
            )
        if why is None:
            found = ShardKey(variable, said, without)
            rank = (2 if without else 0, len(without & streamed), len(without), 0)
        else:
            refused.append(why)
            cut = None if shard.eager else _cut(operators, at, spreads)
            if cut is None:
                continue
            second, second_reason = _second(shard, cut)
            found = ShardKey(
                variable, f"{said}; {why}: in a second stage", without, cut, second, second_reason
            )
            stage = 0 if second is not None else 1
            rank = (3 if without else 1, len(without & streamed), len(without), stage)
        alone = replace(found, second=None, second_reason="its state is in one piece")
        for each in (found, alone):
            if each.layout == like:
                return each
        if best is None or rank < best[0]:
            best = (rank, found)
    if best is not None:
        return best[1]
    return ShardKey(None, "; ".join(dict.fromkeys(refused)))


def _streamed(shard: Shard) -> frozenset[int]:
    """Find the leaves whose pattern has no match in the static data that it is matched in too."""
    network = shard.network
    merged = shard.query.default_graph_windows
    below = network.below(
        each
        for operator, inputs in network.operators
        if merged and isinstance(operator, Union) and operator.fixed_total
        for each in inputs
    )
    return frozenset(
        place for place, (_, leaf) in enumerate(network.leaves) if network.place(leaf) not in below
    )


def find_spreads(shard: Shard, key: Variable, *, fed: int | None = None) -> list[Spread]:
    """Tell of each operator of a query where its rows lie if they are sharded by a variable.

    Args:
        shard: The query's operators.
        key: The variable.
        fed: The place of the operator whose rows are sharded by it, where that is no leaf.
    """
    found: list[Spread] = []
    operators = shard.network.operators
    trackers = {id(shard.network.leaves[place][1]) for place in shard.trackers}
    for place, (operator, inputs) in enumerate(operators):
        if place == fed:
            found.append(Spread.KEYED if key in operator.always else Spread.UNKNOWN)
        elif isinstance(operator, Leaf):
            is_keyed = key in operator.variables and id(operator) not in trackers
            found.append(Spread.KEYED if is_keyed else Spread.EVERYWHERE)
        else:
            if isinstance(operator, Union) and {found[each] for each in inputs} & _PARTED:
                # Whether a pattern has a match in static data must not decide where rows lie, or a
                # reload would have to be refused. So it is asked what is bound by the pattern's form.
                for each in inputs:
                    static = operators[each][0]
                    if isinstance(static, Static) and key in static.certain:
                        found[each] = Spread.KEYED
            found.append(_spread(operator, [found[each] for each in inputs], key))
    return found


def find_static(shard: Shard, key: Variable | None) -> dict[int, Placed]:
    """Say for each static relation which shards have its rows, and why.

    A shard need not have all where what looks at the rows compares their key with rows that lie by it,
    or puts them together with such rows.
    """
    operators = shard.network.operators
    spreads = find_spreads(shard, key) if key is not None else []
    keyed = {
        place
        for place, spread in enumerate(spreads)
        if spread is Spread.KEYED and key in operators[place][0].always
    }
    found: dict[int, Placed] = {}
    for place, (operator, _) in enumerate(operators):
        if not isinstance(operator, Static):
            continue
        users = [each for each in operators if place in each[1]]
        if not users and operator is not shard.root:
            is_merged = bool(shard.query.default_graph_windows) and not operator.total
            why = "so that windows alone are matched" if is_merged else "which nothing is made of"
            found[place] = Placed(False, why)
        elif key is None:
            found[place] = _whole("there is one shard")
        elif spreads[place] is Spread.KEYED:
            found[place] = _parted(key, "as the rows of windows that they are matched with")
        elif key not in operator.variables:
            found[place] = _whole(f"it has no {key}")
        elif key not in operator.always:
            found[place] = _whole(f"some of its rows have no {key}")
        elif users and all(_goes_by(each, place, keyed) for each in users):
            found[place] = _parted(key, "as the rows that look for it")
        else:
            found[place] = _whole(f"it is not only looked up by {key}")
    return found


def _whole(why: str) -> Placed:
    return Placed(False, f"all in every shard: {why}")


def _parted(key: Variable, why: str) -> Placed:
    return Placed(True, f"each in the shard of its {key}, {why}")


def _goes_by(user: tuple[Operator, tuple[int, ...]], place: int, keyed: Container[int]) -> bool:
    """Tell whether an operator looks only at those rows of an input that have a key of its shard."""
    operator, inputs = user
    match operator:
        case Join():
            return any(each in keyed for each in inputs)
        case KeyNegation() | FixedNegation():
            return inputs[0] != place and inputs[0] in keyed
        case _:
            return False


def _spread(operator: Operator, inputs: Sequence[Spread], key: Variable) -> Spread:
    kinds = set(inputs)
    if Spread.UNKNOWN in kinds:
        return Spread.UNKNOWN
    if kinds <= {Spread.EVERYWHERE}:
        return Spread.EVERYWHERE
    match operator:
        case Filter() | RowFilter() | Extend():
            return inputs[0]
        case Project():
            return inputs[0] if key in operator.variables else Spread.APART
        case Aggregate() | Distinct():
            is_kept = inputs[0] is Spread.KEYED and key in operator.variables
            return Spread.KEYED if is_kept else Spread.UNKNOWN
        case Union():
            if Spread.EVERYWHERE in kinds:
                return Spread.UNKNOWN
            return Spread.KEYED if kinds == {Spread.KEYED} else Spread.APART
        case Join():
            apart = inputs.count(Spread.APART)
            if apart:
                # Rows that lie apart without a key can only meet what is everywhere.
                alone = apart == 1 and Spread.KEYED not in kinds
                return Spread.APART if alone else Spread.UNKNOWN
            return Spread.KEYED
        case Negation():
            # Its pairs are made of the left rows and lie where they do.
            return inputs[0] if inputs[1] is inputs[0] else Spread.UNKNOWN
        case KeyNegation() | FixedNegation():
            left, right = inputs
            agree = right is Spread.EVERYWHERE or left is right is Spread.KEYED
            return left if agree else Spread.UNKNOWN
        case _:
            return Spread.UNKNOWN


def _candidates(shard: Shard, matched: Iterable[int]) -> list[Variable]:
    """List the variables that leaves bind, those of answers first."""
    bound = dict.fromkeys(
        variable for place in matched for variable in shard.leaves[place].variables
    )
    answers = [variable for variable in shard.variables if variable in bound]
    return list(dict.fromkeys([*answers, *bound]))


def _apart(shard: Shard, spreads: Sequence[Spread], key: Variable) -> str | None:
    """Say why the answers of all shards have to be seen together, if they have to."""
    if shard.answers_whole:
        return "ASK, ORDER BY and LIMIT look at all rows together"
    assert shard.root is not None
    root = spreads[shard.network.place(shard.root)]
    if root is Spread.EVERYWHERE or root is Spread.UNKNOWN:
        return _meeting(shard, spreads, key)
    if shard.compares_values and (root is not Spread.KEYED or key not in shard.variables):
        return f"reports are compared without {key}"
    return None


def _meeting(shard: Shard, spreads: Sequence[Spread], key: Variable) -> str:
    """Say where rows of different shards would have to meet."""
    lost = [
        operator
        for (operator, _), spread in zip(shard.network.operators, spreads, strict=True)
        if spread is Spread.UNKNOWN
    ]
    match lost[0] if lost else None:
        case Aggregate():
            return f"a group gathers rows of different {key}"
        case Distinct():
            return f"DISTINCT compares rows of different {key}"
        case Union():
            return f"rows with and without {key} are put together"
        case _:
            return f"rows of different {key} meet"


def _cut(
    operators: Sequence[tuple[Operator, tuple[int, ...]]], root: int, spreads: Sequence[Spread]
) -> int | None:
    """Find the topmost operator whose rows lie apart and that is worth a stage of its own."""
    at = root
    while spreads[at] not in _PARTED:
        operator, inputs = operators[at]
        if not isinstance(operator, _ABOVE):
            return None
        (at,) = inputs
    below, waiting = [], [at]
    while waiting:
        operator, inputs = operators[waiting.pop()]
        below.append(operator)
        waiting += inputs
    return at if any(isinstance(each, _HEAVY) for each in below) else None


def _second(shard: Shard, cut: int) -> tuple[Variable | None, str]:
    """Choose what the second stage is sharded by."""
    if shard.answers_whole:
        return None, "ASK, ORDER BY and LIMIT look at all rows together"
    operator = shard.network.operators[cut][0]
    for variable in (*shard.variables, *operator.variables):
        if variable not in operator.always:
            continue
        if _apart(shard, find_spreads(shard, variable, fed=cut), variable) is None:
            return variable, f"rows that meet have the same {variable}"
    return None, "rows of all values meet"
