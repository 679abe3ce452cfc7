"""The names of sub-plans: equal work has equal names, whatever surrounds it."""

from __future__ import annotations

import pytest

from quadweir.optimize import optimize
from quadweir.plan.canonical import Canonical, Canonicalizer
from quadweir.plan.nodes import Join, Route
from quadweir.plan.program import program_of
from quadweir.sharing import shape_of, template_of
from quadweir.syntax import parse

JOIN = "SELECT ?a ?c WHERE { STREAM :s [RANGE 5s] { ?a :p ?b } STREAM :t [RANGE 9s] { ?b :q ?c } }"


def core(text: str) -> Canonical:
    """The name of the join of a query."""
    query = optimize(parse(f"PREFIX : <urn:> {text}", dialect="cqels")).query
    shape = shape_of(query).shape
    program = program_of(shape.query, template=template_of(shape))
    (join,) = (node for node in program.nodes if isinstance(node, Join))
    return Canonicalizer(shape.windows, eager=program.eager).of(join)


@pytest.mark.parametrize(
    "text",
    [
        # Other names, lengths and order; other operators above.
        "SELECT ?x WHERE { STREAM :t [RANGE 1s] { ?y :q ?z } STREAM :s [RANGE 2s] { ?x :p ?y } }",
        "SELECT ?b WHERE { STREAM :s [RANGE 5s] { ?a :p ?b } STREAM :t [RANGE 9s] { ?b :q ?c } "
        "FILTER(?a != ?c) }",
    ],
)
def test_equal_joins_have_one_name(text: str) -> None:
    assert core(text).name == core(JOIN).name


@pytest.mark.parametrize(
    "text",
    [
        JOIN.replace("?b :q", "?a :q"),
        JOIN.replace(":q", ":r"),
        JOIN.replace("STREAM :t [RANGE 9s]", "STREAM :s [RANGE 9s]"),
        JOIN.replace("[RANGE 9s]", "[NOW]"),
    ],
)
def test_other_joins_have_other_names(text: str) -> None:
    assert core(text).name != core(JOIN).name


def test_inputs_that_are_alike_may_stand_in_any_order() -> None:
    text = (
        "SELECT ?one WHERE { STREAM :s [RANGE 5s] "
        "{ ?u :by ?one . ?one :tag ?t . ?u :by ?other . ?other :tag ?t } }"
    )
    turned = "SELECT ?b WHERE { STREAM :s [RANGE 5s] { ?b :tag ?t . ?u :by ?a . ?u :by ?b . ?a :tag ?t } }"
    one, other = core(text), core(turned)
    assert one.name == other.name
    names = [each.name for each in one.variables if "part" not in each.name]
    # Shapes name variables by their order: ?one ?u ?t ?other, and ?b ?t ?u ?a.
    assert dict(
        zip(names, (v.name for v in other.variables if "part" not in v.name), strict=True)
    ) in (
        {"v0": "v3", "v3": "v0", "v2": "v1", "v1": "v2"},
        {"v0": "v0", "v3": "v3", "v2": "v1", "v1": "v2"},
    )


def test_the_join_below_an_aggregate_is_named_apart_from_an_eager_one() -> None:
    text = JOIN.replace("?a ?c WHERE", "?a (COUNT(*) AS ?n) WHERE") + " GROUP BY ?a"
    assert core(text).name != core(JOIN).name
    other = text.replace("COUNT(*)", "MAX(?c)")
    assert core(text).name == core(other).name
    shape = shape_of(parse(f"PREFIX : <urn:> {text}", dialect="cqels")).shape
    program = program_of(shape.query, template=template_of(shape))
    assert sum(isinstance(each, Route) for each in program.nodes) == 1
