"""What can be said of the shape of a query before its operators are made."""

from __future__ import annotations

from dataclasses import replace

from quadweir.algebra import functions
from quadweir.algebra.analyze import compares_derivations, subpatterns
from quadweir.algebra.emptiness import is_closure
from quadweir.algebra.expressions import And, Call, Exists, Expression
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
    """Tell whether answers may leave as soon as their parts have arrived (E1).

    Count windows are left out: what arrives late but in time can still push elements out of them.
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


def is_volatile(node: object) -> bool:
    """Tell whether an expression changes by itself."""
    return isinstance(node, Call) and functions.is_volatile(node.function)


def has_exists(expression: Expression) -> bool:
    """Tell whether there is an EXISTS in an expression."""
    return any(isinstance(node, Exists) for node in walk(expression))


def conjuncts(condition: Expression) -> list[Expression]:
    """List what all has to be true for a condition to be true."""
    if not isinstance(condition, And):
        return [condition]
    return [each for part in condition.parts for each in conjuncts(part)]


def waits(condition: Expression, source: Pattern, query: ContinuousQuery) -> bool:
    """Tell whether a filter may be applied later, and has to be if its input is to be flat."""
    return (
        not has_exists(condition)
        and mentioned(condition) <= always_bound(source, query)
        and not (isinstance(source, BasicPattern) and len(source.patterns) == 1)
    )


def is_plain(pattern: Pattern, query: ContinuousQuery) -> bool:
    """Tell whether a pattern is made of triple patterns, joins, unions and filters alone."""
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
    """Part ORDER BY, LIMIT and what stands above them from the rest; innermost first."""
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
    """Give a query of one pattern, over no data but what the pattern itself has."""
    return replace(
        query,
        pattern=pattern,
        windows=(),
        default_graphs=(),
        named_graphs=(),
        default_graph_windows=(),
    )
