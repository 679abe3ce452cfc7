"""Push filters as close to the data as possible: into joins, windows and basic patterns.

A condition may move below an operator if, for every solution, it sees the same values there. So
for each variable it names (those inside EXISTS too) the value must be the same, and so must be
whether there is one. The cases:

- Join: one input always binds the variable, or no other input can.
- OPTIONAL: the same, for the left side only; a part of OPTIONAL's own condition may go to the
  right side, where it decides about partners just as well.
- Subquery: the variable is projected. Another variable of the same name inside is not the same.
- GROUP BY: the variable is a key; and there is a key, since without one an empty group answers.
- LIMIT: never.

A condition with RAND or a similar function does not move. One with `timestamp()` does not move
below a join, which keeps the later of two times. EXISTS depends on the graph around it, so it does
not move into GRAPH or WINDOW.
"""

from __future__ import annotations

from collections.abc import Sequence

from quadweir.algebra.expressions import Expression
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
    TriplePattern,
    Union,
    WindowPattern,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.scopes import always_bound, in_scope
from quadweir.algebra.traverse import rewrite_patterns
from quadweir.optimize.conditions import (
    conjunction,
    conjuncts,
    has_exists,
    is_volatile,
    reads_times,
    stream_variables,
    variables_of,
)
from quadweir.terms import Variable


def push_filters(query: ContinuousQuery) -> ContinuousQuery:
    """Move every conjunct of every filter down as far as it may go."""

    def push(node: Pattern) -> Pattern:
        match node:
            case Filter():
                return _push_filter(node, query)
            case LeftJoin(condition=condition) if condition is not None:
                return _push_condition(node, condition, query)
            case _:
                return node

    return rewrite_patterns(query, push)


def _push_filter(node: Filter, query: ContinuousQuery) -> Pattern:
    source = node.input
    staying: list[Expression] = []
    for part in conjuncts(node.condition):
        moved = None if is_volatile(part) else _below(part, source, query)
        if moved is None:
            staying.append(part)
        else:
            source = moved
    if source is node.input:
        return node
    if not staying:
        return source
    return Filter(condition=conjunction(staying), input=source, span=node.span)


def _push_condition(node: LeftJoin, condition: Expression, query: ContinuousQuery) -> Pattern:
    """Move parts of OPTIONAL's condition that are about the right side only into it."""
    going: list[Expression] = []
    staying: list[Expression] = []
    for part in conjuncts(condition):
        movable = not is_volatile(part) and not reads_times(part)
        fits = movable and _same_values(part, node.right, (node.left,), query)
        (going if fits else staying).append(part)
    if not going:
        return node
    return LeftJoin(
        left=node.left,
        right=Filter(input=node.right, condition=conjunction(going)),
        condition=conjunction(staying) if staying else None,
        span=node.span,
    )


def _same_values(
    condition: Expression, chosen: Pattern, others: Sequence[Pattern], query: ContinuousQuery
) -> bool:
    """Whether `condition` has the same value in `chosen` as in its join with the others."""
    certain = always_bound(chosen, query)
    elsewhere: frozenset[Variable] = frozenset().union(*(in_scope(o, query) for o in others))
    needed = variables_of(condition, query)
    return all(each in certain or each not in elsewhere for each in needed)


