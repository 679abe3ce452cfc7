"""W5: endless windows are refused unless the plan limits their state."""

from __future__ import annotations

import pytest

from quadweir.algebra.analyze import refuse_unbounded
from quadweir.errors import UnboundedStateError
from quadweir.optimize import optimize
from quadweir.plan.bounds import refuse_endless
from quadweir.plan.query import QueryPlan, plan_query
from quadweir.syntax import parse
from quadweir.terms import IRI

BOUNDED = {
    "lone pattern": "SELECT ?x { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } }",
    "with static data": "SELECT ?x { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } ?x <urn:a> ?z }",
    "totals": "SELECT (SUM(?y) AS ?n) { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } }",
}
GROUPED = """SELECT ?y (COUNT(*) AS ?n) { STREAM <urn:s> [ALL] { ?x <urn:p> ?y }
  STREAM <urn:s> [ALL] { ?x <urn:q> ?z } } GROUP BY ?y"""
ENDLESS = {
    "recomputed": "SELECT ?x { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } "
    "FILTER (EXISTS { ?x <urn:a> <urn:b> } || ?y = 1) }",
    "greatest of all": "SELECT (MAX(?y) AS ?n) { STREAM <urn:s> [ALL] { ?x <urn:p> ?y } }",
}


def plan_of(text: str) -> QueryPlan:
    query = parse(text)
    refuse_unbounded(query)  # its meaning alone allows it
    return plan_query(optimize(query).query, streams=())


@pytest.mark.parametrize("text", BOUNDED.values(), ids=BOUNDED)
def test_what_the_plan_bounds_is_taken(text: str) -> None:
    plan = plan_of(text)
    assert not plan.endless
    refuse_endless(plan.query, plan.endless, plan.why_not)


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_what_it_does_not_bound_is_refused_unless_it_is_allowed(text: str) -> None:
    plan = plan_of(text)
    with pytest.raises(UnboundedStateError) as error:
        refuse_endless(plan.query, plan.endless, plan.why_not)
    assert error.value.span is not None
    if plan.why_not is not None:
        assert plan.why_not in (error.value.detail or "")
    refuse_endless(plan.query, plan.endless, plan.why_not, allowed=frozenset({IRI("urn:s")}))


def test_in_two_stages_all_is_remembered() -> None:
    plan = plan_query(optimize(parse(GROUPED)).query, streams=())
    assert len(plan.stages) == 2
    assert plan.endless
