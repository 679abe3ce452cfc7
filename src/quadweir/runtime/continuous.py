"""A query over streams that go on: answers as a streaming DataFrame."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from quadweir.algebra.render import render
from quadweir.errors import UsageError
from quadweir.runtime.answers import answer_schema
from quadweir.runtime.bounded import ShardSpec
from quadweir.runtime.exchange import BLOB_SCHEMA, SHARD_KEY, Packer, shard_keys
from quadweir.runtime.matching import match_statements
from quadweir.runtime.processor import ShardProcessor, Timing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def answer_continuously(
    statements: DataFrame, spec: ShardSpec, timing: Timing, *, shards: int
) -> DataFrame:
    """Answer a query over streams as they come in.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA` of all streams of the query.
        spec: the query with its plan and static data.
        timing: delays and idle times of the streams.
        shards: how many shards to use, if the plan can be sharded; at most as many as Spark's
            shuffle partitions.

    Returns:
        A streaming frame of answers in the form of `answers.answer_schema`.
    """
    spark = statements.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    count = shards if spec.plan.key.variable is not None else 1
    if count > partitions:
        raise UsageError(
            f"{count} shards do not fit {partitions} shuffle partitions",
            hint="Set spark.sql.shuffle.partitions to the number of shards.",
        )
    keys = shard_keys(spark, count, partitions)
    blobs = match_statements(statements, spec.plan, count).mapInArrow(Packer(keys), BLOB_SCHEMA)
    variables = spec.make().variables
    return blobs.groupBy(SHARD_KEY).transformWithStateInPandas(
        statefulProcessor=ShardProcessor(_name(spec), spec, timing),
        outputStructType=answer_schema(variables),
        outputMode="append",
        timeMode="none",
    )


def _name(spec: ShardSpec) -> str:
    """Tell queries apart in the memory of a worker."""
    text = render(spec.plan.query)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
