"""A query over Kafka, TCP and MQTT at once, as the command line declares them, into Kafka."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brokers import KafkaBroker, MqttBroker, until
from quadweir import Engine
from quadweir.commands.queryoutput import OutputTarget
from quadweir.commands.querystreams import Named, declare
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.testing import Oracle, diff_answers
from quadweir.testing.answers import answers_from_json
from spark_queries import lines_of
from streaming import stream

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.mqtt, pytest.mark.timeout(600)]

QUERY = """SELECT ?x ?y ?z ?u {
  STREAM <urn:k> [RANGE 1s] { ?x <urn:p> ?y }
  STREAM <urn:tcp> [RANGE 1s] { ?y <urn:q> ?z }
  STREAM <urn:m> [RANGE 1s] { ?z <urn:r> ?u } }"""
HOUR = 3_600_000


def test_streams_from_everywhere_and_what_is_wrong_in_them(
    spark: SparkSession, kafka: KafkaBroker, mqtt: MqttBroker, tmp_path: Path
) -> None:
    feeds = {
        "urn:k": stream(*((HOUR + 5 * n, f"a{n} p b{n % 3}") for n in range(10)), name="k"),
        "urn:tcp": stream(*((HOUR + 7 * n, f"b{n % 3} q c{n % 2}") for n in range(10)), name="tcp"),
        "urn:m": stream(*((HOUR + 9 * n, f"c{n % 2} r d{n}") for n in range(10)), name="m"),
    }
    # Time goes on by a minute in all of them, so that what is an hour old is late.
    later = dict.fromkeys(feeds, HOUR + 60000)
    lines = {
        iri: [f"{each.event_time} {quad}" for each in feed for quad in each.quads]
        + [f"{later[iri]} <urn:x> <urn:other> <urn:y> ."]
        for iri, feed in feeds.items()
    }
    topic, to = kafka.topic(), kafka.topic()
    kafka.produce(spark, topic, [*lines["urn:k"][:5], "no statement", *lines["urn:k"][5:]])
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(240)
        engine = Engine(spark)
        for named in (
            Named("urn:k", f"kafka:{kafka.address}/{topic}"),
            Named("urn:tcp", f"tcp:127.0.0.1:{server.getsockname()[1]}"),
            Named("urn:m", f"mqtt:127.0.0.1:{mqtt.port}/c/+"),
        ):
            engine.declare(declare(named, {}, live=True, delay=None, idle=None))
        registered = engine.query(QUERY)
        sink = OutputTarget(f"kafka:{kafka.address}/{to}", "jsonl").sink("everywhere")
        dead = FileSink(tmp_path / "dead", LineFormat.JSONL)
        registered.start(sink, checkpoint=tmp_path / "checkpoint", dead_letters=dead)
        try:
            query = registered.streaming
            log = mqtt.folder / "log"
            until(lambda: "c/+" in log.read_text(), "the subscription", query=query)
            mqtt.publish(*(("c/1", line.encode()) for line in lines["urn:m"]))
            with server.accept()[0] as connection:
                connection.sendall("".join(f"{each}\n" for each in lines["urn:tcp"]).encode())
                connection.sendall(b"1000 <urn:cut\n")
                expected = Oracle(QUERY).answers([one for feed in feeds.values() for one in feed])
                assert expected
                until(
                    lambda: registered.metrics()["answers"] >= len(expected), "answers", query=query
                )
                # An hour late: counted, kept, and of no effect.
                mqtt.publish(("c/2", b"5 <urn:c0> <urn:r> <urn:late> ."))
                until(lambda: registered.metrics()["late"] == 1, "the late element", query=query)
            metrics = registered.metrics()
        finally:
            registered.stop()
    assert metrics["dead_letters"] == 2
    letters = {each["record"]: each["reason"] for each in lines_of(tmp_path / "dead")}
    assert letters.keys() == {"no statement", "1000 <urn:cut", "<urn:c0> <urn:r> <urn:late>"}
    assert letters["<urn:c0> <urn:r> <urn:late>"].startswith(
        "late: its time is 5, and the watermark was"
    )
    assert metrics["answers"] == len(expected)
    messages = {row.key: row.value for row in kafka.consume(spark, to).collect()}
    assert diff_answers(expected, answers_from_json(messages.values())) == ""
    assert {key.split("|")[1] for key in messages} == {str(answer.t) for answer in expected}
