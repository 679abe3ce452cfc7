"""Triple terms on Spark: streams, static data, shards and sinks, compared with the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir import Engine
from quadweir.algebra.query import ContinuousQuery
from quadweir.sources.rdfdocuments import read_quads
from quadweir.sources.streamfiles import Element
from quadweir.syntax.read import parse
from quadweir.terms import Quad
from quadweir.testing import Answer, MemoryStream, Oracle, diff_answers
from quadweir.testing.frames import answers_from_rows
from spark_queries import provide, statements

pytestmark = pytest.mark.spark

PREFIXES = """PREFIX : <http://example.org/>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
"""
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]"
QUERIES = [
    # What is said of a triple, joined with the triple: only what is inside a term joins them.
    "SELECT * {window} WHERE {{ WINDOW :w {{ ?s :at ?o {{| :by ?who |}} }} ?who :trust ?t }}",
    "SELECT ?r (COUNT(*) AS ?n) {window} WHERE {{ WINDOW :w {{"
    " ?r rdf:reifies <<( ?s :at ?o )>> }} }} GROUP BY ?r",
    "SELECT ?x ?t {window} WHERE {{ WINDOW :w {{ ?x :says ?t FILTER(isTRIPLE(?t)) }} }}",
    "SELECT ?x {window} WHERE {{ WINDOW :w {{ ?x :says <<( :c1 :at 1 )>> }} }}",
    # A blank node inside of a term is the stream's, as one outside of it is.
    "SELECT * {window} WHERE {{ WINDOW :w {{ ?x :says <<( ?b :at ?o )>> . ?b :at ?o }} }}",
    # Static data has triple terms too.
    "SELECT * {window} WHERE {{ WINDOW :w {{ ?x :says ?t }} ?k :knows ?t }}",
    "SELECT * {window} WHERE {{ WINDOW :w {{ ?s :at ?o }} ?k :knows <<( ?s ?p ?o )>> }}",
    "CONSTRUCT {{ [] rdf:reifies <<( ?s :was _:old )>> . << ?s :at ?o >> :by ?s . _:old :is ?o }}"
    " {window} WHERE {{ WINDOW :w {{ ?s :at ?o }} }}",
]
STATIC = """<http://example.org/ann> <http://example.org/trust> "1" .
<http://example.org/k> <http://example.org/knows> <<( <http://example.org/c1> <http://example.org/at> \
"1"^^<http://www.w3.org/2001/XMLSchema#integer> )>> .
_:x <http://example.org/knows> <<( _:x <http://example.org/at> "<<( )>> _:x" )>> .
"""


def feed() -> list[Element]:
    stream = MemoryStream("http://example.org/s")
    for number in range(6):
        stream.add(
            1_000 * number + 1,
            f"""{PREFIXES}
            :c{number % 3} :at {number % 2} {{| :by :ann |}} .
            _:b{number % 2} :at {number} . :y :says <<( _:b{number % 2} :at {number} )>> .
            :x{number} :says <<( :c{number % 3} :at {number % 2} )>> , "<<( )>>" , :c1 .""",
        )
    return list(stream)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> list[Quad]:
    path = Path(tmp_path_factory.mktemp("static")) / "static.nt"
    path.write_text(STATIC, encoding="utf-8")
    quads = list(read_quads(path))
    assert all(isinstance(each, Quad) for each in quads)
    return quads  # type: ignore[return-value]


@pytest.mark.parametrize("text", QUERIES)
def test_queries_over_triple_terms_give_the_answers_of_the_oracle(
    spark: SparkSession, static: list[Quad], text: str
) -> None:
    elements = feed()
    asked = PREFIXES + "REGISTER RSTREAM :out AS " + text.format(window=WINDOW)
    query: ContinuousQuery = parse(asked)
    wanted: list[Answer] = Oracle(query, static=static).answers(elements)
    assert wanted
    engine = Engine(spark)
    provide(engine, statements(spark, elements).repartition(2), {"http://example.org/s"})
    registered = engine.query(asked, static=static, shards=2)
    found = answers_from_rows(registered.spelled_answers().collect())
    assert diff_answers(wanted, found) == ""
