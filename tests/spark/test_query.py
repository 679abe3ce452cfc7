"""Queries over bounded streams on Spark give the oracle's answers."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import small_lsbench
from quadweir import Engine, register
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.windowing import ReportOn, Windowing, with_windowing
from quadweir.algebra.windows import Content
from quadweir.entailment.schema import Axiom, AxiomKind, Schema
from quadweir.functions import REGISTERED
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer, MemoryStream, Oracle, Reasoner, diff_answers
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
        assert diff_answers(wanted, answers_from_rows(registered.spelled_answers().collect())) == ""


@pytest.mark.parametrize(("number", "dialect"), [(5, "rspql"), (9, "csparql"), (11, "csparql")])
def test_other_dialects_give_the_answers_of_the_oracle(engine, number, dialect):
    wanted = expected(parse(text(number, dialect), allow=("FROM",)))
    assert wanted
    registered = engine.query(text(number, dialect), static=static(), shards=2)
    assert diff_answers(wanted, answers_from_rows(registered.spelled_answers().collect())) == ""


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
    found = answers_from_rows(engine.query(asked).spelled_answers().collect())
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
    found = answers_from_rows(engine.query(asked, shards=2).spelled_answers().collect())
    wanted = Oracle(asked).answers(elements)
    assert wanted
    assert diff_answers(wanted, found) == ""


@pytest.mark.parametrize("report", [*ReportOn])
def test_windows_begin_and_report_as_a_run_asks(spark, report):
    """W9 and W10 on Spark."""
    elements = stream(*[(1000 + 7 * n, f"a{n % 3} p b{n}") for n in range(12)])
    asked = "SELECT ?x (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 20ms SLIDE 8ms] { ?x <urn:p> ?y } } GROUP BY ?x"
    windowing = Windowing(start_ms=1003, full=True, report=report)
    engine = Engine(spark)
    provide(engine, statements(spark, elements), {"urn:s"})
    registered = engine.query(asked, shards=2, windowing=windowing)
    wanted = Oracle(with_windowing(parse(asked), windowing)).answers(elements)
    assert min(each.t for each in wanted) == {"content-change": 1007, "window-close": 1023}[report]
    assert diff_answers(wanted, answers_from_rows(registered.spelled_answers().collect())) == ""


@pytest.mark.parametrize(("content", "entails"), [("graph", False), ("bag", True)])
def test_W11_graph_in_a_window_matches_the_named_graphs_of_elements(spark, content, entails):
    """Incremental, and evaluated at each report; with and without a schema."""
    elements = MemoryStream("urn:s")
    for number in range(12):
        graph = (":g{0}", ":g0", "_:b", "")[number % 4].format(number % 5)
        said = f":x{number % 3} :p :y{number % 2} . :y{number % 2} :q {number % 4} ."
        quads = f"{graph} {{ {said} }} :other {{ :x0 :p :y0 }}" if graph else said
        elements.add(1000 + 7 * number, f"@prefix : <urn:> . {quads}")
    schema = Schema.of([Axiom(AxiomKind.SUBPROPERTY, IRI("urn:p"), IRI("urn:q"))])
    over = "PREFIX : <urn:> SELECT {} FROM NAMED WINDOW :w ON :s [RANGE 30ms] WHERE {{ {} }}"
    asked = [
        over.format("?g ?x ?v", "WINDOW :w { GRAPH ?g { ?x :p ?y . ?y :q ?v } }"),
        over.format("?g ?x ?u", "WINDOW :w { GRAPH ?g { ?x :p ?y } ?y :q ?u FILTER(?g != :g0) }"),
        over.format("?g (COUNT(*) AS ?n)", "WINDOW :w { GRAPH ?g { ?x ?p ?y } }") + " GROUP BY ?g",
        over.format("?x", "WINDOW :w { GRAPH :g0 { ?x :p ?y } }"),
        over.format("?g ?n", "WINDOW :w { GRAPH ?g { SELECT (COUNT(*) AS ?n) { ?x :p ?y } } }"),
    ]
    engine = Engine(spark)
    provide(engine, statements(spark, elements).repartition(3), ["urn:s"])
    if entails:
        engine.schema(schema)
    for text in asked:
        query = parse(text, dialect="rspql", content=Content(content))
        wanted = Oracle(query, entail=Reasoner(schema) if entails else None).answers(elements)
        assert wanted
        registered = engine.query(text, dialect="rspql", content=content, shards=3)
        found = answers_from_rows(registered.spelled_answers().collect())
        assert diff_answers(wanted, found) == "", text


def test_the_named_graphs_of_one_query_feed_another(spark):
    stream = MemoryStream("urn:s")
    for time, reading in enumerate((3, 9, 4, 8), start=1):
        stream.add(time * 1000, f"<urn:g{time % 2}> {{ <urn:a> <urn:reads> {reading} }}")
    engine = Engine(spark)
    provide(engine, statements(spark, stream), ["urn:s"])
    high = """CONSTRUCT { ?x <urn:n> ?n . GRAPH ?g { ?x <urn:is> <urn:high> . ?x <urn:n> ?n } }
      { STREAM <urn:s> [NOW] { GRAPH ?g { ?x <urn:reads> ?n } } FILTER (?n > 5) }"""
    made = engine.query(high)
    assert (
        diff_answers(
            Oracle(high).answers(stream), answers_from_rows(made.spelled_answers().collect())
        )
        == ""
    )
    engine.provide("urn:high", made)
    text = "SELECT ?g ?n { STREAM <urn:high> [NOW] { GRAPH ?g { ?x <urn:is> ?y ; <urn:n> ?n } } }"
    found = answers_from_rows(engine.query(text).spelled_answers().collect())
    assert sorted(
        (each.t, each.bindings["g"].value, each.bindings["n"].lexical) for each in found
    ) == [
        (2000, "urn:g0", "9"),
        (4000, "urn:g0", "8"),
    ]


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
    found = answers_from_rows(engine.query(count).spelled_answers().collect())
    assert [(each.t, each.bindings["n"].lexical) for each in sorted(found, key=lambda a: a.t)] == [
        (2000, "1"),
        (4000, "2"),
        (12000, "1"),
    ]


def test_a_query_says_how_it_is_run(engine):
    reported = engine.query(text(5, "cqels"), shards=2).explain(spark=True)
    assert "because  ?photo occurs in every windowed pattern" in reported
    assert "MapInArrow" in reported


def test_registered_functions_are_called_over_bounded_streams(spark):
    offset = 40

    def add(number: int) -> int:
        return number + offset

    register("urn:f:add", add)
    text = """SELECT ?x (<urn:f:add>(?y) AS ?z) {
      STREAM <urn:s> [RANGE 5ms] { ?x <urn:p> ?y } FILTER(<urn:f:add>(?y) > 41) }"""
    feed = stream((1, "a p 1"), (2, "b p 2"), (3, "c p c"))
    try:
        engine = Engine(spark)
        provide(engine, statements(spark, feed), ["urn:s"])
        found = answers_from_rows(engine.query(text).spelled_answers().collect())
        assert [str(dict(each.solution)["z"].lexical) for each in found] == ["42"]
        assert diff_answers(Oracle(text).answers(feed), found) == ""
    finally:
        REGISTERED.remove("urn:f:add")


def test_the_example_of_the_harbour_runs(spark):
    """The example of the page on functions: one of our own, and GeoSPARQL's."""
    path = Path(__file__).parents[2] / "examples/harbour/harbour.py"
    example = runpy.run_path(str(path))
    try:
        found = example["answers"](Engine(spark))
    finally:
        REGISTERED.remove("http://example.org/knots")
    assert found == [
        ("http://example.org/ann", 12.1, 1034.0),
        ("http://example.org/bea", 17.7, 5488.0),
    ]
