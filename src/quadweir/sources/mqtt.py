"""MQTT messages as records.

With a persistent session (one client name, no clean start), the broker keeps messages of QoS 1 and
2 while the query is down. A message is acknowledged only when the spool has it on disk. So
acknowledged messages can be replayed, and the broker sends the others again.
"""

from __future__ import annotations

import os
import ssl
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.errors import EnvironmentProblem, SourceError, UsageError
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

FORMAT: Final = "quadweir_mqtt"
SESSION_SECONDS: Final = 7 * 24 * 3600
# How many messages the broker may send ahead of our acknowledgements.
_IN_FLIGHT: Final = 2_000
# QoS 0 has no flow control: while the spool is full, this many messages wait; more are dropped.
_WAITING: Final = 10_000


@final
class MqttReceiver(Receiver):
    """Connects, subscribes, stores messages in the spool, acknowledges them."""

    def __init__(
        self,
        spool: Spool,
        host: str,
        port: int,
        topic: str,
        *,
        qos: int = 1,
        client_id: str | None = None,
        username: str | None = None,
        password: str | None = None,
        tls: bool = False,
        max_record_bytes: int = MAX_RECORD_BYTES,
        connect_timeout_s: float = 10.0,
    ) -> None:
        super().__init__(spool)
        self._host, self._port, self._topic, self._qos = host, port, topic, qos
        self._max_record_bytes = max_record_bytes
        self._connect_timeout_s = connect_timeout_s
        self._waiting: deque[tuple[Received, int, int]] = deque()
        self._dropped = 0
        self._refused: str | None = None
        self._subscribed = False
        self._client = self._make_client(
            client_id or f"quadweir-{spool.identity}", username, password, tls
        )

    def _make_client(self, name: str, username: str | None, password: str | None, tls: bool) -> Any:
        mqtt = _paho()
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            client_id=name,
            protocol=mqtt.MQTTv5,
            manual_ack=True,
        )
        if username is not None:
            client.username_pw_set(username, password)
        if tls:
            client.tls_set_context(ssl.create_default_context())
        client.connect_timeout = self._connect_timeout_s
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def receive(self) -> None:
        backoff = Backoff()
        ok = _paho().MQTT_ERR_SUCCESS
        patience = time.monotonic() + 3 * self._connect_timeout_s
        while not self.stopping.is_set():
            try:
                self._connect()
                while not self.stopping.is_set() and self._client.loop(timeout=0.1) == ok:
                    self._keep()
                    if self._refused is not None:
                        raise SourceError(
                            f"the MQTT broker at {self._host}:{self._port} refuses us",
                            detail=self._refused,
                            hint="Check user name, password, and the right to read the topic.",
                        )
                    if self._subscribed:
                        backoff.reset()
                    elif time.monotonic() > patience:
                        break
            except OSError as error:
                if not self._subscribed:
                    raise SourceError(
                        f"no MQTT broker answers at {self._host}:{self._port}",
                        detail=str(error),
                        hint="Start the broker, or correct host and port.",
                    ) from error
            if not self._subscribed and time.monotonic() > patience:
                raise SourceError(
                    f"what listens at {self._host}:{self._port} does not answer as an MQTT broker",
                    hint="Correct host and port; for an encrypted port, set tls.",
                )
            # The broker sends messages again that were not acknowledged on the old connection.
            self._waiting = deque(one for one in self._waiting if one[2] == 0)
            self.stopping.wait(backoff.next_s())
        self._client.disconnect()

    def _connect(self) -> None:
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_SECONDS
        properties.ReceiveMaximum = _IN_FLIGHT
        self._client.connect(
            self._host, self._port, keepalive=30, clean_start=False, properties=properties
        )

    def _on_connect(
        self, client: Any, _data: object, _flags: object, reason: Any, _properties: object
    ) -> None:
        if reason.is_failure:
            self._refused = str(reason)
        else:
            client.subscribe(self._topic, qos=self._qos)

    def _on_subscribe(
        self, _client: object, _data: object, _mid: int, reasons: Any, _properties: object
    ) -> None:
        bad = [str(reason) for reason in reasons if reason.is_failure]
        if bad:
            self._refused = f"{self._topic}: {bad[0]}"
        else:
            self._subscribed = True

    def _on_message(self, _client: object, _data: object, message: Any) -> None:
        if message.qos == 0 and len(self._waiting) >= _WAITING:
            self._dropped += 1
            return
        kind, payload = TEXT, message.payload
        if len(payload) > self._max_record_bytes:
            kind = FAULT
            payload = f"the message is longer than {self._max_record_bytes} bytes".encode()
        received = Received("/" + message.topic, now_ms(), payload, kind)
        self._waiting.append((received, message.mid, message.qos))

    def _keep(self) -> None:
        if not self._waiting or self.spool.is_full:
            return
        done: list[tuple[int, int]] = []
        while self._waiting:
            received, mid, qos = self._waiting.popleft()
            self.spool.append(received)
            if qos:
                done.append((mid, qos))
        if self._dropped:
            text = f"{self._dropped} messages of QoS 0 came while the spool was full"
            self.spool.append(Received("/" + self._topic, now_ms(), text.encode(), FAULT))
            self._dropped = 0
        self.spool.sync()
        for mid, qos in done:
            self._client.ack(mid, qos)


