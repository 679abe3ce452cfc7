"""Joins of two streams on Spark: records go to shards as blobs, and pairs come back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.mapping.joins import KEY, JoinInput
from quadweir.runtime.host.executors import Executors
from quadweir.runtime.joins.hosted import PAIR_TIMES, PAIRS, JoinSpec
from quadweir.runtime.joins.pack import SHARD, JoinPacker
from quadweir.runtime.shard.base import Job
from quadweir.runtime.wire.pack import BLOB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOIN_METRICS: Final = "quadweir_join_"
"""With the name of a join, the name in Spark's progress of its facts."""
_PAIR: Final = "_quadweir_pair"


def host_join(asked: JoinInput) -> DataFrame:
    """Join two streams in a window, in Spark's executors.

    Args:
        asked: both streams in one frame, and how they are joined.

    Returns:
        A row for each pair: what child and parent carry, and `rows.EVENT_TIME`, the later time.

    Raises:
        UsageError: the session has no shuffle partitions for shards.
    """
    partitions = Executors().partitions(asked.frame.sparkSession)
    if partitions < 1:
        raise UsageError(
            "there are no shuffle partitions", hint="Set spark.sql.shuffle.partitions."
        )
    job = join_job(asked, partitions)
    return pairs_of(Executors().frame(job, run=asked.run), asked)


def join_job(asked: JoinInput, shards: int) -> Job:
    """Return the job that joins two streams, in so many shards if the join has a key."""
    spec = _spec(asked)
    text = f"{asked.name}\n{spec!r}"

    def records(count: int) -> DataFrame:
        to = F.coalesce(F.pmod(F.xxhash64(KEY), F.lit(count)), F.lit(0)).cast("int")
        return asked.frame.withColumn(SHARD, to)

    def stages(keys: Sequence[tuple[int, ...]]) -> list[JoinSpec]:
        return [replace(spec, shards=keys[0])]

    return Job(
        name=hashlib.sha256(text.encode()).hexdigest(),
        counts=(shards if asked.is_keyed else 1,),
        rows=records,
        packer=lambda keys, _: JoinPacker(keys, spec.columns),
        stages=stages,
        metrics=(JOIN_METRICS + asked.name,),
    )


def pairs_of(raw: DataFrame, asked: JoinInput) -> DataFrame:
    """Return the pairs in the output of shards, a row each."""
    spec = _spec(asked)
    met = met_schema(spec, asked.frame.schema)
    packed = raw.where(F.col(BLOB).isNotNull()).select(BLOB)
    return _paired(packed.mapInArrow(JoinUnpacker(met), met), spec)


def _spec(asked: JoinInput) -> JoinSpec:
    return JoinSpec(asked.window, asked.timing, asked.child, asked.parent, asked.passed, shards=())


def met_schema(spec: JoinSpec, records: StructType) -> StructType:
    """Return the columns of records that met, as arrays: the pairs, and what each side brings."""
    types = {field.name: field.dataType for field in records.fields}
    return StructType(
        [
            StructField(name, ArrayType(types.get(name, LongType())))
            for name in (PAIRS, *PAIR_TIMES, *spec.columns)
        ]
    )


def _paired(met: DataFrame, spec: JoinSpec) -> DataFrame:
    """Return a row for each pair; only here, in columns, is a record repeated for each pair."""
    pairs = met.select(F.explode(PAIRS).alias(_PAIR), *PAIR_TIMES, *spec.columns)
    child = F.shiftright(_PAIR, 32)
    parent = F.col(_PAIR).bitwiseAND(F.lit((1 << 32) - 1))
    times = (F.get(PAIR_TIMES[0], child), F.get(PAIR_TIMES[1], parent))
    return pairs.select(
        F.greatest(*times).alias(rows.EVENT_TIME),
        *(F.get(name, child).alias(name) for name in spec.child),
        *(F.get(name, parent).alias(name) for name in (*spec.parent, *spec.passed)),
    )


@final
@dataclass(frozen=True)
class JoinUnpacker:
    """Turns each blob into a row of arrays.

    Attributes:
        schema: the columns of a row; a blob has some of them, the others are NULL.
    """

    schema: StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema

        wanted = to_arrow_schema(self.schema)
        for batch in batches:
            for blob in batch.column(BLOB):
                table = pa.ipc.open_stream(blob.as_buffer()).read_all()
                columns = [
                    table.column(field.name).cast(field.type)
                    if field.name in table.column_names
                    else pa.nulls(table.num_rows, field.type)
                    for field in wanted
                ]
                yield from pa.table(columns, schema=wanted).combine_chunks().to_batches()
