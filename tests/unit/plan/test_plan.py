"""How queries are sharded, and how a plan is described."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from quadweir.plan.describe import describe
from quadweir.plan.query import QueryPlan
from quadweir.terms import Quad
from query_hosts import spec_of
from streaming import quads

LSBENCH = Path(__file__).parents[3] / "src/quadweir/bench/queries/lsbench/cqels"


def plan(text: str, static: Sequence[Quad] = ()) -> QueryPlan:
    return spec_of(text, static=static, streams=("urn:s",)).plan


JOIN = (
    "SELECT {what} {{ STREAM <urn:s> [RANGE 5s] {{ ?x <urn:p> ?y }} "
    "STREAM <urn:t> [RANGE 5s] {{ ?{end} <urn:q> ?z }} }}"
)


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        (JOIN.format(what="?x ?z", end="y"), "y", "occurs in every windowed pattern"),
        (JOIN.format(what="?x", end="w"), "x", "no variable occurs in every"),
        (
            "SELECT ?x (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } } GROUP BY ?x",
            "x",
            "occurs in every",
        ),
        (
            "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }",
            None,
            "a group gathers rows of different ?x",
        ),
        ("ASK { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } }", None, "ASK"),
        (
            "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } } ORDER BY ?x LIMIT 3",
            None,
            "ORDER BY",
        ),
        (
            "SELECT ?x { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } "
            "OPTIONAL { SELECT ?z { STREAM <urn:t> [RANGE 5s] { ?y <urn:q> ?z } } } }",
            "x",
            "those with ?x are sharded by it",
        ),
    ],
)
def test_rows_are_sharded_by_a_variable_where_that_changes_no_answer(text, key, reason):
    found = plan(text)
    (stage,) = found.stages
    assert (stage.key.name if stage.key is not None else None) == key
    assert reason in stage.reason
    assert found.shards(4) == (4 if key is not None else 1,)


@pytest.mark.parametrize(
    ("text", "key", "reason", "second"),
    [
        (
            "SELECT DISTINCT ?z { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } "
            "STREAM <urn:t> [RANGE 5s] { ?y <urn:q> ?z } }",
            "y",
            "DISTINCT compares rows of different ?y",
            "z",
        ),
        (
            "SELECT (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } "
            "STREAM <urn:t> [RANGE 5s] { ?y <urn:q> ?z } }",
            "y",
            "a group gathers rows of different ?y",
            None,
        ),
        (
            "SELECT ?z (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } "
            "STREAM <urn:t> [RANGE 5s] { ?y <urn:q> ?z } } GROUP BY ?z",
            "y",
            "a group gathers rows of different ?y",
            "z",
        ),
        (
            "SELECT ?x (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 5s] { ?x <urn:p> ?y } } "
            "GROUP BY ?x ORDER BY ?n LIMIT 3",
            "x",
            "look at all rows together",
            None,
        ),
    ],
)
def test_rows_that_have_to_meet_go_through_a_second_stage(text, key, reason, second):
    found = plan(text)
    first, then = found.stages
    assert first.key.name == key
    assert reason in first.reason
    assert (then.key.name if then.key is not None else None) == second
    shown = describe(found, shards=4, algebra=False)
    assert f"  count    4\n  send ({second_sent(found)})" in shown
    assert f"count    {4 if second is not None else 1}\n  report" in shown


def second_sent(plan: QueryPlan) -> str:
    sent = plan.first.program.sent
    assert sent is not None
    return " ".join(map(str, sent.variables))


def test_a_plan_is_described_with_its_reasons():
    shown = describe(plan(JOIN.format(what="?x ?z", end="y")), shards=3)
    assert "?x <urn:p> ?y  in" in shown
    assert "over <urn:t>, by ?y" in shown
    assert "because  ?y occurs in every windowed pattern" in shown
    assert "count    3" in shown
    assert "leave as soon as their parts have arrived" in shown
    assert "the elements of the last 5 s" in shown


def test_what_brings_reports_goes_to_every_shard():
    text = "SELECT ?x FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT5S] { WINDOW <urn:w> { ?x <urn:p> ?y } }"
    shown = describe(plan(text), shards=2, algebra=False)
    assert shown.startswith("matched before the shuffle")
    assert "to every shard: its changes bring reports" in shown
    assert "leave once the watermark has passed their instant" in shown


def conditions(text: str) -> list[str]:
    shown = describe(plan(text, quads("a k b . c k d")), algebra=False).partition("shards")[0]
    return [line.strip() for line in shown.splitlines() if line.startswith("     if")]


def test_what_changes_no_answer_is_left_out_before_the_shuffle():
    window = "STREAM <urn:s> [RANGE 5s] {{ ?x <urn:p> ?y {filter} }}"
    filtered = window.format(filter="FILTER (?y > 3 && ?x != ?y)")
    assert conditions(f"SELECT * {{ {filtered} }}") == ["if (> ?y 3) and (!= ?x ?y)"]
    joined = f"SELECT * {{ {window.format(filter='')} ?x <urn:k> ?z }}"
    assert conditions(joined) == ["if ?x is among 2 values of static data"]
    # A row that finds nothing on the other side is an answer here, and a reason for one there.
    bound = f"{filtered} BIND(?y * 2 AS ?z) BIND(?z + 1 AS ?u) FILTER(?u < 9)"
    assert "(< (+ (* ?y 2) 1) 9)" in conditions(f"SELECT * {{ {bound} }}")[0]
    # BOUND sees the difference between a failed BIND and a failed expression.
    unsure = bound.replace("?u < 9", "!BOUND(?u) || ?u < 9")
    assert conditions(f"SELECT * {{ {unsure} }}") == conditions(f"SELECT * {{ {filtered} }}")
    optional = f"SELECT * {{ {window.format(filter='')} OPTIONAL {{ ?x <urn:k> ?z }} }}"
    assert conditions(optional) == []
    missing = f"SELECT * {{ {window.format(filter='')} FILTER NOT EXISTS {{ ?x <urn:k> ?z }} }}"
    assert conditions(missing) == []
    # One of two uses of the same pattern wants everything.
    union = f"SELECT * {{ {{ {filtered} }} UNION {{ {window.format(filter='')} }} }}"
    assert all("3" not in each for each in conditions(union)[1:])


@pytest.mark.parametrize("path", sorted(LSBENCH.glob("*.rq")), ids=lambda path: path.stem)
def test_every_lsbench_query_has_a_plan(path):
    found = plan(path.read_text(encoding="utf-8"))
    assert found.why_not is None
    assert "\n  because  " in describe(found)
