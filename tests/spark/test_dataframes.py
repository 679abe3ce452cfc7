"""Answers as data frames: typed columns, the same over files and live, in every time zone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from quadweir import STATEMENT_SCHEMA, Engine, UsageError

pytestmark = pytest.mark.spark

XSD = "http://www.w3.org/2001/XMLSchema#"
AGGREGATES = (
    f"PREFIX xsd: <{XSD}> "
    "SELECT ?x (COUNT(*) AS ?n) (AVG(?v) AS ?mean) (MAX(xsd:dateTime(?w)) AS ?last) "
    "(COUNT(*) > 1 AS ?many) "
    "{ STREAM <urn:s> [RANGE 10s SLIDE 10s] { ?x <urn:p> ?v ; <urn:at> ?w } } GROUP BY ?x"
)
AGGREGATED = (
    "t timestamp, sign string, x string, n bigint, mean double, last timestamp, many boolean"
)
ROWS = [
    (1_000, 0, "<urn:a>", "<urn:p>", f'"1"^^<{XSD}integer>'),
    (1_000, 1, "<urn:a>", "<urn:at>", '"2026-03-03T08:00:00"'),
    (2_000, 2, "<urn:b>", "<urn:is>", '"tab\\t, \\"quote\\""@en'),
    (2_000, 3, "<urn:b>", "<urn:is>", "_:c"),
    (2_000, 4, "<urn:b>", "<urn:is>", f'"x"^^<{XSD}integer>'),
    (2_000, 5, "<urn:b>", "<urn:is>", "<<( <urn:s> <urn:p> <urn:o> )>>"),
    (12_000, 6, "<urn:b>", "<urn:other>", "<urn:c>"),
]
TERMS = (
    "SELECT ?t ?T ?sign { STREAM <urn:s> [NOW] { ?t <urn:is> ?T OPTIONAL { ?t <urn:q> ?sign } } }"
)


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    rows = [("urn:s", *each, None) for each in ROWS]
    engine = Engine(spark)
    engine.provide("urn:s", spark.createDataFrame(rows, STATEMENT_SCHEMA))
    return engine


@pytest.fixture
def live(spark: SparkSession, tmp_path: Path) -> Engine:
    (tmp_path / "in").mkdir()
    engine = Engine(spark)
    frame = spark.readStream.schema(STATEMENT_SCHEMA).json(str(tmp_path / "in"))
    engine.provide("urn:s", frame)
    return engine


@pytest.fixture(params=["UTC", "Asia/Tokyo"])
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def test_columns_have_the_types_that_the_query_says(engine: Engine, live: Engine) -> None:
    wanted = engine.spark.createDataFrame([], AGGREGATED).schema
    for each in (engine, live):
        found = each.query(AGGREGATES).to_dataframe()
        assert [(field.name, field.dataType) for field in found.schema] == [
            (field.name, field.dataType) for field in wanted
        ]
    assert live.query(AGGREGATES).to_dataframe().isStreaming


def test_times_are_instants_in_every_time_zone(engine: Engine, zone: str) -> None:
    found = engine.query(AGGREGATES).to_dataframe().where("x = 'urn:a'")
    instants = [F.unix_millis(name) for name in ("t", "last")]
    (row,) = found.select(*instants, "n", "mean", "many").collect()
    # 2026-03-03T08:00:00 without a zone is in UTC.
    assert tuple(row) == (10_000, 1_772_524_800_000, 1, 1.0, False)


def test_other_types_are_asked_for_by_name(engine: Engine) -> None:
    asked = "SELECT ?v { STREAM <urn:s> [NOW] { ?x <urn:p>|<urn:is> ?v } }"
    found = engine.query(asked).to_dataframe(types={"?v": "decimal(10,2)"})
    assert found.schema["v"].dataType == DecimalType(10, 2)
    assert sorted(str(row.v) for row in found.collect()) == ["1.00", "None", "None", "None", "None"]
    with pytest.raises(UsageError, match=r"no variable \?w"):
        engine.query(asked).to_dataframe(types={"w": "double"})
    with pytest.raises(UsageError, match="'dubble' is not a type"):
        engine.query(asked).to_dataframe(types={"v": "dubble"})
    with pytest.raises(UsageError, match="exclude each other"):
        engine.query(asked).to_dataframe(types={"v": "double"}, terms=True)


def test_values_are_plain_and_names_of_columns_differ(engine: Engine) -> None:
    found = engine.query(TERMS).to_dataframe()
    assert found.columns == ["t", "sign", "t_", "T__", "sign_"]
    values = {row["T__"] for row in found.collect()}
    blank = next(value for value in values if value.startswith("_:"))
    assert values == {'tab\t, "quote"', blank, "x", "<<( <urn:s> <urn:p> <urn:o> )>>"}
    assert {(row["t_"], row["sign_"]) for row in found.collect()} == {("urn:b", None)}


def test_whole_terms_are_there_when_asked_for(engine: Engine) -> None:
    found = engine.query(TERMS).to_dataframe(terms=True).collect()
    assert all(row["sign_"] is None for row in found)
    assert {row["t_"] for row in found} == {Row("iri", "urn:b", None, None)}
    terms = {tuple(row["T__"]) for row in found}
    blank = next(each for each in terms if each[0] == "bnode")
    assert not blank[1].startswith("_:")
    assert terms == {
        (
            "literal",
            'tab\t, "quote"',
            "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
            "en",
        ),
        ("literal", "x", f"{XSD}integer", None),
        ("triple", "<<( <urn:s> <urn:p> <urn:o> )>>", None, None),
        blank,
    }


def test_graphs_are_one_column(engine: Engine) -> None:
    made = "CONSTRUCT { ?x <urn:q> ?v } { STREAM <urn:s> [NOW] { ?x <urn:p> ?v } }"
    found = engine.query(made).to_dataframe()
    assert found.columns == ["t", "sign", "graph"]
    assert found.schema["t"].dataType.typeName() == "timestamp"
    with pytest.raises(UsageError, match="no columns for variables"):
        engine.query(made).to_dataframe(terms=True)


def test_whether_there_is_a_solution_is_a_boolean(engine: Engine) -> None:
    found = engine.query("ASK { STREAM <urn:s> [NOW] { ?x <urn:p> ?v } }").to_dataframe()
    assert found.schema["boolean"].dataType.typeName() == "boolean"
    assert any(row.boolean for row in found.collect())
