"""MQTT against a real mosquitto."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokers import MqttBroker, until
from quadweir.errors import SourceError, UsageError
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import start, wait
from quadweir.sources.mqtt import read_mqtt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.mqtt, pytest.mark.timeout(600)]


def found(sink: MemorySink) -> list[tuple[str, str, str | None, str | None]]:
    rows = sorted(sink.rows(), key=lambda row: int(row.place))
    return [(row.source, row.place, row.value, row.reason) for row in rows]


def test_messages_while_the_query_is_down_and_the_broker_restarts_are_not_lost(
    spark: SparkSession, mqtt: MqttBroker, tmp_path: Path
) -> None:
    address = f"mqtt://127.0.0.1:{mqtt.port}"
    options = {"host": "127.0.0.1", "port": mqtt.port, "topic": "road/+", "spool": tmp_path / "sp"}
    checkpoint = tmp_path / "checkpoint"
    log = mqtt.folder / "log"
    sink = MemorySink()
    query = start(read_mqtt(spark, **options), sink, checkpoint=checkpoint)
    try:
        # What is published before the first subscription is nobody's.
        until(lambda: "road/+" in log.read_text(), "the subscription", query=query)
        mqtt.publish(("road/1", b"one"), ("rail/1", b"no"), ("road/2", b"\xff"))
        until(lambda: len(sink.rows()) == 2, "two records", query=query)
        query.processAllAvailable()
    finally:
        query.stop()
    assert found(sink) == [
        (f"{address}/road/1", "0", "one", None),
        (f"{address}/road/2", "1", "�", "not UTF-8"),
    ]

    mqtt.publish(("road/1", b"two\nlines"), ("road/1", b"three"))
    mqtt.stop()
    mqtt.start()
    again = MemorySink()
    query = start(read_mqtt(spark, **options), again, checkpoint=checkpoint)
    try:
        until(lambda: len(again.rows()) == 2, "the two messages kept by the broker", query=query)
        # The broker goes and comes while the query runs.
        mqtt.stop()
        mqtt.start()
        mqtt.publish(("road/3", b"four"))
        until(lambda: len(again.rows()) == 3, "the message after the outage", query=query)
    finally:
        query.stop()
    assert found(again) == [
        (f"{address}/road/1", "2", "two\nlines", None),
        (f"{address}/road/1", "3", "three", None),
        (f"{address}/road/3", "4", "four", None),
    ]


def test_no_broker_ends_the_query_with_what_to_do(
    spark: SparkSession, mqtt: MqttBroker, tmp_path: Path
) -> None:
    mqtt.stop()
    frame = read_mqtt(spark, host="127.0.0.1", port=mqtt.port, topic="t", spool=tmp_path / "spool")
    query = start(frame, MemorySink(), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(SourceError, match=f"no MQTT broker answers at 127.0.0.1:{mqtt.port}") as it:
        wait(query)
    assert it.value.hint == "Start the broker, or correct host and port."


def test_qos_2_is_refused_because_it_would_be_no_better(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="quality of service of 0 or 1"):
        read_mqtt(spark, host="localhost", topic="t", qos=2, spool=tmp_path)
