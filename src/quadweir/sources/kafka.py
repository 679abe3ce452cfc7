"""Kafka as a source of records and of RDF elements, through Spark's own connector.

The connector keeps the offsets in the query's checkpoint, so a restart goes on where the last
finished batch ended: nothing is lost and nothing is read twice as long as the topic keeps it.
"""

from __future__ import annotations

import os
import socket
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.addresses import Address, is_allowed, read_addresses, read_host, spell
from quadweir.errors import EnvironmentProblem, SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

CONNECTOR_NOTE: Final = "fetched.txt"
# Kafka clusters hold some 200,000 partitions; offsets keep 45 bits, enough for centuries.
_PARTITION_BITS: Final = 18
_CLIENT: Final = "quadweir"
_MOST_ANSWER: Final = 16 * 2**20
_NOT_KAFKA: Final = "what listens there does not speak Kafka without encryption"
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
    hosts: Iterable[str] | None = None,
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
        hosts: if given, the hosts besides this one on which the cluster may have brokers.

    Raises:
        SourceError: no broker answers, the topic does not exist, or a broker is not allowed.
        EnvironmentProblem: the session lacks the connector, or the client library is missing.
    """
    given = dict(options or {})
    servers = spell(read_addresses(servers))
    # The question is asked in the clear; where encryption is wanted, Spark's clients find out.
    if not is_secured(given):
        check_broker(servers, topic=topic, hosts=hosts)
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
    from quadweir.sources.lines import NOT_UTF8

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


def is_secured(options: Mapping[str, str]) -> bool:
    """Tell whether brokers are asked in another way than in the clear."""
    return any(name.startswith(("kafka.security.", "kafka.sasl.")) for name in options)


def check_broker(
    brokers: str,
    *,
    topic: str | None = None,
    timeout_s: float = 5.0,
    hosts: Iterable[str] | None = None,
) -> int | None:
    """Ask the first broker that answers; Spark's own clients keep trying for a minute or more.

    Only the brokers in `brokers` are contacted, not those that their answers name.

    Args:
        brokers: `HOST:PORT`, several with commas between.
        topic: a topic that must exist.
        timeout_s: how long to wait for each broker.
        hosts: if given, every broker of the cluster must be this machine or one of these hosts:
            Spark's clients connect to each of them later.

    Returns:
        How many partitions the topic has; None without a topic.

    Raises:
        SourceError: no broker answers, the topic does not exist, or the cluster has a broker that
            is not allowed.
        UsageError: `brokers` is not a list of addresses.
        EnvironmentProblem: the client library is not installed.
    """
    addresses = read_addresses(brokers)
    reasons = []
    for address in addresses:
        try:
            found = _ask(address, topic, timeout_s)
        except OSError as error:
            reasons.append(f"{address}: {error}")
            continue
        _check_members(found, address, hosts)
        return None if topic is None else _partitions(found, topic)
    raise SourceError(
        f"no Kafka broker answers at {brokers}", detail="; ".join(reasons), hint=_START_ONE
    )


def _ask(address: Address, topic: str | None, timeout_s: float) -> Any:
    """Ask one broker for its cluster and the topic; an `OSError` says why it gives no answer.

    The public clients of the library go on to the brokers that the first answer names, and so could
    be sent anywhere. Its connection, one layer below, talks to whom it is given.
    """
    try:
        from kafka.errors import KafkaError, KafkaTimeoutError, RequestTimedOutError
        from kafka.net.connection import KafkaConnection
        from kafka.net.selector import NetworkSelector
        from kafka.net.transport import KafkaTCPTransport
        from kafka.protocol.metadata import MetadataRequest
    except ImportError as error:
        raise EnvironmentProblem(
            "Kafka needs the package kafka-python", hint="pip install 'quadweir[kafka]'"
        ) from error

    wanted = MetadataRequest.NO_TOPICS
    if topic is not None:
        wanted = [MetadataRequest.MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    loop = NetworkSelector(client_id=_CLIENT)
    connection = KafkaConnection(
        loop,
        client_id=_CLIENT,
        request_timeout_ms=round(timeout_s * 1000),
        receive_message_max_bytes=_MOST_ANSWER,
    )

    async def ask() -> Any:
        connection.connection_made(KafkaTCPTransport(loop, wire, host=address.host))
        await connection.initialize()
        await connection
        return await connection.send_request(request)

    with closing(loop), socket.create_connection((address.host, address.port), timeout_s) as wire:
        wire.setblocking(False)
        try:
            return loop.run(ask)
        except (KafkaTimeoutError, RequestTimedOutError):
            raise TimeoutError(f"no answer within {timeout_s:g} s") from None
        except KafkaError as error:
            raise ConnectionError(_NOT_KAFKA) from error
        finally:
            connection.close()


def _check_members(found: Any, address: Address, hosts: Iterable[str] | None) -> None:
    if hosts is None:
        return
    allowed = tuple(hosts)
    for member in found.brokers:
        try:
            host = read_host(member.host)
        except UsageError:
            host = member.host
        if not is_allowed(Address(host, member.port), allowed):
            raise SourceError(
                f"the Kafka broker at {address} sends its clients to {host}:{member.port}, "
                "which is not this machine",
                hint=f"Allow it: --allow-net {host}, or hosts=({host!r},) in Python.",
            )


def _partitions(found: Any, topic: str) -> int:
    from kafka import errors

    (described,) = found.topics
    problem = errors.for_code(described.error_code)
    if problem is errors.NoError:
        return len(described.partitions)
    if problem is errors.UnknownTopicOrPartitionError:
        raise SourceError(
            f"the Kafka topic {topic} does not exist",
            hint="Check its name, or create it before the stream starts.",
        )
    raise SourceError(
        f"the Kafka topic {topic} cannot be read",
        detail=f"The broker answers with Kafka's error code {described.error_code}: "
        f"{problem.description}",
        hint="Code 29 means that access is refused; others pass when the broker has settled.",
    )
