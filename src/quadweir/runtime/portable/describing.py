"""What a checkpoint has, for people and programs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, final

from quadweir.runtime.checkpoint import DRIVER, EXECUTORS, VERSION, is_network
from quadweir.runtime.portable.checkpoints import known_fingerprint
from quadweir.runtime.portable.joinfile import StoredJoins
from quadweir.runtime.portable.mappings import is_mapping
from quadweir.runtime.portable.rewriting import SHARDS, STATE
from quadweir.runtime.portable.sparklogs import SparkLogs

WHERE: Final = {DRIVER: "local worker processes", EXECUTORS: "Spark's executors"}


@final
@dataclass(frozen=True, slots=True)
class ShardSize:
    """How large the stored state of one shard is.

    Attributes:
        stage: the stage of the shard.
        shard: its number; in Spark's state store, that of its partition.
        bytes: the size of its files.
    """

    stage: int
    shard: int
    bytes: int


@final
@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What a checkpoint has.

    Attributes:
        query: the query, as its algebra; the windows of the joins of a mapping.
        kind: `query`, `network` or `mapping`.
        host: where its shards are, `driver` or `executors`.
        count: how many shards the first stage has.
        most: how many shards were asked for.
        partitions: over how many partitions of Spark they are spread; 0 if Spark has no part in it.
        layout: by what its rows are sharded.
        static: the digest of its static data.
        format: the version of its state.
        last_batch: the last batch that is committed; None before the first.
        begun_batch: the last batch that began.
        began: when that was.
        offsets: how far the sources were read.
        state: how large the stored state of each shard is.
    """

    query: str
    kind: str
    host: str
    count: int
    most: int
    partitions: int
    layout: str
    static: str
    format: int
    last_batch: int | None
    begun_batch: int | None
    began: str | None
    offsets: tuple[Any, ...]
    state: tuple[ShardSize, ...]

    @property
    def shards(self) -> str:
        """How many shards it has, in words."""
        return f"{self.count} {'shard' if self.count == 1 else 'shards'}"

    @property
    def where(self) -> str:
        """Where its shards are, in words."""
        return WHERE[self.host]

    def as_data(self) -> dict[str, Any]:
        """Return it for JSON."""
        found = asdict(self)
        return {**found, "shards": found.pop("count")}

    def as_text(self) -> str:
        """Return it for people."""
        lines = [
            f"{self.kind}:",
            *(f"  {line}" for line in self.query.splitlines()),
            f"shards: {self.count} in {self.where}" + f", {self.layout}" * bool(self.layout),
        ]
        if self.most != self.count:
            lines.append(f"  {self.most} were asked for; the rows of the query cannot be divided")
        if self.last_batch is None:
            lines.append("batches: none is committed")
        else:
            lines.append(f"batches: {self.last_batch} is the last that is committed")
        if self.begun_batch is not None and self.begun_batch != self.last_batch:
            lines.append(f"  {self.begun_batch} has begun, and will be repeated")
        if self.began is not None:
            lines.append(f"  the last one began at {self.began}")
        lines.append("offsets:" if self.offsets else "offsets: none")
        lines += [f"  {json.dumps(each)}" for each in self.offsets]
        total = sum(each.bytes for each in self.state)
        lines.append(f"state: {total:,} bytes")
        lines += [
            f"  stage {each.stage + 1}, shard {each.shard}: {each.bytes:,} bytes"
            for each in self.state
        ]
        return "\n".join(lines)


def describe(checkpoint: Path) -> CheckpointInfo:
    """Return what a checkpoint has; its query may be running.

    Raises:
        StateError: it is none of ours, one of another release, or damaged.
    """
    if is_mapping(checkpoint):
        return _of_mapping(checkpoint)
    known, logs = known_fingerprint(checkpoint), SparkLogs.of(checkpoint)
    return CheckpointInfo(
        query=known.algebra,
        kind="network" if is_network(known.algebra) else "query",
        host=known.shards_in,
        count=known.shards,
        most=known.most,
        partitions=known.partitions,
        layout=known.layout,
        static=known.static,
        format=known.version,
        last_batch=logs.committed if logs.committed >= 0 else None,
        begun_batch=logs.begun if logs.begun >= 0 else None,
        began=_instant(logs.began_ms),
        offsets=logs.offsets,
        state=tuple(_sizes(checkpoint, known.shards_in)),
    )


def _of_mapping(checkpoint: Path) -> CheckpointInfo:
    joins, logs = StoredJoins.left_in(checkpoint), SparkLogs.of(checkpoint)
    assert joins is not None, "the caller has looked"
    return CheckpointInfo(
        query="\n".join(f"stream join in {each.window}" for each in joins.specs),
        kind="mapping",
        host=joins.shards_in,
        count=joins.most,
        most=joins.most,
        partitions=joins.most if joins.shards_in == EXECUTORS else 0,
        layout="by the keys of its joins",
        static="",
        format=VERSION,
        last_batch=logs.committed if logs.committed >= 0 else None,
        begun_batch=logs.begun if logs.begun >= 0 else None,
        began=_instant(logs.began_ms),
        offsets=logs.offsets,
        state=tuple(_sizes(checkpoint, joins.shards_in)),
    )


def _instant(ms: int | None) -> str | None:
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def _sizes(checkpoint: Path, host: str) -> list[ShardSize]:
    if host == DRIVER:
        found = [each.name.split("-") for each in (checkpoint / SHARDS).glob("[0-9]*-[0-9]*")]
        places = sorted((int(stage), int(shard)) for stage, shard in found if stage.isdecimal())
        return [
            ShardSize(stage, shard, _size(checkpoint / SHARDS / f"{stage}-{shard}"))
            for stage, shard in places
        ]
    folders = [each for each in (checkpoint / STATE).glob("[0-9]*/[0-9]*") if each.is_dir()]
    stages = {int(each.parent.name) for each in folders}
    return sorted(
        (
            # Spark numbers the operator of the last stage first.
            ShardSize(max(stages) - int(each.parent.name), int(each.name), _size(each))
            for each in folders
        ),
        key=lambda each: (each.stage, each.shard),
    )


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())
