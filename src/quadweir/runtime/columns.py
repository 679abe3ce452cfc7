"""Conditions on terms as Spark columns, with exactly SPARQL's meaning.

Terms are spellings. SQL's NULL stands for SPARQL's error: AND, OR and NOT treat the one as the other
is treated. What a column cannot tell of a term (a number of thirty digits, a date) it says it does not
know, and whoever asks keeps such a row for the kernel to decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir.algebra.expressions import (
    And,
    Bound,
    Call,
    Compare,
    Constant,
    Expression,
    In,
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
# What fits a decimal of 38 digits, 18 of them behind the point.
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
    """What is known of a condition: its truth, NULL for an error; and whether that is known."""

    truth: Column
    known: Column


def may_hold(condition: Expression, terms: Mapping[Variable, Column]) -> Column | None:
    """Tell where a condition may be true, never NULL; None if nothing can be told.

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
    """Give the truth of a condition as columns; None if there are none for it."""
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
        case Call(function=str() as function, arguments=arguments):
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
            equal = Verdict(a == b, ~(_is_literal(a) & _is_literal(b)))
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
            # Of literals only strings are told from strings.
            equal = Verdict(term == F.lit(str(literal)), ~_is_literal(term) | term.endswith('"'))
        case _:
            return None
    return equal if operator == "=" else Verdict(~equal.truth, equal.known)


def _numbers(operator: str, term: Column, constant: Number) -> Verdict | None:
    """Compare a term with a number: integers and decimals of up to 18 digits are told exactly."""
    if constant.kind not in (NumberKind.INTEGER, NumberKind.DECIMAL):
        return None
    text = constant.lexical()
    if abs(Decimal(text)) >= _LARGEST or len(text.partition(".")[2]) > _NUMBER_DIGITS:
        return None
    lexical, known = F.lit(None).cast("string"), F.expr("false")
    for suffix, shape in _FITS.items():
        inside = F.substring(term, F.lit(2), F.length(term) - F.lit(len(suffix) + 1))
        lexical = F.when(term.endswith(suffix), inside).otherwise(lexical)
        known = F.when(term.endswith(suffix), inside.rlike(shape)).otherwise(known)
    number = F.when(known, lexical.try_cast(_NUMBER))
    other = F.lit(text).cast(_NUMBER)
    compared = {
        "=": number == other,
        "!=": number != other,
        "<": number < other,
        ">": number > other,
        "<=": number <= other,
        ">=": number >= other,
    }[operator]
    # What is no literal equals no number, and has no order with it.
    otherwise = {"=": F.expr("false"), "!=": F.expr("true")}
    alien = otherwise.get(operator, F.lit(None).cast("boolean"))
    return Verdict(F.when(_is_literal(term), compared).otherwise(alien), ~_is_literal(term) | known)


_NUMBER_DIGITS: Final = 18


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
            ("ISIRI" | "ISURI" | "ISBLANK" | "ISLITERAL"),
            (VariableExpression(variable=variable),),
        ):
            if variable not in terms:
                return None
            start = {"ISBLANK": "_:", "ISLITERAL": '"'}.get(function, "<")
            return _certain(terms[variable].startswith(start))
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
    """Look for a text in a string literal, or in the text of any term if the source is STR()."""
    match source:
        case VariableExpression(variable=variable) if variable in terms:
            term = terms[variable]
            takes_iris = False
        case Call(function="STR", arguments=(VariableExpression(variable=variable),)) if (
            variable in terms
        ):
            term = terms[variable]
            takes_iris = True
        case _:
            return None
    # Between the brackets or the quotes, if nothing is escaped there.
    text = F.substring(term, F.lit(2), F.length(term) - F.lit(2))
    is_text = term.startswith("<") if takes_iris else F.expr("false")
    is_plain = _is_literal(term) & term.endswith('"') & ~term.contains("\\")
    method = {
        "STRSTARTS": text.startswith,
        "STRENDS": text.endswith,
        "CONTAINS": text.contains,
    }[function]
    return Verdict(F.when(is_text | is_plain, method(F.lit(part))), ~_is_literal(term) | is_plain)
