"""Queries on Spark see the consequences of a schema, as the oracle does with its own reasoner."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir import Engine, rows
from quadweir.algebra.dataset import Dataset
from quadweir.entailment.needs import needs_of
from quadweir.entailment.schema import TYPE, Axiom, AxiomKind, Schema
from quadweir.entailment.table import Table
from quadweir.optimize import optimize
from quadweir.plan.query import plan_query
from quadweir.runtime.host.bounded import answer_bounded
from quadweir.runtime.match.bits import word_of
from quadweir.runtime.match.matching import match_statements
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.sources.schemafiles import read_schema
from quadweir.syntax import parse
from quadweir.terms import IRI, BlankNode, Literal, Quad
from quadweir.testing import Element, Oracle, Reasoner, diff_answers
from quadweir.testing.frames import answers_from_rows
from spark_queries import provide, statements

pytestmark = pytest.mark.spark

STREAM = "urn:s"
CLASSES = [IRI(f"urn:C{n}") for n in range(6)]
PROPERTIES = [IRI(f"urn:p{n}") for n in range(5)]
EXAMPLE = Path(__file__).parents[2] / "examples/socialmedia"


def some_schema(seed: int) -> Schema:
    """Every rule, cycles, overlapping ways to the same triple; once also for rdf:type itself."""
    dice = random.Random(seed)
    axioms = [
        Axiom(AxiomKind.SUBCLASS, dice.choice(CLASSES), dice.choice(CLASSES)) for _ in range(6)
    ]
    axioms += [
        Axiom(kind, dice.choice(PROPERTIES), dice.choice(ends))
        for kind, ends in (
            (AxiomKind.DOMAIN, CLASSES),
            (AxiomKind.RANGE, CLASSES),
            (AxiomKind.SUBPROPERTY, PROPERTIES),
            (AxiomKind.INVERSE, PROPERTIES),
        )
        for _ in range(3)
    ]
    axioms += [Axiom(AxiomKind.SYMMETRIC, PROPERTIES[0], PROPERTIES[0])]
    if seed % 2:
        axioms += [
            Axiom(AxiomKind.SUBPROPERTY, PROPERTIES[4], TYPE),
            Axiom(AxiomKind.INVERSE, IRI("urn:hasInstance"), TYPE),
        ]
    return Schema.of(axioms)


def some_feed(seed: int) -> list[Element]:
    dice = random.Random(seed)

    def triple() -> Quad:
        subject = dice.choice([IRI("urn:a"), IRI("urn:b"), BlankNode("x"), CLASSES[0]])
        predicate = dice.choice([TYPE, TYPE, *PROPERTIES])
        ends = [IRI("urn:a"), IRI("urn:b"), Literal("l"), BlankNode("x"), *CLASSES]
        return Quad(subject, predicate, dice.choice(CLASSES if predicate == TYPE else ends))

    return [
        Element(STREAM, 1000 * (1 + n // 2), n, tuple(triple() for _ in range(dice.randint(1, 3))))
        for n in range(12)
    ]


WINDOW = f"STREAM <{STREAM}> [RANGE 4s]"
QUERIES = [
    f"SELECT ?x {{ {WINDOW} {{ ?x a <urn:C0> }} }}",
    f"SELECT ?x ?y {{ {WINDOW} {{ ?x a <urn:C1> . ?x <urn:p1> ?y }} }}",
    f"SELECT ?x ?c {{ {WINDOW} {{ ?x a ?c . ?x <urn:p0> ?x }} }}",
    f"SELECT ?x ?p ?y {{ {WINDOW} {{ ?x ?p ?y }} {WINDOW} {{ ?x <urn:p2> ?y }} }}",
    f"SELECT ?c (COUNT(*) AS ?n) {{ {WINDOW} {{ ?x a ?c }} ?x <urn:p3> ?y }} GROUP BY ?c",
]


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_those_of_the_oracle_reduced_or_not(spark: SparkSession, seed: int) -> None:
    schema, feed = some_schema(seed), some_feed(seed)
    static = [quad for each in some_feed(seed + 100) for quad in each.quads]
    # An element stays whole, as sources give it.
    frame = statements(spark, feed).repartition(2, rows.POSITION)
    engine = Engine(spark)
    provide(engine, frame, [STREAM])
    engine.schema(schema)
    for number, text in enumerate(QUERIES):
        query = parse(text, dialect="cqels")
        expected = Oracle(query, static=static, entail=Reasoner(schema)).answers(feed)
        registered = engine.query(text, static=static)
        found = registered.spelled_answers().collect()
        assert diff_answers(expected, answers_from_rows(found)) == "", text
        if number == seed % len(QUERIES) and "<urn:p3>" not in text:
            # Without any reduction.
            best = optimize(query).query
            plan = plan_query(best, streams=(STREAM,), table=Table.of(schema))
            spec = ShardSpec(plan, Dataset())
            whole = answer_bounded(frame, spec, shards=2).collect()
            assert diff_answers(expected, answers_from_rows(whole)) == "", text


def test_entailment_is_columns_alone(spark: SparkSession) -> None:
    """No Python between statements and matches: it could run in real-time mode."""
    schema = some_schema(1)
    frame = statements(spark, some_feed(1))
    for text in QUERIES[:3]:
        query = optimize(parse(text, dialect="cqels")).query
        table = Table.of(schema, needs_of(query))
        plan = plan_query(query, streams=(STREAM,), table=table)
        matched = match_statements(frame.where(frame[rows.STREAM] == STREAM), plan.matching, 2)
        text_of = matched._jdf.queryExecution().executedPlan().toString()
        assert "Python" not in text_of
        assert "ArrowEval" not in text_of


def test_a_class_with_many_below_it_is_looked_up_in_one_set(spark: SparkSession) -> None:
    below = [IRI(f"urn:ü{number}") for number in range(100)]
    schema = Schema.of(Axiom(AxiomKind.SUBCLASS, one, CLASSES[0]) for one in below)
    types = [below[3], CLASSES[1], below[99], CLASSES[0], Literal("l")]
    feed = [
        Element(STREAM, 1000 + n, n, (Quad(IRI("urn:a"), TYPE, one),))
        for n, one in enumerate(types)
    ]
    query = optimize(parse(QUERIES[0], dialect="cqels")).query
    table = Table.of(schema, needs_of(query))
    plan = plan_query(query, streams=(STREAM,), table=table)
    frame = statements(spark, feed)
    matched = match_statements(frame.where(frame[rows.STREAM] == STREAM), plan.matching, 2)
    # The consequences are a table that tasks look up, and not constants in the plan of each batch.
    assert "urn:ü" not in matched._jdf.queryExecution().analyzed().toString()
    tests = (1 << len(plan.wanted)) - 1
    found = {row[rows.POSITION]: row[word_of(0)[0]] & tests != 0 for row in matched.collect()}
    assert [found[n] for n in range(len(types))] == [True, False, True, True, False]


def test_the_social_media_example_finds_who_talks_on_both_channels(
    spark, capsysbinary, monkeypatch, tmp_path
):
    import quadweir.runtime.spark.session
    from quadweir.cli import main

    monkeypatch.setattr(quadweir.runtime.spark.session, "build", lambda **_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _self: None)
    words = ["query", str(EXAMPLE / "same-place.rq"), "--schema", str(EXAMPLE / "schema.ttl")]
    words += ["--static", str(EXAMPLE / "accounts.ttl"), "--verify", "--why"]
    words += ["--stream", f"http://example.org/posts={EXAMPLE / 'posts.stream'}"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    out, err = capsysbinary.readouterr()
    assert not ended.value.code, err.decode()
    assert "the oracle gives the same 1 answers" in err.decode()
    (answer,) = map(json.loads, out.decode().splitlines())
    assert answer["bindings"]["person"]["value"].endswith("#ann")
    rules = {
        step["rule"]
        for triple in answer["why"]
        for source in (*triple.get("elements", ()), *triple.get("static", ()))
        for step in source.get("steps", ())
    }
    assert rules == {"rdfs2", "rdfs7", "inv2"}


def test_a_schema_named_with_the_streams_is_taken_up(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "s.ttl").write_text(
        "<urn:C0> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:C1>, 5 .", "utf-8"
    )
    (tmp_path / "s.stream").write_text(f"1000 <urn:a> {TYPE} <urn:C0> .\n", encoding="utf-8")
    (tmp_path / "streams.toml").write_text(
        'schema = "s.ttl"\n[streams."urn:s"]\nformat = "timed-lines"\n'
        'source = { kind = "file", path = "s.stream" }\n',
        encoding="utf-8",
    )
    engine = Engine(spark)
    engine.load_streams(tmp_path / "streams.toml")
    assert len(engine.schema_warnings) == 1
    registered = engine.query(f"SELECT ?x {{ {WINDOW} {{ ?x a <urn:C1> }} }}")
    assert [row.t for row in registered.spelled_answers().collect()] == [1000]
    schema, _ = read_schema([tmp_path / "s.ttl"])
    assert registered.fingerprint.schema == schema.digest
