"""What sources and sinks need to know about Kafka: its connector for Spark, and its brokers."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.addresses import Address, is_allowed, read_addresses, read_host
from quadweir.errors import EnvironmentProblem, SourceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


CONNECTOR_NOTE: Final = "fetched.txt"
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


def is_missing(error: Exception) -> bool:
    """Tell whether Spark says that it has no data source of that name."""
    return "failed to find data source" in str(error).lower()


class ElsewhereError(SourceError):
    """A cluster sends its clients to a broker that is not allowed."""


def missing_connector() -> EnvironmentProblem:
    """The error for a session without the connector."""
    return EnvironmentProblem(
        "this Spark session has no Kafka connector",
        hint="Fetch it once with `make kafka`, or hand the jars of spark-sql-kafka-0-10 to your "
        "own session (spark.jars).",
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
            raise ElsewhereError(
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
