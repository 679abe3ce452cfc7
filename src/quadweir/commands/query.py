"""`quadweir query`: answer a continuous query over RDF streams."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, final

import typer

from quadweir.commands.board import STARTING, Board
from quadweir.commands.deadletters import KAFKA
from quadweir.commands.mappingtimes import TimeOption, parse_times
from quadweir.commands.preflight import check_file, check_query_inputs
from quadweir.commands.querymappings import AllowDirOption, AllowNetOption, MappingOption
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
from quadweir.commands.schemas import SchemaOption, schema_of, tell_of
from quadweir.errors import DataError, SourceError, UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import SparkSession

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.commands.querymappings import Mappings
    from quadweir.commands.queryoutput import OutputTarget
    from quadweir.commands.querystreams import Named
    from quadweir.commands.why import Reasons
    from quadweir.engine import Engine
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.terms import Quad
    from quadweir.testing import Answer, Oracle

# How many bad records and late elements are printed one by one.
_MOST_NAMED = 5


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
    asked = _Asked(
        query=read,
        streams=named,
        streams_file=streams,
        mappings=_mappings(
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
    _check_streams(asked)
    if why:
        _check_why(asked, live=live, verify=verify)
    if live:
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
                oracle=_oracle(asked, tell=False) if verify else None,
                reasons=_reasons(asked, ()) if why else None,
                reload_static=reload_static,
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
        _answer_by_oracle(asked)
    elif not _answer_bounded(asked, verify=verify):
        raise typer.Exit(1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The options of the command line."""

    query: ContinuousQuery
    streams: tuple[Named, ...]
    streams_file: Path | None
    mappings: Mappings
    static: tuple[str, ...]
    schema: tuple[str, ...]
    target: OutputTarget
    shards: int | None
    master: str | None
    delay: timedelta | None
    idle: timedelta | None
    ahead: timedelta | None
    allow_unbounded: tuple[str, ...]
    max_reports: int
    strict: bool
    why: bool
    dead_letters: str | None

    def declarations(self, *, live: bool) -> list[StreamDeclaration]:
        from quadweir.commands.querystreams import declare, predicates

        timed_by = predicates(self.query)
        return [
            declare(each, timed_by, live=live, delay=self.delay, idle=self.idle, ahead=self.ahead)
            for each in self.streams
        ]

    def streams_read(self) -> dict[str, StreamDeclaration | None]:
        """The streams that the query reads to their ends; None for those that mappings make."""
        from quadweir.commands.queryelements import streams_read
        from quadweir.sources.declare import load

        declared = dict(load(self.streams_file)) if self.streams_file is not None else {}
        declared.update({one.iri: one for one in self.declarations(live=False)})
        return streams_read(self.query, declared, self.mappings.iris)

    def elements(
        self, bad: list[DeadLetter] | None, engine: Engine | None = None
    ) -> Iterator[Element]:
        """Read the elements of the streams one by one; see `queryelements.read_streams`."""
        from quadweir.commands.queryelements import read_streams
        from quadweir.commands.querystreams import predicates

        return read_streams(self.streams_read(), predicates(self.query), engine, bad)

    def engine(self, spark: SparkSession) -> Engine:
        """An engine with all streams, each read to its end."""
        from quadweir.engine import Engine

        engine = Engine(spark)
        if self.streams_file is not None:
            engine.load_streams(self.streams_file)
        engine.declare(*self.declarations(live=False))
        self.mappings.provide(engine, bounded=True)
        return engine

    @property
    def schemas(self) -> tuple[str, ...]:
        """The files of the schema, with those that the stream declarations name."""
        from quadweir.sources.declare import schema_files

        declared_files = schema_files(self.streams_file) if self.streams_file is not None else ()
        return (*self.schema, *map(str, declared_files))

    def quads(self) -> Iterator[Quad]:
        from quadweir.sources.staticfiles import StaticFile, read_static

        return read_static([StaticFile.of(each) for each in self.static])


def _mappings(
    given: list[str],
    query: ContinuousQuery,
    named: Iterable[Named],
    streams_file: Path | None,
    base: str | None,
    times: list[str],
    allow_dirs: list[Path],
    allow_hosts: list[str],
) -> Mappings:
    from quadweir.commands.querymappings import Mappings, read_mappings
    from quadweir.sources.declare import load

    if not given:
        if times or allow_dirs or allow_hosts:
            raise UsageError(
                "--time, --allow-dir and --allow-net are about mappings", hint="Add --mapping FILE."
            )
        return Mappings()
    declared = load(streams_file) if streams_file is not None else {}
    mapped = read_mappings(given, query, [each.iri for each in named], declared, base)
    found = Mappings(
        mapped=mapped,
        times=parse_times(times, [each.mapping for each in mapped]),
        base=base,
        allow_dirs=tuple(allow_dirs),
        allow_hosts=tuple(allow_hosts),
    )
    found.check(declared)
    return found


