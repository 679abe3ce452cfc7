"""The outputs of `quadweir replay`: standard output, TCP clients, a folder, Kafka."""

from __future__ import annotations

import selectors
import socket
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.addresses import read_addresses, spell
from quadweir.errors import SourceError, UsageError
from quadweir.private import make_folder, replaced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FILE_DIGITS: Final = 8


class ReplayOutput(ABC):
    """Takes units of text, each of one or more lines, as they become due.

    Attributes:
        tick_ms: the least time between two calls of `send`.
    """

    tick_ms = 50

    def open(self) -> None:  # noqa: B027 - most outputs need none
        """Get ready; the play starts when this returns."""

    @abstractmethod
    def send(self, units: list[str]) -> None:
        """Send units."""

    def close(self) -> None:  # noqa: B027 - most outputs need none
        """Finish."""


def output_for(target: str, suffix: str) -> ReplayOutput:
    """The output for `--to`: `-`, `tcp:HOST:PORT`, `kafka:BROKERS/TOPIC`, or a folder.

    Args:
        target: the value of the option.
        suffix: the extension of files in a folder.

    >>> type(output_for("tcp:127.0.0.1:9999", "")).__name__
    'TcpOutput'

    Raises:
        UsageError: the target is none of these.
    """
    if target == "-":
        return StandardOutput()
    kind, _, rest = target.partition(":")
    if kind == "tcp":
        host, _, port = rest.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"not a TCP address: {rest}", hint="Write tcp:127.0.0.1:9999.")
        return TcpOutput(host or "127.0.0.1", int(port))
    if kind == "kafka":
        servers, _, topic = rest.rpartition("/")
        if not servers or not topic:
            raise UsageError(f"not a Kafka topic: {rest}", hint="Write kafka:localhost:9092/topic.")
        return KafkaOutput(servers, topic)
    return FolderOutput(Path(target), suffix)


class StandardOutput(ReplayOutput):
    """Lines on standard output."""

    def send(self, units: list[str]) -> None:
        sys.stdout.write("\n".join(units) + "\n")
        sys.stdout.flush()


class TcpOutput(ReplayOutput):
    """Lines to all connected clients; the play starts with the first client, and waits while there
    is none.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._server: socket.socket | None = None
        self._clients: list[socket.socket] = []

    @property
    def port(self) -> int:
        """The port it listens on; for port 0, the one that the system chose."""
        assert self._server is not None
        return int(self._server.getsockname()[1])

    def listen(self) -> None:
        """Open the port."""
        try:
            self._server = socket.create_server(self._address)
        except OSError as error:
            host, port = self._address
            raise SourceError(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                hint="Choose another port.",
            ) from error

    def open(self) -> None:
        if self._server is None:
            self.listen()
        print(f"quadweir: waiting for a client on port {self.port}", file=sys.stderr)
        self._accept(wait=True)

    def send(self, units: list[str]) -> None:
        data = ("\n".join(units) + "\n").encode()
        self._accept(wait=False)
        # No client: the schedule continues, and due units wait for the next client.
        while not self._deliver(data):
            self._accept(wait=True)

    def _deliver(self, data: bytes) -> bool:
        for client in list(self._clients):
            try:
                client.sendall(data)
            except OSError:
                self._clients.remove(client)
                client.close()
        return bool(self._clients)

    def _accept(self, *, wait: bool) -> None:
        assert self._server is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._server, selectors.EVENT_READ)
            timeout = None if wait else 0
            while selector.select(timeout):
                self._clients.append(self._server.accept()[0])
                timeout = 0

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self._server is not None:
            self._server.close()


class FolderOutput(ReplayOutput):
    """A file for each tick, renamed into place when it is complete, for readers that watch the
    folder.
    """

    tick_ms = 1000

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder = folder
        self._suffix = suffix
        self._number = 0

    def open(self) -> None:
        try:
            make_folder(self._folder)
        except OSError as error:
            raise SourceError(
                f"cannot write to {self._folder}: {error.strerror or error}"
            ) from error
        taken = [path.name.split(".")[0] for path in self._folder.glob(f"*{self._suffix}")]
        self._number = 1 + max((int(name) for name in taken if name.isdecimal()), default=0)

    def send(self, units: list[str]) -> None:
        name = f"{self._number:0{_FILE_DIGITS}}{self._suffix}"
        try:
            with replaced(self._folder / name) as hidden:
                hidden.write_text("\n".join(units) + "\n", encoding="utf-8", newline="")
        except OSError as error:
            raise SourceError(
                f"cannot write to {self._folder}: {error.strerror or error}"
            ) from error
        self._number += 1


class KafkaOutput(ReplayOutput):
    """A message for each unit, through Spark's Kafka connector."""

    tick_ms = 1000

    def __init__(self, servers: str, topic: str) -> None:
        self._servers = spell(read_addresses(servers))
        self._topic = topic
        self._spark: SparkSession | None = None
        self._found_running = False

    def open(self) -> None:
        from pyspark.sql import SparkSession

        from quadweir.kafkaclient import check_broker, connector_jars, missing_connector
        from quadweir.runtime.spark.session import build

        check_broker(self._servers)
        if not connector_jars():
            raise missing_connector()
        self._found_running = SparkSession.getActiveSession() is not None
        self._spark = build(app_name="quadweir replay")

    def send(self, units: list[str]) -> None:
        assert self._spark is not None
        frame = self._spark.createDataFrame([(unit,) for unit in units], "value string")
        options = {"kafka.bootstrap.servers": self._servers, "topic": self._topic}
        # One partition keeps the order of the recording.
        frame.coalesce(1).write.format("kafka").options(**options).save()

    def close(self) -> None:
        # A session that existed before is not ours to stop.
        if self._spark is not None and not self._found_running:
            self._spark.stop()
