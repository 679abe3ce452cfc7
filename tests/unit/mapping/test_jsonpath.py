"""JSONPaths as mappings write them, RFC 9535 or not."""

from __future__ import annotations

import pytest

from quadweir.errors import MappingError
from quadweir.mapping.jsonpath import check_path, select, simple_steps

DOCUMENT = {
    "Country Code": "NL",
    "first, name": "Ada",
    "list": [{"a b": 1}, {"a b": 2, "c": {"d e": 3}}],
    "^up": "quoted",
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("Country Code", ["NL"]),
        ("$.Country Code", ["NL"]),
        ("first, name", ["Ada"]),
        ("$.list.[*].a b", [1, 2]),
        ("list.[1].c.d e", [3]),
        ("$.list.[0]", [{"a b": 1}]),
        ("$..d e", [3]),
        ("$..c.d e", [3]),
        ("$.list.[?(@.c)].a b", [2]),
        ("$.list[?@['a b'] == 1]['a b']", [1]),
        ("$['^up']", ["quoted"]),
        ("no such", []),
    ],
)
def test_names_with_blanks_and_dots_before_brackets(path: str, found: list[object]) -> None:
    check_path(path, "a reference")
    assert select(DOCUMENT, path) == found


def test_a_dot_before_a_bracket_is_still_simple() -> None:
    assert simple_steps("$.[*]") == simple_steps("$[*]")
    assert simple_steps("$.a.[0].b c") == simple_steps("$['a'][0]['b c']")
    assert simple_steps("$..[*]") is None


@pytest.mark.parametrize("path", ["^^^.name", "$.a^", "$.list[*].^.b", "^"])
def test_going_up_is_refused(path: str) -> None:
    with pytest.raises(MappingError, match="goes up to a parent with") as caught:
        check_path(path, "a reference")
    assert "Iterate over the outer record" in (caught.value.hint or "")


@pytest.mark.parametrize("path", ["$ a", "$.", "$['a']b c", "$.a b)", "$[a b]"])
def test_an_unreadable_path_stays_an_error(path: str) -> None:
    with pytest.raises(MappingError, match="is not a JSONPath"):
        check_path(path, "a reference")