def _check_why(asked: _Asked, *, live: bool, verify: bool) -> None:
    """Refuse queries and outputs that `--why` cannot explain."""
    from quadweir.algebra.query import AskForm, SelectForm

    if not isinstance(asked.query.form, SelectForm | AskForm):
        raise UsageError("--why explains solutions", hint="Write the query as a SELECT.")
    if asked.target.form != "jsonl" or asked.target.is_kafka:
        raise UsageError("--why writes jsonl to files only", hint="Leave --format out.")
    if live and verify:
        raise UsageError(
            "a live run either checks its answers or explains them",
            hint="Leave --verify or --why out.",
        )


def _reasons(asked: _Asked, feed: Iterable[Element]) -> Reasons:
    from quadweir.commands.why import Reasons

    return Reasons(asked.query, feed, asked.quads(), schema_of(asked.schemas, tell=False))


def _write_answers(asked: _Asked, answers: Iterable[Answer], engine: Engine | None) -> None:
    reasons = _reasons(asked, asked.elements([], engine)) if asked.why else None
    with _opened(asked.target.output) as out:
        for answer in answers:
            line = answer.to_json()
            if reasons is not None:
                line["why"] = reasons.of(answer)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _check_streams(asked: _Asked) -> None:
    """Refuse a query that reads an undeclared stream."""
    from quadweir.terms import IRI

    if asked.streams_file is not None:
        return
    given = {each.iri for each in asked.streams} | asked.mappings.iris
    read = {w.stream.value: w for w in asked.query.windows if isinstance(w.stream, IRI)}
    for iri, window in read.items():
        if iri not in given:
            raise UsageError(
                f"the query reads <{iri}>, and no --stream says where it comes from",
                hint=f"Add --stream {iri}=FILE",
                span=window.span,
            )
    if any(not isinstance(window.stream, IRI) for window in asked.query.windows):
        for iri in given:
            if not IRI(iri).is_valid():
                raise UsageError(
                    f"the query binds a variable to the names of streams, and {iri} is relative",
                    hint="Write whole IRIs with --stream, or give a --base.",
                )
    if not read and asked.query.windows:
        return  # over a stream variable: all given streams
    unread = sorted(given - set(read))
    if unread:
        print(
            f"quadweir: the query does not read {', '.join(f'<{iri}>' for iri in unread)}",
            file=sys.stderr,
        )


# --- by the oracle ---


def _oracle(asked: _Asked, *, tell: bool) -> Oracle:
    """An oracle for which no element is late: it has all elements before time advances."""
    from quadweir.testing.oracle import Oracle
    from quadweir.testing.reasoner import Reasoner

    schema = schema_of(asked.schemas, tell=tell)
    return Oracle(
        asked.query,
        static=asked.quads(),
        max_reports=asked.max_reports,
        entail=Reasoner(schema) if schema is not None else None,
    )


def _with_doubts(feed: Iterable[Element]) -> Iterator[Element]:
    for number, element in enumerate(feed):
        if number == 0:
            _doubt_time(element.event_time)
        yield element


def _doubt_time(earliest: int | None) -> None:
    from quadweir.times import doubt_of_time

    doubt = doubt_of_time(earliest)
    if doubt is not None:
        print(f"quadweir: warning: {doubt}", file=sys.stderr)


@contextmanager
def _reader(asked: _Asked) -> Iterator[Engine | None]:
    """Start Spark if some stream needs it, for example one that a mapping makes."""
    from quadweir.commands.queryelements import needs_spark

    if not needs_spark(asked.streams_read()):
        yield None
        return
    from quadweir.runtime.spark.session import build

    spark = build(app_name="quadweir-query", master=asked.master, shards=asked.shards)
    try:
        yield asked.engine(spark)
    finally:
        spark.stop()


def _answer_by_oracle(asked: _Asked) -> None:
    from quadweir.commands.unmatched import Unmatched

    if asked.target.form != "jsonl" or asked.target.is_kafka:
        raise UsageError("the oracle writes jsonl to files only", hint="Leave --oracle out.")
    bad: list[DeadLetter] = []
    with _reader(asked) as engine:
        unmatched = Unmatched(asked.query, asked.quads())
        feed = asked.elements(None if asked.strict else bad, engine)
        run = _oracle(asked, tell=True).run(_with_doubts(unmatched.watching(feed)))
        _write_answers(asked, run.answers, engine)
    _summarise("record could not be read", [f"{x.source} {x.place}: {x.reason}" for x in bad])
    _summarise(
        "element without an event time", [f"{e.stream} {e.position}: {why}" for e, why in run.dead]
    )
    # What follows by a schema is not looked at, so that a pattern may match all the same.
    if not run.answers and not asked.schemas:
        _tell_of_nothing(unmatched.said())


