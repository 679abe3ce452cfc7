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
from typing import Final

from quadweir.errors import SourceError

CONNECTOR_NOTE: Final = "fetched.txt"
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
        self._at += max(self.number("h"), 0)  # -1 stands for none
