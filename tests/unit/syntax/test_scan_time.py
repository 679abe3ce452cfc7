"""No text makes reading take longer than in proportion to its length."""

import pytest

from quadweir.errors import QuadweirError
from quadweir.syntax.read import parse
from quadweir.syntax.scan import pieces

LENGTH = 250_000
UNITS = ('\\"', "\\'", '\\\\"', '"', "'", '""', '" ', '"\n', '"""a', "'''\\'", "<a", "<a ", "#a\n")


@pytest.mark.timeout(120)  # Where time grows with the square of the length, it is many minutes.
@pytest.mark.parametrize("opening", ['"', "'", '"""', "'''", ""])
def test_a_text_of_unclosed_strings_is_refused_in_linear_time(opening: str):
    for unit in UNITS:
        with pytest.raises(QuadweirError):
            parse(f"SELECT * {{ ?a ?b {opening}" + unit * (LENGTH // len(unit)))


def test_a_string_that_nothing_closes_ends_with_its_line():
    assert [one.text for one in pieces('{ "a( \n( "" "b)" \'c) ')] == ["{", "("]
    assert [one.text for one in pieces('{ """a"b""c\n( """ ( """d\n) ')] == ["{", "("]
