"""Patterns with more solutions than can be held end with an error that names the operator."""

from __future__ import annotations

from typing import Any

import pytest

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.traverse import walk
from quadweir.algebra.work import VARIABLE
from quadweir.errors import LimitError
from quadweir.kernel.arrays import Ints
from quadweir.kernel.expressions import Vectorized
from quadweir.kernel.shard import Shard
from quadweir.kernel.stateless import Union
from quadweir.optimize.pipeline import optimize
from quadweir.plan.program import program_of
from quadweir.plan.pushdown import MOST_NODES, find_conditions
from quadweir.plan.query import plan_query
from quadweir.syntax import parse
from quadweir.terms import Variable
from quadweir.testing import Element, Oracle, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers
from streaming import stream

WINDOW = "STREAM <urn:s> [RANGE 10ms]"
# EXISTS inside of || has no incremental node, so the query is recomputed.
RECOMPUTED = "FILTER(EXISTS { ?a0 <urn:none> ?z } || ?a0 = ?a0)"


def run(body: str, feed: list[Element]) -> int:
    query = optimize(parse(f"SELECT * {{ {body} }}", dialect="cqels")).query
    fed = ShardFeed(Shard.of(query, static=Dataset.of([])))
    answers = as_answers(fed.push(feed), query)
    return len(answers + as_answers(fed.finish(), query))


def chain(length: int) -> list[Element]:
    return stream(*((1, f"n{at} p n{at + 1}") for at in range(length)))


def crossed(count: int, more: str = "") -> str:
    patterns = " . ".join(f"?a{at} <urn:p> ?b{at}" for at in range(count))
    return f"{WINDOW} {{ {patterns} }} {more}"


@pytest.mark.parametrize("more", ["", RECOMPUTED], ids=["incremental", "recomputed"])
def test_a_product_of_patterns_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch, more: str):
    monkeypatch.setenv(VARIABLE, "100000")
    assert run(crossed(2, more), chain(20)) == 400
    with pytest.raises(LimitError, match=r"(the join of|a pattern|a join).*more than") as caught:
        run(crossed(5, more), chain(60))
    assert VARIABLE in str(caught.value.hint)


def test_crossed_values_and_unions_stop_at_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "100000")
    values = " ".join(f"VALUES ?v{at} {{ {' '.join(map(str, range(10)))} }}" for at in range(7))
    with pytest.raises(LimitError, match="more than"):
        run(f"{WINDOW} {{ ?a <urn:p> ?b }} {values}", chain(3))
    union = "{ ?a <urn:p> ?b } UNION { ?a <urn:p> ?b }"
    with pytest.raises(LimitError, match="more than"):
        run(f"{WINDOW} {{ {' '.join([union] * 20)} }}", chain(3))


