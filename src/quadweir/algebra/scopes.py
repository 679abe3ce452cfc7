"""Which variables a pattern may bind, which it always binds, and which an expression names."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from quadweir.algebra.expressions import (
    And,
    Bound,
    Constant,
    Exists,
    Expression,
    VariableExpression,
)
from quadweir.algebra.node import Node
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
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Service,
    Slice,
    TriplePattern,
    Union,
    Values,
    WindowPattern,
    is_hidden,
)
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.traverse import children
from quadweir.algebra.windows import Window
from quadweir.terms import IRI, Variable

Variables: TypeAlias = frozenset[Variable]


def in_scope(pattern: Pattern, query: ContinuousQuery | None = None) -> Variables:
    """The variables that a solution may bind, including hidden ones.

    With the query at hand, the stream variables of its windows are known too.

    >>> from quadweir.terms import IRI
    >>> x, y = Variable("x"), Variable("y")
    >>> triple = TriplePattern(subject=x, predicate=IRI("urn:p"), object=y)
    >>> sorted(v.name for v in in_scope(BasicPattern(patterns=(triple,))))
    ['x', 'y']

    Spec: https://www.w3.org/TR/sparql11-query/#variableScope
    """
    match pattern:
        case BasicPattern():
            return frozenset().union(*(_pattern_variables(each) for each in pattern.patterns))
        case Values():
            return frozenset(pattern.variables)
        case Join() | Union():
            return frozenset().union(*(in_scope(each, query) for each in pattern.inputs))
        case LeftJoin():
            return in_scope(pattern.left, query) | in_scope(pattern.right, query)
        case Minus():
            return in_scope(pattern.left, query)
        case Extend():
            return in_scope(pattern.input, query) | {pattern.variable}
        case Graph():
            return in_scope(pattern.input, query) | _if_variable(pattern.graph)
        case Service():
            return in_scope(pattern.input, query) | _if_variable(pattern.endpoint)
        case WindowPattern():
            return (
                in_scope(pattern.input, query)
                | _if_variable(pattern.window)
                | _stream_variables(pattern, query)
            )
        case Group():
            return frozenset((*pattern.keys, *(each.variable for each in pattern.aggregates)))
        case Project():
            return frozenset(pattern.variables)
        case Filter() | Distinct() | Reduced() | OrderBy() | Slice():
            return in_scope(pattern.input, query)
        case _:
            assert_never(pattern)


def always_bound(pattern: Pattern, query: ContinuousQuery | None = None) -> Variables:
    """The variables that every solution binds, by the form of the pattern."""
    match pattern:
        case BasicPattern():
            return in_scope(pattern, query)
        case Values():
            return frozenset(
                variable
                for column, variable in enumerate(pattern.variables)
                if all(row[column] is not None for row in pattern.rows)
            )
        case Join():
            return frozenset().union(*(always_bound(each, query) for each in pattern.inputs))
        case Union():
            first, *rest = (always_bound(each, query) for each in pattern.inputs)
            return first.intersection(*rest)
        case LeftJoin() | Minus():
            return always_bound(pattern.left, query)
        case Extend():
            bound = always_bound(pattern.input, query)
            match pattern.expression:
                case Constant():
                    return bound | {pattern.variable}
                case VariableExpression(variable=source) if source in bound:
                    return bound | {pattern.variable}
                case _:
                    return bound
        case Graph():
            return always_bound(pattern.input, query) | _if_variable(pattern.graph)
        case Service():
            # A silent failure is the empty solution.
            inner = always_bound(pattern.input, query) | _if_variable(pattern.endpoint)
            return frozenset() if pattern.silent else inner
        case WindowPattern():
            return (
                always_bound(pattern.input, query)
                | _if_variable(pattern.window)
                | _stream_variables(pattern, query)
            )
        case Group():
            keys = always_bound(pattern.input, query) & frozenset(pattern.keys)
            counts = (e.variable for e in pattern.aggregates if e.call.function == "COUNT")
            return keys | frozenset(counts)
        case Project():
            return always_bound(pattern.input, query) & frozenset(pattern.variables)
        case Filter(input=source, condition=condition):
            return always_bound(source, query) | bound_by(condition)
        case Distinct() | Reduced() | OrderBy() | Slice():
            return always_bound(pattern.input, query)
        case _:
            assert_never(pattern)


def bound_by(condition: Expression) -> Variables:
    """The variables that are bound wherever a condition is true.

    >>> bound_by(Bound(variable=Variable("x")))
    frozenset({Variable(name='x')})
    """
    match condition:
        case Bound(variable=variable):
            return frozenset((variable,))
        case And(parts=parts):
            return frozenset().union(*map(bound_by, parts))
        case _:
            return frozenset()


def visible(variables: Variables) -> tuple[Variable, ...]:
    """Leave out hidden variables and put the others in order of name."""
    return tuple(sorted(variable for variable in variables if not is_hidden(variable)))


def mentioned(expression: Expression) -> Variables:
    """The variables of an expression, without those inside EXISTS."""
    return frozenset(_mentioned(expression))


def _mentioned(node: Node) -> set[Variable]:
    if isinstance(node, VariableExpression | Bound):
        return {node.variable}
    if isinstance(node, Exists):
        return set()
    return set().union(*map(_mentioned, children(node)))


def _pattern_variables(pattern: TriplePattern | PathPattern) -> Variables:
    terms: tuple[object, ...]
    if isinstance(pattern, TriplePattern):
        terms = (pattern.subject, pattern.predicate, pattern.object)
    else:
        terms = (pattern.subject, pattern.object)
    return frozenset(term for term in terms if isinstance(term, Variable))


def _if_variable(term: IRI | Variable) -> Variables:
    return frozenset((term,)) if isinstance(term, Variable) else frozenset()


def _stream_variables(pattern: WindowPattern, query: ContinuousQuery | None) -> Variables:
    if query is None:
        return frozenset()
    return frozenset().union(
        *(_if_variable(window.stream) for window in windows_of(pattern.window, query))
    )


def windows_of(name: IRI | Variable, query: ContinuousQuery) -> tuple[Window, ...]:
    """The windows of `WINDOW name { }`.

    A variable ranges over all windows but those that make up the default graph.
    """
    if isinstance(name, Variable):
        return tuple(w for w in query.windows if w.name not in query.default_graph_windows)
    return tuple(window for window in query.windows if window.name == name)
