"""TCP lines through a real socket."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from brokers import until
from quadweir.errors import SourceError, UsageError
from quadweir.sinks.memory import MemorySink
from quadweir.sinks.start import Call, start, wait
from quadweir.sources.tcp import LineCutter, read_tcp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(240)
        yield listening


def values(sink: MemorySink) -> list[str]:
    return [row.value for row in sorted(sink.rows(), key=number)]


def number(row: Row) -> int:
    return int(row.place)


def test_lines_become_records_and_a_restart_goes_on_after_the_last(
    spark: SparkSession, server: socket.socket, tmp_path: Path
) -> None:
    port = server.getsockname()[1]
    options = {"host": "127.0.0.1", "port": port, "spool": tmp_path / "spool"}
    sink = MemorySink()
    query = start(
        read_tcp(spark, max_record_bytes=20, **options), sink, checkpoint=tmp_path / "checkpoint"
    )
    try:
        with server.accept()[0] as connection:
            connection.sendall("ä\r\n\nb\n".encode() + b"x" * 21 + b"\n\xff\ncut of")
        # The source connects again by itself.
        connection = server.accept()[0]
        connection.sendall(b"c\n")
        until(lambda: len(sink.rows()) == 6, "six records", query=query)
        query.processAllAvailable()
    finally:
        query.stop()
    connection.close()
    found = sorted(sink.rows(), key=number)
    assert [(row.value, row.reason) for row in found] == [
        ("ä", None),
        ("b", None),
        (None, "the line is longer than 20 bytes"),
        ("�", "not UTF-8"),
        (None, "the connection ended within the line"),
        ("c", None),
    ]
    assert {row.source for row in found} == {f"tcp://127.0.0.1:{port}"}
    assert [row.place for row in found] == ["0", "1", "2", "3", "4", "5"]

    again = MemorySink()
    query = start(read_tcp(spark, **options), again, checkpoint=tmp_path / "checkpoint")
    try:
        with server.accept()[0] as connection:
            connection.sendall(b"d\n")
        until(lambda: len(again.rows()) == 1, "the one new record", query=query)
    finally:
        query.stop()
    assert [(row.place, row.value) for row in again.rows()] == [("6", "d")]

    shutil.rmtree(tmp_path / "spool")
    lost = start(read_tcp(spark, **options), MemorySink(), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(SourceError, match="is not the one that the checkpoint belongs to"):
        wait(lost)


def test_what_was_received_but_not_finished_is_replayed(
    spark: SparkSession, server: socket.socket, tmp_path: Path
) -> None:
    options = {
        "host": "127.0.0.1",
        "port": server.getsockname()[1],
        "spool": tmp_path / "spool",
        "max_records_per_trigger": 2,
    }
    checkpoint = tmp_path / "checkpoint"

    def fail(frame: DataFrame, _: int) -> None:
        if not frame.isEmpty():
            raise RuntimeError("the sink is broken")

    query = start(read_tcp(spark, **options), Call(fail), checkpoint=checkpoint)
    with server.accept()[0] as connection:
        connection.sendall(b"1\n2\n3\n4\n5\n")
        with pytest.raises(StreamingQueryException, match="the sink is broken"):
            query.awaitTermination(60)

    sink = MemorySink()
    query = start(read_tcp(spark, **options), sink, checkpoint=checkpoint)
    try:
        until(lambda: len(sink.rows()) >= 5, "the five records", query=query)
    finally:
        query.stop()
    assert values(sink) == ["1", "2", "3", "4", "5"]


def test_nobody_there_ends_the_query_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    frame = read_tcp(spark, host="127.0.0.1", port=port, spool=tmp_path / "spool")
    query = start(frame, MemorySink(), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(SourceError, match=f"nobody answers at 127.0.0.1:{port}") as caught:
        wait(query)
    assert (
        caught.value.hint == "Start the TCP server that sends the lines, or correct host and port."
    )


def test_a_port_that_cannot_be_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a TCP address"):
        read_tcp(spark, host="localhost", port=70_000, spool=tmp_path)


def test_lines_are_the_same_for_every_cut() -> None:
    data = b"a\r\nbb\n" + b"c" * 9 + b"\n\nd\ne"
    expected = [(0, b"a"), (0, b"bb"), (1, b"the line is longer than 5 bytes"), (0, b"d")]
    for size in range(1, len(data) + 1):
        cutter = LineCutter(max_bytes=5)
        found = [
            line for at in range(0, len(data), size) for line in cutter.feed(data[at : at + size])
        ]
        assert found == expected
        assert list(cutter.finish()) == [(1, b"the connection ended within the line")]
