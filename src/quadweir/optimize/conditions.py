"""The properties of an expression that decide whether a rule may move it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Final

from quadweir.algebra.expressions import (
    And,
    Bound,
    Compare,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    In,
    Not,
    Or,
)
from quadweir.algebra.functions import lookup
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import WindowPattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.signatures import Determinism, Type
from quadweir.algebra.traverse import walk
from quadweir.algebra.values import BOOLEAN
from quadweir.terms import Variable

_NO_STREAMS: Final[frozenset[Variable]] = frozenset()


def conjuncts(condition: Expression) -> tuple[Expression, ...]:
    """The parts that must all be true for FILTER to keep a solution.

    A filter keeps a solution if the condition's effective boolean value is true. That of a
    conjunction is true only if all parts are true, so no part is an error.
    """
    if isinstance(condition, And):
        return tuple(part for each in condition.parts for part in conjuncts(each))
    return (condition,)


def conjunction(parts: Iterable[Expression]) -> Expression:
    """The conjunction of conjuncts."""
    flat = tuple(parts)
    return flat[0] if len(flat) == 1 else And(parts=flat)


def variables_of(node: Node, query: ContinuousQuery) -> frozenset[Variable]:
    """Every variable in a tree, including those inside EXISTS and subqueries.

    The value of an expression can depend on no other variable of the solution.
    """
    found: set[Variable] = set()
    for each in walk(node):
        for place in fields(each):
            value = getattr(each, place.name)
            if isinstance(value, Variable):
                found.add(value)
            elif isinstance(value, tuple):
                found.update(part for part in value if isinstance(part, Variable))
        if isinstance(each, WindowPattern):
            found.update(stream_variables(query))
    return frozenset(found)


def stream_variables(query: ContinuousQuery) -> frozenset[Variable]:
    """The variables that the query's windows bind to the stream they are over."""
    return frozenset(w.stream for w in query.windows if isinstance(w.stream, Variable))


def is_volatile(node: Node) -> bool:
    """Whether a tree may give different values for the same solution.

    An unknown function counts too.
    """
    functions = (lookup(each.function) for each in walk(node) if isinstance(each, FunctionCall))
    return any(
        function is None or function.determinism is Determinism.PER_SOLUTION
        for function in functions
    )


def reads_times(node: Node) -> bool:
    """Whether a tree calls `timestamp()`.

    A join keeps the later of its inputs' times, so such a condition sees less before a join.
    """
    return any(
        isinstance(each, FunctionCall) and each.function == "TIMESTAMP" for each in walk(node)
    )


def has_exists(node: Node) -> bool:
    """Whether a tree contains an EXISTS, which depends on the graph or window around it."""
    return any(isinstance(each, Exists) for each in walk(node))


def is_boolean(expression: Expression) -> bool:
    """Whether an expression is always an `xsd:boolean` or an error."""
    match expression:
        case And() | Or() | Not() | Compare() | In() | Bound() | Exists():
            return True
        case Constant(term=term):
            return getattr(term, "datatype", None) == BOOLEAN
        case FunctionCall(function=name):
            function = lookup(name)
            return function is not None and all(
                each.result is Type.BOOLEAN for each in function.signatures
            )
        case _:
            return False