def test_combinations_that_give_nothing_are_counted_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(VARIABLE, "10")
    # Any two edges meet, and no three: one of the edges always goes from even to odd.
    pairs = [(one, two) for one in range(20) for two in range(20) if (one + two) % 2 == 0]
    edges = [f"x{one} p y{two} . y{one} q z{two} . z{one} r x{two + 1}" for one, two in pairs]
    with pytest.raises(LimitError, match="tries combinations"):
        run(
            f"{WINDOW} {{ ?x <urn:p> ?y . ?y <urn:q> ?z . ?z <urn:r> ?x }}",
            stream(*((1, edge) for edge in edges)),
        )


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "path", ["(<urn:p>*)*", "((((<urn:p>*)+)?)*)+", "(((<urn:p>*/<urn:p>?)*/<urn:p>?)*/<urn:p>*)*"]
)
def test_nested_repetition_takes_no_longer_than_the_square_of_the_graph(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    length = 40
    monkeypatch.setenv(VARIABLE, str(100 * length**2))
    pairs = (length + 1) * (length + 2) // 2
    assert run(f"{WINDOW} {{ ?a {path} ?b }}", chain(length)) == pairs
    assert (
        run(f"{WINDOW} {{ ?a {path} ?b . ?a0 <urn:p> <urn:n1> }} {RECOMPUTED}", chain(length))
        == pairs
    )


@pytest.mark.timeout(120)
def test_optional_steps_have_as_many_ways_as_they_have_and_stop_at_the_limit(
    monkeypatch: pytest.MonkeyPatch,
):
    # Three of four steps are skipped, or none, and so on: the binomial coefficients.
    four = "/".join(["<urn:p>?"] * 4)
    assert run(f"{WINDOW} {{ <urn:n0> {four} ?b }}", chain(30)) == 2**4
    monkeypatch.setenv(VARIABLE, "100000")
    many = "/".join(["<urn:p>?"] * 24)
    with pytest.raises(LimitError, match="more than"):
        run(f"{WINDOW} {{ <urn:n0> {many} ?b }}", chain(30))


def test_a_query_of_thousands_of_steps_is_refused_before_it_is_planned():
    path = "/".join(["<urn:p>"] * 2000)
    with pytest.raises(LimitError, match="joins 2,000 patterns, and the limit is 256"):
        run(f"{WINDOW} {{ ?a {path} ?b }}", [])


def test_a_chain_of_binds_is_not_written_out():
    doubled = " ".join(f"BIND(CONCAT(?x{at}, ?x{at}) AS ?x{at + 1})" for at in range(60))
    text = f"SELECT ?a {{ {WINDOW} {{ ?a <urn:p> ?x0 }} {doubled} FILTER(?x60 != ?x7 || ?x3 = 1) }}"
    query = optimize(parse(text, dialect="cqels")).query
    conditions = find_conditions(program_of(query))
    for condition in (one for some in conditions.values() for one in some):
        for expression in condition.expressions:
            assert sum(1 for _ in walk(expression)) <= MOST_NODES
    plan_query(query, streams=())


def test_a_chain_of_binds_is_computed_once(monkeypatch: pytest.MonkeyPatch):
    # Each uses the two before it: written out, the last has as many parts as Fibonacci's numbers.
    chained = " ".join(f"BIND(?x{at} + ?x{at + 1} AS ?x{at + 2})" for at in range(40))
    calls = 0
    values = Vectorized.values

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return values(*arguments)

    monkeypatch.setattr(Vectorized, "values", counted)
    feed = stream((1, "a p 1 . a q 1"))
    assert run(f"{WINDOW} {{ ?a <urn:p> ?x0 ; <urn:q> ?x1 }} {chained}", feed) == 1
    assert calls <= 10 * 40


def test_a_short_chain_of_binds_is_still_pushed_down():
    text = f"SELECT ?a {{ {WINDOW} {{ ?a <urn:p> ?x }} BIND(?x + ?x AS ?y) FILTER(?y > 4) }}"
    query = optimize(parse(text, dialect="cqels")).query
    (conditions,) = find_conditions(program_of(query)).values()
    assert len(conditions[0].expressions) == 1


@pytest.mark.parametrize("more", ["", RECOMPUTED], ids=["incremental", "recomputed"])
def test_a_chain_of_optionals_takes_no_more_than_its_length(
    monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    asked = 0
    column = Union.column

    def counting(self: Union, variable: Variable, rows: Ints) -> Ints:
        nonlocal asked
        asked += 1
        return column(self, variable, rows)

    monkeypatch.setattr(Union, "column", counting)
    count = 12
    parts = " ".join(f"OPTIONAL {{ {WINDOW} {{ ?a0 <urn:p> ?c{at} }} }}" for at in range(count))
    body = f"{WINDOW} {{ ?a0 <urn:q> ?b }} {parts} {more}"
    feed = stream((1, "n1 q n2"), (1, "n3 q n2"), (2, "n1 p n4"), (3, "n5 p n4"))
    query = optimize(parse(f"SELECT * {{ {body} }}", dialect="cqels")).query
    shard = Shard.of(query, static=Dataset.of([]))
    fed = ShardFeed(shard)
    found = as_answers(fed.push(feed), query) + as_answers(fed.finish(), query)
    assert diff_answers(Oracle(query).answers(feed), found) == ""
    # Each column of each union is asked for at most a few times for each union above it.
    assert asked < 10 * count**3
    # No more room than for all rows of all tables.
    rooms = [sum(each.spans()) for each, _ in shard.dataflow.operators if isinstance(each, Union)]
    assert max(rooms, default=0) <= 64 * 2 * count


@pytest.mark.parametrize("more", ["", RECOMPUTED], ids=["incremental", "recomputed"])
@pytest.mark.parametrize(
    "rest",
    [
        "BIND(CONCAT(?x, ?x) AS ?y)",
        'BIND(REPLACE(?x, "n", "nnnnnnnn") AS ?y)',
        'BIND(CONCAT(?x, REPLACE(?x, "n", STR(?b0))) AS ?y)',
    ],
    ids=["concat", "replace", "of two variables"],
)
def test_texts_of_functions_stop_at_the_limit(
    monkeypatch: pytest.MonkeyPatch, rest: str, more: str
) -> None:
    monkeypatch.setenv(VARIABLE, "10000")
    pattern = f"{WINDOW} {{ ?a0 <urn:p> ?b0 }}"
    steps = [rest.replace("?x", f"?x{at}").replace("?y", f"?x{at + 1}") for at in range(16)]
    assert run(f"{pattern} BIND(STR(?a0) AS ?x0) {steps[0]} {more}", chain(9)) == 9
    with pytest.raises(
        LimitError, match=r"(CONCAT|REPLACE).* texts of more than 200,000"
    ) as caught:
        run(f"{pattern} BIND(STR(?a0) AS ?x0) {' '.join(steps)} {more}", chain(9))
    assert VARIABLE in str(caught.value.hint)


@pytest.mark.parametrize("more", ["", RECOMPUTED], ids=["incremental", "recomputed"])
def test_concatenations_of_groups_stop_at_the_limit(
    monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    monkeypatch.setenv(VARIABLE, "10000")
    body = f"{WINDOW} {{ ?a0 <urn:p> ?b0 }} {more}"
    text = "SELECT (GROUP_CONCAT(?a0; SEPARATOR='%s') AS ?all) { %s }"

    def concatenated(separator: str) -> int:
        query = optimize(parse(text % (separator, body), dialect="cqels")).query
        fed = ShardFeed(Shard.of(query, static=Dataset.of([])))
        return len(fed.push(chain(50)).t) + len(fed.finish().t)

    assert concatenated(", ") == 2
    with pytest.raises(LimitError, match=r"GROUP_CONCAT.* texts of more than 200,000"):
        concatenated("-" * 8000)
