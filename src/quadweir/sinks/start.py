"""Starts a streaming query that writes to a sink; sinks made of other sinks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from quadweir.errors import StateError, UsageError
from quadweir.failures import explain_failure
from quadweir.sinks.base import Batch, Sink, SinkNeeds

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.sinks.gate import Gate

# What Java says when it starts a query and reads a file of the checkpoint that was changed or cut.
_DAMAGED: Final = re.compile(r"ChecksumException|StreamMetadata\$?\.read")


class RunningQuery(Protocol):
    """The methods of a running Spark query that callers need."""

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's StreamingQuery has it
        """Whether it runs."""

    @property
    def recentProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's reports of the last batches."""

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until it ends."""

    def processAllAvailable(self) -> None:  # noqa: N802 - as Spark's StreamingQuery has it
        """Wait until everything that is there now is processed."""

    def exception(self) -> Any:
        """The error that ended it, or None."""

    def stop(self) -> None:
        """Stop it."""


def start(
    frame: DataFrame,
    sink: Sink,
    *,
    checkpoint: Path | str,
    every: timedelta | None = None,
    available_now: bool = False,
    mode: str = "append",
    name: str | None = None,
    gate: Gate | None = None,
) -> StreamingQuery:
    """Start writing a streaming frame to a sink.

    Args:
        frame: a streaming frame.
        sink: where its rows go.
        checkpoint: the folder of the query's offsets and state; the same folder makes the query
            go on where it stopped.
        every: how often a batch begins; default: as soon as the last one is done.
        available_now: take what is there now, in as many batches as needed, and end.
        mode: Spark's output mode.
        name: the name of the query.
        gate: lets the query be stopped between two batches.

    Raises:
        SourceError: the sink cannot be written.
        UsageError: the rows are no stream, or the sink cannot write them.
        StateError: Spark cannot read what the checkpoint has.
    """
    from py4j.protocol import Py4JJavaError

    if not frame.isStreaming:
        raise UsageError("the rows to be written continuously are not a stream")
    if available_now and every is not None:
        raise UsageError("available_now and every exclude each other")
    sink.prepare()
    put: Callable[[DataFrame, Batch], None] = sink.write
    if sink.text is not None:
        frame, put = sink.text.lines(frame), sink.text.write_lines
    started = threading.Event()
    identity: list[str] = []

    def write(rows: DataFrame, number: int) -> None:
        # The first batch may come before `start` has returned the query and its id.
        started.wait()
        if gate is not None:
            gate.pass_with(rows)
        put(rows, Batch(number, identity[0]))

    writer = frame.writeStream.foreachBatch(write).outputMode(mode)
    # Java may have started in another folder than the one that relative paths mean now.
    writer = writer.option("checkpointLocation", str(Path(checkpoint).absolute()))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=f"{every // timedelta(milliseconds=1)} milliseconds")
    try:
        query = writer.start()
        identity.append(str(query.id))
    except Py4JJavaError as error:
        if _DAMAGED.search(str(error)) is None:
            raise
        raise _damaged(Path(checkpoint), error) from error
    finally:
        started.set()
    return query


def _damaged(checkpoint: Path, error: Py4JJavaError) -> StateError:
    said = str(error.java_exception).strip().splitlines()
    return StateError(
        f"Spark cannot read the checkpoint {checkpoint}",
        detail=said[0] if said else None,
        hint="Some of its files are damaged. Restore the checkpoint from a backup, or start with a new "
        "one.",
    )


def wait(query: RunningQuery, timeout: timedelta | None = None) -> bool:
    """Wait until a query ends; return whether it did.

    Raises:
        SourceError: it ended because a source or sink failed; the error says what to do.
    """
    from pyspark.errors import StreamingQueryException

    try:
        if timeout is None:
            query.awaitTermination()
            return True
        return bool(query.awaitTermination(max(int(timeout.total_seconds()), 1)))
    except StreamingQueryException as error:
        explained = explain_failure(error)
        if explained is None:
            raise
        raise explained from error


@final
@dataclass(frozen=True, slots=True)
class Split(Sink):
    """Several sinks in one pass: each batch is computed once and kept while they write.

    Attributes:
        split: makes one frame for each sink from a batch.
        sinks: where these frames go, in this order.
    """

    split: Callable[[DataFrame], Sequence[DataFrame]]
    sinks: Sequence[Sink]

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(
            may_use_python=any(each.needs.may_use_python for each in self.sinks),
            may_keep=any(each.needs.may_keep for each in self.sinks),
        )

    def prepare(self) -> None:
        for sink in self.sinks:
            sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        kept = frame.persist()
        try:
            for part, sink in zip(self.split(kept), self.sinks, strict=True):
                sink.write(part, batch)
        finally:
            kept.unpersist()


def both(*sinks: Sink) -> Split:
    """Write the same rows to each sink, computing them once."""
    return Split(lambda frame: [frame] * len(sinks), sinks)


@final
@dataclass(frozen=True, slots=True)
class Call(Sink):
    """A function of the user, as for Spark's own `foreachBatch`.

    Guarantee: at least once; the function can make it exactly once with the batch's number.

    Attributes:
        function: gets the rows of a batch and its number.
        whole: promises that the function computes all rows exactly once, so that Spark need not keep
            them in memory; and that it does nothing with them in Python on Spark's workers.
    """

    function: Callable[[DataFrame, int], object]
    whole: bool = False

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(
            reads_all=self.whole, may_use_python=not self.whole, may_keep=not self.whole
        )

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.function(frame, batch.number)
