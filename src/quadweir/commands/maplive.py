"""`quadweir map --live`: a mapping that goes on as records arrive."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.commands.interrupts import Interrupts, quieten_gateway
from quadweir.commands.output import printable, stderr_console
from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping as Declarations

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.mapping.compile import Compiled
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.start import Batch, Sink
    from quadweir.sources.declare import StreamDeclaration

_ALL_ROWS: Final = 2**31 - 2
_POLL: Final = timedelta(seconds=1)
_KAFKA: Final = "kafka:"
_DEAD: Final = "-dead-letters"
# How often a real-time query notes its progress: what a restart may send again.
REAL_TIME: Final = timedelta(minutes=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What the command line asked for."""

    folders: Folders
    output: str | None = None
    form: str = "nquads"
    distinct: bool = False
    base: str | None = None
    realtime: bool = False
    streams: Path | None = None
    checkpoint: Path | None = None
    strict: bool = False
    explain: bool = False
    hosts: tuple[str, ...] = ()
    dead_letters: str | None = None


@final
@dataclass(slots=True)
class Run:
    """A live run that has begun."""

    query: StreamingQuery
    letters: _Letters | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until it ends; tell whether it did.

        Raises:
            DataError: it was to be strict, and a record could not be used.
            SourceError: a source or sink failed.
        """
        from quadweir.sinks.start import wait

        try:
            return wait(self.query, timeout)
        except Exception:
            if self.letters is not None and self.letters.failure is not None:
                raise self.letters.failure from None
            raise


def run(mapping: Mapping, options: LiveOptions) -> None:
    """Map until Ctrl-C, or until a source fails."""
    from quadweir.mapping.check import check_mapping
    from quadweir.runtime.session import build
    from quadweir.sources.declare import load

    check_options(options)
    check_mapping(mapping)
    declarations = load(options.streams) if options.streams is not None else {}
    with ExitStack() as stack:
        checkpoint = options.checkpoint or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="quadweir-map-"))
        )
        master = _master(mapping, declarations) if options.realtime else None
        spark = build(app_name="quadweir-map", master=master)
        stack.callback(spark.stop)
        begun = begin(spark, mapping, options, checkpoint, declarations)
        quieten_gateway()
        interrupts = stack.enter_context(Interrupts())
        try:
            while not interrupts.seen:
                if begun.wait(_POLL):
                    break
        finally:
            begun.query.stop()


def check_options(options: LiveOptions) -> None:
    """Refuse what a live run cannot do."""
    if options.form not in ("nquads", "ntriples"):
        raise UsageError(
            f"a live run cannot write {options.form}, whose documents have an end",
            hint="Write nquads or ntriples; logical targets can have any format, a document for "
            "each batch.",
        )
    if options.distinct:
        raise UsageError(
            "--distinct would have to remember every quad of a stream for ever",
            hint="Leave it out; RDF takes no notice of repetition.",
        )
    if options.realtime and options.strict:
        raise UsageError(
            "--strict cannot stop a real-time run, which has no batches to stop at",
            hint="Run it with --live, or watch the topic of dead letters.",
        )


def begin(
    spark: SparkSession,
    mapping: Mapping,
    options: LiveOptions,
    checkpoint: Path,
    declarations: Declarations[str, StreamDeclaration],
) -> Run:
    """Start mapping in a session."""
    from quadweir.mapping.live import Streams, check_realtime, compile_live
    from quadweir.mapping.run import check_graphs, keep_methods_short
    from quadweir.sinks.rdf_documents import Syntax

    check_graphs(mapping, Syntax(options.form))
    keep_methods_short(spark)
    streams = Streams(
        spark=spark,
        folders=options.folders,
        spool=checkpoint / "spool",
        declarations=declarations,
        hosts=options.hosts,
    )
    compiled = compile_live(mapping, streams, base=options.base)
    if options.explain:
        stderr_console().print(printable(compiled.explain()), markup=False)
    if not compiled.is_streaming:
        raise UsageError(
            "the mapping reads no stream", hint="Run it without --live, or name a stream."
        )
    own = _sink(options)
    if options.realtime:
        check_realtime(mapping, compiled, declarations)
        return Run(start_realtime(compiled, *_topics(own, options), checkpoint))
    return _start(compiled, own, options, checkpoint)


# -- micro-batches ----------------------------------------------------------------------------


def _start(compiled: Compiled, own: Sink, options: LiveOptions, checkpoint: Path) -> Run:
    from quadweir.mapping.quads import TARGET
    from quadweir.sinks.rdf_batches import DocumentSink
    from quadweir.sinks.rdf_documents import syntax_of
    from quadweir.sinks.start import Split, start

    letters = _Letters(_letter_sink(options), options.strict)
    targets = [
        DocumentSink(
            options.folders.resolve(target.path, target.root, span=target.span),
            syntax_of(target.serialization),
            target.encoding,
            target.compression,
        )
        for target in compiled.targets
    ]

    def split(frame: DataFrame) -> list[DataFrame]:
        from pyspark.sql import functions as F

        is_letter = F.col(rows.REASON).isNotNull()
        # Dead letters first: a strict run stops before it writes what came with them.
        found = [frame.where(is_letter).select(*rows.DEAD_LETTER_SCHEMA.names)]
        quads = frame.where(~is_letter)
        if targets:
            found.append(quads.where(F.col(TARGET).isNull()).select(*rows.TERMS))
            found.extend(
                quads.where(F.col(TARGET) == number).select(*rows.TERMS)
                for number in range(len(targets))
            )
        else:
            found.append(quads.select(*rows.TERMS))
        return found

    query = start(
        compiled.tagged(),
        Split(split, (letters, own, *targets)),
        checkpoint=checkpoint / "query",
    )
    return Run(query, letters)


def _sink(options: LiveOptions) -> Sink:
    from quadweir.sinks.console import ConsoleSink
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lines import LineFormat

    form = LineFormat(options.form)
    target = options.output
    if target is None or target == "-":
        return ConsoleSink(form, _ALL_ROWS, sys.stdout)
    if target.startswith(_KAFKA):
        return _kafka(target, options.form)
    return FileSink(Path(target), form, compress=False)


def _letter_sink(options: LiveOptions) -> Sink | None:
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lines import LineFormat

    target = options.dead_letters
    if target is None:
        return None
    if target.startswith(_KAFKA):
        return _kafka(target, LineFormat.JSONL)
    return FileSink(Path(target), LineFormat.JSONL)


def _kafka(target: str, form: str) -> KafkaSink:
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.lines import LineFormat

    servers, _, topic = target.removeprefix(_KAFKA).rpartition("/")
    if not servers or not topic:
        raise UsageError(f"not a Kafka topic: {target}", hint="Write kafka:HOST:PORT/TOPIC.")
    return KafkaSink(servers, topic, LineFormat(form), name="map")


@final
@dataclass(slots=True)
class _Letters:
    """Counts the records that cannot be used, and keeps them if a place is named."""

    sink: Sink | None
    strict: bool
    count: int = 0
    failure: DataError | None = field(default=None)

    def prepare(self) -> None:
        if self.sink is not None:
            self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        found = frame.count()
        if self.sink is not None:
            self.sink.write(frame, batch)
        if not found:
            return
        self.count += found
        first = frame.first()
        assert first is not None
        told = f"{first.source}, {first.place}: {first.reason}"
        if self.strict:
            # Kept here as well: Spark hands on only the text of what ended a query.
            self.failure = DataError(
                f"a record could not be used: {told}",
                hint="Mend the source, or run without --strict to leave such records out.",
            )
            raise self.failure
        stderr_console().print(
            printable(f"{self.count} records could not be used so far; one of them: {told}"),
            markup=False,
        )


# -- real-time mode ---------------------------------------------------------------------------


def _topics(own: Sink, options: LiveOptions) -> tuple[KafkaSink, str]:
    """Where a real-time run writes: the sink of its quads, and the topic of its dead letters."""
    from quadweir.sinks.kafka import KafkaSink

    if not isinstance(own, KafkaSink):
        raise UsageError("real-time mode writes to Kafka only", hint="Add -o kafka:BROKERS/TOPIC.")
    if options.dead_letters is None:
        topic = own.topic + _DEAD
        stderr_console().print(
            printable(f"records that cannot be used go to the topic {topic}"), markup=False
        )
        return own, topic
    dead = _letter_sink(options)
    if not isinstance(dead, KafkaSink) or dead.servers != own.servers:
        raise UsageError(
            "real-time mode writes to one Kafka only, dead letters included",
            hint=f"Write --dead-letters kafka:{own.servers}/TOPIC.",
        )
    return own, dead.topic


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
        compiled: a mapping that `check_realtime` lets pass.
        sink: where its quads go.
        dead_letters: the topic for records that cannot be used, at the same brokers.
        checkpoint: the folder of the query's offsets.
        every: how often the offsets are noted; what a restart may send again.
    """
    from pyspark.sql import functions as F

    from quadweir.sinks.lines import line_of

    sink.prepare()
    frame = compiled.tagged()
    is_letter = F.col(rows.REASON).isNotNull()
    letter = F.to_json(F.struct(*rows.DEAD_LETTER_SCHEMA.names))
    value = F.when(is_letter, letter).otherwise(line_of(frame, sink.form))
    # One select, and so one pass: real-time mode reads a topic once.
    messages = frame.select(
        F.when(is_letter, F.lit(dead_letters)).otherwise(F.lit(sink.topic)).alias("topic"),
        F.concat_ws("|", F.lit(sink.name), F.sha2(value, 256)).alias("key"),
        value.alias("value"),
    )
    # pyspark's own type hints do not know the real-time trigger.
    writer: Any = messages.writeStream
    query: StreamingQuery = (
        writer.format("kafka")
        .option("kafka.bootstrap.servers", sink.servers)
        .option("checkpointLocation", str(checkpoint / "query"))
        .outputMode("update")
        .trigger(realTime=f"{every // timedelta(milliseconds=1)} milliseconds")
        .start()
    )
    return query


def _master(mapping: Mapping, declarations: Declarations[str, StreamDeclaration]) -> str | None:
    """A local master with a slot for every partition: real-time tasks never make room."""
    if os.environ.get("QUADWEIR_MASTER"):
        return None
    from quadweir.mapping.live import kafka_topics
    from quadweir.sources.kafka import check_broker

    slots = sum(
        check_broker(servers, topic=topic) or 1
        for servers, topic in kafka_topics(mapping, declarations)
    )
    return f"local[{max(slots + 1, os.cpu_count() or 1)}]"
