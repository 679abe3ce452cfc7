"""Terms and expressions as SPARQL text, the part that every writer shares.

Parentheses stand only where the grammar needs them, so what is written reads as a person would
have written it and parses to the expression it came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, assert_never

from quadweir.algebra.expressions import (
    AggregateCall,
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
from quadweir.algebra.query import TemplateTerm, TripleTemplate
from quadweir.terms import IRI, BlankNode, Literal, TripleTerm, Variable, escape
from quadweir.vocab import RDF, XSD

_BARE: Final = {
    XSD.integer: re.compile(r"[+-]?[0-9]+"),
    XSD.decimal: re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD.double: re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD.boolean: re.compile(r"true|false"),
}
# A cautious part of PN_LOCAL: names that need an escape are written as whole IRIs.
_LOCAL: Final = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?)?")
_OR, _AND, _COMPARE, _ADD, _MULTIPLY, _UNARY, _PRIMARY = range(7)


class TermWriter:
    """Terms, with prefixed names where a prefix fits.

    >>> TermWriter({"foaf": "http://xmlns.com/foaf/0.1/"}).term(IRI("http://xmlns.com/foaf/0.1/knows"))
    'foaf:knows'
    """

    def __init__(self, prefixes: Mapping[str, str] | None = None) -> None:
        # The longest namespace first, so that the closest prefix wins.
        pairs = sorted((prefixes or {}).items(), key=lambda pair: (-len(pair[1]), pair[0]))
        self._prefixes = pairs
        self.used: set[str] = set()

    def term(self, term: TemplateTerm) -> str:
        """Spell a term anywhere but as a verb."""
        match term:
            case IRI():
                return self.iri(term)
            case Literal():
                return self.literal(term)
            case BlankNode():
                return str(term)
            case Variable():
                return self.variable(term)
            case TripleTerm() | TripleTemplate():
                inside = self.term(term.subject), self.verb(term.predicate), self.term(term.object)
                return f"<<( {' '.join(inside)} )>>"
            case _:
                assert_never(term)

    def verb(self, term: IRI | Variable) -> str:
        """Spell a predicate; `rdf:type` is `a`."""
        return "a" if term == IRI(RDF.type) else self.term(term)

    def variable(self, variable: Variable) -> str:
        return str(variable)

    def iri(self, iri: IRI) -> str:
        for prefix, namespace in self._prefixes:
            local = iri.value.removeprefix(namespace)
            if local != iri.value and _LOCAL.fullmatch(local):
                self.used.add(prefix)
                return f"{prefix}:{local}"
        return str(iri)

    def literal(self, literal: Literal) -> str:
        pattern = _BARE.get(literal.datatype.value)
        if pattern is not None and pattern.fullmatch(literal.lexical):
            return literal.lexical
        quoted = f'"{escape(literal.lexical)}"'
        if literal.language is not None:
            return f"{quoted}@{literal.language}"
        if literal.datatype.value == XSD.string:
            return quoted
        return f"{quoted}^^{self.iri(literal.datatype)}"

    def prologue(self) -> list[str]:
        """The PREFIX lines for the prefixes used so far."""
        names = dict(self._prefixes)
        return [f"PREFIX {prefix}: <{names[prefix]}>" for prefix in sorted(self.used)]


class ExpressionWriter(TermWriter):
    """Writes expressions; a subclass that can write patterns overrides `exists`."""

    def exists(self, exists: Exists) -> str:
        """Write an EXISTS; `Exists.negated` says which."""
        raise NotImplementedError

    def expression(self, expression: Expression) -> str:
        """Write an expression as it stands inside parentheses.

        >>> one, x = Constant(term=Literal("1", datatype=IRI(XSD.integer))), Variable("x")
        >>> total = Arithmetic(operator="+", left=VariableExpression(variable=x), right=one)
        >>> ExpressionWriter().expression(Arithmetic(operator="*", left=total, right=one))
        '(?x + 1) * 1'
        """
        return self._write(expression, _OR)

    def bracketted(self, expression: Expression) -> str:
        """Write an expression where the grammar wants a constraint: a call, or parentheses."""
        match expression:
            case Exists():
                return self.exists(expression)
            case FunctionCall() | If() | Coalesce() | Bound():
                return self.expression(expression)
            case _:
                return f"({self.expression(expression)})"

    def aggregate(self, call: AggregateCall) -> str:
        """Write an aggregate."""
        inner = "*" if call.argument is None else self.expression(call.argument)
        distinct = "DISTINCT " if call.distinct else ""
        # The default separator is a blank, and is left out as people do.
        separator = call.separator if call.separator not in (None, " ") else None
        tail = f'; SEPARATOR = "{escape(separator)}"' if separator is not None else ""
        return f"{call.function}({distinct}{inner}{tail})"

    def call(self, call: FunctionCall) -> str:
        """Write a function call."""
        name = self.iri(call.function) if isinstance(call.function, IRI) else call.function
        return f"{name}({self._list(call.arguments)})"

    def _list(self, expressions: tuple[Expression, ...]) -> str:
        return ", ".join(self.expression(each) for each in expressions)

    def _write(self, expression: Expression, level: int) -> str:
        own, text = self._with_level(expression)
        return f"({text})" if own < level else text

    def _with_level(self, expression: Expression) -> tuple[int, str]:
        """Write an expression and say how tightly its outermost operator binds."""
        match expression:
            case VariableExpression():
                return _PRIMARY, self.variable(expression.variable)
            case Constant():
                return _PRIMARY, self.term(expression.term)
            case Or():
                # One level up: a disjunction inside a disjunction keeps its parentheses.
                return _OR, " || ".join(self._write(part, _AND) for part in expression.parts)
            case And():
                return _AND, " && ".join(self._write(part, _COMPARE) for part in expression.parts)
            case Compare():
                left, right = (
                    self._write(expression.left, _ADD),
                    self._write(expression.right, _ADD),
                )
                return _COMPARE, f"{left} {expression.operator} {right}"
            case In():
                word = "NOT IN" if expression.negated else "IN"
                operand = self._write(expression.operand, _ADD)
                return _COMPARE, f"{operand} {word} ({self._list(expression.choices)})"
            case Arithmetic():
                level = _ADD if expression.operator in "+-" else _MULTIPLY
                left = self._write(expression.left, level)
                right = self._write(expression.right, level + 1)
                return level, f"{left} {expression.operator} {right}"
            case Not():
                return _UNARY, f"!{self._write(expression.operand, _PRIMARY)}"
            case Negate():
                return _UNARY, f"-{self._negated(expression.operand)}"
            case FunctionCall():
                return _PRIMARY, self.call(expression)
            case If():
                parts = (expression.condition, expression.then, expression.otherwise)
                return _PRIMARY, f"IF({self._list(parts)})"
            case Coalesce():
                return _PRIMARY, f"COALESCE({self._list(expression.arguments)})"
            case Bound():
                return _PRIMARY, f"BOUND({self.variable(expression.variable)})"
            case Exists():
                return _PRIMARY, self.exists(expression)
            case _:
                assert_never(expression)

    def _negated(self, operand: Expression) -> str:
        # -5 would be read as a number.
        text = self._write(operand, _PRIMARY)
        return f"({text})" if isinstance(operand, Constant) else text
