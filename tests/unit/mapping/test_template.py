from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadweir.errors import MappingError
from quadweir.mapping.template import ReferencePart, TextPart, parse_template, spell_template

texts = st.text(alphabet="ab{}\\$.[]' /", min_size=1, max_size=8)


@given(st.lists(st.tuples(texts.map(TextPart), texts.filter(str.strip).map(ReferencePart))))
def test_parts_spelt_and_parsed_are_the_same_parts(pairs):
    parts = tuple(part for pair in pairs for part in pair)
    assert parse_template(spell_template(parts)) == parts


@given(st.text(alphabet="ab{}\\ ", max_size=12))
def test_any_text_is_parsed_or_refused(text: str):
    try:
        parts = parse_template(text)
    except MappingError as error:
        assert error.hint
    else:
        assert parse_template(spell_template(parts)) == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a{b", "never closes"),
        ("a}b", "never opened"),
        ("{{a}}", "inside the one opened"),
        ("{}", "empty reference"),
        ("{ }", "empty reference"),
        ("a\\b", "escapes nothing"),
        ("a\\", "escapes nothing"),
        ("{a\\}", "never closes"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str):
    with pytest.raises(MappingError, match=words):
        parse_template(text)


def test_escaped_characters_mean_themselves():
    assert parse_template(r"\{\}\\{a\{0\}}") == (TextPart("{}\\"), ReferencePart("a{0}"))
