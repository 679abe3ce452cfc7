"""The journals of all shards of a stopped run, on either host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.runtime.portable.rewriting import SHARDS
from quadweir.runtime.portable.sparklogs import PARTITIONS, set_settings
from quadweir.runtime.portable.sparkstate import write_state
from quadweir.runtime.shard.folderjournal import (
    FolderJournal,
    journal_name,
    read_kept,
    write_kept,
)
from quadweir.runtime.shard.journal import KeptShard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_WAIT_SECONDS: Final = 5.0

Say = Callable[[str], None]
"""Shows what is being done."""


def read_journals(
    folder: Path, job: int, counts: Sequence[int], batch: int
) -> list[list[KeptShard]]:
    """Return what the shards of a job of local worker processes keep before a batch, by stage.

    Raises:
        StateError: the state is not complete.
    """
    if not batch:
        return [[KeptShard(0, None, None, ())] * count for count in counts]
    return [
        [
            read_kept(folder / SHARDS / journal_name(job, stage, number), batch)
            for number in range(count)
        ]
        for stage, count in enumerate(counts)
    ]


def write_journals(folder: Path, jobs: Sequence[Sequence[Sequence[KeptShard]]]) -> None:
    """Write what the shards of each job keep, by stage, for local worker processes."""
    for job, stages in enumerate(jobs):
        for stage, shards in enumerate(stages):
            for number, each in enumerate(shards):
                if each.batch:
                    write_kept(folder / SHARDS / journal_name(job, stage, number), each)


def write_store(
    spark: SparkSession,
    folder: Path,
    kept: Sequence[Sequence[KeptShard]],
    partitions: int,
    *,
    place: Path,
) -> None:
    """Write what the shards of each stage keep to Spark's state store, and the settings for it."""
    set_settings(folder, {PARTITIONS: str(partitions), _PROVIDER: _ROCKSDB})
    write_state(spark, folder, kept, partitions, place=place)


def hold_journals(folder: Path, opened: ExitStack) -> None:
    """Lock the journals of a checkpoint until a stack is closed.

    Raises:
        StateError: a process whose driver was killed still finishes its batch.
    """
    for each in sorted((folder / SHARDS).glob("*-*/lock")):
        opened.callback(FolderJournal(each.parent, wait_seconds=_WAIT_SECONDS).close)
