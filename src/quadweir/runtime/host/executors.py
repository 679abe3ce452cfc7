"""A query over streams that go on: answers as a streaming DataFrame."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir import rows
from quadweir.algebra.render import render
from quadweir.errors import UsageError
from quadweir.runtime.host.bounded import ShardSpec
from quadweir.runtime.shard.hosted import ShardProcessor, Timing
from quadweir.runtime.wire.handover import pack_matches
from quadweir.runtime.wire.pack import SHARD_KEY, shard_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

METRICS: Final = "quadweir_answers"
"""Under this name Spark's progress tells how answers and shards fare."""
FIRST_METRICS: Final = "quadweir_first_stage"
"""Under this name it tells the same of the first stage of a query that has two."""


def answer_continuously(
    statements: DataFrame,
    spec: ShardSpec,
    timing: Timing,
    *,
    shards: int,
    name: str = "",
    tag: str = "",
    checkpoint: Path | None = None,
) -> DataFrame:
    """Answer a query over streams as they come in.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA` of all streams of the query.
        spec: the query with its plan and static data.
        timing: delays and idle times of the streams.
        shards: how many shards to use, if the plan can be sharded; at most as many as Spark's
            shuffle partitions.
        name: what tells this run from others of the same query, such as its checkpoint.
        tag: what tells this query's metrics from those of others in the same run.
        checkpoint: the folder of the run, if it is known.

    Returns:
        A streaming frame as the shards give it, for `answers.present` or `answers.with_times`.
    """
    from pyspark.sql import functions as F

    spark = statements.sparkSession
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 0)
    counts = spec.plan.shards(shards)
    if max(counts) > partitions:
        raise UsageError(
            f"{max(counts)} shards do not fit {partitions} shuffle partitions",
            hint="Set spark.sql.shuffle.partitions to the number of shards.",
        )
    keys = [shard_keys(spark, count, partitions) for count in counts]
    clock = str(checkpoint.absolute() / "offsets") if checkpoint is not None else ""
    blobs = pack_matches(statements, spec.plan, keys[0], clock=clock)

    def run(blobs: DataFrame, spec: ShardSpec, metrics: str, *told: Column) -> DataFrame:
        found = blobs.groupBy(SHARD_KEY).transformWithStateInPandas(
            statefulProcessor=ShardProcessor(_name(spec, name), spec, timing),
            outputStructType=spec.writer.schema,
            outputMode="append",
            timeMode="none",
        )
        return found.observe(
            metrics + tag,
            *told,
            F.sum("late").alias("late"),
            F.min("through").alias("through"),
            F.sum("held").alias("held"),
            F.max("kernel_ms").alias("kernel_ms"),
            F.sum("replayed").alias("replayed"),
        )

    *before, last = spec.stages(keys)
    for each in before:
        blobs = run(blobs, each, FIRST_METRICS).where(F.col(SHARD_KEY).isNotNull())
    return run(blobs, last, METRICS, F.count(rows.SIGN).alias("answers"))


def _name(spec: ShardSpec, run: str) -> str:
    """Tell queries apart in the memory of a worker."""
    text = f"{run}\n{spec.stage}\n{render(spec.plan.query)}\n{spec.static_digest}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
