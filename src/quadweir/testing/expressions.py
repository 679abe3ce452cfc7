"""Expressions as SPARQL text over a store of opaque literals (see `functions.py`).

An expression is written in one of two ways. As a *value* it is what Oxigraph computes with. As a
*term* it is what the store holds: an IRI, a blank node, an opaque literal with its own spelling.
"""

from __future__ import annotations

from typing import Final

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
from quadweir.algebra.query import TemplateTerm
from quadweir.syntax.write_terms import ExpressionWriter
from quadweir.terms import IRI, Literal, TripleTerm
from quadweir.testing.casts import TARGETS
from quadweir.testing.functions import (
    ADD,
    AT_MOST,
    CAST,
    DATATYPE,
    DIVIDE,
    EQUAL,
    LESS,
    MULTIPLY,
    NEGATE,
    PART,
    SAME_TERM,
    STR,
    STRDT,
    SUBTRACT,
    TERM,
    TRUTH,
    UNKNOWN,
    VALUE,
    is_by_iri,
    opaque,
)
from quadweir.testing.literals import MOMENTS

_ON_TERMS: Final = {"STR": STR, "DATATYPE": DATATYPE, "SAMETERM": SAME_TERM}
_ARITHMETIC: Final = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE}
_PARTS: Final = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ")
_TRIPLE_PARTS: Final = ("SUBJECT", "PREDICATE", "OBJECT")
_BOOLEAN: Final = (And, Or, Not, Compare, In, Bound, Exists)


class OpaqueExpressions(ExpressionWriter):
    """Writes expressions as values, terms and conditions."""

    def iri(self, iri: IRI) -> str:
        return str(iri)

    def literal(self, literal: Literal) -> str:
        return str(opaque(literal))

    def term(self, term: TemplateTerm) -> str:
        return str(opaque(term)) if isinstance(term, TripleTerm) else super().term(term)

    def as_term(self, expression: Expression) -> str:
        """Write an expression whose result goes into a solution, or is looked at as a term."""
        match expression:
            case VariableExpression(variable=variable):
                return self.variable(variable)
            case Constant(term=term):
                return self.term(term)
            case If(condition=condition, then=then, otherwise=otherwise):
                parts = self.as_condition(condition), self.as_term(then), self.as_term(otherwise)
                return f"IF({', '.join(parts)})"
            case Coalesce(arguments=arguments):
                return f"COALESCE({', '.join(map(self.as_term, arguments))})"
            case FunctionCall(function=str(name), arguments=(triple,)) if name in _TRIPLE_PARTS:
                return f"<{TERM}>({name}(<{VALUE}>({self.as_term(triple)})))"
            case FunctionCall(function="TRIPLE", arguments=arguments):
                return f"<{TERM}>({self._on_names('TRIPLE', arguments)})"
            case FunctionCall(function="STRDT", arguments=arguments):
                return self._on_terms(STRDT, arguments)
            case FunctionCall(function=IRI(value=target), arguments=arguments) if target in TARGETS:
                return self._on_terms(CAST + target, arguments)
            case FunctionCall(function=IRI() as name, arguments=arguments) if is_by_iri(name):
                return self._on_terms(name.value, arguments)
            case Arithmetic(operator=operator, left=left, right=right):
                return self._on_terms(_ARITHMETIC[operator], (left, right))
            case Negate(operand=operand):
                return self._on_terms(NEGATE, (operand,))
            case _:
                return f"<{TERM}>({self.expression(expression)})"

    def as_condition(self, expression: Expression) -> str:
        """Write an expression of which only the truth is asked for."""
        if isinstance(expression, _BOOLEAN):
            return self.expression(expression)
        return f"<{TRUTH}>({self.as_term(expression)})"

    def _on_names(self, function: str, arguments: tuple[Expression, ...]) -> str:
        return f"{function}({', '.join(map(self.as_term, arguments))})"

    def _on_terms(self, function: str, arguments: tuple[Expression, ...]) -> str:
        return f"<{function}>({', '.join(map(self.as_term, arguments))})"

    def call(self, call: FunctionCall) -> str:
        if call.function in _PARTS:
            return f"{call.function}({self._on_terms(PART, call.arguments)})"
        if isinstance(call.function, IRI) and (
            call.function.value in TARGETS or is_by_iri(call.function)
        ):
            return f"<{VALUE}>({self.as_term(call)})"
        if isinstance(call.function, IRI) and call.function.value not in MOMENTS:
            return f"<{UNKNOWN}>()"  # an error, as in the engine
        if isinstance(call.function, str) and call.function in _ON_TERMS:
            return self._on_terms(_ON_TERMS[call.function], call.arguments)
        return super().call(call)

    def _write(self, expression: Expression, level: int) -> str:
        """Write a value; all that differs from plain SPARQL is a call, or in parentheses."""
        match expression:
            case (
                VariableExpression()
                | Constant(term=Literal() | TripleTerm())
                | FunctionCall(function="STRDT" | "TRIPLE" | "SUBJECT" | "PREDICATE" | "OBJECT")
                | Arithmetic()
                | Negate()
            ):
                return f"<{VALUE}>({self.as_term(expression)})"
            case And(parts=parts):
                return " && ".join(map(self._enclosed, parts)).join("()")
            case Or(parts=parts):
                return " || ".join(map(self._enclosed, parts)).join("()")
            case Not(operand=operand):
                return f"(! {self._enclosed(operand)})"
            case If(condition=condition, then=then, otherwise=otherwise):
                written = self.as_condition(condition), *map(self.expression, (then, otherwise))
                return f"IF({', '.join(written)})"
            case Compare(operator=operator, left=left, right=right):
                return self._compared(operator, left, right)
            case In(operand=operand, choices=choices, negated=negated):
                tests = [self._on_terms(EQUAL, (operand, choice)) for choice in choices]
                # Nothing is in an empty list, but what is an error is one here too.
                found = " || ".join(tests) or f"! {self._on_terms(SAME_TERM, (operand, operand))}"
                return f"(! ({found}))" if negated else f"({found})"
            case _:
                return super()._write(expression, level)

    def _enclosed(self, condition: Expression) -> str:
        return f"({self.as_condition(condition)})"

    def _compared(self, operator: str, left: Expression, right: Expression) -> str:
        match operator:
            case "=":
                return self._on_terms(EQUAL, (left, right))
            case "!=":
                return f"(! {self._on_terms(EQUAL, (left, right))})"
            case "<":
                return self._on_terms(LESS, (left, right))
            case ">":
                return self._on_terms(LESS, (right, left))
            case "<=":
                return self._on_terms(AT_MOST, (left, right))
            case _:
                return self._on_terms(AT_MOST, (right, left))
