"""Mappings over DataFrames of the caller's, bounded and streaming."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quadweir import rows
from quadweir.errors import MappingError, UnsupportedError, UsageError
from quadweir.mapping.apply import apply, compile_frames
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.mappings.realtime import check_realtime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PREFIXES = """
@prefix rml: <http://w3id.org/rml/> . @prefix ex: <http://ex.org/> . @base <http://ex.org/m/> .
@prefix rmls: <http://semweb.mmlab.be/ns/rmls#> .
"""
XSD = "http://www.w3.org/2001/XMLSchema#"


def mapping_of(formulation: str, subject: str, reference: str, iterator: str | None = None):
    step = f'; rml:iterator "{iterator}"' if iterator else ""
    return parse_mapping(
        f"""{PREFIXES}
        <#m> rml:logicalSource [
            rml:source [ a rmls:KafkaStream; rmls:broker "localhost:9092"; rmls:topic "t";
                         rmls:groupId "g" ];
            rml:referenceFormulation rml:{formulation} {step} ];
          rml:subjectMap [ rml:template "http://ex.org/{{{subject}}}" ];
          rml:predicateObjectMap [ rml:predicate ex:p;
            rml:objectMap [ rml:reference "{reference}" ] ] .
        """
    )


def texts(spark: SparkSession, *values: str | None) -> DataFrame:
    table = [("src", f"at {number}", 0, value) for number, value in enumerate(values)]
    return spark.createDataFrame(table, rows.RECORD_SCHEMA)


def objects(frame: DataFrame) -> list[str]:
    return sorted(row[rows.OBJECT] for row in frame.select(rows.OBJECT).collect())


def test_columns_are_references_with_natural_datatypes(spark: SparkSession) -> None:
    frame = spark.sql(
        "select 1 id, cast(1.5 as double) d, true b, date'2026-01-02' day, "
        "timestamp'2026-01-02 03:04:05.5' t, cast(1.50 as decimal(5,2)) n, 'x' s, "
        "array('p','q') many"
    )
    expected = {
        "d": [f'"1.5E0"^^<{XSD}double>'],
        "b": [f'"true"^^<{XSD}boolean>'],
        "day": [f'"2026-01-02"^^<{XSD}date>'],
        "t": [f'"2026-01-02T03:04:05.5Z"^^<{XSD}dateTime>'],
        "n": [f'"1.50"^^<{XSD}decimal>'],
        "s": ['"x"'],
        "many": ['"p"', '"q"'],
    }
    for name, terms in expected.items():
        quads = mapping_of("CSV", "id", name).apply(frame)
        assert objects(quads) == terms, name
        assert [field.name for field in quads.schema.fields] == list(rows.TERMS)


def test_a_column_that_is_not_there_is_named_with_its_likeness(spark: SparkSession) -> None:
    with pytest.raises(MappingError, match="'nam'") as caught:
        apply(mapping_of("CSV", "id", "nam"), spark.sql("select 1 id, 'x' name"))
    assert "name" in (caught.value.hint or "")


def test_frames_by_name(spark: SparkSession) -> None:
    mapping = mapping_of("CSV", "id", "name")
    frame = spark.sql("select 1 id, 'x' name")
    assert objects(mapping.apply({"t": frame})) == ['"x"']
    with pytest.raises(UsageError, match="no frame for t"):
        mapping.apply({"other": frame})


@pytest.mark.parametrize("reference", ["$.v", "$..v"], ids=["by Spark", "in Python"])
def test_both_evaluators_give_the_same_literals(spark: SparkSession, reference: str) -> None:
    values = [
        "1",
        "1.0",
        "91.70",
        "1e10",
        "0.00001",
        '"1"',
        "true",
        '"a\\"b\\n\\\\"',
        "null",
        "-0.5",
    ]
    values += ["12345678901234567890123", '"\\u007f\\u0001é"']
    frame = texts(spark, *[f'{{"id": {n}, "v": {v}}}' for n, v in enumerate(values)])
    quads = mapping_of("JSONPath", "$.id", reference).apply(frame)
    found = {row.subject: row.object for row in quads.collect()}
    assert [found.get(f"<http://ex.org/{n}>") for n in range(len(values))] == [
        f'"1"^^<{XSD}integer>',
        f'"1.0E0"^^<{XSD}double>',
        f'"9.17E1"^^<{XSD}double>',
        f'"1.0E10"^^<{XSD}double>',
        f'"1.0E-5"^^<{XSD}double>',
        '"1"',
        f'"true"^^<{XSD}boolean>',
        '"a\\"b\\n\\\\"',
        None,
        f'"-5.0E-1"^^<{XSD}double>',
        f'"12345678901234567890123"^^<{XSD}integer>',
        '"\\u007F\\u0001é"',
    ]


@pytest.mark.parametrize(
    ("iterator", "reference", "expected"),
    [
        ("$", "$.a[*].b", ['"x"', '"y"']),
        ("$.a[*]", "$.b", ['"x"', '"y"']),
        ("$.a[1]", "$.b", ['"y"']),
        ("$.o.*", "$.b", ['"m"', '"n"']),
        ("$..[?@.b == 'x']", "$.b", ['"x"']),
        ("$.a[-1:]", "$.b", ['"y"']),
        ("$['a'][*]['b']", "$", ['"x"', '"y"']),
        ("$.missing[*]", "$.b", []),
    ],
)
def test_iterators(spark: SparkSession, iterator: str, reference: str, expected: list[str]) -> None:
    text = (
        '{"a": [{"b": "x", "id": 1}, {"b": "y", "id": 2}], "o": {"k": {"b": "m"}, "l": {"b": "n"}}}'
    )
    mapping = parse_mapping(
        f"""{PREFIXES}
        <#m> rml:logicalSource [ rml:source [ a rmls:KafkaStream; rmls:broker "localhost:9092";
                rmls:topic "t"; rmls:groupId "g" ];
              rml:referenceFormulation rml:JSONPath; rml:iterator "{iterator}" ];
          rml:subject ex:s; rml:predicateObjectMap [ rml:predicate ex:p;
            rml:objectMap [ rml:reference "{reference}" ] ] ."""
    )
    assert objects(mapping.apply(texts(spark, text))) == expected


def test_bad_records_are_reported_and_the_others_mapped(spark: SparkSession) -> None:
    frame = texts(
        spark, '{"id": 1, "v": "x"}', "{nope", '{"id": 2, "v": [1]}', "  ", None, "[1]", '{"id": 3'
    )
    compiled = compile_frames(mapping_of("JSONPath", "$.id", "$.v"), frame)
    assert objects(compiled.quads()) == ['"x"']
    letters = {(row.place, row.reason) for row in compiled.dead_letters().collect()}
    assert letters == {
        ("at 1", "not valid JSON"),
        ("at 2", "the value of $.v is an array or an object, not a term"),
        ("at 6", "not valid JSON"),
    }
    tagged = compiled.tagged().collect()
    assert {(row.place, row.reason) for row in tagged if row.reason is not None} == letters
    assert [row.object for row in tagged if row.reason is None] == ['"x"']


def test_xml_and_csv_texts(spark: SparkSession) -> None:
    xml = texts(
        spark, "<r><i id='1'><v>x</v><v>y</v></i><i id='2'/></r>", "<r>", "<!DOCTYPE r []><r/>"
    )
    compiled = compile_frames(mapping_of("XPath", "@id", "v", "/r/i"), xml)
    assert objects(compiled.quads()) == ['"x"', '"y"']
    assert sorted(row.place for row in compiled.dead_letters().collect()) == [
        "at 1 after record 0",
        "at 2 after record 0",
    ]
    csv = texts(spark, 'id,v\n1,"a, b"', "id,v\n2")
    compiled = compile_frames(mapping_of("CSV", "id", "v"), csv)
    assert objects(compiled.quads()) == ['"a, b"']
    assert "2 fields" not in compiled.dead_letters().collect()[0].reason
    assert "1 fields" in compiled.dead_letters().collect()[0].reason


def test_a_stream_gives_the_same_quads(spark: SparkSession, tmp_path: Path) -> None:
    lines = [f'{{"id": {n}, "v": "é {n}"}}' for n in range(20)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(lines[:10]), encoding="utf-8")
    (tmp_path / "in" / "b.txt").write_text("\n".join(lines[10:]), encoding="utf-8")
    mapping = mapping_of("JSONPath", "$.id", "$.v")
    bounded = mapping.apply(spark.read.text(str(tmp_path / "in")))
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    live = mapping.apply(stream)
    assert live.isStreaming
    query = (
        live.writeStream.format("memory")
        .queryName("mapped")
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(map(tuple, spark.table("mapped").collect())) == sorted(
        map(tuple, bounded.collect())
    )


def test_real_time_mode_names_what_it_cannot_run(spark: SparkSession) -> None:
    frame = texts(spark, "{}")
    simple = mapping_of("JSONPath", "$.id", "$.v")
    check_realtime(simple, compile_frames(simple, frame))
    complicated = mapping_of("JSONPath", "$.id", "$..v")
    with pytest.raises(UnsupportedError, match=r"\$\.\.v descends"):
        check_realtime(complicated, compile_frames(complicated, frame))
