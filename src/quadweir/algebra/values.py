"""The values behind literals: numbers, booleans, strings, dates; equality, order, truth, spelling.

Integers are 64-bit and decimals have 20 digits before the point and 18 after, so that the same
rules can be kept in arrays and in Spark columns; XML Schema asks for no more, and an overflow is an
error as XPath demands. Doubles are spelled without an exponent between 1e-7 and 1e21.

Spec: https://www.w3.org/TR/sparql11-query/#operandDataTypes
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from decimal import (
    ROUND_DOWN,
    ROUND_HALF_EVEN,
    ROUND_UP,
    Context,
    Decimal,
    DecimalException,
    InvalidOperation,
)
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias, final

from quadweir.algebra.moments import (
    Duration,
    DurationKind,
    ExpressionError,
    Moment,
    MomentKind,
    compare_durations,
    compare_moments,
    duration_lengths,
    read_duration,
    read_moment,
)
from quadweir.terms import IRI, XSD_STRING, BlankNode, Literal, Term, TripleTerm
from quadweir.vocab import XSD

__all__ = [
    "Duration",
    "DurationKind",
    "ExpressionError",
    "LanguageString",
    "Moment",
    "MomentKind",
    "Number",
    "NumberKind",
    "Value",
    "compare",
    "effective_boolean_value",
    "equal",
    "literal_of",
    "order_key",
    "value_of",
]

_INTEGER_LIMIT: Final = 2**63
_DECIMAL_LIMIT: Final = Decimal(10) ** 20
_DECIMAL_STEP: Final = Decimal(1).scaleb(-18)
# Wide enough for the exact product of two decimals of 38 digits.
EXACT: Final = Context(prec=80, rounding=ROUND_DOWN)


class NumberKind(IntEnum):
    """The four numeric types in the order of their promotion."""

    INTEGER = 0
    DECIMAL = 1
    FLOAT = 2
    DOUBLE = 3

    @property
    def datatype(self) -> IRI:
        return _NUMBER_DATATYPES[self]


_NUMBER_DATATYPES: Final = (IRI(XSD.integer), IRI(XSD.decimal), IRI(XSD.float), IRI(XSD.double))
BOOLEAN: Final = IRI(XSD.boolean)
TRUE: Final = Literal("true", BOOLEAN)
FALSE: Final = Literal("false", BOOLEAN)

# The integer types derived from xsd:integer, with their bounds.
_UNBOUNDED: Final = (None, None)
DERIVED_INTEGERS: Final[dict[str, tuple[int | None, int | None]]] = {
    XSD.integer: _UNBOUNDED,
    XSD.nonPositiveInteger: (None, 0),
    XSD.negativeInteger: (None, -1),
    XSD.nonNegativeInteger: (0, None),
    XSD.positiveInteger: (1, None),
    XSD.long: (-(2**63), 2**63 - 1),
    XSD.int: (-(2**31), 2**31 - 1),
    XSD.short: (-(2**15), 2**15 - 1),
    XSD.byte: (-(2**7), 2**7 - 1),
    XSD.unsignedLong: (0, 2**64 - 1),
    XSD.unsignedInt: (0, 2**32 - 1),
    XSD.unsignedShort: (0, 2**16 - 1),
    XSD.unsignedByte: (0, 2**8 - 1),
}
_MOMENTS: Final = {kind.value: kind for kind in MomentKind}
_DURATIONS: Final = {kind.value: kind for kind in DurationKind}
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4000}", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]{1,4000}(?:\.[0-9]{0,4000})?|\.[0-9]{1,4000})", re.A)
_FLOATING: Final = re.compile(
    r"[+-]?(?:(?:[0-9]{1,4000}(?:\.[0-9]{0,4000})?|\.[0-9]{1,4000})(?:[eE][+-]?[0-9]{1,9})?|INF)"
    r"|NaN",
    re.ASCII,
)


@final
@dataclass(frozen=True, slots=True)
class Number:
    """A numeric value with the type it is computed in.

    >>> Number.integer(2).lexical(), Number(NumberKind.DOUBLE, 0.5).lexical()
    ('2', '0.5')
    """

    kind: NumberKind
    value: int | Decimal | float

    @staticmethod
    def integer(value: int) -> Number:
        """Make an integer; one that does not fit 64 bits is an error."""
        if not -_INTEGER_LIMIT <= value < _INTEGER_LIMIT:
            raise ExpressionError("the integer does not fit 64 bits")
        return Number(NumberKind.INTEGER, value)

    @staticmethod
    def decimal(value: Decimal) -> Number:
        """Make a decimal, cut after 18 digits; one of more than 20 before the point is an error."""
        # Comparing is exact; abs() would round to the digits of the thread's context.
        if not value.is_finite() or not -_DECIMAL_LIMIT < value < _DECIMAL_LIMIT:
            raise ExpressionError("the decimal does not fit 38 digits")
        cut = value.quantize(_DECIMAL_STEP, context=EXACT)
        return Number(NumberKind.DECIMAL, cut if cut else cut.copy_abs())

    @staticmethod
    def floating(kind: NumberKind, value: float) -> Number:
        """Make a float or a double."""
        return Number(kind, single_precision(value) if kind is NumberKind.FLOAT else value)

    def promoted(self, kind: NumberKind) -> int | Decimal | float:
        """The bare value, as the wider type `kind` has it."""
        if kind is self.kind or kind is NumberKind.INTEGER:
            return self.value
        if kind is NumberKind.DECIMAL:
            return Decimal(self.value)
        as_double = float(self.value)
        return single_precision(as_double) if kind is NumberKind.FLOAT else as_double

    def is_nan(self) -> bool:
        return isinstance(self.value, float) and math.isnan(self.value)

    def lexical(self) -> str:
        """Spell it canonically."""
        match self.value:
            case float():
                return _floating_text(self.value, single=self.kind is NumberKind.FLOAT)
            case Decimal():
                return decimal_text(self.value)
            case _:
                return str(self.value)


@final
@dataclass(frozen=True, slots=True)
class LanguageString:
    """The value of a string with a language tag."""

    text: str
    language: str


Value: TypeAlias = Number | bool | str | LanguageString | Moment | Duration


def single_precision(value: float) -> float:
    """Round to the nearest 32-bit float; beyond its range, infinity."""
    try:
        rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def decimal_text(value: Decimal) -> str:
    """Spell a decimal with neither an exponent nor needless zeros.

    >>> decimal_text(Decimal("1.500")), decimal_text(Decimal("1E+2")), decimal_text(Decimal("-0"))
    ('1.5', '100', '0')
    """
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def floating_digits(value: float, *, single: bool) -> str:
    """The shortest digits that read back as the same number of the same precision."""
    if not single:
        return repr(value)
    # Nine significant digits always tell two 32-bit floats apart. Above a power of two floats lie
    # further apart than below it: there digits may be right though they are not the nearest.
    for precision in range(1, 10):
        for rounding in (ROUND_HALF_EVEN, ROUND_UP):
            digits = Context(prec=precision, rounding=rounding).create_decimal(Decimal(value))
            if single_precision(float(digits)) == value:
                return str(digits)
    return repr(value)


def _floating_text(value: float, *, single: bool) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    digits = Decimal(floating_digits(value, single=single))
    if 1e-7 <= abs(value) < 1e21:
        return decimal_text(digits)
    return scientific_text(digits)


def scientific_text(digits: Decimal) -> str:
    """Spell a number as XML Schema's canonical doubles are.

    >>> scientific_text(Decimal("1200"))
    '1.2E3'
    """
    exponent = digits.adjusted()
    mantissa = decimal_text(digits.scaleb(-exponent, context=EXACT))
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"


def read_integer(lexical: str) -> int | None:
    """The value of an integer's lexical form; None if it is not valid."""
    return int(lexical) if _INTEGER.fullmatch(lexical) else None


