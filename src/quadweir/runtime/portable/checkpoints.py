"""Checkpoints with another number of shards, or with their shards on another host; nothing runs meanwhile.

A new checkpoint is written next to the old one, and takes its place once it is complete and on disk.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import StateError, UnsupportedError, UsageError
from quadweir.runtime.checkpoint import DRIVER, EXECUTORS, VERSION, Fingerprint, is_network
from quadweir.runtime.claims import NAME as CLAIM
from quadweir.runtime.claims import Claim
from quadweir.runtime.portable.dividing import divided
from quadweir.runtime.portable.planfile import StoredPlan
from quadweir.runtime.portable.sparklogs import OFFSETS, PARTITIONS, SparkLogs, set_settings
from quadweir.runtime.portable.sparkstate import FOLDER as STATE
from quadweir.runtime.portable.sparkstate import read_state, write_state
from quadweir.runtime.shard.folderjournal import FolderJournal, read_kept, write_kept
from quadweir.runtime.shard.journal import KeptShard

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARDS: Final = "shards"
"""The folder of the journals of local worker processes in a checkpoint."""
_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_WAIT_SECONDS: Final = 5.0
_EXCHANGE: Final = 2
_HERE: Final = -100

Say = Callable[[str], None]
"""Shows what is being done."""


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
            for each in sorted((folder / SHARDS).glob("*-*/lock")):
                # A process whose driver was killed may still finish its batch.
                opened.callback(FolderJournal(each.parent, wait_seconds=_WAIT_SECONDS).close)
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
        return [
            [self._journal(f"{stage}-{number}", batch) for number in range(count)]
            for stage, count in enumerate(counts)
        ]

    def _journal(self, name: str, batch: int) -> KeptShard:
        folder = self.folder / SHARDS / name
        if not batch:
            return KeptShard(0, None, None, ())
        return read_kept(folder, batch)

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
        place = self.folder if into is None else into
        parent = place.absolute().parent
        self._say("writing the new checkpoint")
        scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}-new-", dir=parent))
        try:
            shutil.copytree(
                self.folder,
                scratch,
                ignore=_ignored(self.folder),
                dirs_exist_ok=True,
                symlinks=True,
            )
            if fingerprint.shards_in == EXECUTORS:
                partitions = {PARTITIONS: str(fingerprint.partitions), _PROVIDER: _ROCKSDB}
                set_settings(scratch, partitions)
                write_state(
                    self._spark(), scratch, kept, fingerprint.partitions, place=place.absolute()
                )
            else:
                for stage, shards in enumerate(kept):
                    for number, each in enumerate(shards):
                        if each.batch:
                            write_kept(scratch / SHARDS / f"{stage}-{number}", each)
            plan.write(scratch)
            fingerprint.replace_static(scratch)
            self._say("writing it to the disk")
            _sync(scratch)
            return _put(scratch, place, replaces=into is None)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


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
    _check_place(folder, into)
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
    _check_place(folder, into)
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
            detail="If it is that of a mapping: the records that its stream joins hold cannot be divided or "
            "moved yet.",
            hint="Run the mapping with the number of shards that it has, where its shards are.",
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


def _check_place(folder: Path, into: Path | None) -> None:
    if into is None:
        return
    if into.exists():
        raise UsageError(f"{into} exists already", hint="Name a folder that does not exist yet.")
    if folder.resolve() in into.absolute().parents:
        raise UsageError(f"{into} is inside of {folder}", hint="Name a folder outside of it.")


def _ignored(folder: Path) -> Callable[[str, list[str]], set[str]]:
    """Return what is not copied: state, and files that belong to a run."""

    def ignored(inside: str, names: list[str]) -> set[str]:
        if Path(inside) != folder:
            return set()
        return {each for each in names if each in (SHARDS, STATE, CLAIM) or each.startswith(".")}

    return ignored


def _sync(folder: Path) -> None:
    """Write everything in a folder to the disk."""
    for place, _, names in os.walk(folder):
        for name in (*names, "."):
            file = os.open(Path(place, name), os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _put(new: Path, place: Path, *, replaces: bool) -> Path | None:
    """Rename a complete checkpoint to its place; return where the one before is now."""
    old: Path | None = None
    if not replaces:
        new.rename(place)
    else:
        old = _free(place)
        if _exchanged(new, place):
            new.rename(old)
        else:
            place.rename(old)
            new.rename(place)
    parent = os.open(place.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return old


def _free(place: Path) -> Path:
    """Return a name for the checkpoint that is replaced."""
    found, number = place.with_name(f"{place.name}.before"), 1
    while found.exists():
        number += 1
        found = place.with_name(f"{place.name}.before-{number}")
    return found


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return whether the system can do that."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = (os.fsencode(each.absolute()) for each in (one, other))
    return bool(call(_HERE, next(names), _HERE, next(names), _EXCHANGE) == 0)