def _paho() -> Any:
    try:
        from paho.mqtt import client
    except ImportError as error:
        raise EnvironmentProblem(
            "MQTT needs the package paho-mqtt", hint="pip install 'quadweir[mqtt]'"
        ) from error
    return client


@final
class _MqttReader(SpooledReader):
    def make_receiver(self, spool: Spool, options: Mapping[str, str]) -> Receiver:
        variable = options.get("password_env")
        if variable is not None and variable not in os.environ:
            raise SourceError(
                f"the environment variable {variable} is not set",
                hint="It must hold the password for the MQTT broker.",
            )
        return MqttReceiver(
            spool,
            options["host"],
            whole(options, "port", 1883),
            options["topic"],
            qos=int(options.get("qos", "1")),
            client_id=options.get("client_id"),
            username=options.get("username"),
            password=os.environ[variable] if variable is not None else None,
            tls=options.get("tls", "false").lower() == "true",
            max_record_bytes=whole(options, "max_record_bytes", MAX_RECORD_BYTES),
        )


@final
class MqttDataSource(SpooledSource):
    """MQTT messages as a Spark data source: `spark.readStream.format("quadweir_mqtt")`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> _MqttReader:  # noqa: ARG002, N802 - Spark's names
        return _MqttReader(
            f"mqtt://{self.options['host']}:{self.options.get('port', '1883')}", self.options
        )


def read_mqtt(
    spark: SparkSession,
    *,
    host: str,
    topic: str,
    spool: Path,
    port: int = 1883,
    qos: int = 1,
    client_id: str | None = None,
    username: str | None = None,
    password_env: str | None = None,
    tls: bool = False,
    **options: str | int,
) -> DataFrame:
    """Return the messages of a topic, or of a topic filter, as records (`raw.RAW_SCHEMA`).

    Guarantee: at least once for messages published with QoS 1 or 2 after the first start, while the
    broker keeps the session. We ask it for a week; brokers may keep it for less. At most once for
    QoS 0; messages of QoS 0 that are sent while the query is down are lost.

    Args:
        spark: the session.
        host: where the broker listens.
        topic: a topic, or a filter with `+` and `#`.
        spool: a folder for this query alone, on a disk of the driver; keep it with the checkpoint.
        port: the port it listens on.
        qos: the highest quality of service to ask for.
        client_id: the name of the session at the broker; default: one made for the spool.
        username: the user name at the broker.
        password_env: the name of the environment variable with the password; the password itself
            would appear in Spark's plans and logs.
        tls: whether to encrypt, and check the broker's certificate.
        options: `max_record_bytes`, `max_records_per_trigger`, `max_bytes_per_trigger`,
            `max_spool_bytes`, `fail_on_data_loss`.

    Raises:
        UsageError: an argument is not valid.
        EnvironmentProblem: paho-mqtt is not installed.
    """
    if not host or not 0 < port < 65536:
        raise UsageError(f"not an MQTT address: {host}:{port}", hint="For example: localhost, 1883")
    if not topic or qos not in (0, 1):
        # With QoS 2, the client must store a message before it passes it on. paho-mqtt stores it in
        # memory only, so a crash in between would lose it.
        raise UsageError(
            "MQTT needs a topic, and a quality of service of 0 or 1",
            hint="What was published with QoS 2 reaches a subscriber of QoS 1 at least once.",
        )
    _paho()
    spark.dataSource.register(MqttDataSource)
    given: dict[str, object] = {
        "host": host,
        "port": port,
        "topic": topic,
        "spool": spool.absolute(),
        "qos": qos,
        "client_id": client_id,
        "username": username,
        "password_env": password_env,
        "tls": str(tls).lower(),
        **options,
    }
    reader = spark.readStream.format(FORMAT).schema(RAW_SCHEMA)
    for name, value in given.items():
        if value is not None:
            reader = reader.option(name, str(value))
    return reader.load()
