"""Which queries have one shape, what becomes a parameter, and why some share less."""

from __future__ import annotations

import pytest

from quadweir.algebra.patterns import Group, Project
from quadweir.algebra.query import ContinuousQuery, SelectForm
from quadweir.algebra.traverse import walk
from quadweir.algebra.windows import TimeScope
from quadweir.plan.facts import NO_STATIC_DATA, StaticFacts
from quadweir.plan.nodes import Route
from quadweir.plan.program import program_of
from quadweir.sharing import Shaped, Shapes, shape_of, template_of
from quadweir.syntax import parse
from quadweir.terms import Variable


def queries(text: str, *values: str, dialect: str = "cqels") -> list[ContinuousQuery]:
    """The same text with each of the values in place of $."""
    prefix = "PREFIX : <urn:> "
    return [parse(prefix + text.replace("$", value), dialect=dialect) for value in values]


def shaped(text: str, *values: str, dialect: str = "cqels") -> list[Shaped]:
    shapes = Shapes()
    return [shapes.of(query) for query in queries(text, *values, dialect=dialect)]


def constants(found: list[Shaped]) -> list[list[str]]:
    return [[str(term) for term in each.constants] for each in found]


def test_constants_become_parameters_from_the_first_query_on() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x . ?x :by :me } }"
    found = shaped(text, ":a", ":b")
    assert len({each.shape for each in found}) == 1
    assert constants(found) == [["<urn:a>", "<urn:me>"], ["<urn:b>", "<urn:me>"]]
    (alone,) = shaped(text, ":c")
    assert alone.shape.name == found[0].shape.name


def test_equal_constants_of_one_query_are_one_parameter() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { $ :likes ?x . ?x :by :me } }"
    other, same = shaped(text, ":a", ":me")
    assert constants([same]) == [["<urn:me>"]]
    assert other.shape != same.shape


def test_predicates_and_classes_are_part_of_the_shape() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { ?x $ } }"
    found = shaped(text, ":p ?y", ":q ?y", "a :Post", "a :Photo")
    assert len({each.shape for each in found}) == 4
    assert constants(found) == [[], [], [], []]


def test_parameters_are_keys_of_groups_and_are_projected_by_subqueries() -> None:
    text = (
        "SELECT ?x ?n WHERE { STREAM :s [RANGE 1s] { ?x :p ?y } "
        "{ SELECT ?x (COUNT(*) AS ?n) "
        "WHERE { STREAM :s [RANGE 1s] { ?x :q $ } } GROUP BY ?x } }"
    )
    (one,) = shaped(text, ":a")
    (parameter,) = one.shape.parameters
    nodes = list(walk(one.shape.query.pattern))
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
        "STREAM :s [RANGE 1s] { ?x :p ?y } FILTER(?y = $ || ?x = :other)",
        "STREAM :s [RANGE 1s] { $ :p* ?x }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } { SELECT (COUNT(*) AS ?n) WHERE { ?z :p $ } }",
        "STREAM :s [RANGE 1s] { ?x :p ?y } { SELECT ?y WHERE { ?y :p $ } LIMIT 1 }",
    ],
)
def test_where_a_parameter_could_be_unbound_or_mix_queries_it_stays_a_constant(body: str) -> None:
    found = shaped(f"SELECT ?x WHERE {{ {body} }}", ":a", ":b")
    assert len({each.shape for each in found}) == 2
    assert constants(found) == [[], []]


def test_only_connected_patterns_get_parameters() -> None:
    text = "SELECT ?x ?y WHERE { STREAM :s [RANGE 1s] { $ :p ?x . :c :p ?x . :d :q ?y } }"
    found = shaped(text, ":a", ":b")
    # Every pair of matches of both would be joined, whoever asks for it.
    assert constants(found) == [["<urn:a>", "<urn:c>"], ["<urn:b>", "<urn:c>"]]
    assert len({each.shape for each in found}) == 1


@pytest.mark.parametrize(
    ("condition", "branches"),
    [
        ("?x = $", 1),
        ("$ = ?x", 1),
        ("?x = $ || ?y = $", 2),
        ("sameTerm(?x, $) || ?y = $", 2),
        ("?x IN ($)", 1),
    ],
)
def test_a_filter_for_one_iri_is_a_lookup(condition: str, branches: int) -> None:
    text = f"SELECT ?x ?y WHERE {{ STREAM :s [RANGE 1s] {{ ?x ?p ?y FILTER({condition}) }} }}"
    found = shaped(text, ":a", ":b")
    assert constants(found) == [["<urn:a>"], ["<urn:b>"]]
    assert len({each.shape for each in found}) == 1
    program = program_of(found[0].shape.query, template=template_of(found[0].shape))
    assert len(program.matches) == 1
    assert str(program.root).count("Extend(") == branches


def test_a_filter_for_an_iri_that_a_pattern_has_compares_with_the_parameter() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { ?x ?p $ FILTER(?x = $) } }"
    found = shaped(text, ":a", ":b")
    assert constants(found) == [["<urn:a>"], ["<urn:b>"]]
    assert len({each.shape for each in found}) == 1


