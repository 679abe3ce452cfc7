"""What asks a broker must not be fooled by whatever else listens."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quadweir.errors import SourceError
from quadweir.sources.kafka import check_broker, connector_jars, connector_note


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that answers one request with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def metadata(problem: int, partitions: int) -> bytes:
    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    broker = struct.pack(">i", 1) + text("localhost") + struct.pack(">ih", 9092, -1)
    body = struct.pack(">iii", 1, 0, 1) + broker + text("cluster") + struct.pack(">ii", 1, 1)
    body += struct.pack(">h", problem) + text("t") + struct.pack(">bi", 0, partitions)
    return struct.pack(">i", len(body)) + body


@pytest.mark.parametrize(
    "answer",
    [b"", b"\0\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack(">iiq", 12, 7, 0)],
    ids=["hangs up", "stops short", "http", "another request's answer"],
)
def test_what_is_no_broker_is_told_from_one(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(SourceError, match="no Kafka broker answers"):
        check_broker(address)


def test_the_partitions_of_a_topic_are_counted() -> None:
    with answering(metadata(0, 7)) as address:
        assert check_broker(address, topic="t") == 7


def test_a_topic_that_is_missing_or_closed_to_us_is_an_error() -> None:
    with answering(metadata(3, 0)) as address, pytest.raises(SourceError, match="does not exist"):
        check_broker(address, topic="t")
    with answering(metadata(29, 0)) as address, pytest.raises(SourceError) as caught:
        check_broker(address, topic="t")
    assert "29" in str(caught.value.detail)


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":9092", "localhost:99999"])
def test_an_address_needs_host_and_port(address: str) -> None:
    with pytest.raises(SourceError, match="not HOST:PORT"):
        check_broker(address)


def test_without_a_fetched_connector_there_are_no_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert connector_jars() == []
    assert connector_note() is None
