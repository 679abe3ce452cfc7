"""Kafka as a source of records and of RDF elements, through Spark's own connector.

The connector keeps the offsets in the query's checkpoint, so a restart goes on where the last
finished batch ended: nothing is lost and nothing is read twice as long as the topic keeps it.
"""

from __future__ import annotations

import os
import socket
import struct
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.errors import EnvironmentProblem, SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

CONNECTOR_NOTE: Final = "fetched.txt"
# Kafka clusters hold some 200,000 partitions; offsets keep 45 bits, enough for centuries.
_PARTITION_BITS: Final = 18
_START_ONE: Final = "Start one with `make kafka`, or check host, port and firewall."


def connector_jars() -> list[Path]:
    """The jars of Spark's Kafka connector, where `make kafka` has fetched them; else none."""
    return sorted(connector_folder().glob("*.jar"))


def connector_note() -> str | None:
    """Say which connector was fetched; it can be older than Spark itself."""
    try:
        return (connector_folder() / CONNECTOR_NOTE).read_text(encoding="utf-8").strip()
    except OSError:
        return None


def connector_folder() -> Path:
    """Where the connector for the installed Spark lies, fetched or not."""
    return _cache() / "kafka" / f"connector-{version('pyspark')}"


def broker_folder() -> Path:
    """Where the broker that the tests run lies, fetched or not."""
    return _cache() / "kafka" / "broker"


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    return (Path(base) if base.startswith("/") else Path("~/.cache").expanduser()) / "quadweir"


def read_kafka(
    spark: SparkSession,
    *,
    servers: str,
    topic: str,
    starting: str = "earliest",
    max_record_bytes: int = 4 * 2**20,
    options: Mapping[str, str] | None = None,
    bounded: bool = False,
) -> DataFrame:
    """Read a topic as a stream of records: `raw.RAW_SCHEMA` with event time and position.

    The event time is Kafka's timestamp, of creation or of appending as the topic is configured;
    the position comes from partition and offset, so that no two messages share one.

    Guarantee: every message exactly once in the query's input, across restarts from its
    checkpoint, as long as the topic still holds what was not read yet.

    Args:
        spark: the session; it must have been started with the connector's jars.
        servers: brokers as `HOST:PORT`, several with commas between.
        topic: its name.
        starting: `earliest`, `latest`, or Spark's JSON of offsets; only a new checkpoint asks.
        max_record_bytes: longer messages become dead letters.
        options: any option of Spark's connector, such as `maxOffsetsPerTrigger`,
            `kafka.security.protocol`, or `failOnDataLoss` (default true: a query ends when
            messages expired before it read them).
        bounded: read what the topic holds now, to its end, and not as a stream.

    Raises:
        SourceError: no broker answers, or the topic does not exist.
        EnvironmentProblem: the session lacks the connector.
    """
    given = dict(options or {})
    # The question is asked in the clear; where encryption is wanted, Spark's clients find out.
    if not any(name.startswith(("kafka.security.", "kafka.sasl.")) for name in given):
        check_broker(servers, topic=topic)
    wanted = {"subscribe": topic, "startingOffsets": starting, "kafka.bootstrap.servers": servers}
    return _raw(_load(spark, {**wanted, **given}, bounded), max_record_bytes)


def _load(spark: SparkSession, options: Mapping[str, str], bounded: bool) -> DataFrame:
    from pyspark.errors import AnalysisException, IllegalArgumentException

    reader: Any = spark.read if bounded else spark.readStream
    try:
        frame: DataFrame = reader.format("kafka").options(**options).load()
        return frame
    except AnalysisException as error:
        if not is_missing(error):
            raise
        raise missing_connector() from error
    except IllegalArgumentException as error:
        raise UsageError(
            "an option of the Kafka source is not valid", detail=str(error).splitlines()[0]
        ) from error


def is_missing(error: Exception) -> bool:
    """Tell whether Spark says that it has no data source of that name."""
    return "failed to find data source" in str(error).lower()


def missing_connector() -> EnvironmentProblem:
    """The error for a session without the connector."""
    return EnvironmentProblem(
        "this Spark session has no Kafka connector",
        hint="Fetch it once with `make kafka`, or hand the jars of spark-sql-kafka-0-10 to your "
        "own session (spark.jars).",
    )


