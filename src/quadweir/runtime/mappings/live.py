"""A live run of a compiled mapping, batch by batch, or in Spark's real-time mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import DataError
from quadweir.mapping.quads import TARGET
from quadweir.sinks.base import Batch, Sink, TextSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lines import element_lines, line_of
from quadweir.sinks.rdf_batches import DocumentSink
from quadweir.sinks.rdf_documents import syntax_of
from quadweir.sinks.start import RunningQuery, Split, start, wait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.mapping.compile import Compiled
    from quadweir.mapping.files import Folders

REAL_TIME: Final = timedelta(minutes=1)
"""How often a real-time query saves its progress; a restart may send again what came since."""


@final
@dataclass(slots=True)
class LiveMapping:
    """A live run that has started."""

    query: RunningQuery
    letters: Letters | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it ends; return whether it did.

        Raises:
            DataError: the run is strict, and a record could not be used.
            SourceError: a source or sink failed.
        """
        try:
            return wait(self.query, timeout)
        except Exception:
            if self.letters is not None and self.letters.failure is not None:
                raise self.letters.failure from None
            raise


@final
@dataclass(slots=True)
class Letters(Sink):
    """Counts the records that cannot be used, and passes them to a sink if there is one.

    Attributes:
        sink: the sink for these records.
        strict: whether the first such record ends the run.
        on_bad: called with the number so far, and with one example of the last batch.
    """

    sink: Sink | None = None
    strict: bool = False
    on_bad: Callable[[int, str], None] = lambda _count, _bad: None
    count: int = 0
    failure: DataError | None = field(default=None)

    def prepare(self) -> None:
        if self.sink is not None:
            self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        found = frame.count()
        if not found:
            return
        if self.sink is not None:
            self.sink.write(frame, batch)
        self.count += found
        first = frame.first()
        assert first is not None
        bad = f"{first.source}, {first.place}: {first.reason}"
        if self.strict:
            # Kept here as well, because Spark passes on only the text of the error that ended a
            # query.
            self.failure = DataError(
                f"a record could not be used: {bad}",
                hint="Fix the source, or run without --strict to skip such records.",
            )
            raise self.failure
        self.on_bad(self.count, bad)


Launch: TypeAlias = Callable[["Compiled", Sink, Path], RunningQuery]
"""Starts a Spark query that writes what a mapping makes of streams to a sink."""


def launch_alone(compiled: Compiled, sink: Sink, checkpoint: Path) -> RunningQuery:
    """Start the Spark query of a mapping, with all of its joins in Spark's own plan."""
    return start(compiled.tagged(), sink, checkpoint=checkpoint)


def start_batches(
    compiled: Compiled,
    own: Sink,
    checkpoint: Path,
    *,
    folders: Folders | None = None,
    letters: Letters | None = None,
    overwrite: bool = False,
    launch: Launch = launch_alone,
) -> LiveMapping:
    """Start a query of micro-batches.

    A mapping that was compiled with `elements` is written element by element.

    Args:
        compiled: a mapping over some stream.
        own: the sink of quads without a logical target.
        checkpoint: the folder of the query's progress.
        folders: where logical targets may be written; needed if there are any.
        letters: the handler of records that cannot be used.
        overwrite: documents of logical targets may replace files.
        launch: starts the Spark query; joins in windows need one of their own.
    """
    letters = letters if letters is not None else Letters()
    targets: list[DocumentSink] = []
    for target in compiled.targets:
        assert folders is not None, "targets need folders"
        path = folders.resolve(target.path, target.root, span=target.span)
        syntax = syntax_of(target.serialization)
        targets.append(DocumentSink(path, syntax, target.encoding, target.compression, overwrite))

    is_timed = compiled.is_timed
    kept = (rows.EVENT_TIME, rows.POSITION, *rows.TERMS) if is_timed else rows.TERMS

    def split(frame: DataFrame) -> Sequence[DataFrame]:
        is_letter = F.col(rows.REASON).isNotNull()
        quads = frame.where(~is_letter)
        mine = quads.where(F.col(TARGET).isNull()) if targets else quads
        return [
            # Dead letters first: a strict run stops before it writes what came with them.
            frame.where(is_letter).select(*rows.DEAD_LETTER_SCHEMA.names),
            mine.select(*kept),
            *[
                quads.where(F.col(TARGET) == number).select(*rows.TERMS)
                for number in range(len(targets))
            ],
        ]

    streams, files = _apart(compiled)
    written = ElementSink(own.text) if is_timed and own.text is not None else own
    sink: Sink = Split(split, (letters, written, *targets))
    if files is not None:
        sink = _AtFirst(files.tagged(), sink)
    return LiveMapping(launch(streams, sink, checkpoint / "query"), letters)


