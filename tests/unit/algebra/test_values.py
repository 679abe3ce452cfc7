"""Values at the limits of their types."""

from __future__ import annotations

import pytest

from quadweir.algebra.functions import call
from quadweir.algebra.signatures import Context
from quadweir.algebra.values import literal_of, value_of
from quadweir.terms import IRI, Literal
from quadweir.vocab import XSD

DECIMAL = IRI(XSD.decimal)
LARGEST = "99999999999999999999.999999999999999999"


@pytest.mark.parametrize("text", [LARGEST, f"-{LARGEST}", "99999999999999999999", "-0.0"])
def test_every_decimal_of_38_digits_has_a_value(text: str) -> None:
    value = value_of(Literal(text, datatype=DECIMAL))
    assert value is not None
    assert literal_of(value).lexical == ("0" if text == "-0.0" else text)


@pytest.mark.parametrize("text", ["100000000000000000000", "-100000000000000000000.0"])
def test_a_decimal_of_more_than_20_digits_before_the_point_has_none(text: str) -> None:
    assert value_of(Literal(text, datatype=DECIMAL)) is None


def test_the_largest_decimals_are_computed_with() -> None:
    largest, least = (Literal(text, datatype=DECIMAL) for text in (LARGEST, f"-{LARGEST}"))
    assert call("ABS", (least,), Context()) == largest
    assert call("NEGATE", (largest,), Context()) == least
    assert call("FLOOR", (largest,), Context()) == Literal("9" * 20, datatype=DECIMAL)
    assert call("-", (largest, largest), Context()) == Literal("0", datatype=DECIMAL)
