"""The host for streams that have an end: they are read to it, and windows are emptied (E3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import pyarrow as pa

from quadweir.kernel.arrays import FOREVER
from quadweir.runtime.shard.spec import ShardSpec
from quadweir.runtime.wire.pack import BLOB, BLOB_SCHEMA, FIRST_TIME, SHARD_KEY, shard_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
@dataclass(frozen=True)
class BoundedTask:
    """Runs the shard of one partition over its blobs, which come in order of their first times."""

    spec: ShardSpec

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        partition = task.partitionId() if task is not None else 0
        arriving = (each for each in batches if each.num_rows)
        first_batch = next(arriving, None)
        if first_batch is None and self.spec.plan.query.windows:
            return
        key = None if first_batch is None else first_batch.column(SHARD_KEY)[0].as_py()
        shard = self.spec.host(key)
        count = 0
        waiting: list[bytes] = []
        for batch in (first_batch, *arriving) if first_batch is not None else ():
            firsts, blobs = batch.column(FIRST_TIME).to_pylist(), batch.column(BLOB)
            for first, blob in zip(firsts, blobs, strict=True):
                # No later blob has anything before the first time of this one.
                if waiting and first is not None and first - 1 > shard.through:
                    yield shard.take_bounded(waiting, first - 1, f"{partition}.{count}")
                    count, waiting = count + 1, []
                if blob.is_valid:
                    waiting.append(blob.as_py())
        yield shard.take_bounded(waiting, FOREVER, f"{partition}.{count}")


def answer_bounded(statements: DataFrame, spec: ShardSpec, *, shards: int) -> DataFrame:
    """Answer a query over all statements of its streams.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`, bounded.
        spec: the query with its plan and static data.
        shards: how many shards to use, if the plan can be sharded.

    Returns:
        The output rows of the shards, for `answers.present`.
    """
    spark = statements.sparkSession
    job = spec.job(statements, shards=shards)
    keys = [shard_keys(spark, count, count) for count in job.counts]
    blobs = job.rows(job.counts[0]).mapInArrow(job.packer(keys[0], ""), BLOB_SCHEMA)
    for stage in spec.stages(keys):
        gathered = blobs.repartition(len(stage.shards), SHARD_KEY)
        ordered = gathered.sortWithinPartitions(SHARD_KEY, FIRST_TIME)
        blobs = ordered.mapInArrow(BoundedTask(stage), stage.output)
    return blobs
