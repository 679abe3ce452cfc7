"""Who may call this process: Spark's Java, and nobody else on the machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

from quadweir.runtime.spark.callbacks import guard_callbacks

WAIT_SECONDS = 30


class Called:
    """Something that Java could call."""

    def __init__(self) -> None:
        self.times = 0

    def call(self) -> int:
        self.times += 1
        return self.times

    class Java:
        implements = ("java.util.concurrent.Callable",)


@pytest.fixture
def gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway


@contextmanager
def connected(gateway: Any) -> Iterator[socket.socket]:
    port = gateway._callback_server.port
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
        yield connection


def answer(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""


@pytest.mark.parametrize("first", ["", "A\nwrong\ne\n", "A\n\ne\n"])
def test_whoever_does_not_say_the_token_cannot_call(gateway: Any, first: str) -> None:
    called = Called()
    name = gateway.gateway_property.pool.put(called)
    with connected(gateway) as connection:
        connection.sendall(f"{first}c\n{name}\ncall\ne\n".encode())
        assert b"!y" not in answer(connection)
    assert called.times == 0


def test_whoever_says_it_can(gateway: Any) -> None:
    called = Called()
    name = gateway.gateway_property.pool.put(called)
    with connected(gateway) as connection:
        connection.sendall(f"A\n{gateway.callback_server_parameters.auth_token}\ne\n".encode())
        assert answer(connection).startswith(b"!y")
        connection.sendall(f"c\n{name}\ncall\ne\n".encode())
        assert answer(connection).startswith(b"!y")
    assert called.times == 1


def test_threads_of_java_still_call(gateway: Any) -> None:
    called = Called()
    threads = gateway.jvm.java.util.concurrent.Executors.newSingleThreadExecutor()
    try:
        given = threads.submit(called)
        assert given.get(WAIT_SECONDS, gateway.jvm.java.util.concurrent.TimeUnit.SECONDS) == 1
    finally:
        threads.shutdown()
    assert called.times == 1


def test_a_session_that_is_guarded_keeps_its_token(spark: SparkSession, gateway: Any) -> None:
    token = gateway.callback_server_parameters.auth_token
    guard_callbacks(spark)
    assert gateway.callback_server_parameters.auth_token == token


def test_java_asks_executors_for_a_secret(spark: SparkSession) -> None:
    assert spark.conf.get("spark.authenticate") == "true"
    # Files of the session come through the port that asks.
    assert spark.range(10).repartition(3).count() == 10
