"""What of a query's matches can be told to be of no use before they are shuffled.

The operators say it: a match whose rows all fall to a filter, or find nothing in the static data that
they are joined with, changes no answer. The operators apply their conditions all the same, so that
whoever matches is free to leave out as much of this as it likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from quadweir.algebra.expressions import Bound, Exists, Expression, VariableExpression
from quadweir.algebra.scopes import mentioned
from quadweir.algebra.traverse import rewrite_expressions, walk
from quadweir.kernel.dictionary import Dictionary
from quadweir.kernel.distinct import Distinct
from quadweir.kernel.multijoin import Join
from quadweir.kernel.relation import Operator
from quadweir.kernel.shard import Shard
from quadweir.kernel.stateless import Extend, Filter, Project, Static, Union
from quadweir.plan.shardkey import Placed
from quadweir.terms import Variable

MOST_VALUES: Final = 1000
"""Static data with more different values is left to the join."""


@final
@dataclass(frozen=True)
class Condition:
    """What has to be true of a match, all of it: expressions, and values that static data has."""

    expressions: tuple[Expression, ...] = ()
    values: tuple[tuple[Variable, tuple[str, ...]], ...] = ()

    def joined(self, other: Condition) -> Condition:
        return Condition(self.expressions + other.expressions, self.values + other.values)

    def __bool__(self) -> bool:
        return bool(self.expressions or self.values)


def find_conditions(shard: Shard) -> dict[int, tuple[Condition, ...]]:
    """Give for leaves the conditions of which a match has to fulfil one to be of use."""
    if shard.root is None:
        return {}
    operators = shard.network.operators
    users: list[list[int]] = [[] for _ in operators]
    for place, (_, inputs) in enumerate(operators):
        for each in set(inputs):
            users[each].append(place)
    finder = _Finder(operators, users, shard.network.place(shard.root), shard.dictionary)
    found = {}
    for number, (plan, leaf) in enumerate(shard.network.leaves):
        if plan.pattern is None or number in shard.trackers:
            continue
        conditions = finder.above(shard.network.place(leaf), frozenset(plan.variables))
        if all(conditions):
            found[number] = conditions
    return found


@final
@dataclass(frozen=True, slots=True)
class Fixed:
    """A static relation that a query uses.

    Attributes:
        variables: what it binds.
        rows: how many solutions there are.
        asked: the variables whose values matches are compared with before the shuffle.
        placed: which shards have its rows, and why.
    """

    variables: tuple[Variable, ...]
    rows: int
    asked: tuple[Variable, ...]
    placed: str


def find_fixed(
    shard: Shard,
    conditions: Mapping[int, Sequence[Condition]],
    placed: Mapping[int, Placed],
) -> tuple[Fixed, ...]:
    """List the static relations of a query.

    Args:
        shard: The query's operators.
        conditions: What `find_conditions` found.
        placed: For each static operator which shards have its rows.
    """
    asked = {
        variable
        for each in conditions.values()
        for condition in each
        for variable, _ in condition.values
    }
    return tuple(
        Fixed(
            operator.variables,
            operator.held(),
            tuple(variable for variable in operator.variables if variable in asked),
            placed[place].text,
        )
        for place, (operator, _) in enumerate(shard.network.operators)
        if isinstance(operator, Static) and operator.variables
    )


Bindings = Mapping[Variable, Expression]
NOTHING_BOUND: Final[Bindings] = {}


def _spelled_out(expression: Expression, bound: Bindings) -> Expression | None:
    """Put for variables what BIND gives them; None where that would say something else.

    Where BIND fails its variable is unbound, and what needs it fails as the expression itself would;
    only BOUND tells the one from the other.
    """
    if not bound:
        return expression
    for each in walk(expression):
        if isinstance(each, Exists) or (isinstance(each, Bound) and each.variable in bound):
            return None

    def put(each: Expression) -> Expression:
        return bound.get(each.variable, each) if isinstance(each, VariableExpression) else each

    return rewrite_expressions(expression, put)


@final
@dataclass(frozen=True)
class _Finder:
    operators: Sequence[tuple[Operator, tuple[int, ...]]]
    users: Sequence[Sequence[int]]
    root: int
    dictionary: Dictionary

    def above(
        self, place: int, variables: frozenset[Variable], bound: Bindings = NOTHING_BOUND
    ) -> tuple[Condition, ...]:
        """Follow the rows of an operator upwards.

        `variables` are those that they had from below, and `bound` what BIND made of these.
        """
        if place == self.root or not self.users[place]:
            return (Condition(),)
        return tuple(
            condition
            for user in self.users[place]
            for condition in self._through(user, place, variables, bound)
        )

    def _through(
        self, place: int, source: int, variables: frozenset[Variable], bound: Bindings
    ) -> tuple[Condition, ...]:
        operator, inputs = self.operators[place]
        own = Condition()
        match operator:
            case Filter(condition=condition):
                spelled_out = _spelled_out(condition, bound)
                if spelled_out is not None and mentioned(spelled_out) <= variables:
                    own = Condition((spelled_out,))
            case Project() | Distinct() | Union():
                kept = frozenset(operator.variables)
                variables &= kept
                bound = {variable: each for variable, each in bound.items() if variable in kept}
            case Extend(variable=variable, expression=expression):
                spelled_out = _spelled_out(expression, bound)
                if spelled_out is not None and mentioned(spelled_out) <= variables:
                    bound = {**bound, variable: spelled_out}
            case Join():
                others = [self.operators[each][0] for each in inputs if each != source]
                own = Condition(values=self._values(others, variables))
            case _:
                return (own,)
        return tuple(own.joined(each) for each in self.above(place, variables, bound))

    def _values(
        self, others: Sequence[Operator], variables: frozenset[Variable]
    ) -> tuple[tuple[Variable, tuple[str, ...]], ...]:
        """List what static inputs of a join bind the variables to, where that is not much."""
        found = []
        for each in others:
            if not isinstance(each, Static):
                continue
            rows = np.arange(each.held(), dtype=np.int64)
            for variable in sorted(variables & each.always):
                numbers = np.unique(each.column(variable, rows))
                if len(numbers) <= MOST_VALUES:
                    found.append((variable, tuple(sorted(self.dictionary.spellings(numbers)))))
        return tuple(found)