# --- on Spark, to the end of the streams ---


def _answer_bounded(asked: _Asked, *, verify: bool) -> bool:
    """Answer by the engine; tells whether the oracle, if asked, agrees."""
    from quadweir.commands.queryoutput import write_bounded
    from quadweir.runtime.spark.session import build
    from quadweir.testing.frames import answers_from_rows

    declarations = asked.declarations(live=False)
    check_query_inputs(
        asked.query,
        declared=declarations,
        streams_file=asked.streams_file,
        static=asked.static,
        schema=asked.schema,
        mapped=asked.mappings.iris,
        live=False,
    )
    asked.target.check_place()
    if asked.dead_letters is not None:
        check_file(Path(asked.dead_letters))
    with ExitStack() as stack:
        board = stack.enter_context(Board.of_bounded(prints=asked.target.output == "-"))
        board.start(STARTING)
        spark = build(app_name="quadweir-query", master=asked.master, shards=asked.shards)
        stack.callback(spark.stop)
        board.start("answering")
        engine = asked.engine(spark)
        engine.schema(*asked.schema)
        tell_of(engine.schema_warnings)
        registered = engine.query(
            asked.query,
            static=asked.static,
            shards=asked.shards,
            allow_unbounded=asked.allow_unbounded,
        )
        answers = registered.spelled_answers()
        if verify:
            answers = answers.persist()
        if asked.why:
            # Sorted, so that the windows of each report are evaluated once.
            given = sorted(answers_from_rows(answers.toLocalIterator()), key=lambda each: each.t)
            _tell_of_letters(registered, asked)
            _write_answers(asked, given, engine)
            is_empty = not given
        else:
            written = write_bounded(asked.target, registered, answers=answers)
            try:
                _tell_of_letters(registered, asked)
                is_empty = written.is_empty
                written.publish()
            finally:
                written.discard()
        if is_empty:
            _tell_of_nothing(registered.unmatched())
        if not verify:
            return True
        board.start("asking the oracle")
        return _agrees(asked, answers_from_rows(answers.toLocalIterator()), engine)


def _tell_of_nothing(unmatched: list[str]) -> None:
    """Say why there are no answers, as far as that can be known."""
    for each in unmatched:
        print(f"quadweir: no answers: {each}", file=sys.stderr)
    if not unmatched:
        print(
            "quadweir: no answers, though each pattern matches some statement: nothing passes the joins, "
            "FILTER and HAVING",
            file=sys.stderr,
        )


def _tell_of_letters(registered: RegisteredQuery, asked: _Asked) -> None:
    """Count the bad records, print some of them, and keep all of them if `--dead-letters` is
    given.
    """
    counts = registered.input_counts()
    count = counts["dead_letters"] or 0
    _doubt_time(counts["earliest"])
    # The streams are read again for this, and only if there are bad records.
    letters = registered.dead_letters() if count else None
    if asked.dead_letters is not None:
        with _opened(asked.dead_letters) as out:
            for letter in letters.toLocalIterator() if letters is not None else ():
                out.write(json.dumps(letter.asDict(), ensure_ascii=False) + "\n")
    if letters is None:
        return
    first = letters.take(_MOST_NAMED)
    named = [f"{letter['source']} {letter['place']}: {letter['reason']}" for letter in first]
    if asked.strict:
        raise DataError(f"{count} records cannot be used; one of them: {named[0]}")
    _summarise("record could not be read", named, count)


def _agrees(asked: _Asked, actual: list[Answer], engine: Engine) -> bool:
    from quadweir.testing import diff_answers

    expected = _oracle(asked, tell=False).answers(asked.elements([], engine))
    difference = diff_answers(expected, actual)
    if not difference:
        print(f"quadweir: the oracle gives the same {len(expected)} answers", file=sys.stderr)
        return True
    print(f"quadweir: the oracle gives different answers: {difference}", file=sys.stderr)
    return False


@contextmanager
def _opened(output: str) -> Iterator[TextIO]:
    if output == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with Path(output).open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise SourceError(f"cannot write {output}: {error.strerror}") from None


def _summarise(what: str, found: list[str], count: int | None = None) -> None:
    if not found:
        return
    total = len(found) if count is None else count
    plural = "" if total == 1 else "s"
    first, _, rest = what.partition(" ")
    noun = f"{first}{plural} {rest}" if first != "late" else f"late {rest}{plural}"
    print(f"quadweir: {total} {noun}", file=sys.stderr)
    for each in found[:_MOST_NAMED]:
        print(f"  {each}", file=sys.stderr)
    if total > _MOST_NAMED:
        print(f"  and {total - _MOST_NAMED} more", file=sys.stderr)
