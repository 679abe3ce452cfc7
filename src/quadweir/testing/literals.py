"""The values of literals for the oracle: reading, spelling, comparing and ordering them.

Nothing here comes from the engine's values or from Oxigraph's. Numbers are fractions, so that all of
it is exact. It is slow, and meant to be read next to rule A4 of the semantics page.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final, TypeAlias, final

import numpy as np

from quadweir.terms import IRI, BlankNode, Literal, Term, TripleTerm
from quadweir.vocab import XSD

_BITS: Final = {"long": 63, "int": 31, "short": 15, "byte": 7}
BOUNDS: Final[dict[str, tuple[float, float]]] = {
    XSD.integer: (-math.inf, math.inf),
    XSD.nonPositiveInteger: (-math.inf, 0),
    XSD.negativeInteger: (-math.inf, -1),
    XSD.nonNegativeInteger: (0, math.inf),
    XSD.positiveInteger: (1, math.inf),
    **{XSD[name]: (-(2**bits), 2**bits - 1) for name, bits in _BITS.items()},
    **{XSD["unsigned" + name.title()]: (0, 2 ** (bits + 1) - 1) for name, bits in _BITS.items()},
}
# The numeric types in the order of their promotion.
NUMERIC: Final = (XSD.integer, XSD.decimal, XSD.float, XSD.double)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.A)
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)", re.A)
_FLOATING: Final = re.compile(
    r"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|INF)|NaN", re.A
)
_YEAR: Final = r"(?P<year>-?(0\d{3}|[1-9]\d{3,8}))"
_DATE: Final = rf"{_YEAR}-(?P<month>\d\d)-(?P<day>\d\d)"
_CLOCK: Final = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d(\.\d{1,18}0*)?)"
_ZONE: Final = r"(?P<zone>Z|[+-]\d\d:\d\d)?"
MOMENTS: Final = {
    XSD.dateTime: re.compile(f"{_DATE}T{_CLOCK}{_ZONE}", re.A),
    XSD.date: re.compile(_DATE + _ZONE, re.A),
    XSD.time: re.compile(_CLOCK + _ZONE, re.A),
    XSD.gYear: re.compile(_YEAR + _ZONE, re.A),
    XSD.gYearMonth: re.compile(rf"{_YEAR}-(?P<month>\d\d){_ZONE}", re.A),
    XSD.gMonth: re.compile(rf"--(?P<month>\d\d){_ZONE}", re.A),
    XSD.gMonthDay: re.compile(rf"--(?P<month>\d\d)-(?P<day>\d\d){_ZONE}", re.A),
    XSD.gDay: re.compile(rf"---(?P<day>\d\d){_ZONE}", re.A),
}
_DURATION: Final = re.compile(
    r"(?P<sign>-)?P(?=.)((?P<years>\d{1,18})Y)?((?P<months>\d{1,18})M)?((?P<days>\d{1,18})D)?"
    r"(T(?=.)((?P<h>\d{1,18})H)?((?P<m>\d{1,18})M)?((?P<s>\d{1,18}(\.\d{1,18}0*)?)S)?)?",
    re.A,
)
DURATIONS: Final = (XSD.duration, XSD.dayTimeDuration, XSD.yearMonthDuration)
_WIDE: Final = Context(prec=400)
_FOURTEEN_HOURS: Final = 14 * 3600


@final
@dataclass(frozen=True, slots=True)
class OracleNumber:
    """A number: its type, and its value, a float for floats and doubles and else a fraction."""

    datatype: str
    value: Fraction | float


@final
@dataclass(frozen=True, slots=True)
class OracleMoment:
    """A date or time: its type, seconds from 1970 in UTC, and its time zone in minutes, if any."""

    datatype: str
    seconds: Fraction
    offset: int | None


@final
@dataclass(frozen=True, slots=True)
class OracleDuration:
    """Months and seconds. Two durations are equal whatever their types."""

    months: int
    seconds: Fraction
    datatype: str = field(compare=False)


OracleValue: TypeAlias = OracleNumber | OracleMoment | OracleDuration | bool | str | tuple[str, str]


def read(literal: Literal) -> OracleValue | None:
    """The value of a literal: a text and a tag for a language; None if there is none."""
    kind, text = literal.datatype.value, literal.lexical
    if literal.language is not None:
        return text, literal.language
    if kind == XSD.string:
        return text
    if kind == XSD.boolean:
        return {"true": True, "1": True, "false": False, "0": False}.get(text)
    if kind in MOMENTS:
        return _moment(kind, text)
    if kind in DURATIONS:
        return _duration(kind, text)
    return _number(kind, text)


def _number(kind: str, text: str) -> OracleNumber | None:
    if kind in BOUNDS and _INTEGER.fullmatch(text):
        low, high = BOUNDS[kind]
        return number(XSD.integer, Fraction(text)) if low <= int(text) <= high else None
    if kind == XSD.decimal and _DECIMAL.fullmatch(text):
        return number(kind, Fraction(text))
    if kind in (XSD.double, XSD.float) and _FLOATING.fullmatch(text):
        return number(kind, float(text.replace("INF", "inf")))
    return None


def number(kind: str, value: Fraction | float) -> OracleNumber | None:
    """Make a number of one of the four types, rounded as the type asks; None if it does not fit."""
    if kind == XSD.integer:
        return OracleNumber(kind, value) if -(2**63) <= value < 2**63 else None
    if kind == XSD.decimal:
        assert isinstance(value, Fraction)
        cut = Fraction(math.trunc(value * 10**18), 10**18)
        return OracleNumber(kind, cut) if abs(cut) < 10**20 else None
    try:
        rounded = float(value)
    except OverflowError:
        rounded = math.inf if value > 0 else -math.inf
    if kind == XSD.float:
        with np.errstate(over="ignore"):
            rounded = float(np.float32(rounded))
    return OracleNumber(kind, rounded)


def calculate(operator: str, left: OracleNumber, right: OracleNumber) -> OracleNumber | None:
    """Compute in the wider of two types; None for an error."""
    kind = max(left.datatype, right.datatype, key=NUMERIC.index)
    if kind in (XSD.float, XSD.double):
        with np.errstate(all="ignore"):
            a, b = (np.float64(_promoted(each, kind)) for each in (left, right))
            found = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[operator]
        return number(kind, float(found))
    one, other = Fraction(left.value), Fraction(right.value)
    if operator != "/":
        exact = {"+": one + other, "-": one - other, "*": one * other}[operator]
        return number(kind, exact)
    return number(XSD.decimal, one / other) if other else None


def _promoted(found: OracleNumber, kind: str) -> float:
    rounded = number(kind, found.value)
    assert rounded is not None
    return float(rounded.value)


def spell(found: OracleNumber) -> Literal:
    """Spell a number canonically."""
    return Literal(_digits(found), datatype=IRI(found.datatype))


def _digits(found: OracleNumber) -> str:
    if found.datatype == XSD.integer:
        return str(int(found.value))
    if found.datatype == XSD.decimal:
        return _plain(Decimal(int(found.value * 10**18)).scaleb(-18, _WIDE))
    if not math.isfinite(found.value):
        return "NaN" if math.isnan(found.value) else "INF" if found.value > 0 else "-INF"
    near = float(found.value)
    return floating(repr(near) if found.datatype == XSD.double else str(np.float32(near)))


def floating(digits: str) -> str:
    """Spell a float or double, given by its shortest digits, as computed values are spelled."""
    if digits.lstrip("-") in ("NaN", "INF"):
        return digits
    exact = Decimal(digits)
    if not exact:
        return "-0" if exact.is_signed() else "0"
    if Decimal("1e-7") <= abs(exact) < Decimal("1e21"):
        return _plain(exact)
    return scientific(exact)


def scientific(exact: Decimal) -> str:
    """Spell a number with an exponent."""
    exponent = exact.adjusted()
    mantissa = _plain(exact.scaleb(-exponent, _WIDE))
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"


def _plain(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- the calendar -----------------------------------------------------------------------------


def _ordinal(year: int, month: int, day: int) -> int:
    """Count days; Python's calendar ends with the year 9999, and repeats after 400 years."""
    eras, year = divmod(year, 400)
    return date(year + 400, month, day).toordinal() + (eras - 1) * 146_097


