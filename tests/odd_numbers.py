"""Numbers that are easy to get wrong: large, tiny, of equal value, with rounding to watch."""

from __future__ import annotations

from quadweir.terms import IRI, Literal
from quadweir.vocab import XSD

INTEGERS = (
    "9223372036854775807",
    "-9223372036854775808",
    "-5",
    "1",
    "01",
    "+1",
    "9007199254740993",
)
DECIMALS = (
    "99999999999999999999.999999999999999999",
    "-99999999999999999999.999999999999999999",
    "0.000000000000000001",
    "1.0",
    "1.00",
    "0.1",
    "-.5",
    "-0.0",
)
DOUBLES = (
    "1e16",
    "-1e16",
    "1e0",
    "1.0E0",
    "1e308",
    "-1e308",
    "5e-324",
    "-0.0",
    "0.1",
    "-5.551115123125783e-18",
    "NaN",
    "INF",
    "-INF",
)
FLOATS = ("0.1", "1", "3.4028235e38", "-3.4028235e38", "16777216", "1e-45")
DERIVED = (("int", "1"), ("byte", "1"), ("unsignedLong", "18446744073709551615"), ("byte", "300"))


def _typed(kind: str, spellings: tuple[str, ...]) -> list[Literal]:
    return [Literal(each, datatype=IRI(XSD[kind])) for each in spellings]


ODD_NUMBERS = [
    *_typed("integer", INTEGERS),
    *_typed("decimal", DECIMALS),
    *_typed("double", DOUBLES),
    *_typed("float", FLOATS),
    *(Literal(spelling, datatype=IRI(XSD[kind])) for kind, spelling in DERIVED),
]
