"""Answers of live queries as typed rows: every format, both hosts, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from quadweir import STATEMENT_SCHEMA, Engine, EnvironmentProblem, SourceError, UsageError
from quadweir.runtime.answercolumns import AnswerColumns

pytestmark = pytest.mark.spark

INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
QUERY = (
    "SELECT ?x (COUNT(*) AS ?n) (AVG(?v) AS ?mean) "
    "{ STREAM <urn:s> [RANGE 10s SLIDE 10s] { ?x <urn:p> ?v } } GROUP BY ?x"
)
GRAPHS = "CONSTRUCT { ?x <urn:q> ?v } { STREAM <urn:s> [NOW] { ?x <urn:p> ?v } }"


def add(folder: Path, name: str, *times: int) -> None:
    lines = [f'{t} <urn:a> <urn:p> "{t // 1000}"^^<{INTEGER}> .\n' for t in times]
    (folder / "in" / f"{name}.stream").write_text("".join(lines))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    add(tmp_path, "1", 1000, 2000, 11_000)
    return tmp_path


@pytest.fixture
def engine(spark: SparkSession, folder: Path) -> Engine:
    engine = Engine(spark)
    engine.stream("urn:s").folder(folder / "in", watch=True).format("timed-lines").delay("0s")
    return engine


def ended(query) -> None:
    try:
        query.processAllAvailable()
    finally:
        query.stop()


def found(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted((row.x, row.n, row.mean) for row in frame.collect())


@pytest.mark.parametrize("host", ["driver", "executors"])
def test_parquet_has_each_answer_once_with_the_types_of_a_bounded_run(
    spark: SparkSession, engine: Engine, folder: Path, host: str
) -> None:
    out, state = folder / "out", folder / "state"
    bounded = Engine(spark)
    bounded.stream("urn:s").folder(folder / "in").format("timed-lines")
    wanted = bounded.query(QUERY).to_dataframe().schema
    first = engine.query(QUERY).write_stream("parquet", out, checkpoint=state, shards_in=host)
    ended(first)
    assert found(spark.read.parquet(str(out))) == [("urn:a", 2, 1.5)]
    add(folder, "2", 12_000, 21_000)
    second = engine.query(QUERY).write_stream("parquet", out, checkpoint=state, trigger="1 second")
    ended(second)
    frame = spark.read.parquet(str(out))
    assert found(frame) == [("urn:a", 2, 1.5), ("urn:a", 2, 11.5)]
    assert [(each.name, each.dataType) for each in frame.schema] == [
        (each.name, each.dataType) for each in wanted
    ]
    other = engine.query(QUERY).write_stream("parquet", out, checkpoint=folder / "other")
    with pytest.raises(SourceError, match="holds the output of another query"):
        from quadweir.sinks.start import wait

        wait(other)


def test_a_function_gets_typed_rows_and_can_join_them(
    spark: SparkSession, engine: Engine, folder: Path
) -> None:
    names = spark.createDataFrame([("urn:a", "Ann")], "x string, name string")
    out = str(folder / "joined")

    def write(frame: DataFrame, number: int) -> None:
        frame.join(names, "x").write.mode("append").parquet(out)

    query = engine.query(QUERY).write_stream(foreach_batch=write, trigger="availableNow")
    assert query.awaitTermination(120)
    (row,) = spark.read.parquet(out).collect()
    assert (row.name, row.n, row.mean) == ("Ann", 2, 1.5)


def test_memory_is_a_view_and_the_handle_has_sparks_members(
    spark: SparkSession, engine: Engine
) -> None:
    query = engine.query(QUERY).write_stream("memory", name="means", types={"n": "string"})
    assert query.name == "means"
    assert query.isActive
    assert set(query.status) == {"message", "isDataAvailable", "isTriggerActive"}
    ended(query)
    assert query.id != query.runId
    assert query.lastProgress.batchId >= 0
    assert len(query.recentProgress) > 0
    assert query.exception() is None
    assert not query.isActive
    assert found(spark.table("means")) == [("urn:a", "2", 1.5)]
    spark.catalog.dropTempView("means")


def test_lines_of_json_have_the_same_columns(engine: Engine, folder: Path, capsys) -> None:
    out = folder / "out"
    query = engine.query(QUERY).write_stream("jsonl", out, terms=True, checkpoint=folder / "state")
    ended(query)
    (line,) = [each for file in out.glob("*.jsonl") for each in file.read_text().splitlines()]
    row = json.loads(line)
    assert row["x"] == {"kind": "iri", "value": "urn:a", "datatype": None, "language": None}
    assert (row["n"]["value"], row["n"]["datatype"]) == ("2", INTEGER)
    ended(engine.query(QUERY).write_stream("console"))
    printed = json.loads(capsys.readouterr().out)
    assert (printed["x"], printed["n"], printed["mean"]) == ("urn:a", 2, 1.5)


def test_a_table_is_appended_to(spark: SparkSession, engine: Engine, folder: Path) -> None:
    place = {"path": str(folder / "table")}
    query = engine.query(QUERY).write_stream(
        table="quadweir_means", checkpoint=folder / "state", options=place
    )
    try:
        ended(query)
        assert found(spark.table("quadweir_means")) == [("urn:a", 2, 1.5)]
    finally:
        spark.sql("DROP TABLE IF EXISTS quadweir_means")


def test_graphs_are_arrays_of_quads(spark: SparkSession, engine: Engine, folder: Path) -> None:
    out = folder / "out"
    ended(engine.query(GRAPHS).write_stream("parquet", out, checkpoint=folder / "state"))
    rows = spark.read.parquet(str(out)).collect()
    assert {row.graph[0].subject for row in rows} == {"<urn:a>"}
    assert len(rows) == 3


def test_dead_letters_have_a_folder(engine: Engine, folder: Path) -> None:
    (folder / "in" / "0.stream").write_text("soon <urn:a> <urn:b> <urn:c> .\n")
    query = engine.query(QUERY).write_stream(
        "jsonl", folder / "out", checkpoint=folder / "state", dead_letters=folder / "dead"
    )
    ended(query)
    (line,) = [
        each for file in (folder / "dead").glob("*.jsonl") for each in file.read_text().splitlines()
    ]
    assert "not an event time" in json.loads(line)["reason"]


def test_what_cannot_be_written_is_refused_before_anything_runs(
    spark: SparkSession, engine: Engine, folder: Path
) -> None:
    with pytest.raises(EnvironmentProblem, match="Spark has no data source 'delta'"):
        engine.query(QUERY).write_stream("delta", folder / "out", checkpoint=folder / "state")
    bounded = Engine(spark)
    bounded.provide("urn:s", spark.createDataFrame([], STATEMENT_SCHEMA))
    with pytest.raises(UsageError, match="are bounded"):
        bounded.query(QUERY).write_stream("console")
    query = engine.query(QUERY).write_stream("memory", name="twice")
    try:
        with pytest.raises(UsageError, match="runs already"):
            query.write_stream("memory", name="twice")
    finally:
        query.stop()


def test_columns_of_a_sink_are_those_of_a_data_frame(engine: Engine, folder: Path) -> None:
    query = engine.query(QUERY)
    columns = AnswerColumns.of(query.query)
    assert query.to_dataframe(spool=folder).columns == ["t", "sign", *columns.names]


def test_a_preview_is_a_small_table_of_bounded_and_live_streams(
    spark: SparkSession, engine: Engine, folder: Path
) -> None:
    bounded = Engine(spark)
    bounded.stream("urn:s").folder(folder / "in").format("timed-lines")
    wanted = [("+", "urn:a", 2, 1.5), ("+", "urn:a", 1, 11.0)]
    table = bounded.query(QUERY).preview()
    assert (
        sorted(table.drop(columns="t").itertuples(index=False, name=None), reverse=True) == wanted
    )
    live = engine.query(QUERY).preview(seconds=60, rows=1)
    assert list(live.drop(columns="t").itertuples(index=False, name=None)) == wanted[:1]
    assert dict(live.dtypes) == dict(table.dtypes)
    nothing = engine.query(QUERY.replace("urn:p", "urn:nothing")).preview(seconds=1)
    assert list(nothing.columns) == list(table.columns)
    assert not len(nothing)


def test_a_query_shows_itself_in_a_notebook(engine: Engine, folder: Path) -> None:
    query = engine.query(QUERY)
    assert "<td>registered</td>" in query._repr_html_()
    ended(query.write_stream("memory", name="shown"))
    page = query._repr_html_()
    assert "<td>stopped</td>" in page
    assert "<th style='text-align:left'>answers</th><td>1</td>" in page
    assert "over &lt;urn:s&gt;" in page
    assert page.count("<svg") == 1


def test_a_join_whose_sides_never_meet_is_reported_once(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    monkeypatch.setattr("quadweir.runtime.silence.MANY", 3)
    (folder / "other").mkdir()
    engine = Engine(spark)
    for iri, name in (("urn:s", "in"), ("urn:t", "other")):
        stream = engine.stream(iri).folder(folder / name, watch=True).format("timed-lines")
        stream.delay("1h").max_per_batch(1)
    for number in range(6):
        add(folder, str(number), 1000 * number)
        line = f"{1000 * number} <urn:A> <urn:q> <urn:x> .\n"
        (folder / "other" / f"{number}.stream").write_text(line)
    query = engine.query(
        "SELECT ?x { STREAM <urn:s> [RANGE 1h] { ?x <urn:p> ?v } "
        "STREAM <urn:t> [RANGE 1h] { ?x <urn:q> ?w } }"
    )
    monkeypatch.setattr("quadweir.runtime.silence._FIRST_LOOK", 0)
    ended(query.write_stream("memory", name="silent", shards_in="driver"))
    said = capsys.readouterr().err
    assert said.count("no answers after") == 1
    assert "such as <urn:a>" in said and "such as <urn:A>" in said
    assert "nothing joins on ?x" in query._repr_html_()
