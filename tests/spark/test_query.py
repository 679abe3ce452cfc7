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
from quadweir.testing import Answer, Oracle, diff_answers
from quadweir.testing.frames import answers_from_rows
from spark_queries import provide, statements

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
    for shards in (1, 2):
        registered = engine.query(text(number, "cqels"), static=static(), shards=shards)
        assert diff_answers(wanted, answers_from_rows(registered.to_dataframe().collect())) == ""


@pytest.mark.parametrize(("number", "dialect"), [(5, "rspql"), (9, "csparql"), (11, "csparql")])
def test_other_dialects_give_the_answers_of_the_oracle(engine, number, dialect):
    wanted = expected(parse(text(number, dialect), allow=("FROM",)))
    assert wanted
    registered = engine.query(text(number, dialect), static=static(), shards=2)
    assert diff_answers(wanted, answers_from_rows(registered.to_dataframe().collect())) == ""
