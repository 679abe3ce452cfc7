"""A sink for answers: every partition of every batch is computed, once.

State is written where rows are computed. A sink that skips a batch which it has from before a crash,
or looks at its first rows only, would leave the state of that batch unwritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from quadweir.sinks.console import ConsoleSink
from quadweir.sinks.files import FileSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.rdf_batches import DocumentSink
from quadweir.sinks.start import Call

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.start import Batch, Sink


@final
@dataclass(frozen=True, slots=True)
class Whole:
    """Hands batches to another sink, and sees to it that all of each is computed."""

    sink: Sink

    def prepare(self) -> None:
        self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        match self.sink:
            case KafkaSink() | DocumentSink():
                self.sink.write(frame, batch)  # they write all rows, whatever there was before
            case ConsoleSink(most_rows=most) if most >= _ALL_ROWS:
                self.sink.write(frame, batch)
            case Call(whole=True):
                self.sink.write(frame, batch)
            case _:
                kept = frame.persist()
                try:
                    kept.count()
                    self.sink.write(kept, batch)
                finally:
                    kept.unpersist()


@final
@dataclass(frozen=True, slots=True)
class WholeFiles:
    """The same for files, which take lines."""

    sink: FileSink

    def prepare(self) -> None:
        self.sink.prepare()

    def lines(self, frame: DataFrame) -> DataFrame:
        return self.sink.lines(frame)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.write_lines(self.lines(frame), batch)

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        if self.sink.is_decided(batch):
            lines.write.format("noop").mode("overwrite").save()
        self.sink.write_lines(lines, batch)


def whole(sink: Sink) -> Sink:
    """See to it that all of each batch is computed that a sink gets."""
    return WholeFiles(sink) if isinstance(sink, FileSink) else Whole(sink)


_ALL_ROWS = 2**31 - 2