def _below(condition: Expression, source: Pattern, query: ContinuousQuery) -> Pattern | None:
    """Put a condition under `source`; None if it cannot go there."""
    needed = variables_of(condition, query)

    def filtered(pattern: Pattern) -> Pattern:
        return _placed(condition, pattern, query)

    match source:
        case Filter(input=inner, condition=other):
            moved = _below(condition, inner, query)
            if moved is not None:
                return Filter(input=moved, condition=other, span=source.span)
            parts = dict.fromkeys((*conjuncts(other), condition))
            return Filter(input=inner, condition=conjunction(parts), span=source.span)
        case Join():
            return _into_join(condition, source, query)
        case LeftJoin(left=left, right=right):
            if reads_times(condition) or not _same_values(condition, left, (right,), query):
                return None
            return LeftJoin(
                left=filtered(left), right=right, condition=source.condition, span=source.span
            )
        case Minus(left=left, right=right):
            return Minus(left=filtered(left), right=right, span=source.span)
        case Union(inputs=inputs):
            return Union(inputs=tuple(map(filtered, inputs)), span=source.span)
        # BNODE("a") is one node in all of a chain of BINDs: no filter comes between them.
        case Extend(variable=variable) if variable not in needed and not is_volatile(
            source.expression
        ):
            return Extend(
                input=filtered(source.input),
                variable=variable,
                expression=source.expression,
                span=source.span,
            )
        case Graph(graph=graph) if graph not in needed and not has_exists(condition):
            return Graph(graph=graph, input=filtered(source.input), span=source.span)
        case WindowPattern(window=window) if (
            window not in needed
            and not has_exists(condition)
            and not needed & (stream_variables(query) - always_bound(source.input, query))
        ):
            return WindowPattern(window=window, input=filtered(source.input), span=source.span)
        case Project(variables=variables) if needed <= set(variables) and not reads_times(
            condition
        ):
            return Project(input=filtered(source.input), variables=variables, span=source.span)
        case Distinct():
            return Distinct(input=filtered(source.input), span=source.span)
        case Reduced():
            return Reduced(input=filtered(source.input), span=source.span)
        case OrderBy():
            return OrderBy(input=filtered(source.input), keys=source.keys, span=source.span)
        case Group(keys=keys) if keys and needed <= set(keys) and not reads_times(condition):
            return Group(
                input=filtered(source.input),
                keys=keys,
                aggregates=source.aggregates,
                span=source.span,
            )
        case BasicPattern():
            return _into_basic(condition, source, needed)
        case _:
            return None


def _placed(condition: Expression, pattern: Pattern, query: ContinuousQuery) -> Pattern:
    """Put a condition as far below `pattern` as it may go, or on top of it."""
    moved = _below(condition, pattern, query)
    if moved is not None:
        return moved
    return Filter(input=pattern, condition=condition, span=condition.span)


def _into_join(condition: Expression, source: Join, query: ContinuousQuery) -> Pattern | None:
    """Put a condition at every input that always binds its variables, else at one that may."""
    if reads_times(condition):
        return None
    needed = variables_of(condition, query)
    certain = [bool(needed) and needed <= always_bound(each, query) for each in source.inputs]
    if has_exists(condition) and any(certain):
        # It costs as much as a join: once is enough.
        first = certain.index(True)
        certain = [place == first for place in range(len(certain))]
    if not any(certain):
        for place, each in enumerate(source.inputs):
            others = (*source.inputs[:place], *source.inputs[place + 1 :])
            if _same_values(condition, each, others, query):
                certain[place] = True
                break
        else:
            return None
    inputs: list[Pattern] = []
    for each, here in zip(source.inputs, certain, strict=True):
        placed = _placed(condition, each, query) if here else each
        # A basic pattern falls into a join, which is kept flat: many filters would nest it deeply.
        inputs.extend(placed.inputs if isinstance(placed, Join) else (placed,))
    return Join(inputs=tuple(inputs), span=source.span)


def _into_basic(
    condition: Expression, source: BasicPattern, needed: frozenset[Variable]
) -> Pattern | None:
    """Split off the one triple pattern of a basic pattern that binds all variables of the
    condition.
    """
    if len(source.patterns) < 2 or not needed or has_exists(condition) or reads_times(condition):
        return None
    for place, triple in enumerate(source.patterns):
        if not isinstance(triple, TriplePattern):
            continue
        if needed <= {triple.subject, triple.predicate, triple.object}:
            rest = (*source.patterns[:place], *source.patterns[place + 1 :])
            alone = BasicPattern(patterns=(triple,), span=triple.span)
            return Join(
                inputs=(
                    Filter(input=alone, condition=condition, span=condition.span),
                    BasicPattern(patterns=rest, span=source.span),
                ),
                span=source.span,
            )
    return None
