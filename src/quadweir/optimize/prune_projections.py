"""Drop columns that nothing uses."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    OrderBy,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ConstructForm, ContinuousQuery, DescribeForm, SelectForm
from quadweir.algebra.scopes import in_scope
from quadweir.optimize.conditions import variables_of
from quadweir.terms import Variable

_Variables: TypeAlias = frozenset[Variable]


def prune_projections(query: ContinuousQuery) -> ContinuousQuery:
    """Drop columns of subqueries, BINDs and aggregates whose value is never used.

    These columns stay: those in the answer, in an expression, or shared by two inputs of a join.
    Below DISTINCT all stay, since they decide which solutions are equal. Below LIMIT all stay,
    since they decide which of two equals is kept (A4). Patterns inside EXISTS are not changed.
    """
    form = query.form
    match form:
        case SelectForm(variables=variables):
            wanted = frozenset(variables)
        case ConstructForm(template=template):
            wanted = frozenset().union(*(variables_of(each, query) for each in template))
        case DescribeForm():
            wanted = variables_of(form, query)
        case _:
            wanted = frozenset()
    pattern = query.pattern
    match pattern:
        # The outermost projection is the shape of the answer.
        case Project(input=source):
            pruned = _with_input(pattern, _prune(source, frozenset(pattern.variables), query))
        case _:
            pruned = _prune(pattern, wanted, query)
    return query if pruned is pattern else replace(query, pattern=pruned)


def _prune(pattern: Pattern, wanted: _Variables, query: ContinuousQuery) -> Pattern:
    match pattern:
        case BasicPattern() | Values() | Service():
            return pattern
        case Join(inputs=inputs):
            scopes = [in_scope(each, query) for each in inputs]
            pruned = tuple(
                _prune(each, wanted.union(*scopes[:place], *scopes[place + 1 :]), query)
                for place, each in enumerate(inputs)
            )
            return _with_inputs(pattern, pruned)
        case Union(inputs=inputs):
            return _with_inputs(pattern, tuple(_prune(each, wanted, query) for each in inputs))
        case LeftJoin(left=left, right=right, condition=condition):
            named = wanted | (variables_of(condition, query) if condition else frozenset())
            new_left = _prune(left, named | in_scope(right, query), query)
            new_right = _prune(right, named | in_scope(left, query), query)
            if new_left is left and new_right is right:
                return pattern
            return replace(pattern, left=new_left, right=new_right)
        case Minus(left=left, right=right):
            new_left = _prune(left, wanted | in_scope(right, query), query)
            # The right side is only compared; variables that the left side cannot bind never
            # matter.
            new_right = _prune(right, in_scope(left, query), query)
            if new_left is left and new_right is right:
                return pattern
            return replace(pattern, left=new_left, right=new_right)
        case Filter(condition=condition):
            return _with_input(
                pattern, _prune(pattern.input, wanted | variables_of(condition, query), query)
            )
        case Extend(variable=variable, expression=expression):
            if variable not in wanted:
                return _prune(pattern.input, wanted, query)
            needed = wanted | variables_of(expression, query)
            return _with_input(pattern, _prune(pattern.input, needed, query))
        case Graph() | WindowPattern():
            # The name or the stream may be bound inside as well, and must agree.
            named = in_scope(pattern, query) - in_scope(pattern.input, query)
            name = pattern.graph if isinstance(pattern, Graph) else pattern.window
            if isinstance(name, Variable):
                named |= {name}
            streams = frozenset(w.stream for w in query.windows if isinstance(w.stream, Variable))
            return _with_input(pattern, _prune(pattern.input, wanted | named | streams, query))
        case Group():
            return _prune_group(pattern, wanted, query)
        case Project(variables=variables):
            kept = tuple(each for each in variables if each in wanted)
            # A projection without columns cannot be written, so one column stays.
            kept = kept or variables[:1]
            source = _prune(pattern.input, frozenset(kept), query)
            if kept == variables and source is pattern.input:
                return pattern
            return replace(pattern, variables=kept, input=source)
        case Distinct() | Reduced() | Slice():
            source = pattern.input
            return _with_input(pattern, _prune(source, wanted | in_scope(source, query), query))
        case OrderBy(keys=keys):
            named = wanted.union(*(variables_of(key, query) for key in keys))
            return _with_input(pattern, _prune(pattern.input, named, query))
        case _:
            assert_never(pattern)


def _prune_group(pattern: Group, wanted: _Variables, query: ContinuousQuery) -> Pattern:
    kept = tuple(each for each in pattern.aggregates if each.variable in wanted)
    named = frozenset(pattern.keys).union(*(variables_of(each.call, query) for each in kept))
    if any(each.call.argument is None and each.call.distinct for each in kept):
        named |= in_scope(pattern.input, query)  # COUNT(DISTINCT *)
    source = _prune(pattern.input, named, query)
    if len(kept) == len(pattern.aggregates) and source is pattern.input:
        return pattern
    return replace(pattern, aggregates=kept, input=source)


def _with_input(
    pattern: Filter
    | Extend
    | Graph
    | WindowPattern
    | Project
    | Distinct
    | Reduced
    | OrderBy
    | Slice,
    source: Pattern,
) -> Pattern:
    return pattern if source is pattern.input else replace(pattern, input=source)


def _with_inputs(pattern: Join | Union, inputs: tuple[Pattern, ...]) -> Pattern:
    if all(new is old for new, old in zip(inputs, pattern.inputs, strict=True)):
        return pattern
    return replace(pattern, inputs=inputs)
