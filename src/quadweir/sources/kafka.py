"""Kafka as a source of records and of RDF elements, through Spark's own connector.

The connector keeps the offsets in the query's checkpoint, so a restart continues where the last
finished batch ended. Nothing is lost or read twice while the topic keeps its messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quadweir.addresses import read_addresses, spell
from quadweir.errors import UsageError
from quadweir.kafkaclient import check_broker, is_missing, is_secured, missing_connector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

# Kafka clusters have up to some 200,000 partitions; 45 bits remain for offsets: enough for
# centuries.
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
    """Return the records of a topic: `raw.RAW_SCHEMA` with event time and position.

    The event time is Kafka's timestamp: that of creation or of appending, as the topic is
    configured. The position is made of partition and offset, so each message has its own.

    Guarantee: every message exactly once in the query's input, across restarts from its
    checkpoint, if the topic still has all messages that were not read yet.

    Args:
        spark: the session; it must have been started with the connector's jars.
        servers: brokers as `HOST:PORT`, separated by commas.
        topic: the name of the topic.
        starting: `earliest`, `latest`, or Spark's JSON of offsets; used only for a new checkpoint.
        max_record_bytes: longer messages become dead letters.
        options: any option of Spark's connector, such as `maxOffsetsPerTrigger`,
            `kafka.security.protocol`, or `failOnDataLoss` (default true: a query fails if
            messages expired before it read them).
        bounded: read what the topic has now, and end.
        hosts: if given, the other hosts on which the cluster may have brokers.

    Raises:
        SourceError: no broker answers, the topic does not exist, or a broker is not allowed.
        EnvironmentProblem: the session lacks the connector, or the client library is missing.
    """
    given = dict(options or {})
    servers = spell(read_addresses(servers))
    # This check uses no encryption. If the brokers require it, only Spark's clients can check.
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
