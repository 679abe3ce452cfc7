"""Live sources of declarations, as streams of statements or of records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.errors import DeclarationError
from quadweir.sources.declare import (
    RECORDS_PER_BATCH,
    KafkaSource,
    MqttSource,
    StreamDeclaration,
    TcpSource,
)
from quadweir.sources.kafka import read_kafka
from quadweir.sources.mqtt import read_mqtt
from quadweir.sources.records import parse_records
from quadweir.sources.tcp import read_tcp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def open_live(spark: SparkSession, declaration: StreamDeclaration, *, spool: Path) -> DataFrame:
    """Return the rows of a live stream.

    Args:
        spark: the session.
        declaration: a stream whose source is Kafka, TCP or MQTT.
        spool: a folder for this query and stream alone; keep it with the checkpoint. Kafka does not
            need it.

    Returns:
        For RDF, rows that are statements or dead letters (`rowfilters.good_statements`,
        `rowfilters.dead_letters`); for other records, rows of `raw.RAW_SCHEMA`, where a row with a
        reason is a dead letter.

    Raises:
        DeclarationError: the stream is not live.
        SourceError: the source cannot be reached.
    """
    raw = _open_raw(spark, declaration, spool)
    return parse_records(raw, declaration) if declaration.format.is_rdf else raw


def _open_raw(spark: SparkSession, declaration: StreamDeclaration, spool: Path) -> DataFrame:
    most = declaration.max_per_batch or RECORDS_PER_BATCH
    match declaration.source:
        case KafkaSource() as kafka:
            return read_kafka(
                spark,
                servers=kafka.servers,
                topic=kafka.topic,
                starting=kafka.starting,
                options={"maxOffsetsPerTrigger": str(most), **kafka.options},
            )
        case TcpSource() as tcp:
            return read_tcp(
                spark, host=tcp.host, port=tcp.port, spool=spool, max_records_per_trigger=most
            )
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
                max_records_per_trigger=most,
            )
        case _:
            raise DeclarationError(
                f"<{declaration.iri}> has a source of kind {declaration.kind}, which is not live",
                span=declaration.span,
            )