def _moment(kind: str, text: str) -> OracleMoment | None:
    match = MOMENTS[kind].fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    # What a type lacks is filled in as XML Schema does it for comparing.
    day = 1 if kind == XSD.gYearMonth else 31
    year, month = int(parts.get("year") or 1972), int(parts.get("month") or 12)
    try:
        days = _ordinal(year, month, int(parts.get("day") or day)) - _ordinal(1970, 1, 1)
    except ValueError:
        return None
    hours, minutes = int(parts.get("h") or 0), int(parts.get("m") or 0)
    seconds = Fraction(parts.get("s") or 0)
    if minutes > 59 or seconds >= 60 or hours > 24 or (hours == 24 and (minutes or seconds)):
        return None
    if hours == 24 and kind == XSD.time:
        hours = 0
    zone, offset = parts["zone"], 0
    if zone not in (None, "Z"):
        offset = int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[4:6]))
        if abs(offset) > 14 * 60 or int(zone[4:6]) > 59:
            return None
    line = days * 86_400 + hours * 3600 + (minutes - offset) * 60 + seconds
    return OracleMoment(kind, line, None if zone is None else offset)


def _duration(kind: str, text: str) -> OracleDuration | None:
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict()
    has_months = parts["years"] is not None or parts["months"] is not None
    has_seconds = any(parts[each] is not None for each in ("days", "h", "m", "s"))
    if kind == XSD.dayTimeDuration and has_months:
        return None
    if kind == XSD.yearMonthDuration and (has_seconds or not has_months):
        return None
    months = int(parts["years"] or 0) * 12 + int(parts["months"] or 0)
    seconds = int(parts["days"] or 0) * 86_400 + int(parts["h"] or 0) * 3600
    exact = seconds + int(parts["m"] or 0) * 60 + Fraction(parts["s"] or 0)
    sign = -1 if parts["sign"] else 1
    return duration(kind, sign * months, sign * exact)