def _apart(compiled: Compiled) -> tuple[Compiled, Compiled | None]:
    """The quads of streams, and the quads of files alone: Spark cannot unite the two."""
    groups = compiled.groups
    live = [group for group in groups if group.records.frame.isStreaming]
    if len(live) == len(groups):
        return compiled, None

    def is_live(join: Any) -> bool:
        return any(side.records.frame.isStreaming for side in (join.child, join.parent))

    joins = compiled.joins
    return (
        replace(compiled, groups=live, joins=[one for one in joins if is_live(one)]),
        replace(
            compiled,
            groups=[group for group in groups if not group.records.frame.isStreaming],
            joins=[one for one in joins if not is_live(one)],
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class ElementSink(Sink):
    """Writes statements as timed lines, element by element, to a sink of text."""

    sink: TextSink

    def prepare(self) -> None:
        self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.sink.write_lines(element_lines(frame, named=True).select(rows.LINE), batch)


@final
@dataclass(frozen=True, slots=True)
class _AtFirst(Sink):
    """Adds the quads of files to the first batch, so they are written exactly as often as that
    batch.
    """

    frame: DataFrame
    sink: Sink

    def prepare(self) -> None:
        self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        if batch.number == 0:
            # Files make no elements: joins look records up in them.
            frame = frame.unionByName(self.frame, allowMissingColumns=True)
        self.sink.write(frame, batch)


def start_realtime(
    compiled: Compiled,
    sink: KafkaSink,
    dead_letters: str,
    checkpoint: Path,
    *,
    every: timedelta = REAL_TIME,
) -> StreamingQuery:
    """Start a query in Spark's real-time mode, from Kafka to Kafka.

    Args:
        compiled: a mapping that passes `check_realtime`.
        sink: the sink of its quads.
        dead_letters: the topic for records that cannot be used, at the same brokers.
        checkpoint: the folder of the query's offsets.
        every: how often the offsets are saved; a restart may send again what came since.
    """
    sink.prepare()
    frame = compiled.tagged_elements() if compiled.is_timed else compiled.tagged()
    is_letter = F.col(rows.REASON).isNotNull()
    letter = F.to_json(F.struct(*rows.DEAD_LETTER_SCHEMA.names))
    line = F.col(rows.LINE) if compiled.is_timed else line_of(frame, sink.form)
    value = F.when(is_letter, letter).otherwise(line)
    # Positions distinguish equal elements of the same time.
    which = [F.hex(rows.POSITION)] if compiled.is_timed else []
    # One select, and so one pass: real-time mode reads a topic once.
    messages = frame.select(
        F.when(is_letter, F.lit(dead_letters)).otherwise(F.lit(sink.topic)).alias("topic"),
        F.concat_ws("|", F.lit(sink.name), *which, F.sha2(value, 256)).alias("key"),
        value.alias("value"),
    )
    # pyspark's own type hints do not know the real-time trigger.
    writer: Any = messages.writeStream
    query: StreamingQuery = (
        writer.format("kafka")
        .option("kafka.bootstrap.servers", sink.servers)
        .option("checkpointLocation", str(checkpoint.absolute() / "query"))
        .outputMode("update")
        .trigger(realTime=f"{every // timedelta(milliseconds=1)} milliseconds")
        .start()
    )
    return query
