"""Which matches of a query can be dropped before the shuffle, because they change no answer.

A match changes no answer if a filter drops all its rows, or if they find no partner in static data.
The nodes apply their conditions in any case, so matching may drop any part of these matches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, final

from quadweir.algebra.expressions import Bound, Exists, Expression, VariableExpression
from quadweir.algebra.scopes import mentioned
from quadweir.algebra.traverse import rewrite_expressions
from quadweir.algebra.traverse import walk as walk_algebra
from quadweir.plan.nodes import (
    Distinct,
    Extend,
    Filter,
    Join,
    PlanNode,
    Project,
    Route,
    StaticRelation,
    Union,
)
from quadweir.plan.program import Program
from quadweir.terms import Variable

MOST_VALUES: Final = 1000
"""Static data with more different values is left to the join."""

ValuesOf: TypeAlias = Callable[[StaticRelation, Variable], tuple[str, ...] | None]
"""Returns the values of a variable in a static relation, in order; None if there are too many."""


@final
@dataclass(frozen=True)
class Condition:
    """The requirements on a match; all must hold.

    Attributes:
        expressions: Expressions over what it binds.
        joined: Variables whose value some row of a static relation must have.
        values: The same once the values are known and few.
        parameters: Variables whose value must be that of a parameter of the template, for one and
        the same member. Which values members have is not part of the plan.
    """

    expressions: tuple[Expression, ...] = ()
    joined: tuple[tuple[Variable, StaticRelation], ...] = ()
    values: tuple[tuple[Variable, tuple[str, ...]], ...] = ()
    parameters: tuple[tuple[Variable, Variable], ...] = ()

    def both(self, other: Condition) -> Condition:
        return Condition(
            self.expressions + other.expressions,
            self.joined + other.joined,
            parameters=self.parameters + other.parameters,
        )

    def resolved(self, values_of: ValuesOf) -> Condition:
        """The condition with the values of static relations, where they are few."""
        found = [(variable, values_of(each, variable)) for variable, each in self.joined]
        return replace(
            self,
            joined=(),
            values=tuple((variable, each) for variable, each in found if each is not None),
        )

    def __bool__(self) -> bool:
        return bool(self.expressions or self.joined or self.values or self.parameters)


def find_conditions(program: Program) -> dict[int, tuple[Condition, ...]]:
    """For each match, the conditions of which a needed match fulfils at least one."""
    if program.why_not is not None:
        return {}
    users: dict[PlanNode, list[PlanNode]] = {}
    for node in program.nodes:
        for each in set(node.inputs):
            users.setdefault(each, []).append(node)
    template = program.template
    parameters = frozenset(template.parameters) if template is not None else frozenset()
    finder = _Finder(program.root, users, parameters)
    found = {}
    for place, window in enumerate(program.windows):
        if window.match.pattern is None or place in program.trackers:
            continue
        conditions = finder.above(window, frozenset(window.match.variables))
        if all(conditions):
            found[place] = conditions
    return found


def find_asked(
    program: Program,
) -> dict[int, tuple[tuple[tuple[Variable, Variable], ...], ...]]:
    """For each match of a template, which variables must have the values of which parameters.

    A match is needed if it fulfils one of several alternatives for some member. Each alternative
    pairs variables of the match with parameters. Matches that are needed in any case are left out.
    """
    found = {}
    for place, conditions in find_conditions(program).items():
        alternatives = tuple(dict.fromkeys(each.parameters for each in conditions))
        if all(alternatives):
            found[place] = alternatives
    return found


MOST_NODES: Final = 1000
"""Conditions with more operators are left to the operators themselves.

In a chain of BINDs that each use the one before twice, the expression doubles with every BIND.
"""

Bindings: TypeAlias = Mapping[Variable, Expression]
NOTHING_BOUND: Final[Bindings] = {}


def _spelled_out(expression: Expression, bound: Bindings) -> Expression | None:
    """Replace variables by their BIND expressions; None if that changes the meaning or becomes too
    long.

    If BIND fails, its variable is unbound, and expressions that use it fail like the expression
    itself. Only BOUND sees the difference.
    """
    if not bound:
        return expression
    nodes = 0
    for each in walk_algebra(expression):
        if isinstance(each, Exists) or (isinstance(each, Bound) and each.variable in bound):
            return None
        # Bound expressions are limited in size themselves, so counting is fast.
        value = bound.get(each.variable) if isinstance(each, VariableExpression) else None
        nodes += 1 if value is None else sum(1 for _ in walk_algebra(value))
        if nodes > MOST_NODES:
            return None

    def put(each: Expression) -> Expression:
        return bound.get(each.variable, each) if isinstance(each, VariableExpression) else each

    return rewrite_expressions(expression, put)


@final
@dataclass(frozen=True)
class _Finder:
    root: PlanNode
    users: Mapping[PlanNode, Sequence[PlanNode]]
    parameters: frozenset[Variable]

    def above(
        self, node: PlanNode, variables: frozenset[Variable], bound: Bindings = NOTHING_BOUND
    ) -> tuple[Condition, ...]:
        """Follow the rows of a node upwards.

        `variables` are those that they had from below, and `bound` what BIND made of these.
        """
        if node == self.root or node not in self.users:
            return (self._asked(variables, bound),)
        return tuple(
            condition
            for user in self.users[node]
            for condition in self._through(user, node, variables, bound)
        )

    def _through(
        self, node: PlanNode, source: PlanNode, variables: frozenset[Variable], bound: Bindings
    ) -> tuple[Condition, ...]:
        own = Condition()
        match node:
            case Filter(condition=condition):
                spelled_out = _spelled_out(condition, bound)
                if spelled_out is not None and mentioned(spelled_out) <= variables:
                    own = Condition((spelled_out,))
            case Project() | Distinct() | Union() | Route():
                kept = frozenset(node.variables)
                variables &= kept
                bound = {variable: each for variable, each in bound.items() if variable in kept}
            case Extend(variable=variable, expression=expression):
                spelled_out = _spelled_out(expression, bound)
                if spelled_out is not None and mentioned(spelled_out) <= variables:
                    bound = {**bound, variable: spelled_out}
            case Join(inputs=inputs):
                own = Condition(
                    joined=tuple(
                        (variable, each)
                        for each in inputs
                        if each != source and isinstance(each, StaticRelation)
                        for variable in sorted(variables & each.always)
                    )
                )
            case _:
                return (own.both(self._asked(variables, bound)),)
        return tuple(own.both(each) for each in self.above(node, variables, bound))

    def _asked(self, variables: frozenset[Variable], bound: Bindings) -> Condition:
        """The parameters that a row has from below: it has them in the answers, too."""
        found = []
        for parameter in sorted(self.parameters):
            if parameter in variables:
                found.append((parameter, parameter))
            value = bound.get(parameter)
            if isinstance(value, VariableExpression):
                found.append((value.variable, parameter))
        return Condition(parameters=tuple(found))
