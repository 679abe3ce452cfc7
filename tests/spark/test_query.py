"""Queries over bounded streams on Spark give the oracle's answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import small_lsbench
from quadweir import Engine
from quadweir.algebra.query import ContinuousQuery
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, MemoryStream, Oracle, diff_answers
from quadweir.testing.frames import answers_from_rows
from spark_queries import provide, statements
from streaming import stream

pytestmark = pytest.mark.spark

QUERIES = Path(__file__).parents[2] / "src/quadweir/bench/queries/lsbench"
NUMBERS = range(1, 13)


def text(number: int, dialect: str) -> str:
    return (QUERIES / dialect / f"q{number:02}.rq").read_text(encoding="utf-8")


@cache
def feed() -> tuple[Element, ...]:
    return tuple(small_lsbench.feed(posts=24))


@cache
def static() -> tuple[Quad, ...]:
    return (*small_lsbench.static(), *small_lsbench.static_by_name())


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Engine:
    engine = Engine(spark)
    frame = statements(spark, feed()).repartition(3).cache()
    provide(engine, frame, {element.stream for element in feed()})
    return engine


def expected(query: ContinuousQuery) -> list[Answer]:
    return Oracle(query, static=static()).answers(feed())


@pytest.mark.parametrize("number", NUMBERS)
def test_each_lsbench_query_gives_the_answers_of_the_oracle(engine, number):
    asked = parse(text(number, "cqels"), allow=("FROM",))
    wanted = expected(asked)
    assert wanted
    for shards in (1 + number % 2, 5):
        registered = engine.query(text(number, "cqels"), static=static(), shards=shards)
        assert diff_answers(wanted, answers_from_rows(registered.to_dataframe().collect())) == ""


@pytest.mark.parametrize(("number", "dialect"), [(5, "rspql"), (9, "csparql"), (11, "csparql")])
def test_other_dialects_give_the_answers_of_the_oracle(engine, number, dialect):
    wanted = expected(parse(text(number, dialect), allow=("FROM",)))
    assert wanted
    registered = engine.query(text(number, dialect), static=static(), shards=2)
    assert diff_answers(wanted, answers_from_rows(registered.to_dataframe().collect())) == ""


def test_the_taxi_query_takes_its_times_from_inside(spark):
    """Pick-ups and drop-offs are timed by a predicate, payments by their envelope (S2)."""
    base, prefix = "http://example.org/nyctaxi/", "@prefix : <http://example.org/taxi#> . "
    pickups, dropoffs, fares = (MemoryStream(base + name) for name in ("pickup", "dropoff", "fare"))
    rides = [
        ("one", "2013-01-01 15:11:48", "2013-01-01 15:18:10", 382, 7),
        ("two", "2013-01-01 15:20:00", "2013-01-01 15:30:00", 600, 12),
        ("one", "2013-01-01 15:40:00", "2013-01-01 16:00:00", 1200, 20),
    ]
    for number, (taxi, start, end, seconds, fare) in enumerate(rides):
        pickups.add(0, f'{prefix} :r{number} :taxi :{taxi} ; :pickupTime "{start}" .')
        dropoffs.add(0, f'{prefix} :r{number} :dropoffTime "{end}" ; :tripTime {seconds} .')
        paid = f'{prefix} :t{number} :fare {fare} ; :pickupTime "{start}" .'
        fares.add(1_357_053_108_000 + (number + 1) * 1_000_000, paid)
    elements = [*pickups, *dropoffs, *fares]
    asked = (QUERIES.parent / "taxi.rq").read_text(encoding="utf-8")
    engine = Engine(spark)
    provide(engine, statements(spark, elements), {each.stream for each in elements})
    found = answers_from_rows(engine.query(asked).to_dataframe().collect())
    wanted = Oracle(asked).answers(elements)
    assert wanted
    assert diff_answers(wanted, found) == ""


def test_a_count_window_stands_beside_another_window(spark):
    """Of one stream every element is heard, of the other only what matches (W4)."""
    elements = [
        *stream(*[(1000 + 7 * n, f"a{n % 3} p b{n % 2} . a{n % 3} o b") for n in range(12)]),
        *stream(*[(1003 + 5 * n, f"b{n % 2} q c{n % 4}") for n in range(12)], name="t"),
    ]
    asked = "SELECT ?x ?z { STREAM <urn:s> [TRIPLES 5] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 20ms] { ?y <urn:q> ?z } }"
    engine = Engine(spark)
    provide(engine, statements(spark, elements), {"urn:s", "urn:t"})
    found = answers_from_rows(engine.query(asked, shards=2).to_dataframe().collect())
    wanted = Oracle(asked).answers(elements)
    assert wanted
    assert diff_answers(wanted, found) == ""


def test_the_triples_of_one_query_feed_another(spark):
    """CONSTRUCT answers are elements of a stream (A5), here that of a second query."""
    stream = MemoryStream("urn:s")
    for time, reading in enumerate((3, 9, 4, 8), start=1):
        stream.add(time * 1000, f"<urn:a{time % 2}> <urn:reads> {reading} .")
    engine = Engine(spark)
    provide(engine, statements(spark, stream), ["urn:s"])
    high = "CONSTRUCT { ?x <urn:is> <urn:high> } { STREAM <urn:s> [NOW] { ?x <urn:reads> ?n } FILTER (?n > 5) }"
    engine.provide("urn:high", engine.query(high))
    count = "SELECT ?x (COUNT(*) AS ?n) { STREAM <urn:high> [RANGE 10s] { ?x <urn:is> ?y } } GROUP BY ?x"
    found = answers_from_rows(engine.query(count).to_dataframe().collect())
    assert [(each.t, each.bindings["n"].lexical) for each in sorted(found, key=lambda a: a.t)] == [
        (2000, "1"),
        (4000, "2"),
        (12000, "1"),
    ]


def test_a_query_says_how_it_is_run(engine):
    told = engine.query(text(5, "cqels"), shards=2).explain(spark=True)
    assert "because  ?photo occurs in every windowed pattern" in told
    assert "MapInArrow" in told
