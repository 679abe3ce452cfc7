"""Parameters in place of constants.

If queries differ in a constant of a triple pattern, the constant becomes a variable, a *parameter*,
that is carried up to the answers. The answers of one query are those whose parameters have its
constants as values. This is correct if a parameter is bound in every solution, and if solutions with
different values of it never meet. So it is added to the projections of subqueries, to the keys of
groups and, through the projection, to the columns that DISTINCT compares.

A filter that compares an always bound variable with an IRI, such as `?s = <a> || ?o = <a>`, is a
lookup by that IRI. It becomes a union: each branch binds the parameter to one of the variables, and
leaves out what a branch before it has given. So no row comes twice, neither in bags nor in graphs.

Constants elsewhere stay constants: predicates, classes, the right side of OPTIONAL and MINUS, EXISTS,
UNION, below LIMIT, in a group without keys, at the ends of paths that repeat, in other expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, final

from quadweir.algebra.emptiness import is_closure
from quadweir.algebra.expressions import (
    And,
    Compare,
    Constant,
    Expression,
    FunctionCall,
    In,
    Not,
    Or,
    VariableExpression,
)
from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Link,
    Minus,
    OrderBy,
    PathPattern,
    Pattern,
    PatternTerm,
    Project,
    Reduced,
    TriplePattern,
    Union,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import always_bound
from quadweir.algebra.traverse import walk
from quadweir.plan.shapes import conjuncts
from quadweir.terms import IRI, Ground, Variable
from quadweir.vocab import RDF

_TYPE: Final = IRI(RDF.type)


@final
class Parametrizer:
    """Replaces the constants of one query.

    Args:
        query: The query.
        static: Whether to replace those of patterns over static data, too. Such patterns are then
        solved once for all values.

    Attributes:
        found: The parameter of each constant, in the order in which they occur.
    """

    def __init__(self, query: ContinuousQuery, *, static: bool = True) -> None:
        self._query = query
        # Whether the patterns that are replaced now are matched in windows, or may be static too.
        self._replaces = static or bool(query.default_graph_windows)
        self._may_replace: Callable[[Ground], bool] = lambda _: True
        self.found: dict[Ground, Variable] = {}

    def pattern(self) -> Pattern:
        """The pattern of the query with parameters.

        Patterns that no variable connects are joined in all combinations. So only the constants of
        one group of connected patterns become parameters.
        """
        pattern, _ = self._map(self._query.pattern)
        connected = _connected(pattern, frozenset(self.found.values()))
        if len(connected) > 1:
            best = max(connected, key=len)
            own = {term for term, parameter in self.found.items() if parameter in best}
            self._may_replace = own.__contains__
            self.found = {}
            pattern, _ = self._map(self._query.pattern)
        return pattern

    def _parameter(self, term: Ground) -> Variable | Ground:
        if not self._replaces or not self._may_replace(term):
            return term
        # A blank cannot be spelled in a name; not hidden, since it has to be projected.
        return self.found.setdefault(term, Variable(f"parameter {len(self.found)}"))

    def _map(self, pattern: Pattern) -> tuple[Pattern, frozenset[Variable]]:
        """Replace constants, in a fixed order.

        Returns also the parameters; every solution of the new pattern binds them.
        """
        match pattern:
            case BasicPattern(patterns=patterns):
                mapped = tuple(map(self._triple, patterns))
                return replace(pattern, patterns=mapped), _parameters_of(mapped)
            case Join(inputs=inputs):
                parts = [self._map(each) for each in inputs]
                new = replace(pattern, inputs=tuple(part for part, _ in parts))
                return new, frozenset().union(*(variables for _, variables in parts))
            case Filter():
                return self._filter(pattern)
            case WindowPattern():
                before, self._replaces = self._replaces, True
                below, variables = self._map(pattern.input)
                self._replaces = before
                return replace(pattern, input=below), variables
            case Extend() | Graph() | Distinct() | Reduced() | OrderBy() | Project():
                below, variables = self._map(pattern.input)
                new_pattern = replace(pattern, input=below)
                if isinstance(new_pattern, Project):
                    columns = (*new_pattern.variables, *sorted(variables))
                    new_pattern = replace(new_pattern, variables=tuple(dict.fromkeys(columns)))
                return new_pattern, variables
            case Group(keys=keys) if keys:
                below, variables = self._map(pattern.input)
                columns = tuple(dict.fromkeys((*keys, *sorted(variables))))
                return replace(pattern, input=below, keys=columns), variables
            case LeftJoin() | Minus():
                below, variables = self._map(pattern.left)
                return replace(pattern, left=below), variables
            case _:
                return pattern, frozenset()

    def _triple(self, triple: TriplePattern | PathPattern) -> TriplePattern | PathPattern:
        match triple:
            case TriplePattern(predicate=predicate):
                is_class = predicate == _TYPE
            case PathPattern(path=path) if is_closure(path):
                # A path of no steps leads from a constant to itself, even if no triple has it.
                return triple
            case PathPattern(path=path):
                is_class = Link(predicate=_TYPE) in walk(path)
        if not _has_variable(triple):
            return triple
        return replace(
            triple,
            subject=self._end(triple.subject),
            object=triple.object if is_class else self._end(triple.object),
        )

    def _end(self, term: PatternTerm) -> PatternTerm:
        return term if isinstance(term, Variable) else self._parameter(term)

    def _filter(self, pattern: Filter) -> tuple[Pattern, frozenset[Variable]]:
        below, variables = self._map(pattern.input)
        bound = always_bound(pattern.input, self._query)
        left: list[Expression] = []
        for each in conjuncts(pattern.condition):
            lookup = _lookup(each)
            if lookup is None or not frozenset(lookup[1]) <= bound:
                left.append(each)
                continue
            parameter = self._parameter(lookup[0])
            if not isinstance(parameter, Variable):
                left.append(each)
            elif parameter in variables:
                left.append(_any([_same(variable, parameter) for variable in lookup[1]]))
            else:
                below = _bound_to(below, parameter, lookup[1])
                variables |= {parameter}
        if not left:
            return below, variables
        return replace(pattern, input=below, condition=_all(left)), variables


def _lookup(condition: Expression) -> tuple[IRI, tuple[Variable, ...]] | None:
    """The IRI that one of some variables must be; None if the condition is another one."""
    parts = condition.parts if isinstance(condition, Or) else (condition,)
    found: dict[Variable, IRI] = {}
    for part in parts:
        match part:
            case (
                Compare(
                    operator="=",
                    left=VariableExpression(variable=variable),
                    right=Constant(term=IRI() as term),
                )
                | Compare(
                    operator="=",
                    left=Constant(term=IRI() as term),
                    right=VariableExpression(variable=variable),
                )
                | FunctionCall(
                    function="SAMETERM",
                    arguments=(
                        VariableExpression(variable=variable),
                        Constant(term=IRI() as term),
                    ),
                )
                | In(
                    operand=VariableExpression(variable=variable),
                    choices=(Constant(term=IRI() as term),),
                    negated=False,
                )
            ):
                if found.setdefault(variable, term) != term:
                    return None
            case _:
                return None
    if len(set(found.values())) != 1:
        return None
    return next(iter(found.values())), tuple(found)


def _bound_to(source: Pattern, parameter: Variable, variables: tuple[Variable, ...]) -> Pattern:
    """The rows of `source`, once for each different value of the variables, with that value."""
    branches: list[Pattern] = []
    for place, variable in enumerate(variables):
        others: list[Expression] = [
            Not(operand=_same(each, variable)) for each in variables[:place]
        ]
        own = Filter(input=source, condition=_all(others)) if others else source
        branches.append(
            Extend(input=own, variable=parameter, expression=VariableExpression(variable=variable))
        )
    return branches[0] if len(branches) == 1 else Union(inputs=tuple(branches))


def _same(left: Variable, right: Variable) -> Expression:
    terms = (VariableExpression(variable=left), VariableExpression(variable=right))
    return FunctionCall(function="SAMETERM", arguments=terms)


def _all(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else And(parts=tuple(parts))


def _any(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else Or(parts=tuple(parts))


def _has_variable(triple: TriplePattern | PathPattern) -> bool:
    predicate = triple.predicate if isinstance(triple, TriplePattern) else None
    return any(isinstance(each, Variable) for each in (triple.subject, predicate, triple.object))


def _parameters_of(patterns: tuple[TriplePattern | PathPattern, ...]) -> frozenset[Variable]:
    ends = (end for each in patterns for end in (each.subject, each.object))
    return frozenset(end for end in ends if isinstance(end, Variable) and is_parameter(end))


def is_parameter(variable: Variable) -> bool:
    """Whether a variable stands for a constant."""
    return variable.name.startswith("parameter ")


def _connected(pattern: Pattern, parameters: frozenset[Variable]) -> list[frozenset[Variable]]:
    """The parameters, those together whose triple patterns are connected by variables."""
    groups: list[set[Variable]] = []
    for own in _variables_of_patterns(pattern):
        if own:
            touched = [each for each in groups if each & own]
            groups = [each for each in groups if not each & own]
            groups.append(own.union(*touched))
    found = (frozenset(each & parameters) for each in groups)
    return [each for each in found if each]


def _variables_of_patterns(pattern: Pattern) -> Iterator[set[Variable]]:
    """The variables of each triple pattern, and those that each BIND connects."""
    for node in walk(pattern):
        match node:
            case TriplePattern() | PathPattern():
                terms = (node.subject, getattr(node, "predicate", None), node.object)
                yield {each for each in terms if isinstance(each, Variable)}
            case Extend(variable=variable, expression=VariableExpression(variable=source)):
                yield {variable, source}
            case _:
                pass
