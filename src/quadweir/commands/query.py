"""`quadweir query`: answer a continuous query over RDF streams."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quadweir.commands.deadletters import KAFKA
from quadweir.commands.mappingtimes import TimeOption
from quadweir.commands.queryasked import AskedQuery, check_streams, check_why, mappings_of
from quadweir.commands.querylocal import EngineChoice, answer_locally, is_for_local
from quadweir.commands.querymappings import AllowDirOption, AllowNetOption, MappingOption
from quadweir.commands.queryoracle import answer_by_oracle, oracle_of, reasons_of
from quadweir.commands.queryspark import answer_on_spark
from quadweir.commands.querytext import (
    BaseOption,
    ContentOption,
    DialectOption,
    FullWindowsOption,
    QueryArgument,
    ReportOption,
    StartOption,
    read_query,
    read_text,
    windowing_of,
)
from quadweir.commands.schemas import SchemaOption, tell_of
from quadweir.errors import UsageError


class ShardsIn(StrEnum):
    """The values of `--shards-in`: where a live run has its shards."""

    DRIVER = "driver"
    EXECUTORS = "executors"


def query(
    query: QueryArgument,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI=PATH",
            help="A stream and where it comes from: a file or folder, or with --live also "
            "kafka:HOST:PORT/TOPIC, tcp:HOST:PORT, mqtt:HOST:PORT/TOPIC; repeatable.",
        ),
    ] = None,
    streams: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Declarations of streams, in TOML."),
    ] = None,
    mapping: MappingOption = None,
    time: TimeOption = None,
    static: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[IRI=]FILE",
            help="Static RDF data, in the default graph or in the graph of that name; repeatable.",
        ),
    ] = None,
    schema: SchemaOption = None,
    output: Annotated[
        str,
        typer.Option(
            metavar="FILE|-|kafka:..",
            help="Where answers go: a file (with --live a folder), - for standard output, or "
            "kafka:HOST:PORT/TOPIC.",
        ),
    ] = "-",
    output_format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="jsonl, csv or tsv; for CONSTRUCT jsonl, nquads, timed-lines or trig.",
        ),
    ] = "jsonl",
    engine: Annotated[
        EngineChoice,
        typer.Option(
            help="What answers without --live: local, this process, for a few megabytes of stream "
            "files; spark; or auto, which takes local where it can and input is small.",
        ),
    ] = EngineChoice.AUTO,
    shards: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="The number of parts into which state is divided."),
    ] = None,
    shards_in: Annotated[
        ShardsIn | None,
        typer.Option(
            help="driver: in local worker processes (lowest latency); executors: in Spark's "
            "executors, as a cluster needs. Default: driver, if all of Spark runs on this machine.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where a live run keeps its state for a restart."),
    ] = None,
    reload_static: Annotated[
        bool,
        typer.Option(
            "--reload-static",
            help="Accept a checkpoint made with other static data; continue with the current data.",
        ),
    ] = False,
    upgrade: Annotated[
        bool,
        typer.Option(
            "--upgrade",
            help="Accept a checkpoint made for another text of the query; continue with the state "
            "that both have in common.",
        ),
    ] = False,
    allow_loss: Annotated[
        bool,
        typer.Option(
            "--allow-loss",
            help="With --upgrade: start even if windows begin without some of their content.",
        ),
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Continue as elements arrive, until Ctrl-C.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How often a live run takes a batch."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How late an element of a live stream may be. Default: 10s.",
        ),
    ] = None,
    idle: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="After how long without elements a live stream no longer holds back the others.",
        ),
    ] = None,
    ahead: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How far ahead of the clock an element of a live stream may be; others are dead "
            "letters. Default: 1h.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="A Spark master such as spark://HOST:PORT; default local[*]."
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="Serve a live run's metrics to Prometheus, on this machine only."
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare answers with the oracle's; in a live run, samples."),
    ] = False,
    oracle: Annotated[
        bool,
        typer.Option(
            "--oracle", help="Recompute every report from scratch: slow, but right by definition."
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option("--why", help="Add to each answer the elements and static triples behind it."),
    ] = False,
    dialect: DialectOption = None,
    content: ContentOption = None,
    base: BaseOption = None,
    start: StartOption = None,
    full_windows: FullWindowsOption = False,
    report: ReportOption = None,
    allow_unbounded: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI", help="A window or stream that may be kept whole (ALL); repeatable."
        ),
    ] = None,
    allow_dir: AllowDirOption = None,
    allow_net: AllowNetOption = None,
    max_reports: Annotated[
        int, typer.Option(min=1, help="The oracle stops after this many reports.")
    ] = 100_000,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a record cannot be read.")
    ] = False,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep unreadable and late records as JSON Lines: a file; "
            "with --live a folder, or kafka:BROKERS/TOPIC.",
        ),
    ] = None,
) -> None:
    """Answer a continuous query over RDF streams.

    Without --live, the command reads files to their end and exits. Each answer is a line of JSON. It
    has the report instant t in milliseconds, the sign (+ or -), and the bindings as in SPARQL's JSON
    results, or the triples of a CONSTRUCT.
    """
    from quadweir.algebra.analyze import analyze, refuse_unbounded
    from quadweir.algebra.warn import warnings_of
    from quadweir.commands.queryoutput import OutputTarget
    from quadweir.commands.querystreams import parse_option, parse_streams
    from quadweir.terms import IRI

    text, source = read_text(query)
    windowing = windowing_of(start, full_windows, report)
    read = read_query(
        text, source, dialect=dialect, content=content, base=base, windowing=windowing
    )
    analyze(read)
    tell_of(warnings_of(read))
    refuse_unbounded(read, allowed=frozenset(map(IRI, allow_unbounded or ())))
    target = OutputTarget(output, output_format)
    target.check(read)
    named = tuple(parse_streams(stream or [], base))
    asked = AskedQuery(
        query=read,
        streams=named,
        streams_file=streams,
        mappings=mappings_of(
            mapping or [], read, named, streams, base, time or [], allow_dir or [], allow_net or []
        ),
        static=tuple(static or ()),
        schema=tuple(schema or ()),
        target=target,
        shards=shards,
        master=master,
        delay=parse_option("--delay", delay) if delay is not None else None,
        idle=parse_option("--idle", idle) if idle is not None else None,
        ahead=parse_option("--ahead", ahead) if ahead is not None else None,
        allow_unbounded=tuple(allow_unbounded or ()),
        max_reports=max_reports,
        strict=strict,
        why=why,
        dead_letters=dead_letters,
    )
    check_streams(asked)
    if why:
        check_why(asked, live=live, verify=verify)
    if live:
        if engine is EngineChoice.LOCAL:
            raise UsageError(
                "a live run needs Spark", hint="Leave --engine out, or --live to read files."
            )
        if allow_loss and not upgrade:
            raise UsageError("--allow-loss needs --upgrade", hint="Add --upgrade, or leave it out.")
        if upgrade and (verify or why):
            raise UsageError(
                "a checkpoint is not upgraded while answers are explained or checked",
                detail="The elements of its windows were not recorded for the new query.",
                hint="Leave --upgrade out, or --verify and --why.",
            )
        if oracle:
            raise UsageError(
                "the oracle needs streams that have an end",
                hint="Leave --live out, or check samples of the run with --verify.",
            )
        if verify and target.statements:
            raise UsageError(
                f"answers written as {target.form} cannot be checked in a live run",
                hint="Write them as jsonl.",
            )
        if reload_static and (verify or why):
            raise UsageError(
                "static data is not reloaded while answers are explained or checked",
                hint="Leave --reload-static out, or --verify and --why.",
            )
        from quadweir.commands import querylive

        querylive.run(
            querylive.LiveQueryOptions(
                query=read,
                declarations=tuple(asked.declarations(live=True)),
                streams_file=streams,
                mappings=asked.mappings,
                delay=asked.delay,
                idle=asked.idle,
                ahead=asked.ahead,
                static=asked.static,
                schema=asked.schema,
                target=target,
                shards=shards,
                shards_in=shards_in,
                checkpoint=checkpoint,
                allow_unbounded=asked.allow_unbounded,
                every=parse_option("--every", every) if every is not None else None,
                master=master,
                metrics_port=metrics_port,
                dead_letters=dead_letters,
                oracle=oracle_of(asked, tell=False) if verify else None,
                reasons=reasons_of(asked, ()) if why else None,
                reload_static=reload_static,
                upgrade=upgrade,
                allow_loss=allow_loss,
            )
        )
        return
    for given, name in (
        (checkpoint, "--checkpoint"),
        (shards_in, "--shards-in"),
        (every, "--every"),
        (delay, "--delay"),
        (idle, "--idle"),
        (ahead, "--ahead"),
        (metrics_port, "--metrics-port"),
        (reload_static or None, "--reload-static"),
        (upgrade or None, "--upgrade"),
    ):
        if given is not None:
            raise UsageError(f"{name} needs --live", hint="Add --live.")
    if dead_letters is not None and dead_letters.startswith(KAFKA):
        raise UsageError(
            "dead letters of a run that has an end go to a file",
            hint="Name a file, or add --live.",
        )
    if oracle:
        if dead_letters is not None:
            raise UsageError(
                "the oracle keeps no dead letters", hint="Leave --oracle or --dead-letters out."
            )
        answer_by_oracle(asked)
        return
    answer = answer_locally if is_for_local(asked, engine) else answer_on_spark
    if not answer(asked, verify=verify):
        raise typer.Exit(1)