def _raw(messages: DataFrame, max_record_bytes: int) -> DataFrame:
    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.sources.raw import NOT_UTF8

    text = F.col("value").cast("string")
    too_long = F.octet_length("value") > max_record_bytes
    timestamp = F.coalesce(F.unix_millis("timestamp"), F.lit(0))
    reason = F.when(too_long, F.lit(f"the message is longer than {max_record_bytes} bytes")).when(
        ~F.is_valid_utf8(text), F.lit(NOT_UTF8)
    )
    return messages.select(
        F.coalesce("topic", F.lit("")).alias(rows.SOURCE),
        F.concat_ws(":", "partition", "offset").alias(rows.PLACE),
        timestamp.alias(rows.ARRIVAL),
        F.when(~too_long, F.make_valid_utf8(text)).alias(rows.VALUE),
        reason.alias(rows.REASON),
        timestamp.alias(rows.EVENT_TIME),
        (F.shiftleft("offset", _PARTITION_BITS) + F.col("partition")).alias(rows.POSITION),
    )


def check_broker(brokers: str, *, topic: str | None = None, timeout_s: float = 5.0) -> int | None:
    """Ask the first broker that answers; Spark's own clients keep trying for a minute or more.

    Args:
        brokers: `HOST:PORT`, several with commas between.
        topic: a topic that must exist.
        timeout_s: how long to wait for each broker.

    Returns:
        How many partitions the topic has; None without a topic.

    Raises:
        SourceError: no broker answers, or the topic does not exist.
    """
    reasons = []
    for address in brokers.split(","):
        host, _, port = address.strip().rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise SourceError(f"not HOST:PORT: {address}", hint="For example: localhost:9092")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout_s) as connection:
                connection.settimeout(timeout_s)
                return _ask(connection, topic)
        except (OSError, struct.error, ValueError) as error:
            reasons.append(f"{address.strip()}: {error or type(error).__name__}")
    raise SourceError(
        f"no Kafka broker answers at {brokers}", detail="; ".join(reasons), hint=_START_ONE
    )


_API_VERSIONS: Final = 18
_METADATA: Final = 3
# Brokers from 1.0 to 4.x speak it; it can ask without creating the topic.
_METADATA_VERSION: Final = 4
_UNKNOWN_TOPIC: Final = 3
_MOST_ANSWER: Final = 16 * 2**20


def _ask(connection: socket.socket, topic: str | None) -> int | None:
    if topic is None:
        _request(connection, _API_VERSIONS, 0, b"")
        return None
    name = topic.encode()
    body = struct.pack(f">ih{len(name)}s?", 1, len(name), name, False)
    answer = _Reader(_request(connection, _METADATA, _METADATA_VERSION, body))
    answer.number("i")  # throttling
    for _ in range(answer.number("i")):  # brokers: id, host, port, rack
        answer.number("i")
        answer.text()
        answer.number("i")
        answer.text()
    answer.text()  # cluster
    answer.number("i")  # controller
    answer.number("i")  # one topic
    problem = answer.number("h")
    answer.text()
    answer.number("b")  # internal
    partitions = answer.number("i")
    if problem == _UNKNOWN_TOPIC:
        raise SourceError(
            f"the Kafka topic {topic} does not exist",
            hint="Check its name, or create it before the stream starts.",
        )
    if problem:
        raise SourceError(
            f"the Kafka topic {topic} cannot be read",
            detail=f"The broker answers with Kafka's error code {problem}.",
            hint="Code 29 means that access is refused; others pass when the broker has settled.",
        )
    return partitions


def _request(connection: socket.socket, key: int, key_version: int, body: bytes) -> bytes:
    client = b"quadweir"
    head = struct.pack(f">hhih{len(client)}s", key, key_version, 1, len(client), client)
    connection.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    if not 6 <= size <= _MOST_ANSWER:
        raise ValueError("what listens there does not speak Kafka without encryption")
    answer = _receive(connection, size)
    if answer[:4] != struct.pack(">i", 1):
        raise ValueError("what listens there does not speak Kafka without encryption")
    return answer[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 65536))
        if not part:
            raise ValueError("what listens there hung up on a Kafka request")
        parts += part
    return bytes(parts)


class _Reader:
    """Reads numbers and texts off an answer, in order."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._at = 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f">{kind}", self._answer, self._at)
        self._at += struct.calcsize(kind)
        return int(value)

    def text(self) -> None:
        length = self.number("h")
        self._at += max(length, 0)  # -1 stands for none
