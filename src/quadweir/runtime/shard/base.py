"""What hosts and shards know of each other: a stage makes hosted shards, a host runs them.

A host knows no operator. It moves blobs and journals state, for the shards of a query and for those
of a stream join alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, final

import pyarrow as pa

from quadweir.runtime.shard.facts import Fold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class Hosted(Protocol):
    """One shard, as a worker keeps it between batches."""

    def take(self, blobs: list[bytes], step: str, replayed: int) -> Iterator[pa.RecordBatch]:
        """Take the blobs of a batch and yield the output rows; the caller consumes all of them.

        The last batch of rows is one row with the facts of the shard (`facts`).

        Args:
            blobs: what arrived.
            step: names this batch of this shard, and no other.
            replayed: how many journal entries were replayed before this batch.
        """

    def lasting(self, blobs: list[bytes]) -> list[bytes]:
        """Return those of the blobs just taken that the journal has to keep."""

    def mark(self) -> int:
        """Return a number that the journal keeps with the blobs of a batch, for `replay`."""

    def replay(self, blobs: list[bytes], mark: int) -> None:
        """Take blobs again, as the batch that logged them did, without output."""

    def note(self) -> str:
        """Return the small part of the state that changes in every batch."""

    def resume(self, note: str) -> None:
        """Take a note back, after the snapshot and the log."""

    def snapshot(self) -> bytes:
        """Return the whole state, except the note."""

    def restore(self, data: bytes) -> None:
        """Take a snapshot back."""


class StageSpec(Protocol):
    """What a worker makes the shards of one stage from; it is sent to other processes."""

    @property
    def stage(self) -> int:
        """The place of the stage in the job."""

    @property
    def shards(self) -> tuple[int, ...]:
        """The shuffle keys of its shards, in their order."""

    @property
    def sends(self) -> bool:
        """Whether its output goes to the shards of the next stage."""

    @property
    def output(self) -> StructType:
        """The columns of its output rows; the columns of `facts` are among them."""

    @property
    def facts(self) -> Mapping[str, Fold]:
        """The facts that each shard reports about a batch, and how they are folded."""

    def host(self, key: int) -> Hosted:
        """Make the shard of a shuffle key, empty."""

    def counted(self, batches: Sequence[pa.RecordBatch]) -> Counts:
        """Count the answers and dead letters among output rows."""

    def grow(self, parts: Iterable[Any]) -> None:
        """Take what a batch plan says that shards may need from now on (`BatchPlan.grown`)."""


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """How many answers and dead letters a shard gave in a batch."""

    answers: int = 0
    letters: int = 0

    @staticmethod
    def of(counts: Iterable[Counts]) -> Counts:
        """Add counts."""
        known = list(counts)
        return Counts(sum(each.answers for each in known), sum(each.letters for each in known))


class RowPacker(Protocol):
    """Packs rows into blobs for the shards of the first stage."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the rows of one Spark task: rows of `pack.BLOB_SCHEMA`, a blob for each shard."""

    def for_shards(
        self, shards: Iterable[int], batches: Iterable[pa.RecordBatch], now: int
    ) -> list[list[bytes]]:
        """Pack all rows of a batch.

        Args:
            shards: the numbers of the shards to pack for.
            batches: the rows.
            now: when the batch began.

        Returns:
            The blobs of each of these shards.
        """


@final
@dataclass(frozen=True)
class BatchPlan:
    """How a job takes one batch.

    Attributes:
        match: makes the rows that are packed, from the rows of the batch.
        packer: packs them; None if it is the one before.
        change: a blob for every shard that says what is different from this batch on; or nothing.
        grown: parts of the stages that shards may need from this batch on.
    """

    match: Callable[[DataFrame], DataFrame] = lambda rows: rows
    packer: RowPacker | None = None
    change: bytes = b""
    grown: tuple[Any, ...] = ()


class JobControl:
    """Decides what is different from one batch to the next; by default, nothing is."""

    def begin(self, batch: int) -> BatchPlan:  # noqa: ARG002 - nothing depends on it here
        """Return how a batch is taken; a batch that is repeated is taken as before."""
        return BatchPlan()

    def end(self, batch: int, facts: Mapping[str, Any]) -> None:
        """Take the facts of the last stage about a batch whose answers are written."""


@final
@dataclass(frozen=True)
class Job:
    """What a host runs: the shards of a query or of a stream join, and the rows that go to them.

    A job without stages passes its rows on (`passing_on`).

    Attributes:
        name: names the query or join; two different ones have different names.
        counts: the number of shards of each stage.
        rows: makes the frame of rows that are packed for so many shards of the first stage.
        packer: makes what packs them, from the shuffle keys and the folder of Spark's offsets.
        stages: makes the stages, from the shuffle keys of each.
        metrics: the names under which the facts of each stage appear in Spark's progress.
        has_padding: whether long rows are followed by padding rows (`spark/arrowbatches.py`).
        control: decides what is different from one batch to the next.
    """

    name: str
    counts: tuple[int, ...]
    rows: Callable[[int], DataFrame]
    packer: Callable[[tuple[int, ...], str], RowPacker]
    stages: Callable[[Sequence[tuple[int, ...]]], Sequence[StageSpec]]
    metrics: tuple[str, ...]
    has_padding: bool = False
    control: JobControl = field(default_factory=JobControl)

    @staticmethod
    def passing_on(rows: DataFrame) -> Job:
        """Return a job that only passes rows on, in the same run as others."""

        def no_packer(keys: tuple[int, ...], clock: str) -> RowPacker:
            raise NotImplementedError("rows that are passed on are not packed")

        return Job("", (), lambda _: rows, no_packer, lambda _: (), ())
