from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given

from quadweir.errors import DataError
from quadweir.terms import IRI, Literal, Quad, Term, escape, parse_term, unescape
from terms_strategy import BLANK_NODES, IRIS, LITERALS, QUADS, TEXT


@given(TEXT)
def test_unescaping_undoes_escaping(text: str) -> None:
    assert unescape(escape(text)) == text


@given(IRIS | BLANK_NODES | LITERALS)
def test_a_term_survives_its_spelling(term: Term) -> None:
    assert parse_term(str(term)) == term


@given(QUADS)
def test_quads_are_spelled_as_pyoxigraph_spells_them(quad: Quad) -> None:
    (same,) = ox.parse(str(quad), ox.RdfFormat.N_QUADS)
    assert ox.serialize([same], format=ox.RdfFormat.N_QUADS).decode() == f"{quad}\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('"a"', '"\\u0061"'),
        ('"a"', '"a"^^<http://www.w3.org/2001/XMLSchema#string>'),
        ('"a"@en-us', '"a"@EN-US'),
        ('"\\n"', '"\\u000A"'),
        ("<urn:\u00e9>", "<urn:\\u00E9>"),
    ],
)
def test_equal_terms_have_one_spelling(one: str, other: str) -> None:
    assert str(parse_term(one)) == str(parse_term(other)) == one


@pytest.mark.parametrize(
    "text",
    [
        "",
        "urn:a",
        "<no scheme>",
        "<urn:a b>",
        '"a',
        '"a"@1',
        '"\\x"',
        '"\\uD800"',
        '"\\U00110000"',
        "_:",
        "_:a.",
    ],
)
def test_what_is_no_term_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        parse_term(text)


def test_a_language_makes_the_datatype() -> None:
    tagged = Literal("a", datatype=IRI("urn:ignored"), language="EN")
    assert tagged == Literal("a", language="en")
    assert tagged.datatype.value.endswith("#langString")
