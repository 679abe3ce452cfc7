"""Kafka as a source of records and of RDF elements, through Spark's own connector.

The connector keeps the offsets in the query's checkpoint, so a restart continues where the last
finished batch ended: nothing is lost and nothing is read twice as long as the topic keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadweir.addresses import read_addresses, spell
from quadweir.errors import UsageError
from quadweir.kafkaclient import check_broker, is_missing, is_secured, missing_connector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

# Kafka clusters hold some 200,000 partitions; offsets keep 45 bits, enough for centuries.
_PARTITION_BITS: Final = 18


def read_kafka(
    spark: SparkSession,
    *,
    servers: str,
    topic: str,
    starting: str = "earliest",
    max_record_bytes: int = 4 * 2**20,
    options: Mapping[str, str] | None = None,
    bounded: bool = False,
    hosts: Iterable[str] | None = None,
) -> DataFrame:
    """Read a topic as a stream of records: `raw.RAW_SCHEMA` with event time and position.

    The event time is Kafka's timestamp, of creation or of appending as the topic is configured;
    the position comes from partition and offset, so that no two messages share one.

    Guarantee: every message exactly once in the query's input, across restarts from its
    checkpoint, as long as the topic still holds what was not read yet.

    Args:
        spark: the session; it must have been started with the connector's jars.
        servers: brokers as `HOST:PORT`, several with commas between.
        topic: its name.
        starting: `earliest`, `latest`, or Spark's JSON of offsets; only a new checkpoint asks.
        max_record_bytes: longer messages become dead letters.
        options: any option of Spark's connector, such as `maxOffsetsPerTrigger`,
            `kafka.security.protocol`, or `failOnDataLoss` (default true: a query ends when
            messages expired before it read them).
        bounded: read what the topic holds now, to its end, and not as a stream.
        hosts: if given, the hosts besides this one on which the cluster may have brokers.

    Raises:
        SourceError: no broker answers, the topic does not exist, or a broker is not allowed.
        EnvironmentProblem: the session lacks the connector, or the client library is missing.
    """
    given = dict(options or {})
    servers = spell(read_addresses(servers))
    # The question is asked in the clear; where encryption is wanted, Spark's clients find out.
    if not is_secured(given):
        check_broker(servers, topic=topic, hosts=hosts)
    wanted = {"subscribe": topic, "startingOffsets": starting, "kafka.bootstrap.servers": servers}
    return _raw(_load(spark, {**wanted, **given}, bounded), max_record_bytes)


def _load(spark: SparkSession, options: Mapping[str, str], bounded: bool) -> DataFrame:
    from pyspark.errors import AnalysisException, IllegalArgumentException

    reader: Any = spark.read if bounded else spark.readStream
    try:
        frame: DataFrame = reader.format("kafka").options(**options).load()
        return frame
    except AnalysisException as error:
        if not is_missing(error):
            raise
        raise missing_connector() from error
    except IllegalArgumentException as error:
        raise UsageError(
            "an option of the Kafka source is not valid", detail=str(error).splitlines()[0]
        ) from error


def _raw(messages: DataFrame, max_record_bytes: int) -> DataFrame:
    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.sources.lines import NOT_UTF8

    text = F.col("value").cast("string")
    too_long = F.octet_length("value") > max_record_bytes
    timestamp = F.coalesce(F.unix_millis("timestamp"), F.lit(0))
    reason = F.when(too_long, F.lit(f"the message is longer than {max_record_bytes} bytes")).when(
        ~F.is_valid_utf8(text), F.lit(NOT_UTF8)
    )
    return messages.select(
        F.coalesce("topic", F.lit("")).alias(rows.SOURCE),
        F.concat_ws(":", "partition", "offset").alias(rows.PLACE),
        timestamp.alias(rows.ARRIVAL),
        F.when(~too_long, F.make_valid_utf8(text)).alias(rows.VALUE),
        reason.alias(rows.REASON),
        timestamp.alias(rows.EVENT_TIME),
        (F.shiftleft("offset", _PARTITION_BITS) + F.col("partition")).alias(rows.POSITION),
    )
