"""`quadweir query --live`: answers over live streams."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, final

import typer

from quadweir.commands.deadletters import letter_sink
from quadweir.commands.livesession import claimed_checkpoint, live_session
from quadweir.commands.preflight import check_checkpoint, check_port, check_query_inputs
from quadweir.commands.querydashboard import QueryDashboard
from quadweir.commands.reloads import Reloads, reload_static
from quadweir.commands.schemas import tell_of
from quadweir.commands.whylive import WhySink, record_folder
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.commands.board import Board
    from quadweir.commands.querymappings import Mappings
    from quadweir.commands.queryoutput import OutputTarget
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.testing import Oracle
    from quadweir.testing.sampling import Sampled
    from quadweir.testing.why import Reasons


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQueryOptions:
    """The options of the command line."""

    query: ContinuousQuery
    declarations: tuple[StreamDeclaration, ...]
    streams_file: Path | None
    mappings: Mappings
    static: tuple[str, ...]
    schema: tuple[str, ...]
    target: OutputTarget
    shards: int | None
    checkpoint: Path | None
    allow_unbounded: tuple[str, ...]
    delay: timedelta | None = None
    idle: timedelta | None = None
    ahead: timedelta | None = None
    every: timedelta | None = None
    master: str | None = None
    metrics_port: int | None = None
    dead_letters: str | None = None
    oracle: Oracle | None = None
    reasons: Reasons | None = None
    reload_static: bool = False
    upgrade: bool = False
    allow_loss: bool = False
    shards_in: str | None = None


def run(asked: LiveQueryOptions) -> None:
    """Answer until Ctrl-C, or until a source fails."""
    from quadweir.engine import Engine
    from quadweir.runtime.frames import ANSWERS
    from quadweir.sinks.start import wait
    from quadweir.testing.recorded import RecordedElements, reach_ms
    from quadweir.testing.sampling import Sampled, SampledSink

    with ExitStack() as stack:
        checkpoint = stack.enter_context(
            claimed_checkpoint(asked.checkpoint, "query", asked.target.output)
        )
        _check(asked, checkpoint)
        live = stack.enter_context(
            live_session(
                "query",
                "planning the query and starting it",
                master=asked.master,
                shards=asked.shards,
            )
        )
        board, engine = live.board, Engine(live.spark)
        if asked.streams_file is not None:
            engine.load_streams(asked.streams_file)
        engine.declare(*asked.declarations)
        asked.mappings.provide(
            engine, bounded=False, delay=asked.delay, idle=asked.idle, ahead=asked.ahead
        )
        engine.schema(*asked.schema)
        tell_of(engine.schema_warnings)
        registered = engine.query(
            asked.query,
            static=asked.static,
            shards=asked.shards,
            allow_unbounded=asked.allow_unbounded,
        )
        name = registered.query.name or "query"
        sink = asked.target.sink(name, board.output())
        record = record_folder(checkpoint, why=asked.reasons is not None)

        def through() -> int | None:
            found: int | None = registered.metrics()["through"]
            return found

        sampled = None
        if asked.oracle is not None:
            record = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="quadweir-")))
            sampled = Sampled(asked.oracle, record, resumed=(checkpoint / "offsets").exists())
            sink = SampledSink(sink, sampled, through)
        elif asked.reasons is not None and record is not None:
            reach = reach_ms(registered.query)
            sink = WhySink(sink, asked.reasons, RecordedElements(record), reach, through)
        registered.start(
            sink,
            checkpoint=checkpoint,
            every=asked.every,
            statements=ANSWERS if asked.target.statements else None,
            name_elements=asked.target.timed,
            record=record,
            dead_letters=letter_sink(asked.dead_letters, name="query"),
            reload_static=asked.reload_static,
            upgrade=asked.upgrade,
            allow_loss=asked.allow_loss,
            shards_in=asked.shards_in,
        )
        stack.callback(registered.stop)
        if asked.metrics_port is not None:
            from quadweir.runtime.prometheus import MetricsServer, QueryCollector

            metrics = QueryCollector(lambda: {name: registered.metrics()})
            server = MetricsServer(metrics, asked.metrics_port)
            stack.callback(server.close)
        dashboard = QueryDashboard(name, board)
        board.start("running; the first batch is not done yet")
        # Without static data, SIGHUP ends the run, as for any program.
        reloads = stack.enter_context(Reloads()) if asked.static else None

        def show() -> None:
            if reloads is not None and reloads.taken():
                if record is None:
                    reload_static(registered, board)
                else:
                    what = "explained" if sampled is None else "checked"
                    board.say(f"quadweir: static data is not reloaded while answers are {what}")
            found = registered.metrics()
            dashboard.show(found)
            if sampled is not None:
                _compare(sampled, found["through"], board)

        live.watch(lambda poll: wait(registered.streaming, poll), show)
        if sampled is not None:
            _conclude(sampled, board)


def _check(asked: LiveQueryOptions, checkpoint: Path) -> None:
    """Make all checks that are possible before Spark starts."""
    if not asked.query.windows:
        raise UsageError("the query reads no stream", hint="Run it without --live.")
    if not asked.upgrade:
        check_checkpoint(checkpoint, asked.query)
    check_query_inputs(
        asked.query,
        declared=asked.declarations,
        streams_file=asked.streams_file,
        static=asked.static,
        schema=asked.schema,
        mapped=asked.mappings.iris,
        live=True,
    )
    asked.target.sink("query").prepare()
    letters = letter_sink(asked.dead_letters, name="query")
    if letters is not None:
        letters.prepare()
    if asked.metrics_port is not None:
        check_port(asked.metrics_port)


def _compare(sampled: Sampled, through: int | None, board: Board) -> None:
    """Compare some reports with the oracle's, and print those that differ."""
    before = len(sampled.different)
    sampled.check(through)
    for difference in sampled.different[before:]:
        board.say(f"quadweir: the oracle gives different answers: {difference}")


def _conclude(sampled: Sampled, board: Board) -> None:
    if sampled.different:
        count = f"{len(sampled.different)} of {sampled.reports}"
        board.say(f"quadweir: the oracle gives different answers in {count} compared reports")
        raise typer.Exit(1)
    board.say(f"quadweir: the oracle gives the same answers in {sampled.reports} reports")
