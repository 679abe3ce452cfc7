"""A query over streams that are all there: read to their end and drained (E3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import pyarrow as pa

from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.fixed import Share, StaticSource
from quadweir.kernel.given import Cut
from quadweir.kernel.shapes import answer_variables
from quadweir.kernel.shard import Shard
from quadweir.plan.describe import second_shards, shards_used
from quadweir.plan.query import QueryPlan
from quadweir.runtime.answers import Shape
from quadweir.runtime.exchange import BLOB, FIRST, SHARD_KEY, shard_keys
from quadweir.runtime.handover import pack_matches
from quadweir.runtime.stages import Receiver, Sender
from quadweir.runtime.unpacking import Unpacker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
@dataclass(frozen=True)
class ShardSpec:
    """What a worker needs to make a shard of a query.

    Attributes:
        plan: the query's plan.
        static: the static data.
        streams: the streams there are.
        stage: 0 if there is one stage; else 1 or 2.
        keys: the shuffle keys of the second stage, in the first.
        letters: whether to write letters about what is late.
        shards: the shuffle keys of the shards of this stage, in their order.
    """

    plan: QueryPlan
    static: StaticSource
    streams: tuple[str, ...]
    static_digest: str = ""
    stage: int = 0
    keys: tuple[int, ...] = ()
    letters: bool = False
    shards: tuple[int, ...] = ()

    def __getstate__(self) -> dict[str, object]:
        # A worker is sent no more than a shard needs: what is larger than a megabyte Spark sends in
        # another way, which the driver's own worker for streams has not.
        return {**self.__dict__, "plan": self.plan.for_shards()}

    @property
    def shape(self) -> Shape:
        """The columns of the answers."""
        return Shape.of(self.plan.query, answer_variables(self.plan.query))

    @property
    def is_given(self) -> bool:
        """Whether this is the second of two stages."""
        return self.stage == _LAST

    def stages(self, keys: tuple[int, ...]) -> tuple[ShardSpec, ShardSpec]:
        """Give the two stages of a query that has two; `keys` are those of the second."""
        return replace(self, stage=1, keys=keys), replace(self, stage=2)

    def share(self, key: int | None) -> Share | None:
        """Give what the shard of a shuffle key has of static data; None for all of it."""
        variable, places = self.plan.key.variable, self.plan.divided
        if variable is None or not places or len(self.shards) < 2 or key is None:
            return None
        # No static data is left in a second stage: any share will do.
        number = 0 if self.is_given else self.shards.index(key)
        return Share(variable, places, number, len(self.shards))

    def make(self, key: int | None = None) -> Shard:
        """Make the shard of a shuffle key; None if no rows go to it."""
        cut = self.plan.key.cut
        stage = Cut(cut, self.plan.sent, self.is_given) if cut is not None else None
        return Shard(
            self.plan.query,
            static=self.static,
            streams=self.streams,
            records=False,
            cut=stage if self.stage else None,
            share=self.share(key),
        )

    def reader(self, shard: Shard) -> Unpacker | Receiver:
        """Give what turns blobs into the shard's events."""
        if self.is_given:
            return Receiver()
        return Unpacker(shard, self.plan.wanted, letters=self.letters)

    @property
    def writer(self) -> Shape | Sender:
        """What the shard gives is packed by this."""
        if self.stage != 1:
            return self.shape
        second = self.plan.key.second
        return Sender(self.keys, self.plan.sent.index(second) if second is not None else None)


_LAST = 2


@final
@dataclass(frozen=True)
class BoundedRun:
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
        shard, writer = self.spec.make(key), self.spec.writer
        reader = self.spec.reader(shard)
        count = 0
        waiting: list[bytes] = []

        def step(through: int) -> pa.RecordBatch:
            after = shard.through
            events, _ = reader.events(waiting, after=ALWAYS, until=through)
            answers = shard.step(events, through)
            return writer.write(shard, answers, after, f"{partition}.{count}")

        for batch in (first_batch, *arriving) if first_batch is not None else ():
            firsts, blobs = batch.column(FIRST).to_pylist(), batch.column(BLOB)
            for first, blob in zip(firsts, blobs, strict=True):
                # Whatever is still to come is not before the first time of this blob.
                if waiting and first is not None and first - 1 > shard.through:
                    yield step(first - 1)
                    count, waiting = count + 1, []
                if blob.is_valid:
                    waiting.append(blob.as_py())
        yield step(FOREVER)


def answer_bounded(statements: DataFrame, spec: ShardSpec, *, shards: int) -> DataFrame:
    """Answer a query over all statements of its streams.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`, bounded.
        spec: the query with its plan and static data.
        shards: how many shards to use, if the plan can be sharded.

    Returns:
        Answers as the shards give them, for `answers.present`.
    """
    spark, plan = statements.sparkSession, spec.plan
    count = shards_used(plan, shards)
    keys = shard_keys(spark, count, count)
    blobs = pack_matches(statements, plan, keys)

    def run(blobs: DataFrame, spec: ShardSpec, count: int) -> DataFrame:
        gathered = blobs.repartition(count, SHARD_KEY).sortWithinPartitions(SHARD_KEY, FIRST)
        return gathered.mapInArrow(BoundedRun(spec), spec.writer.schema)

    spec = replace(spec, shards=keys)
    if plan.key.cut is None:
        return run(blobs, spec, count)
    then = second_shards(plan, shards)
    first, second = spec.stages(shard_keys(spark, then, then))
    return run(run(blobs, first, count), second, then)
