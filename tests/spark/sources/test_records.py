"""Records to statements: times, positions, dead letters, as column expressions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quadweir import rows
from quadweir.errors import DataError, DeclarationError
from quadweir.sources.declare import (
    Arrival,
    Envelope,
    FileSource,
    Format,
    FromPredicate,
    KafkaSource,
    MemorySource,
    StreamDeclaration,
    TimeSource,
)
from quadweir.times import parse_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KAFKA = KafkaSource(servers="localhost:9092", topic="t")


def declared(written: Format, time: TimeSource | None = None) -> StreamDeclaration:
    return StreamDeclaration(iri="urn:s", source=KAFKA, format=written, time=time or Envelope())


def split(
    spark: SparkSession,
    declaration: StreamDeclaration,
    values: list[str | None],
    **columns: int,
) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    from pyspark.sql import functions as F

    from quadweir.sources.records import parse_records, statements

    records: DataFrame = spark.createDataFrame(
        [("topic", f"0:{offset}", 77, value) for offset, value in enumerate(values)],
        rows.RECORD_SCHEMA,
    )
    for name, value in columns.items():
        records = records.withColumn(name, F.lit(value).cast("bigint"))
    parsed = parse_records(records, declaration)
    # Collected once and taken apart here: planning is what takes the time.
    good, bad = (frame.columns for frame in statements(records, declaration))
    assert good == rows.STATEMENT_SCHEMA.names
    assert bad == rows.DEAD_LETTER_SCHEMA.names
    found = parsed.collect()
    return (
        [tuple(row[name] for name in good) for row in found if row.reason is None],
        [tuple(row[name] for name in bad) for row in found if row.reason is not None],
    )


def test_timed_lines_carry_their_times_and_positions(spark: SparkSession) -> None:
    good, bad = split(
        spark,
        declared(Format.TIMED_LINES),
        [
            '1000 <urn:a> <urn:p> "x . y" .',
            "1970-01-01T00:00:02Z\t <urn:a> <urn:p> <urn:o> <urn:g> .\r\n",
            "# nothing",
            None,
            "<urn:a> <urn:p> <urn:o> .",
            "3000 <urn:a> <urn:p> .",
            "lone",
        ],
    )
    assert good == [
        ("urn:s", 1000, 0, "<urn:a>", "<urn:p>", '"x . y"', None),
        ("urn:s", 2000, 1, "<urn:a>", "<urn:p>", "<urn:o>", "<urn:g>"),
    ]
    assert [(place, record) for _, place, _, record in bad] == [
        ("0:4", "<urn:a> <urn:p> <urn:o> ."),
        ("0:5", "3000 <urn:a> <urn:p> ."),
        ("0:6", "lone"),
    ]
    assert [reason for *_, reason, _ in bad][::2] == [
        "not an event time before the statement",
        "no event time before the statement",
    ]


def test_a_record_of_bare_statements_is_one_element(spark: SparkSession) -> None:
    good, bad = split(
        spark,
        declared(Format.NQUADS),
        ["<urn:a> <urn:p> 5 .\n<urn:a> <urn:p> <urn:b> .\n\n<urn:a> <urn:q> <urn:b> <urn:g> ."],
        event_time=42,
        position=9,
    )
    assert [row[1:3] for row in good] == [(42, 9), (42, 9)]
    assert [row[3] for row in bad] == ["<urn:a> <urn:p> 5 ."]


def test_bare_triples_at_the_time_of_arrival(spark: SparkSession) -> None:
    good, bad = split(
        spark,
        declared(Format.NTRIPLES, Arrival()),
        ["<urn:a> <urn:p> <urn:b> .", "<urn:a> <urn:p> <urn:b> <urn:g> .", "x" * 20_000],
    )
    assert [row[1:3] for row in good] == [(77, 0)]
    assert bad[0][2] == "a graph name in N-Triples"
    assert len(bad[1][3]) == rows.DEAD_LETTER_TEXT


def test_the_time_of_a_predicate_counts_only_where_it_is_one(spark: SparkSession) -> None:
    at = FromPredicate("urn:at.")
    good, bad = split(
        spark,
        declared(Format.NTRIPLES, at),
        [
            '<urn:a> <urn:p> "text <urn:at.>" .\n_:b <urn:at.> "1970-01-01T00:00:01Z"^^<urn:dt> .',
            '<urn:a> <urn:p> "text <urn:at.>" .',
            '<urn:a> <urn:at.> "1" .\n<urn:a> <urn:at.> "2" .',
            '<urn:a> <urn:at.> "soon" .',
            '<urn:a> <urn:atx> "1" .',
        ],
    )
    assert [row[1:5] for row in good] == [
        (1000, 0, "<urn:a>", "<urn:p>"),
        (1000, 0, "_:b", "<urn:at.>"),
    ]
    assert [row[2] for row in bad] == [
        "no time: <urn:at.> is missing",
        "two times: <urn:at.> stands twice",
        "two times: <urn:at.> stands twice",
        "not an event time: soon",
        "no time: <urn:at.> is missing",
    ]


@pytest.mark.parametrize(
    "declaration",
    [
        declared(Format.NTRIPLES),
        declared(Format.JSONL),
        StreamDeclaration(
            iri="urn:s", source=FileSource(path=Path("a.trig")), format=Format.TIMED_GRAPHS
        ),
        StreamDeclaration(iri="urn:s", source=MemorySource(), format=Format.NTRIPLES),
    ],
    ids=["no envelope", "not RDF", "not records", "memory without time"],
)
def test_what_records_cannot_give_is_said_at_once(
    spark: SparkSession, declaration: StreamDeclaration
) -> None:
    with pytest.raises(DeclarationError):
        split(spark, declaration, ["<urn:a> <urn:p> <urn:b> ."])


TIMES = [
    "0", "-1", "-0", "007", "999999999999999", "1000000000000000", "+5", " 5", "5 ", "5.0", "1e3", "",
    "2024-02-29T12:34:56Z", "2023-02-29T12:34:56Z", "2024-01-01T00:00:00", "2024-01-01T00:00Z",
    "2024-01-01", "2024-01-01 00:00:00", "2024-01-01T24:00:00Z", "2024-01-01T23:59:60Z",
    "1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.000001Z", "0001-01-01T00:00:00Z",
    "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2024-01-01T00:00:00.123456789Z",
    "2024-01-01T00:00:00.123456789012+05:30", "2024-01-01T00:00:00-14:00",
    "2024-01-01T00:00:00+14:30", "2024-01-01T00:00:00+15:00", "2024-01-01T00:00:00z",
    "20240101T000000Z", "2024-01-01T00:00:00.Z", "2024-1-1T00:00:00Z", "2024-13-01T00:00:00Z",
    "2024-01-01T00:00:00Z\n", "٣", "2024-06-15T08:00:00+02:00",
]  # fmt: skip


def test_times_mean_the_same_to_spark_and_to_python(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    from quadweir.rowfilters import event_time

    def plain(text: str) -> int | None:
        try:
            return parse_time(text)
        except DataError:
            return None

    frame = spark.createDataFrame([(text,) for text in TIMES], "text string")
    found = {
        row.text: row.time
        for row in frame.select("text", event_time(F.col("text")).alias("time")).collect()
    }
    assert found == {text: plain(text) for text in TIMES}
    assert sum(time is not None for time in found.values()) == 15


def test_a_line_begins_with_a_time_if_python_reads_one_there(spark: SparkSession) -> None:
    words = [
        *("0", "7", "-7", "007", "-0", "9" * 15, "9" * 16, "9" * 30, "12.5", "1e3", "1L", "+1"),
        *("7\x1f", "7\u2028", "9:00", "٣", "1970-01-01T00:00:01Z", "2024-02-30T00:00:00Z"),
    ]
    gaps = (" ", "\t", "  ", " \t")
    lines = [f"{word}{gap}<urn:a> <urn:p> <urn:b> ." for word in words for gap in gaps]
    expected = []
    for word in words:
        try:
            expected += [parse_time(word)] * len(gaps)
        except DataError:
            continue
    for end in ("\n", "\r\n"):
        good, bad = split(spark, declared(Format.TIMED_LINES), [end.join(lines)])
        assert [row[1] for row in good] == expected
        assert len(bad) == len(lines) - len(expected)
        assert all(row[3:6] == ("<urn:a>", "<urn:p>", "<urn:b>") for row in good)