def duration(kind: str, months: int, seconds: Fraction) -> OracleDuration | None:
    """Make a duration; None if it is out of range."""
    if abs(months) >= 12 * 10**9 or abs(seconds) >= 86_400 * 10**12:
        return None
    return OracleDuration(months, seconds, kind)


def _lengths(duration: OracleDuration) -> list[Fraction]:
    """The length of a duration from each of the four reference months of XML Schema."""
    found = []
    for year, month in ((1696, 9), (1697, 2), (1903, 3), (1903, 7)):
        end = year * 12 + month - 1 + duration.months
        days = _ordinal(end // 12, end % 12 + 1, 1) - _ordinal(year, month, 1)
        found.append(days * 86_400 + duration.seconds)
    return found


# --- comparing --------------------------------------------------------------------------------


def equal(left: Term, right: Term) -> bool | None:
    """Whether `=` holds; None for an error."""
    if isinstance(left, TripleTerm) and isinstance(right, TripleTerm):
        ends = (left.subject, left.predicate) == (right.subject, right.predicate)
        return equal(left.object, right.object) if ends else False
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return left == right
    a, b = read(left), read(right)
    if isinstance(a, OracleNumber) and isinstance(b, OracleNumber):
        return _compare_numbers(a, b) == 0
    if left == right:
        return True
    if (left.language is None) != (right.language is None):
        return False
    if a is None or b is None:
        return None
    if isinstance(a, OracleMoment) and isinstance(b, OracleMoment) and a.datatype == b.datatype:
        order = _compare_moments(a, b)
        return None if order is None else order == 0
    return type(a) is type(b) and a == b


def less(left: Term, right: Term) -> bool | None:
    """Whether `<` holds; None for an error."""
    order = _order(left, right)
    return None if order is None else order < 0  # NaN is not below anything


def at_most(left: Term, right: Term) -> bool | None:
    """Whether `<=` holds; None for an error."""
    order = _order(left, right)
    return None if order is None else order <= 0


def _order(left: Term, right: Term) -> float | None:
    """Compare by value: below, at or above 0; NaN where every comparison is false; None: an error."""
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return None
    match read(left), read(right):
        case (OracleNumber() as a, OracleNumber() as b):
            return _compare_numbers(a, b)
        case (bool() as a, bool() as b):
            return int(a) - int(b)
        case (str() as a, str() as b):
            return (a > b) - (a < b)
        case ((str() as a, str() as one), (str() as b, str() as other)) if one == other:
            return (a > b) - (a < b)
        case (OracleMoment() as a, OracleMoment() as b) if a.datatype == b.datatype:
            return _compare_moments(a, b)
        case (OracleDuration() as a, OracleDuration() as b):
            pairs = zip(_lengths(a), _lengths(b), strict=True)
            signs = {(one > other) - (one < other) for one, other in pairs}
            return 0 if a == b else signs.pop() if len(signs) == 1 else None
    return None


def _compare_numbers(a: OracleNumber, b: OracleNumber) -> float:
    kind = max(a.datatype, b.datatype, key=NUMERIC.index)
    one, other = a.value, b.value
    if kind in (XSD.float, XSD.double):
        one, other = _promoted(a, kind), _promoted(b, kind)
    if math.isnan(one) or math.isnan(other):
        return math.nan
    return (one > other) - (one < other)


def _compare_moments(a: OracleMoment, b: OracleMoment) -> int | None:
    difference = a.seconds - b.seconds
    if (a.offset is None) != (b.offset is None) and abs(difference) <= _FOURTEEN_HOURS:
        return None
    return (difference > 0) - (difference < 0)


def truth(term: Term) -> bool | None:
    """The effective boolean value; None for an error."""
    if not isinstance(term, Literal):
        return None
    match read(term):
        case bool() as value:
            return value
        case str() as text:
            return text != ""
        case OracleNumber(value=value):
            return not math.isnan(value) and value != 0
        case None if term.datatype.value in (XSD.boolean, *NUMERIC, *BOUNDS):
            # A number out of range is not the same as no number.
            return None if _DECIMAL.fullmatch(term.lexical) else False
    return None


def order_key(term: Term) -> str:
    """A text that sorts in the order of ORDER BY, MIN and MAX (A4)."""
    if isinstance(term, BlankNode):
        return f"1 {term.label}"
    if isinstance(term, IRI):
        return f"2 {term.value}"
    if isinstance(term, TripleTerm):
        # The end of a part sorts before every longer part.
        parts = (term.subject, term.predicate, term.object)
        return f"4{''.join(order_key(part) + chr(0) for part in parts)}"
    match read(term):
        case OracleNumber(value=value):
            return f"30{_sortable(value)}"
        case str() as text:
            return f"31{text}"
        case bool() as value:
            return f"32{int(value)}"
        case (str() as text, str() as language):
            return f"33{text}\0{language}"
        case OracleMoment() as moment:
            return f"34{moment.datatype}\0{_sortable(moment.seconds)}"
        case OracleDuration() as duration:
            return f"35{_sortable(sum(_lengths(duration), start=Fraction(0)))}"
        case _:
            return f"36{term.datatype.value}\0{term.lexical}"


def _sortable(value: Fraction | float) -> str:
    """Write a number in digits of one length: every finite double has a decimal end and fits."""
    if not math.isfinite(value):
        return "0" if math.isnan(value) else "3" if value > 0 else "1"
    return f"2{int(Fraction(value) * 10**1074) + 10**1400:01402d}"
