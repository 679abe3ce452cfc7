"""The checkpoints of mappings with stream joins: with another number of shards, or on another host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.errors import UnsupportedError, UsageError
from quadweir.kernel.streamjoin.dividing import divided_joins
from quadweir.runtime.checkpoint import EXECUTORS, NAME
from quadweir.runtime.claims import Claim
from quadweir.runtime.joins.hosted import HostedJoin, JoinSpec
from quadweir.runtime.portable.joinfile import StoredJoins
from quadweir.runtime.portable.journals import (
    Say,
    hold_journals,
    read_journals,
    write_journals,
    write_store,
)
from quadweir.runtime.portable.rewriting import rewrite
from quadweir.runtime.portable.sparklogs import SparkLogs
from quadweir.runtime.portable.sparkstate import read_state
from quadweir.runtime.shard.journal import KeptShard, replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_mapping(folder: Path) -> bool:
    """Return whether a folder is the checkpoint of a mapping with stream joins."""
    return not (folder / NAME).is_file() and StoredJoins.left_in(folder) is not None


@final
class StoppedMapping:
    """The checkpoint of a mapping that does not run; nobody else can use it until it is closed."""

    def __init__(self, folder: Path, *, spark: Callable[[], SparkSession], say: Say) -> None:
        self.folder = folder
        self._spark, self._say = spark, say
        found = StoredJoins.left_in(folder)
        assert found is not None, "the caller has looked"
        self.joins = found
        with ExitStack() as opened:
            opened.enter_context(Claim(folder))
            self.logs = SparkLogs.of(folder)
            hold_journals(folder, opened)
            self._opened = opened.pop_all()

    def __enter__(self) -> StoppedMapping:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def kept(self) -> list[list[KeptShard]]:
        """Return what the shards of each join keep before the batch that comes next.

        Raises:
            StateError: the state is not complete.
        """
        batch = self.logs.next
        counts = [len(spec.shards) for spec in self.joins.specs]
        self._say(f"reading the state of {sum(counts)} shards")
        if self.joins.shards_in == EXECUTORS:
            _refuse_several(self.folder, self.joins)
            return read_state(self._spark(), self.folder, counts, self.joins.most, batch)
        return [
            read_journals(self.folder, job, [count], batch)[0] for job, count in enumerate(counts)
        ]

    def write(
        self, into: Path | None, joins: StoredJoins, kept: Sequence[Sequence[KeptShard]]
    ) -> Path | None:
        """Write the checkpoint with other state; return where the old one is, if it was replaced."""
        place = (self.folder if into is None else into).absolute()
        self._say("writing the new checkpoint")

        def finish(scratch: Path) -> None:
            if joins.shards_in == EXECUTORS:
                write_store(self._spark(), scratch, kept, joins.most, place=place)
            else:
                write_journals(scratch, [[each] for each in kept])
            joins.write(scratch)

        return rewrite(self.folder, into, finish)


def reshard_joins(
    folder: Path, shards: int, *, into: Path | None, spark: Callable[[], SparkSession], say: Say
) -> Path | None:
    """Divide what the joins of a mapping hold among another number of shards."""
    with StoppedMapping(folder, spark=spark, say=say) as stopped:
        now = stopped.joins.with_shards(shards)
        if now == stopped.joins:
            raise UsageError(
                f"the joins of {folder} have {now.most} shards already",
                hint="Ask for another number. A join without a key always has one.",
            )
        say(f"dividing the records among {shards} shards")
        found = [
            divided_records(before, after, kept)
            for before, after, kept in zip(
                stopped.joins.specs, now.specs, stopped.kept(), strict=True
            )
        ]
        return stopped.write(into, now, found)


def move_joins(
    folder: Path, host: str, *, into: Path | None, spark: Callable[[], SparkSession], say: Say
) -> Path | None:
    """Move what the joins of a mapping hold to another host."""
    with StoppedMapping(folder, spark=spark, say=say) as stopped:
        known = stopped.joins
        if known.shards_in == host:
            raise UsageError(
                f"the shards of {folder} are there already", hint="Nothing has to be moved."
            )
        _refuse_several(folder, known)
        return stopped.write(into, replace(known, shards_in=host), stopped.kept())


def divided_records(
    before: JoinSpec, after: JoinSpec, kept: Sequence[KeptShard]
) -> list[KeptShard]:
    """Return what the shards of a join keep, for another number of shards.

    Raises:
        StateError: the state is damaged, or of another join.
    """
    if len(before.shards) == len(after.shards):
        return list(kept)
    batch, count = kept[0].batch, len(after.shards)
    if kept[0].note is None:
        return [KeptShard(batch, None, None, ())] * count
    joins = []
    for each in kept:
        hosted = HostedJoin(before)
        if each.snapshot is not None:
            hosted.restore(each.snapshot)
        replay(hosted, each.entries, each.note)
        joins.append(hosted.join)
    note = HostedJoin(after).note()
    return [
        KeptShard(batch, note, join.snapshot(), ())
        for join in divided_joins(joins, after.make, count)
    ]


def _refuse_several(folder: Path, joins: StoredJoins) -> None:
    if len(joins.specs) > 1:
        raise UnsupportedError(
            f"the mapping of {folder} has {len(joins.specs)} stream joins",
            detail="Spark decides which of its operators runs which of them.",
            hint="Run it where its shards are, with the number that it has.",
        )
