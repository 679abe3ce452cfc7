"""Merge nested filters, and drop filters that are always true."""

from __future__ import annotations

from quadweir.algebra.expressions import Constant
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import Filter, LeftJoin, Pattern, Values
from quadweir.algebra.scopes import in_scope, visible
from quadweir.algebra.values import effective_boolean_value
from quadweir.optimize.conditions import conjunction, conjuncts


def merge_filters(node: Pattern) -> Pattern:
    """Turn Filter(a, Filter(b, P)) into Filter(b AND a, P); drop a filter that is always true.

    >>> from quadweir.algebra.patterns import BasicPattern
    >>> from quadweir.algebra.values import TRUE
    >>> merge_filters(Filter(input=BasicPattern(), condition=Constant(term=TRUE)))
    BasicPattern(patterns=())
    """
    match node:
        case Filter(condition=Constant(), input=source):
            # A constant without a boolean value is an error, which a filter treats as false.
            return source if _is_true(node.condition) else _nothing(source)
        case Filter(condition=outer, input=Filter(condition=inner, input=source)):
            parts = dict.fromkeys((*conjuncts(inner), *conjuncts(outer)))
            return Filter(condition=conjunction(parts), input=source, span=node.span)
        case LeftJoin(condition=Constant()) if _is_true(node.condition):
            return LeftJoin(left=node.left, right=node.right, span=node.span)
        case _:
            return node


def _is_true(condition: object) -> bool:
    if not isinstance(condition, Constant):
        return False
    try:
        return effective_boolean_value(condition.term)
    except ExpressionError:
        return False


def _nothing(source: Pattern) -> Pattern:
    """No solution, over the same variables."""
    return Values(variables=visible(in_scope(source)), rows=())
