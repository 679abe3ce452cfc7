"""Kafka against a real broker, through Spark's connector."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from brokers import KafkaBroker, until
from quadweir import rows
from quadweir.errors import SourceError
from quadweir.kafkaclient import check_broker
from quadweir.sinks.base import Batch
from quadweir.sinks.deadletters import with_dead_letters
from quadweir.sinks.files import FileSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import start, wait
from quadweir.sources.declare import Format, KafkaSource, StreamDeclaration
from quadweir.sources.kafka import read_kafka
from quadweir.sources.live import open_live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]


def test_messages_become_statements_and_dead_letters_in_one_pass(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.topic()
    good = '<urn:s> <urn:p> "o" .'
    kafka.produce(spark, topic, [f"1000 {good}", "not RDF", b"2000 \xff", None, f"3000 {good}"])
    declaration = StreamDeclaration(
        iri="http://example.org/k",
        source=KafkaSource(
            servers=kafka.address, topic=topic, options={"maxOffsetsPerTrigger": "2"}
        ),
        format=Format.TIMED_LINES,
    )
    sink = with_dead_letters(
        FileSink(tmp_path / "good", LineFormat.TIMED_LINES),
        FileSink(tmp_path / "dead", LineFormat.JSONL),
    )
    parsed = open_live(spark, declaration, spool=tmp_path / "unused")
    query = start(parsed, sink, checkpoint=tmp_path / "checkpoint", available_now=True)
    wait(query)
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 5
    assert lines(tmp_path / "good") == [f"1000 {good}", f"3000 {good}"]
    dead = [json.loads(line) for line in lines(tmp_path / "dead")]
    assert [(letter["place"], letter["record"]) for letter in dead] == [
        ("0:1", "not RDF"),
        ("0:2", "2000 �"),
    ]
    assert {letter["source"] for letter in dead} == {topic}
    assert dead[0]["reason"]
    assert dead[1]["reason"] == "not UTF-8"


def lines(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("[0-9]*") for line in file.read_text().splitlines())


def test_a_message_of_ten_megabytes_is_a_dead_letter_and_the_next_is_read(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.topic()
    lines_of = [
        f'{time} <urn:s> <urn:p> "{"x" * size}" .' for time, size in ((1, 1), (2, 10**7), (3, 1))
    ]
    kafka.produce(spark, topic, list(lines_of))
    declaration = StreamDeclaration(
        iri="http://example.org/k",
        source=KafkaSource(servers=kafka.address, topic=topic),
        format=Format.TIMED_LINES,
    )
    sink = with_dead_letters(
        FileSink(tmp_path / "good", LineFormat.TIMED_LINES),
        FileSink(tmp_path / "dead", LineFormat.JSONL),
    )
    parsed = open_live(spark, declaration, spool=tmp_path / "unused")
    wait(start(parsed, sink, checkpoint=tmp_path / "checkpoint", available_now=True))
    assert lines(tmp_path / "good") == [lines_of[0], lines_of[2]]
    (letter,) = (json.loads(line) for line in lines(tmp_path / "dead"))
    assert letter["reason"] == "the message is longer than 4194304 bytes"
    assert len(letter["record"] or "") <= rows.DEAD_LETTER_TEXT


def test_times_and_positions_come_from_the_envelope(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path
) -> None:
    topic = kafka.topic()
    kafka.produce(spark, topic, ["a", "b"])
    frame = spark.createDataFrame([(1,)], "partition int").select(
        "partition", F.lit("c").alias("value")
    )
    options = {"kafka.bootstrap.servers": kafka.address, "topic": topic}
    frame.write.format("kafka").options(**options).save()
    sink = MemorySink()
    raw = read_kafka(spark, servers=kafka.address, topic=topic)
    wait(start(raw, sink, checkpoint=tmp_path / "checkpoint", available_now=True))
    found = {row.value: row for row in sink.rows()}
    assert {value: row.place for value, row in found.items()} == {
        "a": "0:0",
        "b": "0:1",
        "c": "1:0",
    }
    assert len({row[rows.POSITION] for row in found.values()}) == 3
    assert found["a"][rows.POSITION] < found["b"][rows.POSITION]
    assert found["a"][rows.EVENT_TIME] == found["a"].arrival > 1_600_000_000_000


def test_a_repeated_batch_can_be_deduplicated_by_its_keys(
    spark: SparkSession, kafka: KafkaBroker
) -> None:
    topic = kafka.topic()
    statement = ("http://example.org/s", 5, 0, "<urn:s>", "<urn:p>", '"o"', None)
    other = ("http://example.org/s", 6, 0, "<urn:s>", "<urn:p>", '"o"', "<urn:g>")
    frame = spark.createDataFrame([statement, other], rows.STATEMENT_SCHEMA)
    sink = KafkaSink(kafka.address, topic)
    sink.prepare()
    for _ in range(2):
        sink.write(frame, Batch(0, "q"))
    found = kafka.consume(spark, topic).collect()
    assert len(found) == 4
    assert sorted({(row.key.rpartition("|")[0], row.value) for row in found}) == [
        ("http://example.org/s|5", '<urn:s> <urn:p> "o" .'),
        ("http://example.org/s|6", '<urn:s> <urn:p> "o" <urn:g> .'),
    ]
    assert len({row.key for row in found}) == 2


def test_a_missing_topic_and_a_missing_broker_say_what_to_do(
    spark: SparkSession, kafka: KafkaBroker
) -> None:
    with pytest.raises(SourceError, match="topic nowhere does not exist") as caught:
        read_kafka(spark, servers=kafka.address, topic="nowhere")
    assert caught.value.hint
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with pytest.raises(SourceError, match=f"no Kafka broker answers at 127.0.0.1:{port}") as caught:
        read_kafka(spark, servers=f"127.0.0.1:{port}", topic="t")
    assert "make kafka" in str(caught.value.hint)
    # The first broker may be down as long as another answers.
    check_broker(f"127.0.0.1:{port}, {kafka.address}")


def test_a_broker_that_goes_away_ends_the_query_with_what_to_do(
    spark: SparkSession, own_kafka: KafkaBroker, tmp_path: Path
) -> None:
    own_kafka.produce(spark, "t", ["a"])
    quickly = {
        "kafka.default.api.timeout.ms": "2000",
        "kafka.request.timeout.ms": "1000",
        "fetchOffset.numRetries": "1",
        "fetchOffset.retryIntervalMs": "1",
    }
    sink = MemorySink()
    raw = read_kafka(spark, servers=own_kafka.address, topic="t", options=quickly)
    query = start(raw, sink, checkpoint=tmp_path / "checkpoint")
    until(lambda: len(sink.rows()) == 1, "the first record", query=query)
    own_kafka.stop()
    with pytest.raises(SourceError, match="broker is gone") as caught:
        wait(query)
    assert "same checkpoint" in str(caught.value.hint)
