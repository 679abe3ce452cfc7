"""Queries see exactly the consequences of a schema (N1), by any reasoner, reduced or not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from properties.dense import Feed, dense_questions, feeds, make_feed, static_data
from properties.schemas import RULES, Owlrl, schemas, typed, typed_feed, typed_text
from properties.strategies import ALLOW, EVERYTHING, MONOTONIC
from quadweir.algebra.dataset import Dataset
from quadweir.entailment.close import close, refuse_transitive, static_closure
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import AxiomKind, Schema
from quadweir.entailment.table import Table
from quadweir.errors import UnsupportedError
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, Oracle, Reasoner, diff_answers
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static
from quadweir.testing.why import Reasons


def all_triples(seed: int) -> list[Quad]:
    return [triple for each in typed_feed(make_feed(seed)) for triple in each.triples]


@given(schema=schemas(types=False), seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_what_follows_is_what_an_independent_reasoner_derives(schema: Schema, seed: int) -> None:
    triples = all_triples(seed)
    expected = Owlrl(schema)(triples, False)
    assert set(close(triples, Table.of(schema))) == expected
    assert Reasoner(schema)(triples, False) == expected


@given(schema=schemas(kinds=[*RULES, AxiomKind.TRANSITIVE]), seed=st.integers(0, 2**32))
def test_the_table_gives_what_rule_after_rule_gives(schema: Schema, seed: int) -> None:
    triples = all_triples(seed)
    # One triple at a time, as in a stream.
    for triple in triples:
        assert set(close([triple], Table.of(schema))) == Reasoner(schema)([triple], False)
    # All together, with chains of transitive properties, as in static data.
    closed = set(close(triples, Table.of(schema), schema.transitive))
    assert closed == Reasoner(schema)(triples, True)


def by_the_kernel(
    text: str, dialect: str, feed: Feed, static: list[Quad], schema: Schema, table: Table
) -> list[Answer]:
    query = optimize(parse(text, dialect=dialect, allow=ALLOW)).query
    follows = static_closure(schema, query)
    given = scoped_static(static)
    fixed = given if follows is None else follows.of(given)
    shard = Shard.of(
        query, static=Dataset.of(fixed), streams=sorted({element.stream for element in feed})
    )
    through = ShardFeed(shard, delay_ms=100, table=table)
    found = [*as_answers(through.push(feed), query), *as_answers(through.finish(), query)]
    assert through.late == 0
    return found


def check(
    data: st.DataObject, dialect: str, kinds: frozenset[str], feed: Feed, static: list[Quad]
) -> None:
    schema = data.draw(schemas(kinds=[*RULES, AxiomKind.TRANSITIVE]))
    text = typed_text(data.draw(dense_questions(dialect, kinds=kinds)).text(dialect))
    feed, static = typed_feed(feed), list(map(typed, static))
    query = parse(text, dialect=dialect, allow=ALLOW)
    try:
        refuse_transitive(schema, query)
    except UnsupportedError:
        return
    expected = Oracle(query, static=static, entail=Reasoner(schema)).answers(feed)
    for table in (Table.of(schema, needs_of(query)), Table.of(schema)):
        found = by_the_kernel(text, dialect, feed, static, schema, table)
        assert diff_answers(expected, found) == ""


@pytest.mark.parametrize("dialect", ["rspql", "csparql", "cqels"])
@given(data=st.data(), feed=feeds(), static=static_data())
def test_reduced_or_not_a_query_sees_what_the_schema_derives(
    dialect: str, data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    check(data, dialect, EVERYTHING - {"path"}, feed, static)


@given(data=st.data(), feed=feeds(), static=static_data())
def test_paths_run_over_what_the_schema_derives(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    check(data, "cqels", EVERYTHING - {"exists"}, feed, static)


@given(
    data=st.data(),
    schema=schemas(types=False),
    seed=st.integers(0, 2**32),
    static=static_data(),
)
@settings(max_examples=8)
def test_answers_are_those_over_windows_closed_by_an_independent_reasoner(
    data: st.DataObject, schema: Schema, seed: int, static: list[Quad]
) -> None:
    feed, static = typed_feed(make_feed(seed, size=3)), list(map(typed, static))
    question = data.draw(dense_questions("cqels", kinds=MONOTONIC - {"path", "graph"}))
    text = typed_text(question.text("cqels"))
    query = parse(text, dialect="cqels", allow=ALLOW)
    expected = Oracle(query, static=static, entail=Owlrl(schema)).answers(feed)
    table = Table.of(schema, needs_of(query))
    found = by_the_kernel(text, "cqels", feed, static, schema, table)
    assert diff_answers(expected, found) == ""


@given(data=st.data(), feed=feeds(), static=static_data())
@settings(max_examples=30)
def test_what_an_answer_rests_on_is_there(
    data: st.DataObject, feed: Feed, static: list[Quad]
) -> None:
    schema = data.draw(schemas())
    kinds = EVERYTHING - {"path", "exists", "subselect"}
    text = typed_text(
        data.draw(dense_questions("cqels", kinds=kinds, aggregates=False)).text("cqels")
    )
    feed, static = typed_feed(feed), list(map(typed, static))
    query = parse(text, dialect="cqels", allow=ALLOW)
    answers = Oracle(query, static=static, entail=Reasoner(schema)).answers(feed)
    reasons = Reasons(query, feed, static, schema)
    for answer in answers[:20]:
        explanation = reasons.of(answer)
        assert (
            explanation or "GRAPH" in text
        )  # the existence of a window's graph rests on no triple
        assert all(part.get("elements") or part.get("static") for part in explanation)
        # No answer rests on later elements.
        for part in explanation:
            assert all(each["time"] <= answer.t for each in part.get("elements", ()))