def read_decimal(lexical: str) -> Decimal | None:
    """The value of a decimal's lexical form; None if it is not valid."""
    return Decimal(lexical) if _DECIMAL.fullmatch(lexical) else None


def read_floating(lexical: str) -> float | None:
    """The value of a float's or double's lexical form; None if it is not valid."""
    if not _FLOATING.fullmatch(lexical):
        return None
    return float(lexical.replace("INF", "inf"))


def read_boolean(lexical: str) -> bool | None:
    """The value of a boolean's lexical form; None if it is not valid."""
    return {"true": True, "1": True, "false": False, "0": False}.get(lexical)


@lru_cache(maxsize=16_384)
def value_of(literal: Literal) -> Value | None:
    """The value of a literal; None for an unknown datatype, a bad lexical form or one out of range.

    >>> value_of(Literal("007", IRI(XSD.integer))).value
    7
    >>> value_of(Literal("300", IRI(XSD.byte))) is None
    True
    """
    if literal.language is not None:
        return LanguageString(literal.lexical, literal.language)
    if literal.datatype == XSD_STRING:
        return literal.lexical
    datatype, lexical = literal.datatype.value, literal.lexical
    try:
        if datatype in DERIVED_INTEGERS:
            return _read_bounded(lexical, *DERIVED_INTEGERS[datatype])
        if datatype == XSD.decimal:
            decimal = read_decimal(lexical)
            return None if decimal is None else Number.decimal(decimal)
        if datatype in (XSD.double, XSD.float):
            floating = read_floating(lexical)
            kind = NumberKind.FLOAT if datatype == XSD.float else NumberKind.DOUBLE
            return None if floating is None else Number.floating(kind, floating)
    except ExpressionError:
        return None
    if datatype == XSD.boolean:
        return read_boolean(lexical)
    if datatype in _MOMENTS:
        return read_moment(lexical, _MOMENTS[datatype])
    if datatype in _DURATIONS:
        return read_duration(lexical, _DURATIONS[datatype])
    return None


