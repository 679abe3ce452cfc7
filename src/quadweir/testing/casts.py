"""Casts and multiples of durations for the oracle, by the rules of XPath (see `literals.py`).

Oxigraph rounds numbers on the way between types, spells strings in its own way, and lacks some
casts. It still casts dates and times.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Final

from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm
from quadweir.testing import literals
from quadweir.testing.literals import BOUNDS, DURATIONS, OracleDuration, OracleNumber, OracleValue
from quadweir.vocab import XSD

TARGETS: Final = (
    XSD.string,
    XSD.boolean,
    XSD.decimal,
    XSD.float,
    XSD.double,
    *BOUNDS,
    *DURATIONS,
)


def cast(term: Term, datatype: str) -> Literal | None:
    """Cast a term that is no date or time to one of `TARGETS`; None for an error."""
    if datatype == XSD.string:
        return _string(term)
    if not isinstance(term, Literal) or term.language is not None:
        return None
    value = literals.read(term)
    if isinstance(value, str):
        # XML Schema takes white space off before it reads a value.
        value = literals.read(Literal(value.strip(" \t\r\n"), datatype=IRI(datatype)))
    if value is None:
        return None
    if datatype == XSD.boolean:
        truth = _truth(value)
        return None if truth is None else Literal(str(truth).lower(), datatype=IRI(datatype))
    if datatype in DURATIONS:
        return spell_duration(_kept(value, datatype)) if isinstance(value, OracleDuration) else None
    if isinstance(value, bool):
        value = OracleNumber(XSD.integer, Fraction(value))
    return _number(value, datatype) if isinstance(value, OracleNumber) else None


def _string(term: Term) -> Literal | None:
    if isinstance(term, BlankNode | TripleTerm):
        return None
    if isinstance(term, IRI):
        return Literal(term.value)
    match literals.read(term):
        case bool() as value:
            return Literal(str(value).lower())
        case OracleNumber() as number:
            return Literal(_digits(number))
        case OracleDuration() as duration:
            return Literal(spell_duration(duration).lexical)
    return Literal(term.lexical)


def _digits(number: OracleNumber) -> str:
    """Spell a number as a string: from a million on, and below a millionth, with an exponent."""
    text = literals.spell(number).lexical
    if isinstance(number.value, Fraction) or not math.isfinite(number.value) or not number.value:
        return text
    return text if 1e-6 <= abs(number.value) < 1e6 else literals.scientific(Decimal(text))


def _truth(value: OracleValue) -> bool | None:
    match value:
        case bool():
            return value
        case OracleNumber(value=number):
            return not math.isnan(number) and number != 0
    return None


def _number(number: OracleNumber, datatype: str) -> Literal | None:
    value = number.value
    if datatype in (XSD.float, XSD.double):
        rounded = literals.number(datatype, value)
        return None if rounded is None else literals.spell(rounded)
    if not math.isfinite(value):
        return None
    if datatype == XSD.decimal:
        # A float becomes what its shortest digits say: 0.1e0 is 0.1.
        exact = Fraction(literals.spell(number).lexical)
        decimal = literals.number(datatype, exact)
        return None if decimal is None else literals.spell(decimal)
    whole = math.trunc(value)
    low, high = BOUNDS[datatype]
    fits = low <= whole <= high and literals.number(XSD.integer, Fraction(whole)) is not None
    return Literal(str(whole), datatype=IRI(datatype)) if fits else None


# --- durations --------------------------------------------------------------------------------


def _kept(duration: OracleDuration, datatype: str) -> OracleDuration:
    """Drop the parts that a type of duration does not have."""
    months = 0 if datatype == XSD.dayTimeDuration else duration.months
    seconds = Fraction(0) if datatype == XSD.yearMonthDuration else duration.seconds
    return OracleDuration(months, seconds, datatype)


def multiplied(duration: OracleDuration, factor: OracleNumber) -> OracleDuration | None:
    """Multiply a duration; months are rounded to the nearest, and up if two are as near."""
    if not math.isfinite(factor.value):
        return None
    return _times(duration, Fraction(factor.value))


def divided(duration: OracleDuration, divisor: OracleNumber) -> OracleDuration | None:
    """Divide a duration; None for an error."""
    if not math.isfinite(divisor.value) or not divisor.value:
        return None
    return _times(duration, 1 / Fraction(divisor.value))


def _times(duration: OracleDuration, factor: Fraction) -> OracleDuration | None:
    months = math.floor(duration.months * factor + Fraction(1, 2))
    seconds = Fraction(math.trunc(duration.seconds * factor * 10**18), 10**18)
    return literals.duration(duration.datatype, months, seconds)


def spell_duration(duration: OracleDuration) -> Literal:
    """Spell a duration canonically.

    >>> str(spell_duration(OracleDuration(14, Fraction(90_000), XSD.duration)).lexical)
    'P1Y2M1DT1H'
    """
    years, months = divmod(abs(duration.months), 12)
    minutes, seconds = divmod(abs(duration.seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (days, "D")) if n)
    clock = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if seconds:
        clock += literals.spell(OracleNumber(XSD.decimal, seconds)).lexical + "S"
    text = date + ("T" + clock if clock else "")
    if not text:
        text = "0M" if duration.datatype == XSD.yearMonthDuration else "T0S"
    sign = "-" if duration.months < 0 or duration.seconds < 0 else ""
    return Literal(f"{sign}P{text}", datatype=IRI(duration.datatype))
