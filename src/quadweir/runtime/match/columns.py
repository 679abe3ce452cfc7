"""Conditions on terms as Spark columns, with exactly SPARQL's meaning.

Terms are spellings. SQL's NULL stands for SPARQL's error: AND, OR and NOT treat both in the same
way. If a column cannot decide a condition for a term (a number of thirty digits, a date), it says
that the result is unknown. The caller keeps such a row, and the kernel decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import spelling
from quadweir.algebra.expressions import (
    And,
    Arithmetic,
    Bound,
    Compare,
    Constant,
    Expression,
    FunctionCall,
    In,
    Negate,
    Not,
    Or,
    VariableExpression,
)
from quadweir.algebra.values import Number, NumberKind, value_of
from quadweir.terms import IRI, Literal, Variable
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from pyspark.sql import Column

_INTEGER: Final = rf'"^^<{XSD.integer}>'
_DECIMAL: Final = rf'"^^<{XSD.decimal}>'
# Numbers that fit a decimal of 38 digits, 18 of them after the point.
_FITS: Final = {
    _INTEGER: r"^[+-]?[0-9]{1,18}\z",
    _DECIMAL: r"^[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})\z",
}
_NUMBER: Final = "decimal(38,18)"
_LARGEST: Final = 10**18
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@final
@dataclass(frozen=True)
class Verdict:
    """The truth of a condition, NULL for an error; and whether the truth is known."""

    truth: Column
    known: Column


def may_hold(condition: Expression, terms: Mapping[Variable, Column]) -> Column | None:
    """Return whether a condition may be true, never NULL; None if no column can decide it.

    Args:
        condition: the condition.
        terms: the spellings of the variables, all of them bound.
    """
    match condition:
        case And(parts=parts):
            found = [each for each in (may_hold(part, terms) for part in parts) if each is not None]
            return reduce(and_, found) if found else None
        case Or(parts=parts):
            ways = [may_hold(part, terms) for part in parts]
            some = [each for each in ways if each is not None]
            return reduce(or_, some) if len(some) == len(ways) else None
        case _:
            verdict = judge(condition, terms)
            if verdict is None:
                return None
            return F.coalesce(verdict.truth, F.expr("false")) | ~verdict.known


def judge(condition: Expression, terms: Mapping[Variable, Column]) -> Verdict | None:
    """Return the truth of a condition as columns; None if no column can decide it."""
    match condition:
        case And(parts=parts) | Or(parts=parts):
            found = [judge(part, terms) for part in parts]
            verdicts = [each for each in found if each is not None]
            if len(verdicts) < len(found):
                return None
            joined = and_ if isinstance(condition, And) else or_
            return Verdict(
                reduce(joined, (each.truth for each in verdicts)),
                reduce(and_, (each.known for each in verdicts)),
            )
        case Not(operand=operand):
            verdict = judge(operand, terms)
            return Verdict(~verdict.truth, verdict.known) if verdict is not None else None
        case Bound(variable=variable):
            return _certain(F.expr("true")) if variable in terms else None
        case Compare(operator=operator, left=left, right=right):
            return _compared(operator, left, right, terms)
        case In(operand=operand, choices=choices, negated=negated):
            return _in(operand, choices, terms, negated=negated)
        case FunctionCall(function=str() as function, arguments=arguments):
            return _called(function, arguments, terms)
        case _:
            return None


def _certain(truth: Column) -> Verdict:
    return Verdict(truth, F.expr("true"))


def _is_literal(term: Column) -> Column:
    return term.startswith('"')


def _compared(
    operator: str, left: Expression, right: Expression, terms: Mapping[Variable, Column]
) -> Verdict | None:
    match left, right:
        case Constant(), VariableExpression():
            return _compared(_MIRRORED[operator], right, left, terms)
        case VariableExpression(variable=one), VariableExpression(variable=other):
            if operator not in ("=", "!=") or not {one, other} <= terms.keys():
                return None
            a, b = terms[one], terms[other]
            # Literals are compared by value, and triple terms by their parts.
            triples = a.startswith("<<") & b.startswith("<<")
            equal = Verdict(a == b, ~(_is_literal(a) & _is_literal(b)) & ~triples)
        case VariableExpression(variable=variable), Constant(term=IRI() as iri):
            if operator not in ("=", "!=") or variable not in terms:
                return None
            equal = _certain(terms[variable] == F.lit(str(iri)))
        case VariableExpression(variable=variable), Constant(term=Literal() as literal):
            if variable not in terms:
                return None
            value = value_of(literal)
            if isinstance(value, Number):
                return _numbers(operator, terms[variable], value)
            if not isinstance(value, str) or operator not in ("=", "!="):
                return None
            term = terms[variable]
            # Among literals, only strings can be compared with strings by their spelling.
            equal = Verdict(term == F.lit(str(literal)), ~_is_literal(term) | term.endswith('"'))
        case _:
            return _computed(operator, left, right, terms)
    return equal if operator == "=" else Verdict(~equal.truth, equal.known)


@final
@dataclass(frozen=True)
class _Computed:
    """A number computed from terms: its value, NULL for an error; and whether the value is known.

    `whole` and `part` say how many digits it can have before and after the point.
    """

    value: Column
    known: Column
    whole: int
    part: int


# Terms with more digits are unknown in calculations; so products are exact.
_FACTOR: Final = 9
_FACTORS: Final = {
    _INTEGER: rf"^[+-]?[0-9]{{1,{_FACTOR}}}\z",
    _DECIMAL: rf"^[+-]?([0-9]{{1,{_FACTOR}}}(\.[0-9]{{0,{_FACTOR}}})?|\.[0-9]{{1,{_FACTOR}}})\z",
}
# An integer has at most 18 digits, and a decimal at most 18 after its point.
_MOST_DIGITS: Final = 18


def _computed(
    operator: str, left: Expression, right: Expression, terms: Mapping[Variable, Column]
) -> Verdict | None:
    """Compare numbers that are computed from terms; sums, differences and products are exact."""
    one, other = _compute(left, terms), _compute(right, terms)
    if one is None or other is None:
        return None
    known = one.known & other.known
    if operator in ("=", "!="):
        # A term that is no literal differs from a number; in a calculation it is an error.
        for side in (left, right):
            if isinstance(side, VariableExpression):
                known = known & _is_literal(terms[side.variable])
    return Verdict(_in_order(operator, one.value, other.value), known)


def _compute(expression: Expression, terms: Mapping[Variable, Column]) -> _Computed | None:
    match expression:
        case Constant(term=Literal() as literal):
            value = value_of(literal)
            if not isinstance(value, Number) or value.kind > NumberKind.DECIMAL:
                return None
            whole, _, part = value.lexical().lstrip("-").partition(".")
            if len(whole) > _MOST_DIGITS or len(part) > _MOST_DIGITS:
                return None
            kind = f"decimal({len(whole) + len(part)},{len(part)})"
            number = F.lit(value.lexical()).cast(kind)
            return _Computed(number, F.expr("true"), len(whole), len(part))
        case VariableExpression(variable=variable) if variable in terms:
            term = terms[variable]
            number, known = _read(term, _FACTORS, f"decimal({2 * _FACTOR},{_FACTOR})")
            return _Computed(number, ~_is_literal(term) | known, _FACTOR, _FACTOR)
        case Negate(operand=operand):
            found = _compute(operand, terms)
            if found is None:
                return None
            return _Computed(-found.value, found.known, found.whole, found.part)
        case Arithmetic(operator=operator, left=left, right=right):
            one, other = _compute(left, terms), _compute(right, terms)
            if one is None or other is None:
                return None
            return _calculated(operator, one, other)
        case _:
            return None


def _calculated(operator: str, one: _Computed, other: _Computed) -> _Computed | None:
    known = one.known & other.known
    if operator == "*":
        whole, part = one.whole + other.whole, one.part + other.part
        found = _Computed(one.value * other.value, known, whole, part)
    elif operator in "+-":
        value = one.value + other.value if operator == "+" else one.value - other.value
        whole, part = max(one.whole, other.whole) + 1, max(one.part, other.part)
        found = _Computed(value, known, whole, part)
    else:
        return None
    return found if max(found.whole, found.part) <= _MOST_DIGITS else None


def _in_order(operator: str, one: Column, other: Column) -> Column:
    return {
        "=": one == other,
        "!=": one != other,
        "<": one < other,
        ">": one > other,
        "<=": one <= other,
        ">=": one >= other,
    }[operator]


def _read(term: Column, shapes: Mapping[str, str], kind: str) -> tuple[Column, Column]:
    """Return the number if a term has one of these shapes, else NULL; and whether it has."""
    lexical, known = F.lit(None).cast("string"), F.expr("false")
    for suffix, shape in shapes.items():
        inside = F.substring(term, F.lit(2), F.length(term) - F.lit(len(suffix) + 1))
        lexical = F.when(term.endswith(suffix), inside).otherwise(lexical)
        known = F.when(term.endswith(suffix), inside.rlike(shape)).otherwise(known)
    return F.when(known, lexical.try_cast(kind)), known


def _numbers(operator: str, term: Column, constant: Number) -> Verdict | None:
    """Compare a term with a number; integers and decimals of up to 18 digits are exact."""
    if constant.kind not in (NumberKind.INTEGER, NumberKind.DECIMAL):
        return None
    text = constant.lexical()
    if abs(Decimal(text)) >= _LARGEST or len(text.partition(".")[2]) > _MOST_DIGITS:
        return None
    number, known = _read(term, _FITS, _NUMBER)
    compared = _in_order(operator, number, F.lit(text).cast(_NUMBER))
    # A term that is no literal equals no number, and has no order with one.
    otherwise = {"=": F.expr("false"), "!=": F.expr("true")}
    alien = otherwise.get(operator, F.lit(None).cast("boolean"))
    return Verdict(F.when(_is_literal(term), compared).otherwise(alien), ~_is_literal(term) | known)


def _in(
    operand: Expression,
    choices: tuple[Expression, ...],
    terms: Mapping[Variable, Column],
    *,
    negated: bool,
) -> Verdict | None:
    if not isinstance(operand, VariableExpression) or operand.variable not in terms:
        return None
    iris = [
        str(each.term)
        for each in choices
        if isinstance(each, Constant) and isinstance(each.term, IRI)
    ]
    if len(iris) < len(choices) or not iris:
        return None
    found = terms[operand.variable].isin(*iris)
    return _certain(~found if negated else found)


def _called(
    function: str, arguments: tuple[Expression, ...], terms: Mapping[Variable, Column]
) -> Verdict | None:
    match function, arguments:
        case (
            ("ISIRI" | "ISURI" | "ISBLANK" | "ISLITERAL" | "ISTRIPLE"),
            (VariableExpression(variable=variable),),
        ):
            if variable not in terms:
                return None
            start = {"ISBLANK": "_:", "ISLITERAL": '"', "ISTRIPLE": "<<"}.get(function, "<")
            truth = terms[variable].startswith(start)
            # A triple term begins like an IRI.
            return _certain(truth & ~terms[variable].startswith("<<") if start == "<" else truth)
        case "SAMETERM", (VariableExpression(variable=variable), Constant(term=term)):
            if variable not in terms:
                return None
            return _certain(terms[variable] == F.lit(str(term)))
        case (("STRSTARTS" | "STRENDS" | "CONTAINS"), (source, Constant(term=Literal() as part))):
            if part.language is not None or value_of(part) != part.lexical:
                return None
            return _searched(function, source, part.lexical, terms)
        case _:
            return None


def _searched(
    function: str, source: Expression, part: str, terms: Mapping[Variable, Column]
) -> Verdict | None:
    """Search a string literal, or the text of any term if the source is STR()."""
    match source:
        case VariableExpression(variable=variable) if variable in terms:
            term = terms[variable]
            takes_iris = False
        case FunctionCall(function="STR", arguments=(VariableExpression(variable=variable),)) if (
            variable in terms
        ):
            term = terms[variable]
            takes_iris = True
        case _:
            return None
    # What is between the brackets or quotes; right only if nothing in it is escaped.
    text = F.substring(term, F.lit(2), F.length(term) - F.lit(2))
    is_text = spelling.is_iri(term) if takes_iris else F.expr("false")
    is_plain = _is_literal(term) & term.endswith('"') & ~term.contains("\\")
    method = {
        "STRSTARTS": text.startswith,
        "STRENDS": text.endswith,
        "CONTAINS": text.contains,
    }[function]
    return Verdict(F.when(is_text | is_plain, method(F.lit(part))), ~_is_literal(term) | is_plain)