def _read_bounded(lexical: str, low: int | None, high: int | None) -> Number | None:
    integer = read_integer(lexical)
    if integer is None or (low is not None and integer < low):
        return None
    if high is not None and integer > high:
        return None
    return Number.integer(integer)


def literal_of(value: Value) -> Literal:
    """Spell a value as a literal, canonically.

    >>> str(literal_of(Number.decimal(Decimal("2.50"))))
    '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    match value:
        case bool():
            return TRUE if value else FALSE
        case str():
            return Literal(value)
        case Number():
            return Literal(value.lexical(), value.kind.datatype)
        case LanguageString():
            return Literal(value.text, language=value.language)
        case Moment() | Duration():
            return Literal(value.lexical(), IRI(value.kind.value))


def compare_numbers(left: Number, right: Number) -> int | None:
    """Order two numbers after promotion; None if one is NaN."""
    if left.is_nan() or right.is_nan():
        return None
    kind = max(left.kind, right.kind)
    a, b = left.promoted(kind), right.promoted(kind)
    return (a > b) - (a < b)


def equal(left: Term, right: Term) -> bool:
    """SPARQL's `=`: by value where both values are known, else by term.

    Two different literals of which one has no known value might still be equal: an error. So might
    two dates of which only one has a time zone. A string with a language tag equals nothing without
    one, whatever its datatype: no datatype has such values.
    Spec: https://www.w3.org/TR/sparql11-query/#func-RDFterm-equal

    >>> integer, decimal = IRI(XSD.integer), IRI(XSD.decimal)
    >>> equal(Literal("1", integer), Literal("1.0", decimal))
    True
    """
    if isinstance(left, TripleTerm) and isinstance(right, TripleTerm):
        return _equal_triples(left, right)
    if not isinstance(left, Literal) or not isinstance(right, Literal):
        return left == right
    a, b = value_of(left), value_of(right)
    if isinstance(a, Number) and isinstance(b, Number):
        return compare_numbers(a, b) == 0
    if left == right:
        return True
    if (left.language is None) != (right.language is None):
        return False
    if a is None or b is None:
        raise ExpressionError(f"cannot tell whether {left} equals {right}")
    if isinstance(a, Moment) and isinstance(b, Moment):
        order = compare_moments(a, b)
        if order is None and a.kind is b.kind:
            raise ExpressionError(f"only one of {left} and {right} has a time zone")
        return order == 0
    if isinstance(a, Duration) and isinstance(b, Duration):
        return compare_durations(a, b) == 0
    return type(a) is type(b) and a == b


def _equal_triples(left: TripleTerm, right: TripleTerm) -> bool:
    """Triple terms are equal if all their parts are; one different part decides, even if another is
    an error.

    Spec: https://www.w3.org/TR/sparql12-query/#func-sameValue
    """
    if left.subject != right.subject or left.predicate != right.predicate:
        return False
    return equal(left.object, right.object)


def compare(left: Term, right: Term) -> int | None:
    """SPARQL's order: -1, 0, 1; None where every comparison is false (NaN).

    Terms that have no order between them are an error. Beyond the specification's table, strings
    of one language, durations and parts of dates have an order too.
    Spec: https://www.w3.org/TR/sparql11-query/#OperatorMapping
    """
    if isinstance(left, Literal) and isinstance(right, Literal):
        match value_of(left), value_of(right):
            case (Number() as a, Number() as b):
                return compare_numbers(a, b)
            case (str() as a, str() as b):
                return (a > b) - (a < b)
            case (bool() as a, bool() as b):
                return a - b
            case (Moment() as a, Moment() as b):
                order = compare_moments(a, b)
                if order is not None:
                    return order
            case (Duration() as a, Duration() as b):
                order = compare_durations(a, b)
                if order is not None:
                    return order
            case (LanguageString() as a, LanguageString() as b) if a.language == b.language:
                return (a.text > b.text) - (a.text < b.text)
    raise ExpressionError(f"{left} and {right} have no order")


def effective_boolean_value(term: Term) -> bool:
    """The truth of a term, as FILTER sees it.

    A boolean or number of bad lexical form is false; terms of other types are an error.
    Spec: https://www.w3.org/TR/sparql11-query/#ebv

    >>> effective_boolean_value(Literal("")), effective_boolean_value(Literal("0.1", IRI(XSD.decimal)))
    (False, True)
    """
    if isinstance(term, Literal):
        match value_of(term):
            case bool() as value:
                return value
            case str() as value:
                return bool(value)
            case Number() as number:
                return not number.is_nan() and bool(number.value)
            case None if term.datatype.value in _HAS_TRUTH and read_decimal(term.lexical) is None:
                return False  # one that can be read but is out of range is an error
    raise ExpressionError(f"{term} is neither true nor false")


_HAS_TRUTH: Final = {XSD.boolean, XSD.decimal, XSD.float, XSD.double, *DERIVED_INTEGERS}


def order_key(term: Term | None) -> tuple[Any, ...]:
    """A key that puts terms in the order of ORDER BY.

    Unbound comes first, then blank nodes, IRIs, literals, triple terms.

    The order is total, and agrees with `compare` wherever that has an answer; between literals of
    different types it is by type, which the specification leaves open.
    Spec: https://www.w3.org/TR/sparql11-query/#modOrderBy

    >>> integer = IRI(XSD.integer)
    >>> order_key(None) < order_key(IRI("urn:z")) < order_key(Literal("9", integer))
    True
    >>> order_key(Literal("9", integer)) < order_key(Literal("10", integer))
    True
    """
    match term:
        case None:
            return (0,)
        case BlankNode():
            return (1, term.label)
        case IRI():
            return (2, term.value)
        case TripleTerm(subject=subject, predicate=predicate, object=end):
            return (4, order_key(subject), order_key(predicate), order_key(end))
    match value_of(term):
        case Number() as number:
            return (3, 0, not number.is_nan(), 0 if number.is_nan() else number.value)
        case bool() as value:
            return (3, 2, value)
        case str() as value:
            return (3, 1, value)
        case LanguageString() as value:
            return (3, 3, value.text, value.language)
        case Moment() as value:
            return (3, 4, value.kind.value, value.timeline())
        case Duration() as value:
            # Where the partial order has an answer, all four lengths and so their sum have it too.
            return (3, 5, sum(duration_lengths(value)))
        case None:
            return (3, 6, term.datatype.value, term.lexical)


def arithmetic(operator: str, left: Number, right: Number) -> Number:
    """Compute `left operator right` in the wider of the two types.

    Spec: https://www.w3.org/TR/xpath-functions/#op.numeric

    >>> arithmetic("/", Number.integer(1), Number.integer(3)).lexical()
    '0.333333333333333333'
    """
    kind = max(left.kind, right.kind)
    if operator == "/" and kind is NumberKind.INTEGER:
        kind = NumberKind.DECIMAL
    a, b = left.promoted(kind), right.promoted(kind)
    if isinstance(a, float) and isinstance(b, float):
        return Number.floating(kind, _floating_arithmetic(operator, a, b))
    if isinstance(a, int) and isinstance(b, int):
        return Number.integer(a + b if operator == "+" else a - b if operator == "-" else a * b)
    assert isinstance(a, Decimal) and isinstance(b, Decimal)
    if operator == "/" and not b:
        raise ExpressionError("division by zero")
    operations = {"+": EXACT.add, "-": EXACT.subtract, "*": EXACT.multiply, "/": EXACT.divide}
    try:
        return Number.decimal(operations[operator](a, b))
    except (DecimalException, InvalidOperation) as error:
        raise ExpressionError("the decimal does not fit 38 digits") from error


def _floating_arithmetic(operator: str, a: float, b: float) -> float:
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case _:
            if b:
                return a / b
            if a == 0 or math.isnan(a):
                return math.nan
            return math.copysign(math.inf, a) * math.copysign(1, b)
