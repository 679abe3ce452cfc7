"""Static data of an engine: files, quads and DataFrames."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from quadweir import (
    IRI,
    QUAD_SCHEMA,
    STATEMENT_SCHEMA,
    DataError,
    Engine,
    Literal,
    Quad,
    UsageError,
)
from quadweir.runtime.static import quadframes

pytestmark = pytest.mark.spark

QUERY = "SELECT ?s ?name { STREAM <urn:s> [NOW] { ?s <urn:v> ?v } ?s <urn:name> ?name }"
IN_GRAPH = "SELECT ?s ?name { STREAM <urn:s> [NOW] { ?s <urn:v> ?v } GRAPH <urn:g> { ?s <urn:name> ?name } }"


def name(number: int, text: str) -> Quad:
    return Quad(IRI(f"urn:{number}"), IRI("urn:name"), Literal(text))


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    rows = [("", 1000, n, f"<urn:{n}>", "<urn:v>", '"a"', None) for n in (1, 2, 3)]
    engine = Engine(spark)
    engine.provide("urn:s", spark.createDataFrame(rows, STATEMENT_SCHEMA))
    return engine


@pytest.fixture
def names(spark: SparkSession) -> DataFrame:
    """A frame of quads, one in an odd spelling."""
    string = "<http://www.w3.org/2001/XMLSchema#string>"
    rows = [
        ("<urn:2>", "<urn:name>", f'"two"^^{string}', None),
        ("<urn:3>", "<urn:name>", '"\\u0074hree"', "<urn:elsewhere>"),
    ]
    return spark.createDataFrame(rows, QUAD_SCHEMA)


def answers(engine: Engine, query: str = QUERY) -> list[tuple[str, str]]:
    found = engine.query(query).to_dataframe().drop("t", "sign").collect()
    return sorted((row.s, row.name) for row in found)


def test_files_quads_and_frames_are_joined(
    engine: Engine, names: DataFrame, tmp_path: Path
) -> None:
    (tmp_path / "a.nt").write_text('<urn:1> <urn:name> "one" .\n')
    engine.static(f"file://{tmp_path}/a.nt", names)
    assert answers(engine) == [("urn:1", "one"), ("urn:2", "two")]
    engine.static([name(3, "drei")], name(3, "trois"))
    assert answers(engine)[2:] == [("urn:3", "drei"), ("urn:3", "trois")]


def test_all_of_it_can_go_into_a_graph(engine: Engine, names: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text('<urn:1> <urn:name> "one" .\n')
    engine.static(tmp_path / "a.nt", name(1, "eins"), names, graph="urn:g")
    wanted = [("urn:1", "eins"), ("urn:1", "one"), ("urn:2", "two"), ("urn:3", "three")]
    assert answers(engine, IN_GRAPH) == wanted
    assert answers(engine) == []


@pytest.mark.parametrize("few", [0, 1, 2])
def test_large_frames_stay_in_spark_with_the_same_answers(
    engine: Engine, names: DataFrame, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("quadweir.runtime.static.data.FEW", few)
    engine.static(names, name(1, "one"))
    assert answers(engine) == [("urn:1", "one"), ("urn:2", "two")]


def test_blank_nodes_of_two_frames_differ(engine: Engine, spark: SparkSession) -> None:
    columns = "subject string, predicate string, object string"
    one = spark.createDataFrame([("<urn:1>", "<urn:knows>", "_:x")], columns)
    other = spark.createDataFrame([("_:x", "<urn:name>", '"x"')], columns)
    query = (
        "SELECT ?s ?name { STREAM <urn:s> [NOW] { ?s <urn:v> ?v } "
        "?s <urn:knows> ?o . ?o <urn:name> ?name }"
    )
    engine.static(one, other)
    assert answers(engine, query) == []
    engine.static(one.union(other))
    assert answers(engine, query) == [("urn:1", "x")]


@pytest.mark.parametrize("few", [0, 10])
def test_a_row_that_is_no_quad_is_refused(
    engine: Engine, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr("quadweir.runtime.static.data.FEW", few)
    engine.static(spark.createDataFrame([("urn:1", "<urn:name>", '"x"', None)] * 2, QUAD_SCHEMA))
    with pytest.raises(DataError, match="a row of the static DataFrame is no quad"):
        answers(engine)


def test_other_frames_are_refused(engine: Engine, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='no column "subject"'):
        engine.static(spark.range(1))
    with pytest.raises(UsageError, match='"object" in the DataFrame of static data is int'):
        engine.static(spark.sql("SELECT 'a' AS subject, 'b' AS predicate, 1 AS object"))
    with pytest.raises(UsageError, match="cannot be a stream"):
        engine.static(spark.readStream.schema(QUAD_SCHEMA).json(str(tmp_path)))
    with pytest.raises(UsageError, match="static data cannot be int"):
        engine.static(5)


def test_the_digest_of_a_frame_names_its_quads(names: DataFrame) -> None:
    again = names.orderBy("subject", ascending=False)
    assert quadframes.digest_of(names) == quadframes.digest_of(again)
    assert quadframes.digest_of(names) != quadframes.digest_of(names.limit(1))
