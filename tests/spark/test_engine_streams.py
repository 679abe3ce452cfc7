"""Streams that are declared in a chain of calls, and what mappings make of DataFrames."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from quadweir import (
    QUAD_SCHEMA,
    STATEMENT_SCHEMA,
    Call,
    DeclarationError,
    Engine,
    UsageError,
)

pytestmark = pytest.mark.spark

MAPPING = """
@prefix rml: <http://w3id.org/rml/> . @base <http://e.org/m/> .
<#m> rml:logicalSource [ rml:source "readings.jsonl" ; rml:referenceFormulation rml:JSONPath ] ;
  rml:subjectMap [ rml:template "urn:{id}" ] ;
  rml:predicateObjectMap [ rml:predicate <urn:v> ; rml:objectMap [ rml:reference "v" ] ] ;
  rml:predicateObjectMap [ rml:predicate <urn:lane> ; rml:objectMap [ rml:parentTriplesMap <#lane> ;
    rml:joinCondition [ rml:child "lane" ; rml:parent "lane" ] ] ] .
<#lane> rml:logicalSource [ rml:source "lanes.csv" ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:{name}" ] .
"""
ALONE = MAPPING[: MAPPING.index(" ;\n  rml:predicateObjectMap [ rml:predicate <urn:lane>")] + " ."
RECORDS = [
    {"id": 1, "v": "a", "t": 1000, "lane": "L"},
    {"id": 2, "v": "b", "t": 2000, "lane": "L"},
    {"id": 3, "v": "c", "t": "soon", "lane": "L"},
]
SCHEMA = "id string, v string, t string, lane string"
QUERY = "SELECT ?s ?v { STREAM <urn:s> [NOW] { ?s <urn:v> ?v } }"
WITH_LANES = "SELECT ?s ?v ?lane { STREAM <urn:s> [NOW] { ?s <urn:v> ?v ; <urn:lane> ?lane } }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "readings.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in RECORDS))
    (tmp_path / "lanes.csv").write_text("lane,name\nL,left\n")
    (tmp_path / "m.ttl").write_text(MAPPING)
    (tmp_path / "alone.ttl").write_text(ALONE)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_bytes((tmp_path / "readings.jsonl").read_bytes())
    return tmp_path


def values(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.drop("t", "sign").collect())


def after_a_batch(query, checkpoint: Path) -> list[tuple[object, ...]]:
    """What a live query has answered once all that is there was read."""
    found: list[tuple[object, ...]] = []
    query.start(
        Call(lambda frame, _: found.extend(tuple(each.bindings) for each in frame.collect())),
        checkpoint=checkpoint,
    )
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return sorted(found)


def test_a_file_of_rdf(spark: SparkSession, folder: Path) -> None:
    (folder / "a.stream").write_text('1000 <urn:1> <urn:v> "a" .\n')
    engine = Engine(spark)
    stream = engine.stream("urn:s").file(f"file://{folder}/a.stream").format("timed-lines")
    assert values(engine.query(QUERY).to_dataframe()) == [("urn:1", "a")]
    assert engine.streams["urn:s"] is stream.declaration
    assert engine.statements("urn:s").count() == 1


def test_mapped_records_of_files_and_of_a_folder(spark: SparkSession, folder: Path) -> None:
    """The stream takes the place of one source; the others are read as the mapping says."""
    engine = Engine(spark)
    stream = engine.stream("urn:s").file(folder / "readings.jsonl").format("jsonl")
    stream.event_time(column="t").mapping(folder / "m.ttl", source="readings.jsonl")
    query = engine.query(WITH_LANES)
    wanted = [("urn:1", "a", "urn:left"), ("urn:2", "b", "urn:left")]
    assert values(query.to_dataframe()) == wanted
    assert query.dead_letters().count() == 1

    stream.folder(folder / "in", watch=True)
    live = after_a_batch(engine.query(WITH_LANES), folder / "state")
    assert live == [tuple(term.replace(each, f"<{each}>") if each.startswith("urn:") else f'"{each}"'
                          for each in row for term in [each]) for row in wanted]  # fmt: skip


def test_mapped_rows_of_a_dataframe(spark: SparkSession, folder: Path) -> None:
    rows = [tuple(str(value) for value in each.values()) for each in RECORDS]
    bounded = spark.createDataFrame(rows, SCHEMA)
    live = spark.readStream.schema(SCHEMA).json(str(folder / "in"))
    engine = Engine(spark)
    stream = engine.stream("urn:s").dataframe(bounded).event_time(column="t")
    stream.mapping(folder / "alone.ttl")
    query = engine.query(QUERY)
    assert values(query.to_dataframe()) == [("urn:1", "a"), ("urn:2", "b")]
    assert query.dead_letters().count() == 1
    stream.dataframe(live)
    found = after_a_batch(engine.query(QUERY), folder / "state")
    assert found == [("<urn:1>", '"a"'), ("<urn:2>", '"b"')]


def test_statements_of_a_dataframe(spark: SparkSession) -> None:
    rows = [("", 1000, 0, "<urn:1>", "<urn:v>", '"a"', None)]
    engine = Engine(spark)
    engine.stream("urn:s").dataframe(spark.createDataFrame(rows, STATEMENT_SCHEMA))
    assert values(engine.query(QUERY).to_dataframe()) == [("urn:1", "a")]


def test_a_bad_stream_is_an_error_for_its_readers_only(spark: SparkSession, folder: Path) -> None:
    (folder / "a.stream").write_text('1000 <urn:1> <urn:v> "a" .\n')
    engine = Engine(spark)
    engine.stream("urn:s").file(folder / "a.stream").format("timed-lines")
    engine.stream("urn:broken").file(folder / "a.stream")
    engine.stream("urn:frame").dataframe(spark.range(1))
    engine.stream("urn:many").file(folder / "readings.jsonl").format("jsonl").event_time(
        column="t"
    ).mapping(folder / "m.ttl")
    assert values(engine.query(QUERY).to_dataframe()) == [("urn:1", "a")]
    for iri, kind, message in (
        ("urn:broken", DeclarationError, "has no format"),
        ("urn:frame", UsageError, 'has no column "stream"'),
        ("urn:many", DeclarationError, "has several sources"),
    ):
        with pytest.raises(kind, match=message):
            engine.query(QUERY.replace("urn:s", iri))
        with pytest.raises(kind, match=message):
            engine.network(streams=[iri])
    with pytest.raises(DeclarationError, match="has no format"):
        engine.statements("urn:broken")


def test_the_last_declaration_counts(spark: SparkSession, folder: Path) -> None:
    for name in "ab":
        (folder / f"{name}.stream").write_text(f'1000 <urn:1> <urn:v> "{name}" .\n')
    engine = Engine(spark)
    first = engine.stream("urn:s").file(folder / "a.stream").format("timed-lines")
    engine.stream("urn:s").dataframe(spark.createDataFrame([], STATEMENT_SCHEMA))
    assert values(engine.query(QUERY).to_dataframe()) == []
    engine.declare(first.declaration)
    assert values(engine.query(QUERY).to_dataframe()) == [("urn:1", "a")]
    engine.stream("urn:s").file(folder / "b.stream").format("timed-lines")
    assert values(engine.query(QUERY).to_dataframe()) == [("urn:1", "b")]


def test_a_mapping_makes_quads_of_its_sources(spark: SparkSession, folder: Path) -> None:
    made = Engine(spark).map(folder / "m.ttl")
    quads = made.quads()
    assert quads.schema.names == QUAD_SCHEMA.names
    assert made.streams == ()
    assert not quads.isStreaming
    assert {tuple(row) for row in quads.where("subject = '<urn:1>'").collect()} == {
        ("<urn:1>", "<urn:v>", '"a"', None),
        ("<urn:1>", "<urn:lane>", "<urn:left>", None),
    }
    assert made.dead_letters().count() == 0


def test_a_mapping_makes_quads_of_dataframes(spark: SparkSession, folder: Path) -> None:
    engine = Engine(spark)
    live = spark.readStream.schema(SCHEMA).json(str(folder / "in"))
    lanes = spark.createDataFrame([("L", "links")], "lane string, name string")
    found = engine.map(folder / "m.ttl", {"readings.jsonl": live, "lanes.csv": lanes}).quads()
    assert found.isStreaming
    seen: list[str] = []
    run = found.writeStream.foreachBatch(
        lambda frame, _: seen.extend(row.object for row in frame.collect())
    ).option("checkpointLocation", str(folder / "state"))
    query = run.start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(seen) == ['"a"', '"b"', '"c"', "<urn:links>", "<urn:links>", "<urn:links>"]
    with pytest.raises(UsageError, match="no source 'readings.csv'"):
        engine.map(folder / "m.ttl", {"readings.csv": live})


def test_a_source_that_cannot_be_read_twice_needs_a_folder(
    spark: SparkSession, folder: Path
) -> None:
    (folder / "live.ttl").write_text(
        ALONE.replace(
            '"readings.jsonl"',
            "[ a <http://semweb.mmlab.be/ns/rmls#FileStream> ; "
            '<http://semweb.mmlab.be/ns/rmls#path> "in" ]',
        )
    )
    made = Engine(spark).map(folder / "live.ttl", stream="urn:s", time="t")
    assert made.streams == ("urn:s",)
    with pytest.raises(UsageError, match="arrive once") as caught:
        made.quads()
    assert "spool=" in (caught.value.hint or "")
    assert made.quads(spool=folder / "spool").isStreaming
