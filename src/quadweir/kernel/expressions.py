"""Expressions over whole columns of terms.

The meaning is that of `algebra.scalar`. What follows from the numbers and kinds of terms is
computed on arrays; everything else once for each distinct combination of terms in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
from numpy.typing import NDArray

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
from quadweir.algebra.functions import call, default_context, is_volatile
from quadweir.algebra.node import Node
from quadweir.algebra.patterns import Pattern
from quadweir.algebra.scalar import evaluate_expression
from quadweir.algebra.solutions import Solution, time_variable
from quadweir.algebra.traverse import children, walk
from quadweir.algebra.values import FALSE as FALSE_TERM
from quadweir.algebra.values import TRUE as TRUE_TERM
from quadweir.algebra.values import effective_boolean_value
from quadweir.errors import InternalError
from quadweir.kernel import typed
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.dictionary import Dictionary, distinct_of
from quadweir.kernel.distinctcalls import DistinctCalls
from quadweir.kernel.estimates import UNSURE, estimate, may_estimate
from quadweir.kernel.spellings import INLINE_LIMIT, IS_BLANK, IS_IRI, IS_TRIPLE
from quadweir.kernel.typed import ASK, ASK_TRUTH, FALSE, NEITHER, TRUE
from quadweir.terms import IRI, Term, Variable

# The truth of a comparison by how its two terms stand to each other, in the order of the codes of
# `typed`: below, same, above, not a number, apart, alike, texts, error, ask.
_TRUTHS: Final = {
    "=": np.array([0, 1, 0, 0, 0, 1, 0, -1, ASK]),
    "!=": np.array([1, 0, 1, 1, 1, 0, 1, -1, ASK]),
    "<": np.array([1, 0, 0, 0, -1, -1, ASK, -1, ASK]),
    ">": np.array([0, 0, 1, 0, -1, -1, ASK, -1, ASK]),
    "<=": np.array([1, 1, 0, 0, -1, -1, ASK, -1, ASK]),
    ">=": np.array([0, 1, 1, 0, -1, -1, ASK, -1, ASK]),
}
_CALCULATIONS: Final = {"+": 0, "-": 1, "*": 2}
_KIND_TESTS: Final = ("ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "ISTRIPLE")
# From so many choices on, IN looks at each distinct term once.
_MANY_CHOICES: Final = 8


@dataclass(frozen=True, slots=True)
class _Batch:
    columns: Mapping[Variable, Ints]
    count: int

    def column(self, variable: Variable) -> Ints:
        found = self.columns.get(variable)
        return ints(self.count) if found is None else found

    def pick(self, places: Ints) -> _Batch:
        return _Batch({each: self.columns[each][places] for each in self.columns}, len(places))


class Vectorized:
    """An expression that is evaluated for many solutions at a time.

    It may hold neither EXISTS nor a function whose value changes from one call to the next.

    >>> from quadweir.terms import IRI, Literal
    >>> x = Variable("x")
    >>> seven = Constant(term=Literal("7", IRI("http://www.w3.org/2001/XMLSchema#integer")))
    >>> above = Compare(operator=">", left=VariableExpression(variable=x), right=seven)
    >>> dictionary = Dictionary()
    >>> numbers = dictionary.numbers([str(Literal("8", seven.term.datatype)), str(seven.term), "<urn:a>"])
    >>> Vectorized(above, dictionary).truth({x: numbers}, 3).tolist()
    [True, False, False]
    """

    def __init__(self, expression: Expression, dictionary: Dictionary) -> None:
        for each in walk(expression):
            volatile = isinstance(each, FunctionCall) and is_volatile(each.function)
            if volatile or isinstance(each, Exists):
                raise InternalError(
                    "an expression that changes by itself was handed over for whole columns"
                )
        self._expression = expression
        self._dictionary = dictionary
        self._context = default_context()
        self.variables = read_variables(expression)
        """What has to be among the columns; the times of variables are called by their names."""
        self._terms: list[Term] = [TRUE_TERM, FALSE_TERM]
        self._terms += [each.term for each in walk(expression) if isinstance(each, Constant)]
        self._numbers: dict[Term, int] = {}
        self._booleans = ints(3)
        self._generation = -1
        self._calls = DistinctCalls(dictionary)

    def truth(self, columns: Mapping[Variable, Ints], count: int) -> NDArray[np.bool_]:
        """Return where the expression is true; an error is not."""
        found: NDArray[np.bool_]
        found = self._truth(self._expression, self._batch(columns, count)) == TRUE
        return found

    def values(self, columns: Mapping[Variable, Ints], count: int) -> Ints:
        """Return the values as numbers, 0 for an error; new terms are not held yet."""
        return self._values(self._expression, self._batch(columns, count))

    def _batch(self, columns: Mapping[Variable, Ints], count: int) -> _Batch:
        if self._generation != self._dictionary.generation:
            numbers = self._dictionary.numbers([str(each) for each in self._terms])
            self._dictionary.keep(numbers)
            self._numbers = dict(zip(self._terms, numbers.tolist(), strict=True))
            # Indexed by truth: 0, 1, and -1 for an error, which is the last place.
            self._booleans = np.array([numbers[1], numbers[0], 0])
            self._generation = self._dictionary.generation
        wanted = {
            each: np.ascontiguousarray(columns[each], dtype=np.int64)
            for each in self.variables
            if each in columns
        }
        if any(len(each) != count for each in wanted.values()):
            raise InternalError("the columns of an expression are not of one length")
        return _Batch(wanted, count)

    # --- truth: 1, 0, or -1 for an error -------------------------------------------------------

    def _truth(self, node: Expression, batch: _Batch) -> Ints:
        match node:
            case And(parts=parts):
                return self._connect(parts, batch, FALSE)
            case Or(parts=parts):
                return self._connect(parts, batch, TRUE)
            case Not(operand=operand):
                found = self._truth(operand, batch)
                return np.where(found == NEITHER, NEITHER, 1 - found)
            case Compare() if batch.count and may_estimate(node):
                return self._estimate(node, batch)
            case Compare(operator=operator, left=left, right=right):
                return self._compare(
                    operator, self._values(left, batch), self._values(right, batch)
                )
            case In():
                return self._is_in(node, batch)
            case Bound(variable=variable):
                return np.where(batch.column(variable) != 0, TRUE, FALSE)
            case If(condition=condition, then=then, otherwise=otherwise):
                chosen = self._truth(condition, batch)
                rest = np.where(chosen == FALSE, self._truth(otherwise, batch), NEITHER)
                return np.where(chosen == TRUE, self._truth(then, batch), rest)
            case FunctionCall(function="SAMETERM", arguments=(left, right)):
                a, b = self._values(left, batch), self._values(right, batch)
                return np.where((a == 0) | (b == 0), NEITHER, a == b)
            case FunctionCall(function=str(name), arguments=(operand,)) if name in _KIND_TESTS:
                return self._test_kind(name, self._values(operand, batch))
            case _:
                return self._truth_of(self._values(node, batch))

    def _connect(self, parts: tuple[Expression, ...], batch: _Batch, decisive: int) -> Ints:
        """Connect truths: one `decisive` part decides, whatever the others are."""
        found = self._truth(parts[0], batch)
        for part in parts[1:]:
            places = np.flatnonzero(found != decisive)
            if 2 * len(places) > batch.count:
                more = self._truth(part, batch)
                joined = np.minimum(found, more) if decisive == TRUE else np.maximum(found, more)
                # Of an error and the truth that decides nothing, the error stays.
                joined = np.where((found == NEITHER) | (more == NEITHER), NEITHER, joined)
                found = np.where((found == decisive) | (more == decisive), decisive, joined)
            elif len(places):
                more = self._truth(part, batch.pick(places))
                before = found[places]
                keep_error = (before == NEITHER) & (more != decisive)
                found[places] = np.where(keep_error, NEITHER, more)
        return found

    def _estimate(self, node: Compare, batch: _Batch) -> Ints:
        """Compare with floats, and exactly where they cannot decide."""
        found = estimate(node, lambda each: self._values(each, batch), self._dictionary)
        unsure = np.flatnonzero(found == UNSURE)
        if len(unsure):
            some = batch.pick(unsure)
            left, right = self._values(node.left, some), self._values(node.right, some)
            found[unsure] = self._compare(node.operator, left, right)
        return found

    def _compare(self, operator: str, left: Ints, right: Ints) -> Ints:
        entries = self._dictionary.entries
        codes = ints(len(left))
        if not typed.order(left, right, *entries, codes):
            self._dictionary.look_at(left)
            self._dictionary.look_at(right)
            typed.order(left, right, *entries, codes)
        found = _TRUTHS[operator][codes]
        asked = np.flatnonzero(found == ASK)
        if len(asked):

            def one(terms: list[Term]) -> int:
                result = call(operator, (terms[0], terms[1]), self._context)
                return TRUE if result == TRUE_TERM else FALSE

            found[asked] = self._calls.integers(operator, (left[asked], right[asked]), one, NEITHER)
        return found

    def _is_in(self, node: In, batch: _Batch) -> Ints:
        wanted = self._values(node.operand, batch)
        constant = all(isinstance(each, Constant) for each in node.choices)
        if constant and len(node.choices) > _MANY_CHOICES:
            codes, distinct = distinct_of(wanted)
            numbers = _Batch({}, len(distinct))
            return self._is_any(distinct, node, numbers)[codes]
        return self._is_any(wanted, node, batch)

    def _is_any(self, wanted: Ints, node: In, batch: _Batch) -> Ints:
        found = np.full(len(wanted), FALSE)
        for choice in node.choices:
            more = self._compare("=", wanted, self._values(choice, batch))
            error = (found == NEITHER) | (more == NEITHER)
            found = np.where(
                (found == TRUE) | (more == TRUE), TRUE, np.where(error, NEITHER, FALSE)
            )
        if node.negated:
            found = np.where(found == NEITHER, NEITHER, 1 - found)
        found[wanted == 0] = NEITHER
        return found

    def _test_kind(self, name: str, numbers: Ints) -> Ints:
        if name == "ISNUMERIC":
            self._dictionary.look_at(numbers)
        # An integer without an entry has no kind there; slot 0 stands in for it.
        inline = numbers >= INLINE_LIMIT
        kind = self._dictionary.entries[1][np.where(inline, 0, numbers)]
        kind[inline] = typed.INTEGER
        match name:
            case "ISBLANK":
                found = kind == IS_BLANK
            case "ISLITERAL":
                found = (kind != IS_BLANK) & (kind != IS_IRI) & (kind != IS_TRIPLE)
            case "ISTRIPLE":
                found = kind == IS_TRIPLE
            case "ISNUMERIC":
                found = (kind >= typed.INTEGER) & (kind <= typed.DOUBLE)
            case _:
                found = kind == IS_IRI
        return np.where(numbers == 0, NEITHER, found)

    def _truth_of(self, numbers: Ints) -> Ints:
        """The effective boolean values of terms."""
        entries = self._dictionary.entries
        found = ints(len(numbers))
        if not typed.truths(numbers, *entries, found):
            self._dictionary.look_at(numbers)
            typed.truths(numbers, *entries, found)
        asked = np.flatnonzero(found == ASK_TRUTH)
        if len(asked):

            def one(terms: list[Term]) -> int:
                return TRUE if effective_boolean_value(terms[0]) else FALSE

            found[asked] = self._calls.integers("truth", (numbers[asked],), one, NEITHER)
        return found

    # --- values: numbers, or 0 for an error -----------------------------------------------------

    def _values(self, node: Expression, batch: _Batch) -> Ints:
        match node:
            case VariableExpression(variable=variable):
                return batch.column(variable)
            case Constant(term=term):
                return np.full(batch.count, self._numbers[term])
            case And() | Or() | Not() | Compare() | In() | Bound():
                return self._booleans[self._truth(node, batch)]
            case Arithmetic(operator=operator, left=left, right=right):
                return self._calculate(
                    operator, self._values(left, batch), self._values(right, batch)
                )
            case If(condition=condition, then=then, otherwise=otherwise):
                chosen = self._truth(condition, batch)
                rest = np.where(chosen == FALSE, self._values(otherwise, batch), 0)
                return np.where(chosen == TRUE, self._values(then, batch), rest)
            case Coalesce(arguments=arguments):
                found = ints(batch.count)
                for part in arguments:
                    found = np.where(found == 0, self._values(part, batch), found)
                return found
            case FunctionCall(function="TIMESTAMP", arguments=arguments):
                return _times(arguments, batch)
            case FunctionCall(function="SAMETERM", arguments=(_, _)):
                return self._booleans[self._truth(node, batch)]
            case FunctionCall(function=str(name), arguments=(_,)) if name in _KIND_TESTS:
                return self._booleans[self._truth(node, batch)]
            case FunctionCall() | Negate():
                return self._call(node, batch)
            case Exists():
                raise InternalError("EXISTS was handed over for whole columns")
            case _:
                assert_never(node)

    def _calculate(self, operator: str, left: Ints, right: Ints) -> Ints:
        found = ints(len(left))
        if operator in _CALCULATIONS:
            typed.calculate(_CALCULATIONS[operator], left, right, found)
        else:
            found[(left != 0) & (right != 0)] = -1
        asked = np.flatnonzero(found < 0)
        if len(asked):
            found[asked] = self._calls.terms(
                operator,
                (left[asked], right[asked]),
                lambda terms: call(operator, (terms[0], terms[1]), self._context),
                called=operator,
            )
        return found

    def _call(self, node: FunctionCall | Negate, batch: _Batch) -> Ints:
        name: str | IRI = node.function if isinstance(node, FunctionCall) else "NEGATE"
        variables = read_variables(node)
        if len(variables) <= 1:
            # One look at each term does for all that is nested here.
            numbers = tuple(batch.column(each) for each in variables) or (ints(batch.count),)

            def whole(terms: list[Term]) -> Term:
                solution = dict(zip(variables, terms, strict=False))
                return evaluate_expression(node, solution, self._context, _no_exists)

            return self._calls.terms(
                id(node), numbers, whole, called=str(name), span=node.span, unbound=True
            )
        parts = node.arguments if isinstance(node, FunctionCall) else (node.operand,)
        arguments = tuple(self._values(each, batch) for each in parts)
        return self._calls.terms(
            name,
            arguments,
            lambda terms: call(name, tuple(terms), self._context),
            called=str(name),
            span=node.span,
        )


def _no_exists(pattern: Pattern, solution: Solution) -> bool:
    raise InternalError("EXISTS was handed over for whole columns")


def _times(arguments: tuple[Expression, ...], batch: _Batch) -> Ints:
    match arguments:
        case (VariableExpression(variable=variable),):
            return batch.column(time_variable(variable))
        case _:
            return ints(batch.count)


def read_variables(expression: Expression) -> tuple[Variable, ...]:
    """List what an expression reads: variables, and for TIMESTAMP the places of their times.

    >>> x = VariableExpression(variable=Variable("x"))
    >>> [str(each) for each in read_variables(Not(operand=x))]
    ['?x']
    """
    return tuple(dict.fromkeys(_reads(expression)))


def _reads(node: Node) -> Iterator[Variable]:
    match node:
        case FunctionCall(function="TIMESTAMP", arguments=(VariableExpression(variable=variable),)):
            yield time_variable(variable)
        case VariableExpression(variable=variable) | Bound(variable=variable):
            yield variable
        case _:
            for each in children(node):
                yield from _reads(each)
