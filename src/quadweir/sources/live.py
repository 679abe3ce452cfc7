"""The live source that a declaration names, as a stream of raw records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.errors import DeclarationError
from quadweir.sources.declare import KafkaSource, MqttSource, StreamDeclaration, TcpSource
from quadweir.sources.kafka import read_kafka
from quadweir.sources.mqtt import read_mqtt
from quadweir.sources.tcp import read_tcp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_live(spark: SparkSession, declaration: StreamDeclaration, *, spool: Path) -> DataFrame:
    """Read the records of a live stream (`raw.RAW_SCHEMA`, and more columns where known).

    Take `raw.usable` of it for what follows and `raw.unusable` for the dead letters.

    Args:
        spark: the session.
        declaration: the stream.
        spool: a folder for this query and stream alone; keep it with the checkpoint. Kafka needs
            none.

    Raises:
        DeclarationError: the stream is not live.
        SourceError: the source cannot be reached.
    """
    match declaration.source:
        case KafkaSource() as kafka:
            return read_kafka(
                spark,
                servers=kafka.servers,
                topic=kafka.topic,
                starting=kafka.starting,
                options=kafka.options,
            )
        case TcpSource() as tcp:
            return read_tcp(spark, host=tcp.host, port=tcp.port, spool=spool)
        case MqttSource() as mqtt:
            return read_mqtt(
                spark,
                host=mqtt.host,
                port=mqtt.port or (8883 if mqtt.tls else 1883),
                topic=mqtt.topic,
                qos=mqtt.qos,
                client_id=mqtt.client_id,
                username=mqtt.username,
                password_env=mqtt.password_env,
                tls=mqtt.tls,
                spool=spool,
            )
        case _:
            raise DeclarationError(
                f"<{declaration.iri}> has a source of kind {declaration.kind}, which is not live",
                span=declaration.span,
            )
