"""Which queries are of one template, and what becomes a parameter."""

from __future__ import annotations

import pytest

from quadweir.algebra.patterns import Group, Project
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import TimeScope
from quadweir.sharing import QueryTemplate, bind, generalize
from quadweir.syntax import parse
from quadweir.terms import IRI, Variable


def queries(text: str, *values: str) -> list[ContinuousQuery]:
    """The same text with each of the values in place of $."""
    prefix = "PREFIX : <urn:> "
    return [parse(prefix + text.replace("$", value), dialect="cqels") for value in values]


def constants(template: QueryTemplate) -> list[list[str]]:
    return [[str(term) for term in member.constants] for member in template.members]


def test_constants_that_differ_become_parameters_and_others_stay() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x . ?x :by :me } }"
    (template,) = generalize(queries(text, ":a", ":b"))
    assert constants(template) == [["<urn:a>"], ["<urn:b>"]]
    assert len(template.parameters) == 1


def test_constants_that_change_together_are_one_parameter() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x . ?x :by $ } }"
    (template,) = generalize(queries(text, ":a", ":b", ":a"))
    assert constants(template) == [["<urn:a>"], ["<urn:b>"], ["<urn:a>"]]


def test_equal_queries_have_no_parameters() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x } }"
    (template,) = generalize(queries(text, ":a", ":a"))
    assert template.parameters == ()
    assert [member.number for member in template.members] == [0, 1]


def test_one_query_is_left_as_it_is() -> None:
    (query,) = queries("SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x } }", ":a")
    (template,) = generalize([query])
    assert template.is_plain
    assert template.query.pattern == bind(template.query.pattern, {})
    assert template.parameters == ()


def test_parameters_are_keys_of_groups_and_are_projected_by_subqueries() -> None:
    text = (
        "SELECT ?x ?n WHERE { STREAM :s [RANGE 1s] { ?x :p ?y } "
        "{ SELECT ?x (COUNT(*) AS ?n) "
        "WHERE { STREAM :s [RANGE 1s] { ?x :q $ } } GROUP BY ?x } }"
    )
    (template,) = generalize(queries(text, ":a", ":b"))
    (parameter,) = template.parameters
    nodes = list(walk(template.query.pattern))
    assert all(parameter in node.keys for node in nodes if isinstance(node, Group))
    assert all(parameter in node.variables for node in nodes if isinstance(node, Project))


@pytest.mark.parametrize(
    "body",
    [
        "STREAM :s [RANGE 1s] { ?x :p ?y } OPTIONAL { STREAM :s [RANGE 1s] { ?x :q $ } }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } MINUS { STREAM :s [RANGE 1s] { ?x :q $ } }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } FILTER EXISTS { STREAM :s [RANGE 1s] { ?x :q $ } }",
        "{ STREAM :s [RANGE 1s] { ?x :p $ } } UNION { STREAM :s [RANGE 1s] { ?x :q ?y } }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } FILTER(?y != $)",
        "STREAM :s [RANGE 1s] { $ :p* ?x }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } { SELECT (COUNT(*) AS ?n) WHERE { ?z :p $ } }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } { SELECT ?y WHERE { ?y :p $ } LIMIT 1 }",
    ],
)
def test_where_a_parameter_could_be_unbound_or_mix_queries_nothing_is_shared(body: str) -> None:
    found = generalize(queries(f"SELECT ?x WHERE {{ {body} }}", ":a", ":b"))
    assert [template.is_plain for template in found] == [True, True]


def test_what_is_constructed_is_each_querys_own() -> None:
    text = "CONSTRUCT { $ :knows ?x } WHERE { STREAM :s [RANGE 1s] { $ :p ?x } }"
    (template,) = generalize(queries(text, ":a", ":b"))
    assert template.query.form == SelectForm(variables=(Variable("x"),))


def test_lengths_of_windows_differ_only_where_they_may() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE $] { ?x :p :a } STREAM :t [RANGE 7s] { ?x :p :b } }"
    given = queries(text, "5s", "9s")
    assert len(generalize(given)) == 2
    (template,) = generalize(given, elastic=lambda _: True)
    assert template.windows == (0,)
    assert [member.ranges for member in template.members] == [(5_000,), (9_000,)]
    ranges = [w.scope.range_ms for w in template.query.windows if isinstance(w.scope, TimeScope)]
    assert ranges == [9_000, 7_000]


def test_names_of_queries_and_windows_are_of_no_account() -> None:
    text = (
        "REGISTER RSTREAM <urn:$> AS SELECT ?x "
        "FROM NAMED WINDOW <urn:w$> ON STREAM <urn:s> [RANGE PT1S] "
        "WHERE { WINDOW <urn:w$> { ?x <urn:p> <urn:a> } }"
    )
    given = [parse(text.replace("$", name), dialect="rspql") for name in "ab"]
    assert len(generalize(given)) == 1
    variable = [
        parse(text.replace("$", name).replace("WINDOW <urn:w" + name + "> {", "WINDOW ?w {"))
        for name in "ab"
    ]
    assert len(generalize(variable)) == 2


def test_bind_gives_the_query_back() -> None:
    text = "SELECT ?x (COUNT(*) AS ?n) WHERE { STREAM :s [RANGE 1s] { ?x :p $ } } GROUP BY ?x"
    given = queries(text, ":a", ":b")
    (template,) = generalize(given)
    (parameter,) = template.parameters
    for query, name in zip(given, ("urn:a", "urn:b"), strict=True):
        (alone,) = generalize([query])
        assert bind(template.query.pattern, {parameter: IRI(name)}) == alone.query.pattern
