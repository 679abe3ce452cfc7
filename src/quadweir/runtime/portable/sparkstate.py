"""State in Spark's state store, read and written while no query runs.

Spark's reader of state stores is public. There is no public way to write one but to run a query: so a
query of one batch, whose operators are those of the real one, puts the journals of all shards where the
real query expects them. Its version of the state is then renamed to that of the batch at which the real
query goes on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from quadweir.errors import StateError
from quadweir.private import make_folder
from quadweir.runtime.portable.rewriting import STATE
from quadweir.runtime.shard.journal import KeptShard
from quadweir.runtime.shard.statejournal import KEY, NAME, VALUE, as_values, of_values
from quadweir.runtime.wire.pack import SHARD_KEY, shard_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NEXT_KEY: Final = "next_key"
_NUMBER: Final = "number"
_BYTES: Final = "bytes"
_ROW: Final = f"{SHARD_KEY} int, {_NEXT_KEY} int, {_NUMBER} bigint, {_BYTES} binary"
_ARROW: Final = pa.schema(
    [
        (SHARD_KEY, pa.int32()),
        (_NEXT_KEY, pa.int32()),
        (_NUMBER, pa.int64()),
        (_BYTES, pa.binary()),
    ]
)
_CHANGELOG: Final = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def read_state(
    spark: SparkSession, checkpoint: Path, counts: Sequence[int], partitions: int, batch: int
) -> list[list[KeptShard]]:
    """Return what the shards of each stage keep in Spark's state store before a batch.

    Args:
        spark: a session.
        checkpoint: the checkpoint of a query that does not run.
        counts: the number of shards of each stage.
        partitions: over how many partitions they are spread.
        batch: the batch that comes next.

    Raises:
        StateError: the state is not complete.
    """
    if not batch:
        return [[KeptShard(0, None, None, ())] * count for count in counts]
    found = []
    for stage, count in enumerate(counts):
        rows = _rows(spark, checkpoint, _operator(stage, len(counts)), batch)
        shards = []
        for number, key in enumerate(shard_keys(spark, count, partitions)):
            if key not in rows:
                raise StateError(
                    f"the state store in {checkpoint / STATE} has nothing of shard {number} of stage {stage}",
                    hint="Restore the checkpoint from a backup.",
                )
            shards.append(of_values(rows[key], batch))
        found.append(shards)
    return found


def _rows(
    spark: SparkSession, checkpoint: Path, operator: int, batch: int
) -> dict[int, dict[int, bytes]]:
    from pyspark.errors import PySparkException

    reader = spark.read.format("statestore").option("operatorId", operator)
    reader = reader.option("stateVarName", NAME).option("batchId", batch - 1)
    found: dict[int, dict[int, bytes]] = {}
    try:
        frame = reader.load(str(checkpoint.absolute()))
        for key, number, value in frame.select("key", "user_map_key", "user_map_value").collect():
            found.setdefault(int(key[0]), {})[int(number[0])] = bytes(value[0])
    except Exception as error:
        if not isinstance(error, PySparkException) and type(error).__name__ != "Py4JJavaError":
            raise
        raise StateError(
            f"Spark cannot read the state in {checkpoint / STATE}",
            detail=str(error).splitlines()[0],
            hint="Some of its files are missing or damaged. Restore the checkpoint from a backup.",
        ) from error
    return found


def write_state(
    spark: SparkSession,
    checkpoint: Path,
    kept: Sequence[Sequence[KeptShard]],
    partitions: int,
    *,
    place: Path,
) -> None:
    """Write what the shards of each stage keep to Spark's state store.

    Args:
        spark: a session.
        checkpoint: the folder of a new checkpoint, which has no state yet.
        kept: for each stage what its shards keep.
        partitions: over how many partitions they are spread.
        place: where the checkpoint will be when it is used.
    """
    batch = kept[0][0].batch
    if not batch:
        return
    scratch = checkpoint / "writing"
    inputs = scratch / "in"
    make_folder(inputs)
    own = spark.newSession()
    own.conf.set(_PARTITIONS, str(partitions))
    # Then the one batch is written as a snapshot, and not as a log of changes.
    own.conf.set(_CHANGELOG, "false")
    keys = [shard_keys(own, len(stage), partitions) for stage in kept]
    for table, file in _tables(kept, keys, inputs):
        pq.write_table(table, file)
    frame = own.readStream.schema(_ROW).parquet(str(inputs.absolute()))
    for stage in range(len(kept)):
        key = SHARD_KEY if stage == 0 else _NEXT_KEY
        if stage:
            frame = frame.where(f"{_NEXT_KEY} is not null")
        frame = frame.groupBy(key).transformWithStateInPandas(
            statefulProcessor=_Seeding(stage),
            outputStructType=_ROW,
            outputMode="append",
            timeMode="none",
        )
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", str((scratch / "run").absolute()))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    state = checkpoint / STATE
    (scratch / "run" / STATE).rename(state)
    _renumber(state, batch)
    _replace_paths(state, scratch / "run" / STATE, place / STATE)
    shutil.rmtree(scratch)


def _tables(
    kept: Sequence[Sequence[KeptShard]], keys: Sequence[tuple[int, ...]], inputs: Path
) -> Iterator[tuple[pa.Table, Path]]:
    """Yield the journal of each shard as rows; those of a later stage pass through the first."""
    for stage, (shards, own) in enumerate(zip(kept, keys, strict=True)):
        for number, (shard, key) in enumerate(zip(shards, own, strict=True)):
            values = as_values(shard)
            through = keys[0][number % len(keys[0])] if stage else key
            table = pa.table(
                [
                    pa.array([through] * len(values), pa.int32()),
                    pa.array([key if stage else None] * len(values), pa.int32()),
                    pa.array(list(values), pa.int64()),
                    pa.array(list(values.values()), pa.binary()),
                ],
                schema=_ARROW,
            )
            yield table, inputs / f"{stage}-{number}.parquet"


@final
class _Seeding(StatefulProcessor):
    """Puts rows into the state of their shard, or passes those of the next stage on."""

    def __init__(self, stage: int) -> None:
        self._stage = stage

    def init(self, handle: Any) -> None:
        self._store = handle.getMapState(NAME, KEY, VALUE)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ARG002
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803 - Spark's name
    ) -> Iterator[pd.DataFrame]:
        for frame in rows:
            is_later = frame[_NEXT_KEY].notna() & (self._stage == 0)
            own = frame[~is_later]
            for number, value in zip(own[_NUMBER], own[_BYTES], strict=True):
                self._store.updateValue((int(number),), (bytes(value),))
            if is_later.any():
                yield frame[is_later].astype({_NEXT_KEY: "Int32"})

    def close(self) -> None:
        """Nothing is held."""


def _operator(stage: int, stages: int) -> int:
    """Return the number that Spark gives the operator of a stage: it numbers the last one first."""
    return stages - 1 - stage


def _renumber(state: Path, version: int) -> None:
    """Give the state that one batch wrote the version that another batch begins with."""
    if version == 1:
        return
    for file in state.glob("*/*/1.*"):
        file.rename(file.with_name(f"{version}{file.suffix}"))
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _replace_paths(state: Path, written: Path, place: Path) -> None:
    """Let the metadata of operators name the files of state schemas where they will be."""
    for file in state.glob("*/_metadata/v2/*"):
        if file.name.startswith("."):
            continue
        text = file.read_text(encoding="utf-8")
        before, after = (json.dumps(str(each.absolute()))[1:-1] for each in (written, place))
        file.write_text(text.replace(before, after), encoding="utf-8")
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
