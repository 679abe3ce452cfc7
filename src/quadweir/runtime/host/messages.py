"""What the driver and its worker processes say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

from quadweir.errors import QuadweirError
from quadweir.runtime.shard.base import Counts, RowPacker, StageSpec


@final
@dataclass(frozen=True)
class ShardPlace:
    """A shard that a worker is to hold.

    Attributes:
        key: its number among the shards of its stage.
        spec: makes it.
        folder: the folder of its journal.
    """

    key: int
    spec: StageSpec
    folder: str


@final
@dataclass(frozen=True)
class WorkerTask:
    """What one worker does for one job of a run.

    Attributes:
        job: the number of the job.
        places: the shards of each stage, in their order.
        packer: packs rows for the first stage.
        answers: the file for answers.
    """

    job: int

    places: tuple[tuple[ShardPlace, ...], ...]
    packer: RowPacker
    answers: str


@final
@dataclass(frozen=True)
class Arrived:
    """The rows of a batch.

    Attributes:
        inline: some of them, as an Arrow stream.
        files: the others, as Arrow streams in files.
    """

    inline: bytes = b""
    files: tuple[str, ...] = ()


@final
@dataclass(frozen=True)
class Open:
    """Hold the shards of some jobs, as they were before a batch. The reply is None."""

    work: tuple[WorkerTask, ...]
    batch: int


@final
@dataclass(frozen=True)
class JobChange:
    """What is different for the shards of a job from a batch on.

    Attributes:
        packer: packs the rows for the first stage; None if it is the one before.
        change: a blob for every shard of the first stage; or nothing.
        grown: parts of the stages that shards may need from now on.
    """

    packer: RowPacker | None = None
    change: bytes = b""
    grown: tuple[Any, ...] = ()


@final
@dataclass(frozen=True)
class Take:
    """Step the first stage of each job with the rows of a batch.

    The reply has a list of `ShardReport` for each job.

    Attributes:
        batch: its number.
        now: when it began.
        arrived: its rows.
        changes: for each job, what is different from this batch on.
    """

    batch: int
    now: int
    arrived: Arrived
    changes: tuple[JobChange, ...]


@final
@dataclass(frozen=True)
class Forward:
    """Step a later stage with what the stage before sent. The reply is a list of `ShardReport`.

    Attributes:
        job: the number of the job.
        stage: the stage.
        batch: the number of the batch.
        blobs: those for each shard that the worker holds.
    """

    job: int
    stage: int
    batch: int
    blobs: list[list[bytes]]


@final
@dataclass(frozen=True)
class Keep:
    """Write what a batch brought to the journals.

    The reply has the facts of the journals of each stage of each job (`facts.STATE_FACTS`).
    """

    batch: int


@final
@dataclass(frozen=True)
class Pack:
    """Only pack rows, for measurements. The reply is the number of bytes."""

    arrived: Arrived


@final
@dataclass(frozen=True)
class Close:
    """Forget all shards. The reply is None."""


Request: TypeAlias = Open | Take | Forward | Keep | Pack | Close


@final
@dataclass(frozen=True)
class ShardReport:
    """What a shard made of a batch.

    Attributes:
        facts: the facts of the shard.
        counts: its answers and dead letters.
        sent: blobs for the shards of the next stage.
    """

    facts: Mapping[str, Any]
    counts: Counts = field(default_factory=Counts)
    sent: tuple[tuple[int, bytes], ...] = ()


@final
@dataclass(frozen=True)
class Done:
    """A request was carried out."""

    result: object


@final
@dataclass(frozen=True)
class Failed:
    """A request failed: an error of ours, or a traceback."""

    error: QuadweirError | str


Reply: TypeAlias = Done | Failed
