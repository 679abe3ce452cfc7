"""`quadweir run`: the queries of a file, and those of a folder, in one network."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quadweir.commands.output import report
from quadweir.commands.querymappings import AllowNetOption
from quadweir.errors import QuadweirError

if TYPE_CHECKING:
    from quadweir.commands.application import Application
    from quadweir.commands.livesession import LiveSession
    from quadweir.commands.queryfolder import FolderChange, QueryFolder
    from quadweir.runtime.network.network import Network


def run(
    application: Annotated[
        Path,
        typer.Argument(
            metavar="APP.toml", help="A file of streams, mappings and queries.", show_default=False
        ),
    ],
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the run keeps its state and its queries for a restart."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|-|kafka:..|none",
            help="Where the answers of all queries go: a folder, - for standard output, "
            "kafka:HOST:PORT/TOPIC, or none for only the outputs of single queries.",
        ),
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option(
            "--backfill", help="Let queries that join see what shared windows hold already."
        ),
    ] = False,
    reload_static: Annotated[
        bool,
        typer.Option(
            "--reload-static",
            help="Accept a checkpoint made with other static data; continue with the current data.",
        ),
    ] = False,
    once: Annotated[
        bool,
        typer.Option("--once", help="Take what the sources have now, answer, and end."),
    ] = False,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Serve the run's metrics to Prometheus, on this machine only."
        ),
    ] = None,
    allow_dir: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER", help="Let the file and its mappings name this folder; repeatable."
        ),
    ] = None,
    allow_net: AllowNetOption = None,
) -> None:
    """Run many queries over the same streams, in one network, until Ctrl-C.

    The file declares streams and mappings, and has queries in any dialect. Each answer is a line of
    JSON that names its query. With queries_folder, the queries of a folder join and leave as its
    files do. --checkpoint and --output take the place of what the file says.
    """
    from dataclasses import replace

    from quadweir.commands.application import load
    from quadweir.commands.livesession import claimed_checkpoint
    from quadweir.runtime.checkpoint import Fingerprint

    app = load(application, allow_dirs=allow_dir or (), allow_hosts=allow_net or ())
    if checkpoint is not None:
        app = replace(app, checkpoint=checkpoint)
    if output is not None:
        app = replace(app, output=output)
    app = replace(app, reload_static=reload_static)
    if backfill:
        app = app.with_backfill()
    with ExitStack() as stack:
        place = stack.enter_context(claimed_checkpoint(app.checkpoint, "run", app.output))
        Fingerprint.check_network(place, app.read)
        check(app, metrics_port)
        folder, change = _first_look(app)
        _run(app, place, folder, change, once=once, metrics_port=metrics_port, stack=stack)


def check(app: Application, metrics_port: int | None) -> None:
    """Make all checks that are possible before Spark starts.

    Raises:
        QuadweirError: a source, an output or a file is missing or not usable.
    """
    from quadweir.algebra.warn import warnings_of
    from quadweir.commands.deadletters import letter_sink
    from quadweir.commands.preflight import check_inputs, check_port
    from quadweir.commands.schemas import tell_of

    streams = [app.streams[iri] for iri in app.read if iri not in app.mapped]
    check_inputs(streams, static=app.static, schema=app.schema, live=True)
    for mappings in app.mappings:
        mappings.check(app.streams)
    for query in app.queries.values():
        tell_of([query.origin.warning(each) for each in warnings_of(query.query)])
        if query.target is not None:
            query.target.sink(query.name).prepare()
    if app.target is not None:
        app.target.sink(app.name).prepare()
    letters = letter_sink(app.dead_letters, name=app.name)
    if letters is not None:
        letters.prepare()
    if metrics_port is not None:
        check_port(metrics_port)


def _first_look(app: Application) -> tuple[QueryFolder | None, FolderChange]:
    """Read the folder of queries; bad files are reported, and may be mended while the others run."""
    from quadweir.commands.queryfolder import FolderChange, QueryFolder

    if app.folder is None:
        return None, FolderChange()
    folder = QueryFolder(app.folder, app.read, frozenset(app.queries), app.backfill)
    change = folder.look()
    for error in change.errors:
        report(error)
    return folder, change


def _run(
    app: Application,
    checkpoint: Path,
    folder: QueryFolder | None,
    change: FolderChange,
    *,
    once: bool,
    metrics_port: int | None,
    stack: ExitStack,
) -> None:
    from quadweir.commands.deadletters import letter_sink
    from quadweir.commands.livesession import live_session
    from quadweir.commands.networkdashboard import NetworkDashboard
    from quadweir.commands.queryfolder import FolderWatch
    from quadweir.commands.reloads import Reloads, reload_static
    from quadweir.sinks.start import wait

    live = stack.enter_context(
        live_session("run", "planning the queries and starting them", shards=app.shards)
    )
    board = live.board
    network = _network(app, live)
    queries = {**app.queries, **{each.name: each for each in change.queries}}
    for query in queries.values():
        network.register(query.name, query.text)
        if query.target is not None:
            network.send(query.name, query.target.sink(query.name))
        if query.is_paused:
            network.pause(query.name)

    def refuse(name: str, error: QuadweirError) -> None:
        placed = queries[name].origin.placed(error)
        if name in app.queries:
            raise placed
        board.report(placed)

    network.start(
        app.target.sink(app.name, board.output()) if app.target is not None else None,
        checkpoint=checkpoint,
        every=None if once else app.every,
        available_now=once,
        dead_letters=letter_sink(app.dead_letters, name=app.name),
        refused=refuse,
        # Files that are bad for now keep their queries of before.
        keep=folder.names() if folder is not None else (),
        reload_static=app.reload_static,
    )
    stack.callback(network.stop)
    if folder is not None:
        watch = FolderWatch(folder, network, network.queries(), tell=board.say, report=board.report)
        stack.callback(watch.close)
        watch.start()
    if metrics_port is not None:
        from quadweir.runtime.prometheus import MetricsServer, NetworkCollector

        server = MetricsServer(NetworkCollector(app.name, network), metrics_port)
        stack.callback(server.close)
    board.start("running; the first batch is not done yet")
    dashboard = NetworkDashboard(app.name, board, network)
    # Without static data, SIGHUP ends the run, as for any program.
    reloads = stack.enter_context(Reloads()) if app.static else None

    def show() -> None:
        if reloads is not None and reloads.taken():
            reload_static(network, board)
        dashboard.show()

    live.watch(lambda poll: wait(network.streaming, poll), show)
    dashboard.show()


def _network(app: Application, live: LiveSession) -> Network:
    from quadweir.commands.schemas import tell_of
    from quadweir.engine import Engine

    engine = Engine(live.spark)
    engine.declare(*app.streams.values())
    for mappings in app.mappings:
        mappings.provide(engine, bounded=False)
    engine.schema(*app.schema)
    tell_of(engine.schema_warnings)
    return engine.network(
        streams=app.read,
        static=app.static,
        shards=app.shards,
        most_held=app.most_held,
        most_answers=app.most_answers,
    )
