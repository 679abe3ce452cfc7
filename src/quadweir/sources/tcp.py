"""Lines from a TCP server as records.

Spark's own socket source forgets what it received when the driver ends. This source writes every
line to a spool before Spark gets it, so a restart replays what was not finished. Lines that the
sender sent while nobody was connected are lost unless the sender keeps them: TCP cannot ask for
them again.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError, UsageError
from quadweir.sources.raw import RAW_SCHEMA
from quadweir.sources.spool import FAULT, TEXT, Received, Spool
from quadweir.sources.spooled import (
    MAX_RECORD_BYTES,
    Backoff,
    Receiver,
    SpooledReader,
    SpooledSource,
    now_ms,
    whole,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT: Final = "quadweir_tcp"
_BLOCK_BYTES: Final = 256 * 2**10
_UNFINISHED: Final = "the connection ended within the line"


@final
class LineCutter:
    r"""Cuts received bytes into lines, in bounded memory.

    >>> cutter = LineCutter(max_bytes=4)
    >>> list(cutter.feed(b"ab\r\ntoo lo")), list(cutter.feed(b"ng\nc")), list(cutter.finish())
    ([(0, b'ab'), (1, b'the line is longer than 4 bytes')], [], [(1, b'the connection ended within the line')])
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the lines that `data` completes: `TEXT` and the line, or `FAULT` and the reason.

        A line that is too long is reported at once, because it may never end.
        """
        *whole_lines, rest = data.split(b"\n")
        for line in whole_lines:
            yield from self._line(line)
        if not self._skipping:
            self._rest += rest
        # One more byte may be a carriage return whose line feed has not arrived yet.
        if len(self._rest) > self._max_bytes + 1:
            self._rest.clear()
            self._skipping = True
            yield self._too_long()

    def _line(self, line: bytes) -> Iterator[tuple[int, bytes]]:
        skipped, self._skipping = self._skipping, False
        if skipped:
            return
        if self._rest:
            line = bytes(self._rest) + line
            self._rest.clear()
        line = line.removesuffix(b"\r")
        if len(line) > self._max_bytes:
            yield self._too_long()
        elif line:
            yield TEXT, line

    def _too_long(self) -> tuple[int, bytes]:
        return FAULT, f"the line is longer than {self._max_bytes} bytes".encode()

    def finish(self) -> Iterator[tuple[int, bytes]]:
        """Yield what is left when the connection ends.

        A line without its line feed may be incomplete and still look right (`12` of `125`). So it
        is not a record.
        """
        if self._rest:
            yield FAULT, _UNFINISHED.encode()
        self._rest.clear()
        self._skipping = False


@final
class TcpReceiver(Receiver):
    """Connects, receives lines, connects again."""

    def __init__(
        self,
        spool: Spool,
        host: str,
        port: int,
        *,
        max_record_bytes: int = MAX_RECORD_BYTES,
        connect_timeout_s: float = 10.0,
    ) -> None:
        super().__init__(spool)
        self._address = (host, port)
        self._max_record_bytes = max_record_bytes
        self._connect_timeout_s = connect_timeout_s

    def receive(self) -> None:
        backoff = Backoff()
        was_connected = False
        while not self.stopping.is_set():
            try:
                connection = socket.create_connection(self._address, self._connect_timeout_s)
            except OSError as error:
                if not was_connected:
                    host, port = self._address
                    raise SourceError(
                        f"nobody answers at {host}:{port}",
                        detail=str(error),
                        hint="Start the TCP server that sends the lines, or correct host and port.",
                    ) from error
            else:
                was_connected = True
                if self._receive_from(connection):
                    backoff.reset()
            self.stopping.wait(backoff.next_s())

    def _receive_from(self, connection: socket.socket) -> bool:
        """Receive until the connection ends; return whether anything arrived."""
        cutter = LineCutter(self._max_record_bytes)
        came = False
        with connection:
            # A short timeout, so that `stop` is noticed while the sender is silent.
            connection.settimeout(0.2)
            while not self.stopping.is_set():
                # A full spool stops the reading, and TCP then makes the sender wait.
                if not self.spool.wait_for_room(0.2):
                    continue
                try:
                    data = connection.recv(_BLOCK_BYTES)
                except TimeoutError:
                    continue
                except OSError:
                    break
                if not data:
                    break
                came = True
                self._keep(cutter.feed(data))
        self._keep(cutter.finish())
        return came

    def _keep(self, lines: Iterator[tuple[int, bytes]]) -> None:
        arrival = now_ms()
        for kind, payload in lines:
            self.spool.append(Received("", arrival, payload, kind))


@final
class _TcpReader(SpooledReader):
    def make_receiver(self, spool: Spool, options: Mapping[str, str]) -> Receiver:
        return TcpReceiver(
            spool,
            options["host"],
            whole(options, "port", 0),
            max_record_bytes=whole(options, "max_record_bytes", MAX_RECORD_BYTES),
        )


@final
class TcpDataSource(SpooledSource):
    """Lines from a TCP server as a Spark data source: `spark.readStream.format("quadweir_tcp")`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> _TcpReader:  # noqa: ARG002, N802 - Spark's names
        return _TcpReader(f"tcp://{self.options['host']}:{self.options['port']}", self.options)


def read_tcp(
    spark: SparkSession,
    *,
    host: str,
    port: int,
    spool: Path,
    max_record_bytes: int = MAX_RECORD_BYTES,
    **options: str | int,
) -> DataFrame:
    """Return the lines of a TCP server as a stream of records (`raw.RAW_SCHEMA`).

    Guarantee: at least once for every line that reached the spool, and exactly once with a sink
    that is exactly once. Lines that were sent without a connection, or that were in the operating
    system's buffers when the machine failed, are lost.

    Args:
        spark: the session.
        host: where the server listens.
        port: the port it listens on.
        spool: a folder for this query alone, on a disk of the driver; keep it with the checkpoint.
        max_record_bytes: longer lines become dead letters.
        options: `max_records_per_trigger`, `max_bytes_per_trigger`, `max_spool_bytes`,
            `fail_on_data_loss`.

    Raises:
        UsageError: the port or an option is not valid.
    """
    if not host or not 0 < port < 65536:
        raise UsageError(f"not a TCP address: {host}:{port}", hint="For example: localhost, 9999")
    spark.dataSource.register(TcpDataSource)
    given = {"host": host, "port": port, "spool": spool.absolute(), **options}
    reader = spark.readStream.format(FORMAT).schema(RAW_SCHEMA)
    reader = reader.option("max_record_bytes", max_record_bytes)
    for name, value in given.items():
        reader = reader.option(name, str(value))
    return reader.load()
