"""`quadweir map --live`: a mapping that goes on as records arrive."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.commands.interrupts import Interrupts, quieten_gateway
from quadweir.commands.output import printable, stderr_console
from quadweir.errors import DataError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.mapping.compile import Compiled
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.start import Batch, Sink

_ALL_ROWS: Final = 2**31 - 2
_POLL: Final = timedelta(seconds=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What the command line asked for."""

    output: str | None
    form: str
    distinct: bool
    base: str | None
    realtime: bool
    streams: Path | None
    checkpoint: Path | None
    strict: bool
    explain: bool
    hosts: tuple[str, ...]
    dead_letters: Path | None
    folders: Folders


def run(mapping: Mapping, options: LiveOptions) -> None:
    """Map until Ctrl-C, or until a source fails."""
    from quadweir.mapping.check import check_mapping
    from quadweir.mapping.live import Streams, check_realtime, compile_live
    from quadweir.mapping.run import keep_methods_short
    from quadweir.runtime.session import build
    from quadweir.sources.declare import load

    if options.form not in ("nquads", "ntriples"):
        raise UsageError(
            f"a live run cannot write {options.form}, whose documents have an end",
            hint="Write nquads or ntriples.",
        )
    if options.distinct:
        raise UsageError(
            "--distinct would have to remember every quad of a stream for ever",
            hint="Leave it out; RDF takes no notice of repetition.",
        )
    if mapping.targets():
        raise UsageError(
            "the mapping has logical targets, which a live run does not write",
            hint="Leave them out, and say with -o where everything goes.",
        )
    check_mapping(mapping)
    declarations = load(options.streams) if options.streams is not None else {}
    console = stderr_console()
    with ExitStack() as stack:
        checkpoint = options.checkpoint or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="quadweir-map-"))
        )
        spark = build(app_name="quadweir-map")
        stack.callback(spark.stop)
        keep_methods_short(spark)
        compiled = compile_live(
            mapping,
            Streams(
                spark=spark,
                folders=options.folders,
                spool=checkpoint / "spool",
                declarations=declarations,
                hosts=options.hosts,
            ),
            base=options.base,
        )
        if options.explain:
            console.print(printable(compiled.explain()), markup=False)
        if not compiled.is_streaming:
            raise UsageError(
                "the mapping reads no stream", hint="Run it without --live, or name a stream."
            )
        if options.realtime:
            check_realtime(mapping, compiled)
        query = _start(compiled, options, checkpoint)
        quieten_gateway()
        interrupts = stack.enter_context(Interrupts())
        from quadweir.sinks.start import wait

        try:
            while not interrupts.seen:
                if wait(query, _POLL):
                    break
        finally:
            query.stop()


def _start(compiled: Compiled, options: LiveOptions, checkpoint: Path) -> StreamingQuery:
    from quadweir.sinks.start import Split, start

    sink = _sink(options)
    if options.realtime:
        from quadweir.sinks.kafka import KafkaSink

        if not isinstance(sink, KafkaSink):
            raise UsageError(
                "real-time mode writes to Kafka only", hint="Add -o kafka:BROKERS/TOPIC."
            )
        return start_realtime(compiled, sink, checkpoint)
    letters = _Letters(options.dead_letters, options.strict)
    return start(
        compiled.tagged(),
        Split(_split, (sink, letters)),
        checkpoint=checkpoint / "query",
    )


def start_realtime(compiled: Compiled, sink: KafkaSink, checkpoint: Path) -> StreamingQuery:
    """Start a query in Spark's real-time mode, from Kafka to Kafka."""
    sink.prepare()
    messages = sink.messages(compiled.quads())
    # pyspark's own type hints do not know the real-time trigger.
    writer: Any = messages.writeStream
    query: StreamingQuery = (
        writer.format("kafka")
        .option("kafka.bootstrap.servers", sink.servers)
        .option("topic", sink.topic)
        .option("checkpointLocation", str(checkpoint / "query"))
        .outputMode("update")
        .trigger(realTime="5 minutes")
        .start()
    )
    return query


def _sink(options: LiveOptions) -> Sink:
    from quadweir.sinks.console import ConsoleSink
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sinks.lines import LineFormat

    form = LineFormat(options.form)
    target = options.output
    if target is None or target == "-":
        return ConsoleSink(form, _ALL_ROWS, sys.stdout)
    if target.startswith("kafka:"):
        servers, _, topic = target.removeprefix("kafka:").rpartition("/")
        if not servers or not topic:
            raise UsageError(f"not a Kafka topic: {target}", hint="Write kafka:HOST:PORT/TOPIC.")
        return KafkaSink(servers, topic, form, name="map")
    return FileSink(Path(target), form)


def _split(frame: DataFrame) -> tuple[DataFrame, DataFrame]:
    from pyspark.sql import functions as F

    is_letter = F.col(rows.REASON).isNotNull()
    return (
        frame.where(~is_letter).select(*rows.TERMS),
        frame.where(is_letter).select(*rows.DEAD_LETTER_SCHEMA.names),
    )


@final
@dataclass(slots=True)
class _Letters:
    """Counts the records that cannot be used, and keeps them if a file is named."""

    path: Path | None
    strict: bool
    count: int = 0

    def prepare(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, frame: DataFrame, batch: Batch) -> None:
        del batch
        import json

        found = frame.collect()
        if not found:
            return
        self.count += len(found)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                for letter in found:
                    file.write(json.dumps(letter.asDict(), ensure_ascii=False) + "\n")
        if self.strict:
            first = found[0]
            raise DataError(
                f"a record could not be used: {first.source}, {first.place}: {first.reason}"
            )
        stderr_console().print(
            printable(f"{self.count} records could not be used; the last: {found[-1].reason}"),
            markup=False,
        )
