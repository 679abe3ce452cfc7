"""The casts: calls of an XML Schema datatype's IRI.

SPARQL names seven targets; the derived integers, date, time and the durations follow the same
XPath rules and are given too.

Spec: https://www.w3.org/TR/sparql11-query/#FunctionMapping
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final

from quadweir.algebra.moments import (
    Duration,
    DurationKind,
    ExpressionError,
    Moment,
    MomentKind,
    read_duration,
    read_moment,
)
from quadweir.algebra.signatures import Signature, Type, TypedFunction
from quadweir.algebra.values import (
    DERIVED_INTEGERS,
    LanguageString,
    Number,
    NumberKind,
    Value,
    floating_digits,
    literal_of,
    read_boolean,
    read_decimal,
    read_floating,
    read_integer,
    scientific_text,
    value_of,
)
from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm
from quadweir.vocab import XSD


def _source(term: Term) -> Value:
    """The value to cast; only literals of a known value have one."""
    value = value_of(term) if isinstance(term, Literal) else None
    if value is None or isinstance(value, LanguageString):
        raise ExpressionError(f"{term} cannot be cast")
    return value


def _no_cast(term: Term, target: str) -> ExpressionError:
    return ExpressionError(f"{term} cannot be cast to {target}")


def to_string(term: Term) -> str:
    """Cast to xsd:string: the canonical form of a known value, else the lexical form.

    Spec: https://www.w3.org/TR/xpath-functions/#casting-to-string

    >>> to_string(Literal("1E0", IRI(XSD.double))), to_string(Literal("1E6", IRI(XSD.double)))
    ('1', '1.0E6')
    """
    match term:
        case IRI():
            return term.value
        case BlankNode() | TripleTerm():
            raise _no_cast(term, "a string")
    match value_of(term):
        case None | LanguageString() | str():
            return term.lexical
        case Number(value=float() as floating) as number:
            # XPath spells doubles from a million on with an exponent, unlike our results.
            if 1e-6 <= abs(floating) < 1e6 or floating == 0 or not math.isfinite(floating):
                return number.lexical()
            single = number.kind is NumberKind.FLOAT
            return scientific_text(Decimal(floating_digits(floating, single=single)))
        case value:
            return literal_of(value).lexical


def to_boolean(term: Term) -> bool:
    """Cast to xsd:boolean."""
    match _source(term):
        case bool() as value:
            return value
        case Number() as number:
            return not number.is_nan() and bool(number.value)
        case str() as text:
            truth = read_boolean(_collapse(text))
            if truth is not None:
                return truth
    raise _no_cast(term, "xsd:boolean")


def to_integer(term: Term) -> int:
    """Cast to a whole number, cutting off what follows the point."""
    match _source(term):
        case bool() as value:
            return int(value)
        case Number(value=float() as floating) if not math.isfinite(floating):
            raise _no_cast(term, "an integer")
        case Number() as number:
            return int(number.value)
        case str() as text:
            integer = read_integer(_collapse(text))
            if integer is not None:
                return integer
    raise _no_cast(term, "an integer")


def to_decimal(term: Term) -> Number:
    """Cast to xsd:decimal."""
    match _source(term):
        case bool() as value:
            return Number.decimal(Decimal(int(value)))
        case Number(value=float() as floating) as number:
            if not math.isfinite(floating):
                raise _no_cast(term, "xsd:decimal")
            # The shortest spelling, not the binary expansion: 0.1e0 becomes 0.1.
            single = number.kind is NumberKind.FLOAT
            return Number.decimal(Decimal(floating_digits(floating, single=single)))
        case Number() as number:
            return Number.decimal(Decimal(number.value))
        case str() as text:
            decimal = read_decimal(_collapse(text))
            if decimal is not None:
                return Number.decimal(decimal)
    raise _no_cast(term, "xsd:decimal")


def to_floating(kind: NumberKind, term: Term) -> Number:
    """Cast to xsd:float or xsd:double."""
    match _source(term):
        case bool() as value:
            return Number.floating(kind, float(value))
        case Number() as number:
            return Number.floating(kind, float(number.value))
        case str() as text:
            floating = read_floating(_collapse(text))
            if floating is not None:
                return Number.floating(kind, floating)
    raise _no_cast(term, kind.datatype.value)


def to_moment(kind: MomentKind, term: Term) -> Moment:
    """Cast to a date or time type; a date becomes the dateTime of its first instant."""
    match _source(term):
        case str() as text:
            moment = read_moment(_collapse(text), kind)
            if moment is not None:
                return moment
        case Moment() as moment if moment.kind is kind:
            return moment
        case Moment(kind=MomentKind.DATE_TIME) as moment:
            return moment.as_kind(kind)
        case Moment(kind=MomentKind.DATE) as moment if kind is not MomentKind.TIME:
            return moment.as_kind(kind)
    raise _no_cast(term, kind.value)


def to_duration(kind: DurationKind, term: Term) -> Duration:
    """Cast to a duration type, dropping the parts it does not have."""
    match _source(term):
        case str() as text:
            duration = read_duration(_collapse(text), kind)
            if duration is not None:
                return duration
        case Duration() as duration:
            return Duration(
                kind,
                0 if kind is DurationKind.DAY_TIME else duration.months,
                0 if kind is DurationKind.YEAR_MONTH else duration.attoseconds,
            )
    raise _no_cast(term, kind.value)


def _collapse(text: str) -> str:
    """Strip what XML calls white space: a cast from a string does so first."""
    return text.strip(" \t\n\r")


def _to_derived(datatype: str, term: Term) -> Literal:
    low, high = DERIVED_INTEGERS[datatype]
    integer = to_integer(term)
    Number.integer(integer)
    if (low is not None and integer < low) or (high is not None and integer > high):
        raise _no_cast(term, datatype)
    return Literal(str(integer), IRI(datatype))


def _cast(datatype: str, result: Type, meaning: Callable[[Term], object]) -> TypedFunction:
    return TypedFunction(IRI(datatype), (Signature((Type.TERM,), result, meaning),))


_MOMENT_TYPES: Final = {
    MomentKind.DATE_TIME: Type.DATE_TIME,
    MomentKind.DATE: Type.DATE,
    MomentKind.TIME: Type.TIME,
}
_DURATION_TYPES: Final = {
    DurationKind.DURATION: Type.DURATION,
    DurationKind.DAY_TIME: Type.DAY_TIME_DURATION,
    DurationKind.YEAR_MONTH: Type.YEAR_MONTH_DURATION,
}

CASTS: Final[tuple[TypedFunction, ...]] = (
    _cast(XSD.string, Type.STRING, to_string),
    _cast(XSD.boolean, Type.BOOLEAN, to_boolean),
    _cast(XSD.decimal, Type.DECIMAL, to_decimal),
    _cast(XSD.float, Type.FLOAT, partial(to_floating, NumberKind.FLOAT)),
    _cast(XSD.double, Type.DOUBLE, partial(to_floating, NumberKind.DOUBLE)),
    *(
        # A derived integer computes as an integer, which is the type a compiler needs.
        _cast(name, Type.INTEGER, partial(_to_derived, name))
        for name in DERIVED_INTEGERS
    ),
    *(
        _cast(kind.value, _MOMENT_TYPES.get(kind, Type.LITERAL), partial(to_moment, kind))
        for kind in MomentKind
    ),
    *(
        _cast(kind.value, _DURATION_TYPES[kind], partial(to_duration, kind))
        for kind in DurationKind
    ),
)
