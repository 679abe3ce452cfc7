"""By which variable the rows of a query are sharded, and why.

Once a variable is chosen, matches that bind it go to the shard of its value, and all other matches go to
every shard. Going through the nodes of the plan then shows where their rows are: those that carry the
variable are in the shard of its value; some are in one shard or another without showing why; and some
are the same in every shard. Static rows are in every shard unless they are matched together with rows
that are not: then they are divided by the variable too. Where rows of different shards have to meet (a
group, DISTINCT, a comparison of reports), the query is cut: what lies below runs sharded, and its changes
go on to another stage, which is sharded by another variable or runs in one shard.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias, assert_never, final

from quadweir.plan.nodes import (
    AntiJoin,
    Closure,
    Distinct,
    Exchange,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Mode,
    PlanNode,
    Project,
    Recompute,
    Report,
    Route,
    StaticRelation,
    Union,
    Window,
    walk,
)
from quadweir.plan.program import Program
from quadweir.terms import Variable

IN_ONE_SHARD: Final = "in one shard"


class Spread(Enum):
    """Where the rows of a node are."""

    KEYED = auto()
    """Each in the shard of its value of the key."""
    APART = auto()
    """Each in one shard."""
    EVERYWHERE = auto()
    """Each in every shard."""
    UNKNOWN = auto()
    """None of these: the shards together would not have what one alone has."""


Spreads: TypeAlias = Mapping[PlanNode, Spread]


@final
@dataclass(frozen=True, slots=True)
class ShardKey:
    """How rows are sharded, and the reason in words.

    Attributes:
        variable: What rows are sharded by; None for one shard.
        reason: Why.
        replicated: The places of matches that go to every shard although there is a key.
        cut: The node whose changes go on to a second stage; None for one stage.
        second: What the rows of the second stage are sharded by; None for one shard.
        second_reason: Why.
    """

    variable: Variable | None
    reason: str
    replicated: frozenset[int] = frozenset()
    cut: PlanNode | None = None
    second: Variable | None = None
    second_reason: str = ""


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


def choose_keys(program: Program) -> list[ShardKey]:
    """The ways to shard the rows of a query, the best first.

    The simplest way is the best: by a variable that all patterns bind; by such a one, with a second
    stage; by one that some bind, while the matches of the others go to every shard; the same with a
    second stage; and if there is none, one shard. What static data matches too will not come from
    streams often: rather that goes to every shard than what comes from streams alone.
    """
    if program.why_not is not None:
        return [ShardKey(None, f"the query is evaluated as a whole: {program.why_not}")]
    matched = [
        place
        for place, each in enumerate(program.matches)
        if place not in program.trackers and each.pattern is not None
    ]
    if not matched:
        return [ShardKey(None, "no pattern is matched in a window")]
    streamed = _streamed(program)
    found: list[tuple[tuple[int, int, int, int], ShardKey]] = []
    refused: list[str] = []
    for variable in _candidates(program, matched):
        without = frozenset(
            place for place in matched if variable not in program.matches[place].variables
        )
        spreads = find_spreads(program, variable)
        why = _apart(program.report, program.root, spreads, variable)
        said = f"{variable} occurs in every windowed pattern"
        if without:
            also = "" if without & streamed else ", which static data matches too,"
            said = (
                f"no variable occurs in every windowed pattern: those with {variable} are sharded "
                f"by it, the others{also} go to every shard"
            )
        cost = len(without & streamed), len(without)
        if why is None:
            found.append(((2 if without else 0, *cost, 0), ShardKey(variable, said, without)))
            continue
        refused.append(why)
        cut = None if program.eager else _cut(program.root, spreads)
        if cut is None:
            continue
        second, second_reason = _second(program, cut)
        key = ShardKey(
            variable, f"{said}; {why}: in a second stage", without, cut, second, second_reason
        )
        found.append(((3 if without else 1, *cost, 0 if second is not None else 1), key))
    best = [key for _, key in sorted(found, key=lambda each: each[0])]
    if best:
        return best
    return [ShardKey(None, "; ".join(dict.fromkeys(refused)))]


def _streamed(program: Program) -> frozenset[int]:
    """Find the matches whose pattern has none in the static data that it is matched in too."""
    if not program.query.default_graph_windows:
        return frozenset(range(len(program.windows)))
    merged = [
        each
        for each in walk(program.root)
        if isinstance(each, Union) and any(isinstance(one, StaticRelation) for one in each.inputs)
    ]
    below = set(walk(*merged))
    return frozenset(place for place, each in enumerate(program.windows) if each not in below)


def find_spreads(
    program: Program, key: Variable, *, fed: PlanNode | None = None
) -> dict[PlanNode, Spread]:
    """Find for each node of a query where its rows are if they are sharded by a variable.

    Args:
        program: The query's nodes.
        key: The variable.
        fed: The node whose rows are sharded by it, where that is no window.
    """
    whole: set[StaticRelation] = set()
    while True:
        found = _spreads(program, key, fed, whole)
        keyed = {node for node, spread in found.items() if spread is Spread.KEYED}
        # A relation that is divided must have no user that looks at the rows of other shards too.
        others = {
            relation
            for relation in program.static
            if relation in keyed
            for user in program.nodes
            if relation in user.inputs
            and not (isinstance(user, Union) or _goes_by(user, relation, keyed))
        }
        if not others:
            return found
        whole |= others


def _spreads(
    program: Program, key: Variable, fed: PlanNode | None, whole: Container[PlanNode]
) -> dict[PlanNode, Spread]:
    found: dict[PlanNode, Spread] = {}
    trackers = {program.windows[place] for place in program.trackers}
    for node in program.nodes:
        if node == fed:
            found[node] = Spread.KEYED if key in node.always else Spread.UNKNOWN
        elif isinstance(node, Window):
            is_keyed = key in node.match.variables and node not in trackers
            found[node] = Spread.KEYED if is_keyed else Spread.EVERYWHERE
        else:
            if isinstance(node, Union) and {found[each] for each in node.inputs} & _PARTED:
                for each in node.inputs:
                    is_divided = isinstance(each, StaticRelation) and each not in whole
                    if is_divided and key in each.always:
                        found[each] = Spread.KEYED
            found[node] = _spread(node, [found[each] for each in node.inputs], key)
    return found


def find_static(program: Program, key: Variable | None) -> dict[StaticRelation, Placed]:
    """For each static relation, which shards have its rows, and why.

    A shard need not have all where what looks at the rows compares their key with rows that are sharded
    by it, or puts them together with such rows.
    """
    spreads = find_spreads(program, key) if key is not None else {}
    keyed = {
        node for node, spread in spreads.items() if spread is Spread.KEYED and key in node.always
    }
    found: dict[StaticRelation, Placed] = {}
    for relation in program.static:
        users = [each for each in program.nodes if relation in each.inputs]
        if key is None:
            found[relation] = _whole("there is one shard")
        elif spreads[relation] is Spread.KEYED:
            found[relation] = _parted(key, "as the rows of windows that they are matched with")
        elif key not in relation.variables:
            found[relation] = _whole(f"it has no {key}")
        elif key not in relation.always:
            found[relation] = _whole(f"some of its rows have no {key}")
        elif users and all(_goes_by(each, relation, keyed) for each in users):
            found[relation] = _parted(key, "as the rows that look for it")
        else:
            found[relation] = _whole(f"it is not only looked up by {key}")
    return found


def _whole(why: str) -> Placed:
    return Placed(False, f"all in every shard: {why}")


def _parted(key: Variable, why: str) -> Placed:
    return Placed(True, f"each in the shard of its {key}, {why}")


def _goes_by(user: PlanNode, relation: StaticRelation, keyed: Container[PlanNode]) -> bool:
    """Whether a node uses only those rows of an input that have a key of its shard."""
    match user:
        case Join(inputs=inputs):
            return any(each in keyed for each in inputs)
        case LeftJoin(left=left) | AntiJoin(left=left):
            return left != relation and left in keyed
        case _:
            return False


def _spread(node: PlanNode, inputs: Sequence[Spread], key: Variable) -> Spread:
    kinds = set(inputs)
    if Spread.UNKNOWN in kinds:
        return Spread.UNKNOWN
    if kinds <= {Spread.EVERYWHERE}:
        return Spread.EVERYWHERE
    match node:
        case Filter() | Extend() | Route():
            return inputs[0]
        case Project():
            return inputs[0] if key in node.variables else Spread.APART
        case Group() | Distinct():
            is_kept = inputs[0] is Spread.KEYED and key in node.variables
            return Spread.KEYED if is_kept else Spread.UNKNOWN
        case Union():
            if Spread.EVERYWHERE in kinds:
                return Spread.UNKNOWN
            return Spread.KEYED if kinds == {Spread.KEYED} else Spread.APART
        case Join():
            return _joined(inputs)
        case LeftJoin() | AntiJoin(keys=None):
            # A left row is counted with its pairs, so they have to be where it is.
            return inputs[0] if _joined(inputs) is inputs[0] else Spread.UNKNOWN
        case AntiJoin():
            left, right = inputs
            agree = right is Spread.EVERYWHERE or left is right is Spread.KEYED
            return left if agree else Spread.UNKNOWN
        case Closure() | Recompute() | Exchange() | Window() | StaticRelation():
            return Spread.UNKNOWN
        case _:
            assert_never(node)


def _joined(inputs: Sequence[Spread]) -> Spread:
    apart = inputs.count(Spread.APART)
    if not apart:
        return Spread.KEYED if Spread.KEYED in inputs else Spread.EVERYWHERE
    # Rows that lie apart without a key can only meet what is everywhere.
    alone = apart == 1 and Spread.KEYED not in inputs
    return Spread.APART if alone else Spread.UNKNOWN


def _candidates(program: Program, matched: Iterable[int]) -> list[Variable]:
    """The variables that matches bind, those of answers first."""
    bound = dict.fromkeys(
        variable for place in matched for variable in program.matches[place].variables
    )
    answers = [variable for variable in program.variables if variable in bound]
    return list(dict.fromkeys([*answers, *bound]))


def _apart(report: Report, root: PlanNode, spreads: Spreads, key: Variable) -> str | None:
    """The reason why the answers of all shards must be seen together, or None."""
    if report.mode is Mode.WHOLE:
        return "ASK, ORDER BY and LIMIT look at all rows together"
    spread = spreads[root]
    if spread is Spread.EVERYWHERE or spread is Spread.UNKNOWN:
        return _meeting(spreads, key)
    if report.compares_values and (spread is not Spread.KEYED or key not in report.columns):
        return f"reports are compared without {key}"
    return None


def _meeting(spreads: Spreads, key: Variable) -> str:
    """The reason why rows of different shards would have to meet."""
    lost = [node for node, spread in spreads.items() if spread is Spread.UNKNOWN]
    match lost[0] if lost else None:
        case Group():
            return f"a group gathers rows of different {key}"
        case Distinct():
            return f"DISTINCT compares rows of different {key}"
        case Union():
            return f"rows with and without {key} are put together"
        case _:
            return f"rows of different {key} meet"


def _cut(root: PlanNode, spreads: Spreads) -> PlanNode | None:
    """The topmost node whose rows are sharded and that justifies a second stage.

    Only nodes that look at the values of changes, and at nothing else, can stand above it.
    """
    at = root
    while spreads[at] not in _PARTED:
        if not isinstance(at, Filter | Extend | Project | Group | Distinct):
            return None
        at = at.input
    heavy = (Join, LeftJoin, AntiJoin, Group, Distinct)
    return at if any(isinstance(each, heavy) for each in walk(at)) else None


def _second(program: Program, cut: PlanNode) -> tuple[Variable | None, str]:
    """Choose what the second stage is sharded by."""
    report = program.report
    if report.mode is Mode.WHOLE:
        return None, "ASK, ORDER BY and LIMIT look at all rows together"
    for variable in (*program.variables, *cut.variables):
        if variable not in cut.always:
            continue
        spreads = find_spreads(program, variable, fed=cut)
        if _apart(report, program.root, spreads, variable) is None:
            return variable, f"rows that meet have the same {variable}"
    return None, "rows of all values meet"
