"""Properties of a query's shape, known before its nodes are made."""

from __future__ import annotations

from dataclasses import replace

from quadweir.algebra import functions
from quadweir.algebra.analyze import compares_derivations, subpatterns
from quadweir.algebra.emptiness import is_closure
from quadweir.algebra.expressions import And, Exists, Expression, FunctionCall
from quadweir.algebra.patterns import (
    BasicPattern,
    Distinct,
    Filter,
    Graph,
    Join,
    OrderBy,
    PathPattern,
    Pattern,
    Project,
    Reduced,
    Slice,
    Union,
    Values,
    WindowPattern,
)
from quadweir.algebra.query import ConstructForm, ContinuousQuery, SelectForm
from quadweir.algebra.scopes import always_bound, mentioned
from quadweir.algebra.streams import OutputOperator, ReportPolicy
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import CountScope, is_stepped
from quadweir.terms import Variable


def is_eager(query: ContinuousQuery) -> bool:
    """Whether answers may leave as soon as their parts have arrived (E1).

    Not with count windows: an element that is late but within the delay can still push others out.
    """
    return (
        query.output is OutputOperator.ISTREAM
        and query.report.policy is ReportPolicy.ON_CHANGE
        and not query.report.non_empty_only
        and query.tick.every_ms is None
        and compares_derivations(query)
        and not any(
            is_stepped(window.scope) or isinstance(window.scope, CountScope)
            for window in query.windows
        )
    )


def reports_on_close(query: ContinuousQuery) -> bool:
    """Whether a query reports at fixed instants rather than when something changes."""
    return query.tick.every_ms is not None or query.report.policy is ReportPolicy.ON_CLOSE


def is_volatile(node: object) -> bool:
    """Whether an expression changes by itself."""
    return isinstance(node, FunctionCall) and functions.is_volatile(node.function)


def has_exists(expression: Expression) -> bool:
    """Whether an expression contains EXISTS."""
    return any(isinstance(node, Exists) for node in walk(expression))


def conjuncts(condition: Expression) -> list[Expression]:
    """The conjuncts of a condition."""
    if not isinstance(condition, And):
        return [condition]
    return [each for part in condition.parts for each in conjuncts(part)]


def waits(condition: Expression, source: Pattern, query: ContinuousQuery) -> bool:
    """Whether a filter may be applied later; it must be, to keep its input flat."""
    return (
        not has_exists(condition)
        and mentioned(condition) <= always_bound(source, query)
        and not (isinstance(source, BasicPattern) and len(source.patterns) == 1)
    )


def is_plain(pattern: Pattern, query: ContinuousQuery) -> bool:
    """Whether a pattern consists only of triple patterns, joins, unions and filters."""
    for each in subpatterns(pattern):
        match each:
            case BasicPattern(patterns=patterns):
                if any(isinstance(p, PathPattern) and is_closure(p.path) for p in patterns):
                    return False
            case Filter(condition=condition, input=source):
                if has_exists(condition) or not mentioned(condition) <= always_bound(source, query):
                    return False
            case Join() | Union() | Values() | WindowPattern() | Graph():
                pass
            case _:
                return False
    return True


def answer_variables(query: ContinuousQuery) -> tuple[Variable, ...]:
    """Name the columns of a query's answers."""
    match query.form:
        case SelectForm(variables=variables):
            return variables
        case ConstructForm() as form:
            return form.variables
        case _:
            return (Variable("boolean"),)


def modifiers_of(pattern: Pattern, *, orders: bool) -> tuple[list[Pattern], Pattern]:
    """Split off ORDER BY, LIMIT and the operators above them; the innermost comes first."""
    chain: list[Pattern] = []
    rest = pattern
    while isinstance(rest, Slice | Distinct | Reduced | Project | OrderBy):
        chain.append(rest)
        rest = rest.input
    if not orders and not any(isinstance(each, Slice) for each in chain):
        return [], pattern
    while chain and not isinstance(chain[-1], Slice | OrderBy):
        rest = chain.pop()
    return chain[::-1], rest


def alone(query: ContinuousQuery, pattern: Pattern) -> ContinuousQuery:
    """A query of one pattern without windows."""
    return replace(
        query,
        pattern=pattern,
        windows=(),
        default_graphs=(),
        named_graphs=(),
        default_graph_windows=(),
    )
