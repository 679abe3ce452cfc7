"""A query over streams that are all there: read to their end and drained (E3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import pyarrow as pa

from quadweir.algebra.dataset import Dataset
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.events import Events
from quadweir.kernel.shard import Shard, answer_variables
from quadweir.plan.query import QueryPlan
from quadweir.runtime.answers import Shape, present
from quadweir.runtime.exchange import (
    BLOB,
    BLOB_SCHEMA,
    FIRST,
    SHARD_KEY,
    Packer,
    Unpacker,
    shard_keys,
)
from quadweir.runtime.matching import match_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
@dataclass(frozen=True)
class ShardSpec:
    """What a worker needs to make a shard of a query."""

    plan: QueryPlan
    static: Dataset
    streams: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        """The columns of the answers."""
        return Shape.of(self.plan.query, answer_variables(self.plan.query))

    def make(self) -> Shard:
        return Shard(self.plan.query, static=self.static, streams=self.streams, records=False)


@final
@dataclass(frozen=True)
class BoundedRun:
    """Runs the shard of one partition over its blobs, which come in order of their first times."""

    spec: ShardSpec

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        task = TaskContext.get()
        partition = task.partitionId() if task is not None else 0
        shard, shape = self.spec.make(), self.spec.shape
        unpacker = Unpacker(shard)
        count = 0
        waiting: list[bytes] = []
        through = ALWAYS
        is_used = False
        for batch in batches:
            firsts, blobs = batch.column(FIRST).to_pylist(), batch.column(BLOB)
            for first, blob in zip(firsts, blobs, strict=True):
                is_used = True
                # Whatever is still to come is not before the first time of this blob.
                if waiting and first is not None and first - 1 > through:
                    events, _ = unpacker.events(waiting, after=ALWAYS)
                    through, waiting = first - 1, []
                    count += 1
                    yield shape.batch(shard.step(events, through), f"{partition}.{count}")
                waiting.append(blob.as_py())
        if is_used:
            events, _ = unpacker.events(waiting, after=ALWAYS)
            yield shape.batch(shard.step(events, FOREVER), f"{partition}.end")
        elif not self.spec.plan.query.windows:
            yield shape.batch(shard.step(Events(), FOREVER), f"{partition}.end")


def answer_bounded(statements: DataFrame, spec: ShardSpec, *, shards: int) -> DataFrame:
    """Answer a query over all statements of its streams.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`, bounded.
        spec: the query with its plan and static data.
        shards: how many shards to use, if the plan can be sharded.

    Returns:
        Answers in the form that `answers.present` gives.
    """
    plan = spec.plan
    count = shards if plan.key.variable is not None else 1
    keys = shard_keys(statements.sparkSession, count, count)
    blobs = match_statements(statements, plan, count).mapInArrow(Packer(keys), BLOB_SCHEMA)
    gathered = blobs.repartition(count, SHARD_KEY).sortWithinPartitions(SHARD_KEY, FIRST)
    raw = gathered.mapInArrow(BoundedRun(spec), spec.shape.schema)
    return present(raw, plan.query, spec.shape)
