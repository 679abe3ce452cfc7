"""A query over streams that are all there: read to their end and drained (E3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, final

import pyarrow as pa

from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.kernel.fixed import Share, StaticSource
from quadweir.kernel.shard import Shard
from quadweir.plan.query import QueryPlan
from quadweir.plan.shapes import answer_variables
from quadweir.runtime.answers import Shape
from quadweir.runtime.shard.functions import install_functions
from quadweir.runtime.wire.changes import Receiver, Sender
from quadweir.runtime.wire.handover import pack_matches
from quadweir.runtime.wire.pack import BLOB, FIRST, SHARD_KEY, shard_keys
from quadweir.runtime.wire.unpack import Unpacker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
@dataclass(frozen=True)
class ShardSpec:
    """What a worker needs to make a shard of one stage of a query.

    Attributes:
        plan: The query's plan.
        static: The static data.
        static_digest: Names the static data.
        stage: The place of the stage in the plan.
        shards: The shuffle keys of the shards of this stage, in their order.
        keys: The shuffle keys of the next stage; none in the last.
        letters: Whether to write letters about what is late.
        functions: The registered functions that the query calls, packed.
    """

    plan: QueryPlan
    static: StaticSource
    static_digest: str = ""
    stage: int = 0
    shards: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    letters: bool = False
    functions: bytes = b""

    def __getstate__(self) -> dict[str, object]:
        # A worker is sent no more than a shard needs: what is larger than a megabyte Spark sends in
        # another way, which the driver's own worker for streams has not.
        return {**self.__dict__, "plan": self.plan.for_shards()}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        install_functions(self.functions)

    @property
    def shape(self) -> Shape:
        """The columns of the answers."""
        return Shape.of(self.plan.query, answer_variables(self.plan.query))

    @property
    def is_given(self) -> bool:
        """Whether a stage before this one sends it what it takes."""
        return self.stage > 0

    @property
    def sends(self) -> bool:
        """Whether what it gives is for a stage after this one."""
        return self.stage < len(self.plan.stages) - 1

    def stages(self, keys: Sequence[tuple[int, ...]]) -> list[ShardSpec]:
        """Give the stages of the query; `keys` are the shuffle keys of each."""
        return [
            replace(self, stage=place, shards=own, keys=then)
            for place, (own, then) in enumerate(zip(keys, (*keys[1:], ()), strict=True))
        ]

    def share(self, key: int | None) -> Share | None:
        """Give what the shard of a shuffle key has of static data; None for all of it."""
        if len(self.shards) < 2 or key is None:
            return None
        return Share(self.shards.index(key), len(self.shards))

    def make(self, key: int | None = None) -> Shard:
        """Make the shard of a shuffle key; None if no rows go to it."""
        program = self.plan.stages[self.stage].program
        return Shard(program, static=self.static, records=False, share=self.share(key))

    def reader(self, shard: Shard) -> Unpacker | Receiver:
        """Give what turns blobs into the shard's events."""
        if self.is_given:
            return Receiver()
        return Unpacker(shard, self.plan.wanted, letters=self.letters)

    @property
    def writer(self) -> Shape | Sender:
        """What the shard gives is packed by this."""
        sent = self.plan.stages[self.stage].program.sent
        if sent is None:
            return self.shape
        return Sender(self.keys, sent.variables.index(sent.key) if sent.key is not None else None)


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
    keys = [shard_keys(spark, count, count) for count in plan.shards(shards)]

    def run(blobs: DataFrame, spec: ShardSpec) -> DataFrame:
        count = len(spec.shards)
        gathered = blobs.repartition(count, SHARD_KEY).sortWithinPartitions(SHARD_KEY, FIRST)
        return gathered.mapInArrow(BoundedRun(spec), spec.writer.schema)

    return reduce(run, spec.stages(keys), pack_matches(statements, plan, keys[0]))
