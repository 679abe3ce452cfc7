"""Types of answers: only what the query says for certain."""

import pytest

from quadweir import register
from quadweir.algebra.answertypes import answer_types
from quadweir.functions import REGISTERED
from quadweir.syntax.read import parse

WINDOW = "STREAM <urn:s> [RANGE 1m]"
XSD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "


def types(text: str) -> dict[str, str]:
    found = answer_types(parse(XSD + text))
    return {variable.name: each.value for variable, each in found.items()}


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("COUNT(*)", "xsd:integer"),
        ("COUNT(DISTINCT ?v)", "xsd:integer"),
        ("AVG(?v)", "numeric"),
        ("SUM(?v)", "numeric"),
        ("SUM(xsd:integer(?v))", "xsd:integer"),
        ("SUM(xsd:double(?v))", "numeric"),
        ("MAX(?v)", "term"),
        ("MAX(xsd:dateTime(?v))", "xsd:dateTime"),
        ("GROUP_CONCAT(?v)", "xsd:string"),
        ("COUNT(*) + 1", "xsd:integer"),
        ("COUNT(*) / 2", "xsd:decimal"),
        ("COUNT(*) > 2", "xsd:boolean"),
        ("IF(COUNT(*) > 2, 1, 2.5)", "numeric"),
        ('IF(COUNT(*) > 2, 1, "none")', "term"),
        ("COALESCE(AVG(?v), 0)", "numeric"),
    ],
)
def test_of_aggregates_and_expressions(expression: str, kind: str) -> None:
    found = types(f"SELECT (({expression}) AS ?x) {{ {WINDOW} {{ ?s ?p ?v }} }}")
    assert found["x"] == kind


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("?v", "term"),
        ("?v + 1", "numeric"),
        ("-?v", "numeric"),
        ("xsd:byte(?v)", "xsd:integer"),
        ("xsd:date(?v)", "xsd:date"),
        ("BOUND(?v)", "xsd:boolean"),
        ("STRLEN(?v)", "xsd:integer"),
        ("STR(?v)", "xsd:string"),
        ("NOW()", "xsd:dateTime"),
        ("<urn:unknown>(?v)", "term"),
        ("<urn:a>", "IRI"),
    ],
)
def test_of_what_is_bound_in_the_pattern(expression: str, kind: str) -> None:
    found = types(f"SELECT ?x {{ {WINDOW} {{ ?s ?p ?v }} BIND({expression} AS ?x) }}")
    assert found["x"] == kind


def test_each_place_that_binds_a_variable_counts() -> None:
    counted = f"{{ SELECT (COUNT(*) AS ?n) {{ {WINDOW} {{ ?s ?p ?v }} }} }}"
    assert types(f"SELECT ?n {{ {counted} }}") == {"n": "xsd:integer"}
    both = f"{counted} UNION {{ {WINDOW} {{ ?s <urn:n> ?n }} }}"
    assert types(f"SELECT ?n {{ {both} }}") == {"n": "term"}
    numbers = f"{counted} UNION {{ VALUES ?n {{ 1.5 UNDEF }} }}"
    assert types(f"SELECT ?n {{ {numbers} }}") == {"n": "numeric"}
    left = f"{WINDOW} {{ ?s <urn:n> ?v }} OPTIONAL {{ VALUES ?n {{ true }} }}"
    assert types(f"SELECT ?n ?v {{ {left} }}") == {"n": "xsd:boolean", "v": "term"}


def test_an_inner_variable_of_the_same_name_does_not_count() -> None:
    inner = f"{{ SELECT (COUNT(?n) AS ?x) {{ {WINDOW} {{ ?s ?p ?n }} }} }} BIND(?x * 2 AS ?n)"
    assert types(f"SELECT ?n {{ {inner} }}") == {"n": "xsd:integer"}


def test_a_function_of_the_user_has_the_kind_that_it_says() -> None:
    def half(value: float) -> float:
        return value / 2

    register("urn:f:half", half)
    try:
        text = f"SELECT ?x {{ {WINDOW} {{ ?s ?p ?v }} BIND(<urn:f:half>(?v) AS ?x) }}"
        assert types(text) == {"x": "numeric"}
    finally:
        REGISTERED.remove("urn:f:half")
