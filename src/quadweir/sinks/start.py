"""Start a streaming query that writes to a sink; several sinks in one pass.

A sink gets each micro-batch with its number. After a crash Spark repeats the batch that was not
finished, with the same number and the same rows; what a sink makes of that is its guarantee
(`docs/reference/sinks.md`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, final, runtime_checkable

from quadweir.errors import UsageError
from quadweir.sources.raw import explain_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.sinks.gate import Gate
    from quadweir.sinks.lines import LineFormat


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch of which query; both stay the same when a batch is repeated after a crash."""

    number: int
    query: str


class Sink(Protocol):
    """Where rows go."""

    def prepare(self) -> None:
        """Check, before the query starts, what can be checked.

        Raises:
            SourceError: the sink cannot be written.
        """

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write the rows of a batch."""


@runtime_checkable
class LineSink(Sink, Protocol):
    """A sink that writes lines of text.

    How a row becomes a line is then part of the stream's own plan. Said to Spark in every batch, it
    took a quarter of a small batch's time.
    """

    def lines(self, frame: DataFrame) -> DataFrame:
        """Write each row as a line.

        Raises:
            UsageError: the rows lack a column that the format needs.
        """

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        """Write the lines of a batch."""


@runtime_checkable
class TextSink(LineSink, Protocol):
    """A sink that writes lines of text, also such as are there already, without Spark."""

    @property
    def form(self) -> LineFormat:
        """How a row becomes a line."""

    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        """Write lines of a batch, all of them; few, as they were collected."""


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
        every: how often a batch is taken; default: as soon as the last one is done.
        available_now: take what is there now, in as many batches as needed, and end.
        mode: Spark's output mode.
        name: what the query is called.
        gate: what lets the query be stopped between two batches.

    Raises:
        SourceError: the sink cannot be written.
        UsageError: the rows are no stream, or not such as the sink writes.
    """
    if not frame.isStreaming:
        raise UsageError("the rows to be written continuously are not a stream")
    if available_now and every is not None:
        raise UsageError("available_now and every exclude each other")
    sink.prepare()
    put: Callable[[DataFrame, Batch], None] = sink.write
    if isinstance(sink, LineSink):
        frame, put = sink.lines(frame), sink.write_lines
    started = threading.Event()
    identity: list[str] = []

    def write(rows: DataFrame, number: int) -> None:
        # The first batch may come before `start` has told us the query's name.
        started.wait()
        if gate is not None:
            gate.pass_with(rows)
        put(rows, Batch(number, identity[0]))

    writer = frame.writeStream.foreachBatch(write).outputMode(mode)
    writer = writer.option("checkpointLocation", str(checkpoint))
    if name is not None:
        writer = writer.queryName(name)
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every is not None:
        writer = writer.trigger(processingTime=f"{every // timedelta(milliseconds=1)} milliseconds")
    try:
        query = writer.start()
        identity.append(str(query.id))
    finally:
        started.set()
    return query


def wait(query: StreamingQuery, timeout: timedelta | None = None) -> bool:
    """Wait until a query ends; tell whether it did.

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
class Split:
    """Several sinks in one pass: the batch is computed once and kept while they write.

    Attributes:
        split: makes of a batch one frame for each sink.
        sinks: where these frames go, in this order.
    """

    split: Callable[[DataFrame], Sequence[DataFrame]]
    sinks: Sequence[Sink]

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
class Call:
    """Any function of the user's, as for Spark's own `foreachBatch`.

    Guarantee: at least once; the function can make it exactly once with the batch's number.

    Attributes:
        function: gets the rows of a batch and its number.
        whole: promises that the function computes all rows, and once: then they need not be kept in
            memory beside it; and that it does nothing with them in Python on Spark's workers.
    """

    function: Callable[[DataFrame, int], object]
    whole: bool = False

    def prepare(self) -> None:
        """There is nothing to check."""

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.function(frame, batch.number)
