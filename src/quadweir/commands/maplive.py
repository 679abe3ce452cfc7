"""`quadweir map --live`: a mapping that runs as records arrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, final

from quadweir.commands.board import Board
from quadweir.commands.deadletters import KAFKA, kafka_sink, letter_sink
from quadweir.commands.livesession import claimed_checkpoint, live_session
from quadweir.commands.mapview import MapView
from quadweir.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping as RmlMapping
    from quadweir.runtime.mappings.live import LiveMapping
    from quadweir.sinks.base import Sink
    from quadweir.sinks.kafka import KafkaSink
    from quadweir.sources.declare import StreamDeclaration

_ALL_ROWS: Final = 2**31 - 2
_DEAD: Final = "-dead-letters"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """The options of the command line."""

    folders: Folders
    output: str | None = None
    form: str = "nquads"
    times: Mapping[str, str] = field(default_factory=dict)
    distinct: bool = False
    base: str | None = None
    realtime: bool = False
    streams: Path | None = None
    checkpoint: Path | None = None
    strict: bool = False
    explain: bool = False
    hosts: tuple[str, ...] = ()
    dead_letters: str | None = None
    overwrite: bool = False


def run(mapping: RmlMapping, options: LiveOptions) -> None:
    """Map until Ctrl-C, or until a source fails."""
    from quadweir.mapping.check import check_mapping
    from quadweir.runtime.mappings.bounded import check_graphs
    from quadweir.runtime.mappings.checks import check_sources
    from quadweir.runtime.mappings.realtime import check_realtime_sources, reads_streams
    from quadweir.sinks.lineformat import LineFormat
    from quadweir.sinks.rdf_documents import Syntax
    from quadweir.sources.declare import load

    check_options(options)
    check_mapping(mapping)
    declarations = load(options.streams) if options.streams is not None else {}
    with ExitStack() as stack:
        checkpoint = stack.enter_context(
            claimed_checkpoint(options.checkpoint, "map", options.output)
        )
        if options.form != LineFormat.TIMED_LINES:
            check_graphs(mapping, Syntax(options.form))
        check_sources(mapping, options.folders, declarations, options.hosts)
        if not reads_streams(mapping, declarations):
            raise _no_stream()
        own, letters = _sink(options), letter_sink(options.dead_letters, name="map")
        if options.realtime:
            check_realtime_sources(mapping, declarations)
            _topics(options)
        for sink in (own, letters):
            if sink is not None:
                sink.prepare()
        master = _master(mapping, declarations) if options.realtime else None
        live = stack.enter_context(
            live_session("map", "compiling the mapping and starting it", master=master)
        )
        begun = begin(live.spark, mapping, options, checkpoint, declarations, live.board)
        view = MapView(live.board)
        live.board.start("running; the first batch is not done yet")

        def show() -> None:
            bad = begun.letters.count if begun.letters is not None else 0
            view.update(begun.query.recentProgress, bad)

        try:
            live.watch(begun.wait, show)
        finally:
            begun.query.stop()


def check_options(options: LiveOptions) -> None:
    """Refuse options that a live run cannot honour."""
    if options.form not in ("nquads", "ntriples", "timed-lines"):
        raise UsageError(
            f"a live run cannot write {options.form}, whose documents have an end",
            hint="Write nquads, ntriples or timed-lines; logical targets can have any format, a document for "
            "each batch.",
        )
    if options.distinct:
        raise UsageError(
            "--distinct would have to remember every quad of a stream forever",
            hint="Leave it out; repeated quads do not change an RDF graph.",
        )
    if options.realtime and options.strict:
        raise UsageError(
            "--strict cannot stop a real-time run, which has no batches to stop at",
            hint="Map it with --live, or watch the topic of dead letters.",
        )


def begin(
    spark: SparkSession,
    mapping: RmlMapping,
    options: LiveOptions,
    checkpoint: Path,
    declarations: Mapping[str, StreamDeclaration],
    board: Board | None = None,
) -> LiveMapping:
    """Start mapping in a session; messages go to a board."""
    from quadweir.mapping.elements import ElementRule
    from quadweir.runtime.joins.live import HostedJoins
    from quadweir.runtime.mappings.live import Letters, LiveMapping, start_batches, start_realtime
    from quadweir.runtime.mappings.realtime import check_realtime
    from quadweir.runtime.mappings.streams import Streams, compile_live
    from quadweir.sinks.lineformat import LineFormat

    board = board if board is not None else Board()
    is_timed = options.form == LineFormat.TIMED_LINES
    streams = Streams(
        spark=spark,
        folders=options.folders,
        spool=checkpoint / "spool",
        declarations=declarations,
        hosts=options.hosts,
        times=options.times,
    )
    joins = HostedJoins(spark)
    compiled = compile_live(
        mapping,
        streams,
        base=options.base,
        host=joins,
        elements=ElementRule(lambda _: "") if is_timed else None,
        run=str(checkpoint.absolute()),
    )
    if options.explain:
        board.say(compiled.explain())
    if not compiled.is_streaming:
        raise _no_stream()
    if options.realtime:
        check_realtime(mapping, compiled, declarations)
        _check_slots(spark, mapping, declarations)
        quads, dead = _topics(options)
        if options.dead_letters is None:
            board.say(f"records that cannot be used go to the topic {dead}")
        return LiveMapping(start_realtime(compiled, quads, dead, checkpoint))

    def report_bad(count: int, example: str) -> None:
        board.say(f"{count} records could not be used so far; one of them: {example}")

    letters = Letters(letter_sink(options.dead_letters, name="map"), options.strict, report_bad)
    return start_batches(
        compiled,
        _sink(options, board.output()),
        checkpoint,
        folders=options.folders,
        letters=letters,
        overwrite=options.overwrite,
        launch=joins.launch,
    )


def _no_stream() -> UsageError:
    return UsageError(
        "the mapping reads no stream", hint="Map it without --live, or name a stream."
    )


# -- where to write ---------------------------------------------------------------------------


def _sink(options: LiveOptions, out: TextIO | None = None) -> Sink:
    from quadweir.sinks.console import ConsoleSink
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    form = LineFormat(options.form)
    target = options.output
    if target is None or target == "-":
        return ConsoleSink(form, _ALL_ROWS, out or sys.stdout)
    if target.startswith(KAFKA):
        return kafka_sink(target, options.form, name="map")
    return FileSink(Path(target), form, compress=False)


def _topics(options: LiveOptions) -> tuple[KafkaSink, str]:
    """The outputs of a real-time run: the sink of its quads, and the topic of its dead letters."""
    target = options.output or "-"
    if not target.startswith(KAFKA):
        raise UsageError("real-time mode writes to Kafka only", hint="Add -o kafka:BROKERS/TOPIC.")
    own = kafka_sink(target, options.form, name="map")
    if options.dead_letters is None:
        return own, own.topic + _DEAD
    is_kafka = options.dead_letters.startswith(KAFKA)
    dead = kafka_sink(options.dead_letters, "jsonl", name="map") if is_kafka else None
    if dead is None or dead.servers != own.servers:
        raise UsageError(
            "real-time mode writes to one Kafka only, dead letters included",
            hint=f"Write --dead-letters kafka:{own.servers}/TOPIC.",
        )
    return own, dead.topic


def _partitions(mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]) -> int:
    from quadweir.kafkaclient import check_broker
    from quadweir.runtime.mappings.realtime import kafka_topics

    topics = kafka_topics(mapping, declarations)
    return sum(check_broker(servers, topic=topic) or 1 for servers, topic in topics)


def _master(mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]) -> str | None:
    """A local master with a slot for every partition: real-time tasks never free their slots."""
    if os.environ.get("QUADWEIR_MASTER"):
        return None
    return f"local[{max(_partitions(mapping, declarations), os.cpu_count() or 1)}]"


def _check_slots(
    spark: SparkSession, mapping: RmlMapping, declarations: Mapping[str, StreamDeclaration]
) -> None:
    """Refuse to start if some partitions would wait for ever; Spark would not report that."""
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        return  # A cluster may grow.
    slots, needed = context.defaultParallelism, _partitions(mapping, declarations)
    if slots < needed:
        raise EnvironmentProblem(
            f"real-time mode needs a task slot for each of {needed} partitions, and "
            f"{context.master} has {slots}",
            hint=f"Set QUADWEIR_MASTER=local[{needed}], or leave it out.",
        )
