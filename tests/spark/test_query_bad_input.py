"""What no query should stumble over: one key for all, a huge literal, lines that are too long."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quadweir import Engine, rows

pytestmark = pytest.mark.spark

START, ELEMENTS, A_MS, STEP = 1_000_000, 1_000_000, 250, 1000
COUNT = """SELECT ?x (COUNT(?y) AS ?n)
FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S]
{ WINDOW <urn:w> { ?x <urn:p> ?y } } GROUP BY ?x"""
BIG = """SELECT ?y FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S STEP PT1S]
{ WINDOW <urn:w> { ?x <urn:big> ?y } }"""
HUGE = 10_000_000


def test_a_million_elements_of_one_key_and_a_literal_of_ten_megabytes(spark: SparkSession) -> None:
    numbers = spark.range(ELEMENTS + 1)  # and one that is huge
    everything = numbers.select(
        F.lit("urn:s").alias(rows.STREAM),
        (F.lit(START + 1) + F.floor(F.col("id") / A_MS)).alias(rows.EVENT_TIME),
        F.col("id").alias(rows.POSITION),
        F.lit("<urn:one>").alias(rows.SUBJECT),
        F.when(F.col("id") < ELEMENTS, "<urn:p>").otherwise("<urn:big>").alias(rows.PREDICATE),
        F.concat(
            F.lit('"'),
            F.when(F.col("id") == ELEMENTS, F.repeat(F.lit("x"), HUGE)).otherwise(
                F.col("id").cast("string")
            ),
            F.lit('"'),
        ).alias(rows.OBJECT),
        F.lit(None).cast("string").alias(rows.GRAPH),
    )
    engine = Engine(spark)
    engine.provide("urn:s", everything)
    found = engine.query(COUNT).spelled_answers().collect()
    a_window = A_MS * STEP
    assert sorted(row.t for row in found) == [
        START + STEP * k for k in range(1, ELEMENTS // a_window + 1)
    ]
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert {row.bindings.n for row in found} == {f'"{a_window}"{integer}'}
    (row,) = engine.query(BIG).spelled_answers().collect()
    assert len(row.bindings.y) == HUGE + 2
    assert row.t == START + ELEMENTS // A_MS + STEP
