"""What asks a broker must not be fooled by whatever else listens."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fakekafka import fake_broker
from quadweir.errors import EnvironmentProblem, SourceError
from quadweir.kafkaclient import check_broker, connector_jars, connector_note


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """A server that answers every first request with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection, suppress(ConnectionError):
                        connection.recv(4096)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [b"", b"\0\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack(">iiq", 12, 7, 0)],
    ids=["hangs up", "stops short", "http", "another request's answer"],
)
def test_what_is_no_broker_is_recognised(answer: bytes) -> None:
    with answering(answer) as address, pytest.raises(SourceError) as caught:
        check_broker(address, timeout_s=30)
    assert caught.value.message == f"no Kafka broker answers at {address}"
    assert "does not speak Kafka" in str(caught.value.detail)


def test_who_does_not_answer_at_all_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SourceError) as caught:
            check_broker(address, timeout_s=0.3)
    assert caught.value.detail == f"{address}: no answer within 0.3 s"


def test_the_partitions_of_a_topic_are_counted() -> None:
    with fake_broker(partitions=7) as address:
        assert check_broker(address, topic="t") == 7
        assert check_broker(address) is None


def test_the_next_broker_is_asked_if_the_first_does_not_answer() -> None:
    with answering(b"") as first, fake_broker(partitions=2) as second:
        assert check_broker(f"{first}, {second}", topic="t") == 2


@pytest.mark.parametrize(
    ("problem", "message", "detail"),
    [(3, "topic t does not exist", None), (29, "topic t cannot be read", "error code 29")],
)
def test_a_topic_that_is_missing_or_closed_to_us_is_an_error(
    problem: int, message: str, detail: str | None
) -> None:
    with (
        fake_broker(problem=problem, partitions=0) as address,
        pytest.raises(SourceError, match=message) as caught,
    ):
        check_broker(address, topic="t")
    assert detail is None or detail in str(caught.value.detail)


def test_brokers_that_an_answer_names_are_not_contacted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        with fake_broker(member=other.getsockname()) as address:
            assert check_broker(address, topic="t") == 1
            assert check_broker(address) is None
        with pytest.raises(BlockingIOError):
            other.accept()


@pytest.mark.parametrize("host", ["192.0.2.2", "broker.example.org", "localhost://192.0.2.2"])
def test_a_cluster_with_brokers_elsewhere_must_be_allowed(host: str) -> None:
    with fake_broker(member=(host, 9092)) as address:
        assert check_broker(address, topic="t") == 1
        with pytest.raises(SourceError, match=f"sends its clients to {host}:9092") as caught:
            check_broker(address, topic="t", hosts=("192.0.2.1",))
        assert f"--allow-net {host}" in str(caught.value.hint)
        assert check_broker(address, topic="t", hosts=("192.0.2.1", host)) == 1


def test_without_the_client_library_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "kafka.errors", None)
    with pytest.raises(EnvironmentProblem) as caught:
        check_broker("127.0.0.1:9092")
    assert "quadweir[kafka]" in str(caught.value.hint)


def test_without_a_fetched_connector_there_are_no_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert connector_jars() == []
    assert connector_note() is None
