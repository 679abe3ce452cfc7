"""Checkpoints with another number of shards, or with their shards on another host; nothing runs meanwhile.

A new checkpoint is written next to the old one, and takes its place once it is complete and on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import StateError, UnsupportedError, UsageError
from quadweir.runtime.checkpoint import DRIVER, EXECUTORS, VERSION, Fingerprint, is_network
from quadweir.runtime.claims import Claim
from quadweir.runtime.portable.dividing import divided
from quadweir.runtime.portable.journals import (
    Say,
    hold_journals,
    read_journals,
    write_journals,
    write_store,
)
from quadweir.runtime.portable.mappings import is_mapping, move_joins, reshard_joins
from quadweir.runtime.portable.planfile import StoredPlan
from quadweir.runtime.portable.rewriting import check_place, rewrite
from quadweir.runtime.portable.sparklogs import OFFSETS, SparkLogs
from quadweir.runtime.portable.sparkstate import read_state
from quadweir.runtime.shard.journal import KeptShard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@final
class StoppedCheckpoint:
    """The checkpoint of a query that does not run; nobody else can use it until it is closed.

    Args:
        folder: the checkpoint.
        spark: makes a session; it is asked only if state is in Spark's state store.
        say: shows what is being done.

    Raises:
        StateError: there is no checkpoint, it is in use, or it is damaged.
        UnsupportedError: it is not that of a single query.
    """

    def __init__(self, folder: Path, *, spark: Callable[[], SparkSession], say: Say) -> None:
        self.folder = folder
        self._spark, self._say = spark, say
        self.fingerprint = known_fingerprint(folder)
        with ExitStack() as opened:
            opened.enter_context(Claim(folder))
            _refuse_others(folder, self.fingerprint)
            self.logs = SparkLogs.of(folder)
            hold_journals(folder, opened)
            self._opened = opened.pop_all()

    def __enter__(self) -> StoppedCheckpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    @property
    def plan(self) -> StoredPlan:
        """The plan of the query.

        Raises:
            StateError: the checkpoint does not say it, or says that of another query.
        """
        found = StoredPlan.left_in(self.folder)
        if found is None:
            raise StateError(
                f"the checkpoint {self.folder} does not say how its shards were made",
                detail="It was made by an older release.",
                hint="Start the query with it once more and stop it; then try again.",
            )
        self.fingerprint.check_plan(found.plan, self.folder)
        return found

    def kept(self) -> list[list[KeptShard]]:
        """Return what the shards of each stage keep before the batch that comes next.

        Raises:
            StateError: the state is not complete.
        """
        known, batch = self.fingerprint, self.logs.next
        counts = self.plan.plan.shards(known.most)
        if counts[0] != known.shards:
            raise StateError(
                f"{self.folder} has {known.shards} shards, and its plan {counts[0]}",
                hint="Start the query with this checkpoint and stop it; then try again.",
            )
        if known.shards_in == EXECUTORS:
            self._say("reading the state in Spark's state store")
            return read_state(self._spark(), self.folder, counts, known.partitions, batch)
        self._say(f"reading the state of {sum(counts)} shards")
        return read_journals(self.folder, 0, counts, batch)

    def write(
        self,
        into: Path | None,
        fingerprint: Fingerprint,
        plan: StoredPlan,
        kept: Sequence[Sequence[KeptShard]],
    ) -> Path | None:
        """Write the checkpoint with other state.

        Args:
            into: a folder that does not exist yet; None to replace the checkpoint.
            fingerprint: what the new one depends on.
            plan: the plan of its shards.
            kept: what its shards keep.

        Returns:
            Where the old one is now, if it was replaced.
        """
        place = (self.folder if into is None else into).absolute()
        self._say("writing the new checkpoint")

        def finish(scratch: Path) -> None:
            if fingerprint.shards_in == EXECUTORS:
                write_store(self._spark(), scratch, kept, fingerprint.partitions, place=place)
            else:
                write_journals(scratch, [kept])
            plan.write(scratch)
            fingerprint.replace_static(scratch)

        return rewrite(self.folder, into, finish)


def reshard(
    folder: Path,
    shards: int,
    *,
    into: Path | None = None,
    spark: Callable[[], SparkSession],
    say: Say = lambda _: None,
) -> Path | None:
    """Divide the state of a checkpoint among another number of shards.

    Args:
        folder: the checkpoint.
        shards: how many shards the query is started with next.
        into: where the new checkpoint goes; default: it replaces the old one.
        spark: makes a session, if one is needed.
        say: shows what is being done.

    Returns:
        Where the old checkpoint is now, if it was replaced.

    Raises:
        StateError: the checkpoint is in use, damaged, or of another release or query.
        UnsupportedError: it is not that of a single query.
        UsageError: there is nothing to do, or `into` exists.
    """
    if shards < 1:
        raise UsageError(f"{shards} shards cannot hold anything", hint="Ask for 1 or more.")
    check_place(folder, into)
    if is_mapping(folder):
        return reshard_joins(folder, shards, into=into, spark=spark, say=say)
    with StoppedCheckpoint(folder, spark=spark, say=say) as stopped:
        known, stored = stopped.fingerprint, stopped.plan
        if known.most == shards:
            raise UsageError(
                f"the checkpoint {folder} has {shards} shards already",
                hint="Ask for another number.",
            )
        plan = stored.for_shards(shards)
        say(f"dividing the state among {plan.shards(shards)[0]} shards")
        found = divided(stored.plan, plan, stopped.kept(), plan.shards(shards))
        now = replace(
            known,
            shards=plan.shards(shards)[0],
            most=shards,
            partitions=shards if known.shards_in == EXECUTORS else 0,
        ).with_plan(plan)
        kept_plan = stored if plan is stored.plan else StoredPlan(plan)
        return stopped.write(into, now, kept_plan, found)


def move(
    folder: Path,
    host: str,
    *,
    into: Path | None = None,
    spark: Callable[[], SparkSession],
    say: Say = lambda _: None,
) -> Path | None:
    """Move the state of a checkpoint to Spark's executors, or to local worker processes.

    Args:
        folder: the checkpoint.
        host: `driver` or `executors`.
        into: where the new checkpoint goes; default: it replaces the old one.
        spark: makes a session.
        say: shows what is being done.

    Returns:
        Where the old checkpoint is now, if it was replaced.

    Raises:
        StateError: the checkpoint is in use, damaged, or of another release or query.
        UnsupportedError: it is not that of a single query.
        UsageError: there is nothing to do, or `into` exists.
    """
    if host not in (DRIVER, EXECUTORS):
        raise UsageError(f"shards cannot be in {host!r}", hint=f"Choose {DRIVER} or {EXECUTORS}.")
    check_place(folder, into)
    if is_mapping(folder):
        return move_joins(folder, host, into=into, spark=spark, say=say)
    with StoppedCheckpoint(folder, spark=spark, say=say) as stopped:
        known = stopped.fingerprint
        if known.shards_in == host:
            raise UsageError(
                f"the shards of {folder} are in {_WHERE[host]} already",
                hint="Nothing has to be moved.",
            )
        partitions = known.most if host == EXECUTORS else 0
        now = replace(known, shards_in=host, partitions=partitions)
        # Both hosts journal the same bytes.
        return stopped.write(into, now, stopped.plan, stopped.kept())


_WHERE: Final = {DRIVER: "local worker processes", EXECUTORS: "Spark's executors"}


def known_fingerprint(folder: Path) -> Fingerprint:
    """Return what a checkpoint was made for.

    Raises:
        StateError: it is none of ours, or one of another release.
        UnsupportedError: it is not that of a query.
    """
    known = Fingerprint.left_in(folder) if folder.is_dir() else None
    if known is None and (folder / OFFSETS).is_dir():
        raise UnsupportedError(
            f"{folder} is a checkpoint of Spark, but not that of a query of Quadweir",
            detail="If it is that of a mapping with stream joins: an older release made it, or the joins have a "
            "window policy of your own.",
            hint="Start the mapping with it once more and stop it; then try again.",
        )
    if known is None:
        raise StateError(
            f"{folder} is no checkpoint of a Quadweir query",
            hint="Name the folder that --checkpoint names when the query runs.",
        )
    if known.version != VERSION:
        raise StateError(
            f"the state in {folder} has format {known.version}, and this release reads {VERSION}",
            hint="Use the release that wrote it.",
        )
    return known


def _refuse_others(folder: Path, known: Fingerprint) -> None:
    if is_network(known.algebra):
        raise UnsupportedError(
            f"{folder} is the checkpoint of a network",
            detail="Each of its queries joined at an instant that every shard noted for itself, and their "
            "templates are planned only when the network runs.",
            hint="Start the network with the number of shards that it has, in local worker processes.",
        )
    if known.inputs:
        raise UnsupportedError(
            f"the query of {folder} reads the answers of other queries",
            detail="Spark keeps the state of those queries in its own form.",
            hint="Run it with the number of shards that it has, where its shards are.",
        )
