"""What a sink is, and what it needs from the host that writes to it.

A sink gets each micro-batch with its number. After a crash, Spark repeats the batch that was not
finished, with the same number and the same rows. What a sink makes of that is its guarantee
(`docs/reference/sinks.md`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from quadweir.sinks.lineformat import LineFormat


@final
@dataclass(frozen=True, slots=True)
class Batch:
    """Which batch of which query; both stay the same when a batch is repeated after a crash."""

    number: int
    query: str


@final
@dataclass(frozen=True, slots=True)
class SinkNeeds:
    """What a host must know about a sink.

    Attributes:
        reads_all: the sink computes every row of a batch, exactly once. Spark writes state where
            rows are computed, so for other sinks the host computes all rows first and keeps them.
        wants_empty: the sink wants batches without rows, too.
        may_use_python: the sink may use rows in Python on Spark's workers.
        may_keep: the sink may keep the frame after `write`. Other sinks get the same frame in every
            batch, over other rows, so that Spark plans it once.
    """

    reads_all: bool = False
    wants_empty: bool = True
    may_use_python: bool = False
    may_keep: bool = False


class Sink(ABC):
    """Where rows go."""

    @property
    def needs(self) -> SinkNeeds:
        """What a host must know about the sink."""
        return SinkNeeds()

    @property
    def text(self) -> TextSink | None:
        """The sink as one of lines of text; None if it needs frames."""
        return None

    @property
    def arrow(self) -> ArrowSink | None:
        """The sink as one that takes Arrow batches from local worker processes; None if it cannot."""
        return None

    @property
    def keyed(self) -> KeyedSink | None:
        """The sink as one of messages with keys; None if it has no keys."""
        return None

    def prepare(self) -> None:
        """Check, before the query starts, what can be checked.

        Raises:
            SourceError: the sink cannot be written.
        """
        return

    @abstractmethod
    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Write the rows of a batch."""


class ArrowSink(Sink):
    """A sink that takes what shards give as it is, without Spark."""

    @property
    def arrow(self) -> ArrowSink:
        return self

    @abstractmethod
    def write_arrow(self, found: Iterable[pa.RecordBatch], batch: Batch) -> None:
        """Write the output rows of all shards of a batch, which are all in `found`."""


class KeyedSink(Sink):
    """A sink of messages that may be there twice after a crash; by their keys, a reader drops those."""

    @property
    def keyed(self) -> KeyedSink:
        return self

    @abstractmethod
    def write_messages(self, frame: DataFrame) -> None:
        """Write rows that are keys and values."""


class TextSink(Sink):
    """A sink of lines of text.

    Spark plans the lines once, as a part of the stream's own plan. Planned again in every batch, they
    took a quarter of a small batch's time.
    """

    @property
    @abstractmethod
    def form(self) -> LineFormat:
        """How a row becomes a line."""

    @property
    def text(self) -> TextSink:
        return self

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.write_lines(self.lines(frame), batch)

    def lines(self, frame: DataFrame) -> DataFrame:
        """Return each row as a line.

        Raises:
            UsageError: the rows lack a column that the format needs.
        """
        from quadweir.sinks.lines import to_lines

        return to_lines(frame, self.form)

    @abstractmethod
    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        """Write the lines of a batch."""

    @abstractmethod
    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        """Write all lines of a batch, which are few, without Spark."""