def test_what_is_constructed_is_each_querys_own() -> None:
    text = "CONSTRUCT { $ :knows ?x } WHERE { STREAM :s [RANGE 1s] { $ :p ?x } }"
    one, other = shaped(text, ":a", ":b")
    assert one.shape == other.shape
    assert one.shape.query.form == SelectForm(variables=(Variable("v0"),))


def test_eager_windows_are_open() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE $] { ?x :p ?y } STREAM :t [RANGE 7s] { ?x :q ?y } }"
    one, other = shaped(text, "5s", "9s")
    assert one.shape == other.shape
    assert one.shape.windows == (0, 1)
    assert (one.ranges, other.ranges) == ((5_000, 7_000), (9_000, 7_000))
    scopes = [each.scope for each in one.shape.query.windows]
    assert [each.range_ms for each in scopes if isinstance(each, TimeScope)] == [1, 1]


def test_other_windows_are_open_if_a_route_stands_above_them() -> None:
    text = (
        "REGISTER RSTREAM <urn:q> AS SELECT ?x (COUNT(*) AS ?n) "
        "FROM NAMED WINDOW :w ON STREAM :s [RANGE $ STEP PT5S] "
        "WHERE { WINDOW :w { ?x :p :c } } GROUP BY ?x"
    )
    one, other = shaped(text, "PT5S", "PT9S", dialect="rspql")
    assert one.shape == other.shape
    assert not one.shape.one_since
    program = program_of(one.shape.query, template=template_of(one.shape))
    (route,) = (node for node in program.nodes if isinstance(node, Route))
    assert route.parameters == one.shape.parameters


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("RSTREAM SELECT ?x {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}", "without a step"),
        ("ISTREAM SELECT (COUNT(*) AS ?n) {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}", "empty"),
        ("ISTREAM SELECT ?x {W} WHERE {{ WINDOW :w {{ ?x :p+ ?y . ?x :q ?z }} }}", "path"),
        (
            "ISTREAM SELECT ?x ?n {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} "
            "{{ SELECT (COUNT(*) AS ?n) WHERE {{ WINDOW :w {{ ?z :q ?y }} }} }} }}",
            "group without keys",
        ),
        (
            "ISTREAM SELECT ?x {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} BIND(NOW() AS ?t) }}",
            "changes by itself",
        ),
        ("RSTREAM SELECT ?x {W} WHERE {{ WINDOW :w {{ ?x :p ?y }} }} LIMIT 1", "as a whole"),
    ],
)
def test_what_would_answer_otherwise_has_members_of_one_instant(body: str, reason: str) -> None:
    declared = "FROM NAMED WINDOW :w ON STREAM :s [RANGE $]"
    form, rest = body.format(W=declared).split(" ", 1)
    text = f"REGISTER {form} <urn:q> AS {rest}"
    one, other = shaped(text, "PT5S", "PT9S", dialect="rspql")
    assert one.shape.one_since
    assert one.shape != other.shape
    assert reason in one.shape.reason


def test_static_data_merged_with_windows_is_shared_if_it_has_no_matches() -> None:
    text = (
        "REGISTER QUERY q AS SELECT ?x FROM STREAM <urn:s> [RANGE 5s STEP 1s] FROM <urn:g> "
        "WHERE { ?x <urn:p> ?y . ?y <urn:q> ?z }"
    )
    (query,) = queries(text, "", dialect="csparql")
    assert shape_of(query).shape.one_since
    assert not shape_of(query, facts=NO_STATIC_DATA).shape.one_since


def test_a_static_pattern_that_is_too_large_keeps_its_constants() -> None:
    text = "SELECT ?x WHERE { STREAM :s [RANGE 1s] { ?u :p ?x . ?x :by $ } ?u :is :n }"
    given = queries(text, ":a", ":b")
    shapes = Shapes()
    found = [shapes.of(each) for each in given]
    assert constants(found) == [["<urn:a>", "<urn:n>"], ["<urn:b>", "<urn:n>"]]
    template = template_of(found[0].shape)
    (relation,) = program_of(template.query, template=template).static
    shapes = Shapes(facts=StaticFacts({relation.query: 6_000_000}))
    found = [shapes.of(each) for each in given]
    assert constants(found) == [["<urn:a>"], ["<urn:b>"]]
    assert len({each.shape for each in found}) == 1
    assert "6,000,000 solutions" in found[0].shape.reason


def test_names_of_queries_and_windows_do_not_matter() -> None:
    text = (
        "REGISTER RSTREAM <urn:$> AS SELECT ?x "
        "FROM NAMED WINDOW <urn:w$> ON STREAM <urn:s> [RANGE PT1S] "
        "WHERE { WINDOW <urn:w$> { ?x <urn:p> <urn:a> } }"
    )
    one, other = shaped(text, "a", "b", dialect="rspql")
    assert one.shape == other.shape
    variable = [
        parse(text.replace("$", name).replace("WINDOW <urn:w" + name + "> {", "WINDOW ?w {"))
        for name in "ab"
    ]
    assert len({shape_of(each).shape for each in variable}) == 2
