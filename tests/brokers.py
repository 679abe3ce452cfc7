"""Real brokers for tests: Apache Kafka and Debian's mosquitto, each in a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

REPO = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def running_kafka() -> Iterator[KafkaBroker]:
    process = subprocess.Popen(
        [sys.executable, REPO / "scripts" / "kafkabroker.py", "run"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None and process.stderr is not None
    address = process.stdout.readline().strip()
    if not address:
        _, said = process.communicate()
        pytest.fail(f"the Kafka broker did not start:\n{said}")
    broker = KafkaBroker(address, process)
    try:
        yield broker
    finally:
        broker.stop()


@dataclass
class KafkaBroker:
    """A running broker: produce and consume through Spark's connector, as users would."""

    address: str
    process: subprocess.Popen[str]
    topics: int = field(default=0)

    def topic(self) -> str:
        """A name that no other test uses."""
        self.topics += 1
        return f"topic-{self.topics}"

    def produce(self, spark: SparkSession, topic: str, values: list[str | bytes | None]) -> None:
        binary = [(one.encode() if isinstance(one, str) else one,) for one in values]
        # One partition, one task: the order of the values is the order of the offsets.
        frame = spark.createDataFrame(binary, "value binary").coalesce(1)
        options = {
            "kafka.bootstrap.servers": self.address,
            "topic": topic,
            "kafka.max.request.size": str(32 * 2**20),
            "kafka.buffer.memory": str(64 * 2**20),
        }
        frame.selectExpr("value", "0 AS partition").write.format("kafka").options(**options).save()

    def consume(self, spark: SparkSession, topic: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.address, "subscribe": topic}
        read = spark.read.format("kafka").options(**options).load()
        return read.selectExpr("CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


@dataclass
class MqttBroker:
    """Debian's mosquitto, which keeps sessions on disk across `stop` and `start`."""

    program: str
    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        settings = self.folder / "mosquitto.conf"
        settings.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\n"
            f"persistence_location {self.folder}/\nlog_dest stderr\nlog_type all\nmax_queued_messages 0\n"
            f"user {'root' if os.getuid() == 0 else ''}\n"
        )
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([self.program, "-c", settings], stderr=log)
        until(lambda: answers(self.port), "mosquitto answers")

    def publish(self, *messages: tuple[str, bytes]) -> None:
        from paho.mqtt import client as paho

        client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for topic, payload in messages:
            client.publish(topic, payload, qos=1).wait_for_publish(30)
        client.disconnect()
        client.loop_stop()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            self.process = None


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def until(
    condition: Callable[[], bool],
    what: str,
    *,
    query: StreamingQuery | None = None,
    timeout_s: float = 240,
) -> None:
    """Wait for another process, as short as can be; never for a fixed time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if query is not None and not query.isActive:
            query.awaitTermination()
            pytest.fail(f"the query ended before {what}")
        if time.monotonic() > deadline:
            pytest.fail(f"waited {timeout_s} s in vain for {what}")
        time.sleep(0.02)
