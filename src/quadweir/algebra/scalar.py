"""The value of an expression for one solution.

Spec: https://www.w3.org/TR/sparql11-query/#expressions
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

from quadweir.algebra.expressions import (
    And,
    Arithmetic,
    Bound,
    Coalesce,
    Compare,
    Constant,
    Exists,
    Expression,
    FunctionCall,
    If,
    In,
    Negate,
    Not,
    Or,
    VariableExpression,
)
from quadweir.algebra.functions import call
from quadweir.algebra.moments import ExpressionError
from quadweir.algebra.patterns import Pattern
from quadweir.algebra.signatures import Context
from quadweir.algebra.solutions import Solution, time_term, time_variable
from quadweir.algebra.values import effective_boolean_value, equal, literal_of
from quadweir.terms import Term

ExistsTest: TypeAlias = Callable[[Pattern, Solution], bool]


def evaluate_expression(
    expression: Expression, solution: Solution, context: Context, exists: ExistsTest
) -> Term:
    """Compute an expression; `exists` decides EXISTS for a solution.

    Raises:
        ExpressionError: the expression has no value.

    >>> from quadweir.terms import Literal
    >>> concat = FunctionCall(function="CONCAT", arguments=(Constant(term=Literal("a")),) * 2)
    >>> evaluate_expression(concat, {}, Context(), lambda pattern, solution: False).lexical
    'aa'
    """

    def value(part: Expression) -> Term:
        return evaluate_expression(part, solution, context, exists)

    def truth(part: Expression) -> bool:
        return effective_boolean_value(value(part))

    match expression:
        case VariableExpression(variable=variable):
            if variable not in solution:
                raise ExpressionError(f"{variable} is not bound")
            return solution[variable]
        case Constant(term=term):
            return term
        case And(parts=parts):
            return literal_of(_all_true(parts, truth))
        case Or(parts=parts):
            return literal_of(not _all_true(parts, lambda part: not truth(part)))
        case Not(operand=operand):
            return literal_of(not truth(operand))
        case Compare(operator=operator, left=left, right=right):
            return call(operator, (value(left), value(right)), context)
        case Arithmetic(operator=operator, left=left, right=right):
            return call(operator, (value(left), value(right)), context)
        case Negate(operand=operand):
            return call("NEGATE", (value(operand),), context)
        case In(operand=operand, choices=choices, negated=negated):
            wanted = value(operand)
            found = not _all_true(choices, lambda part: not equal(wanted, value(part)))
            return literal_of(found != negated)
        case FunctionCall(function="TIMESTAMP", arguments=arguments):
            if len(arguments) == 3:
                subject, predicate, object_ = map(value, arguments)
                return _triple_time((subject, predicate, object_), context)
            return _timestamp(arguments, solution)
        case FunctionCall(function=function, arguments=arguments):
            return call(function, tuple(value(part) for part in arguments), context)
        case If(condition=condition, then=then, otherwise=otherwise):
            return value(then if truth(condition) else otherwise)
        case Coalesce(arguments=arguments):
            for part in arguments:
                try:
                    return value(part)
                except ExpressionError:
                    continue
            raise ExpressionError("COALESCE found no value")
        case Bound(variable=variable):
            return literal_of(variable in solution)
        case Exists(pattern=pattern, negated=negated):
            return literal_of(exists(pattern, solution) != negated)
        case _:
            assert_never(expression)


def _all_true(parts: tuple[Expression, ...], test: Callable[[Expression], bool]) -> bool:
    """True if all parts are true; false if one is false, even if another is an error; else the
    first error.
    """
    failure: ExpressionError | None = None
    for part in parts:
        try:
            if not test(part):
                return False
        except ExpressionError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return True


def _timestamp(arguments: tuple[Expression, ...], solution: Solution) -> Term:
    """The event time of the latest element that bound the variable, in milliseconds."""
    match arguments:
        case (VariableExpression(variable=variable),):
            time = solution.get(time_variable(variable))
            if time is not None:
                return time
            raise ExpressionError(f"{variable} was bound by no element of a stream")
        case _:
            raise ExpressionError("timestamp() asks for a variable or a triple")


def _triple_time(triple: tuple[Term, Term, Term], context: Context) -> Term:
    """The event time of the latest element in the query's windows that carries a triple."""
    time = context.triple_times.get(triple)
    if time is None:
        raise ExpressionError("no element in the query's windows carries this triple")
    return time_term(time)


def holds(expression: Expression, solution: Solution, context: Context, exists: ExistsTest) -> bool:
    """Whether FILTER keeps a solution: the condition is true, and no error."""
    try:
        return effective_boolean_value(evaluate_expression(expression, solution, context, exists))
    except ExpressionError:
        return False
