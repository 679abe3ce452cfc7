"""`quadweir query`: answer a continuous query over RDF streams."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO, final

import typer

from quadweir.commands.letters import KAFKA
from quadweir.commands.querytext import (
    ContentOption,
    DialectOption,
    QueryArgument,
    read_query,
    read_text,
)
from quadweir.commands.schemas import SchemaOption, schema_of, tell_of
from quadweir.errors import DataError, SourceError, UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.commands.queryoutput import Target
    from quadweir.commands.querystreams import Named
    from quadweir.commands.why import Reasons
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.terms import Quad
    from quadweir.testing import Answer, Oracle, Run

# How many bad records and late elements are named one by one.
_MOST_NAMED = 5


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
        int | None, typer.Option(min=1, max=10_000, help="Into how many parts state is cut.")
    ] = None,
    shards_in: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="driver: in processes beside it, for soon answers; executors: in Spark's own, as a "
            "cluster needs. Default: driver, if Spark runs on this machine alone.",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where a live run keeps its state, to go on after a stop."
        ),
    ] = None,
    reload_static: Annotated[
        bool,
        typer.Option(
            "--reload-static",
            help="Go on with static data as it is now, if the checkpoint was left over other data.",
        ),
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Go on as elements arrive, until Ctrl-C.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How often a live run takes a batch."),
    ] = None,
    delay: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How late an element may come, such as 10s, which is the default of --live.",
        ),
    ] = None,
    idle: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="After which time without elements a live stream is no longer waited for.",
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
        typer.Option("--verify", help="Compare answers with the oracle's; of a live run, samples."),
    ] = False,
    oracle: Annotated[
        bool,
        typer.Option(
            "--oracle", help="Recompute every report from scratch: slow, and right by definition."
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why", help="Say with each answer which elements and static triples it rests on."
        ),
    ] = False,
    dialect: DialectOption = None,
    content: ContentOption = None,
    allow_unbounded: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI", help="A window or stream that may be kept whole (ALL); repeatable."
        ),
    ] = None,
    max_reports: Annotated[
        int, typer.Option(min=1, help="The oracle gives up after this many reports.")
    ] = 100_000,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if a record cannot be read.")
    ] = False,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep what cannot be read, and of a live run what is late, as JSON Lines: a file; "
            "with --live a folder, or kafka:BROKERS/TOPIC.",
        ),
    ] = None,
) -> None:
    """Answer a continuous query over RDF streams.

    Without --live, files are read to their end and drained. Each answer is a line of JSON: its report
    instant t in milliseconds, + or - as its sign, and its bindings as in SPARQL's JSON results, or
    the triples of a CONSTRUCT.
    """
    from quadweir.algebra.analyze import analyze, refuse_unbounded
    from quadweir.commands.queryoutput import Target
    from quadweir.commands.querystreams import parse_option, parse_streams
    from quadweir.terms import IRI

    text, source = read_text(query)
    read = read_query(text, source, dialect=dialect, content=content)
    analyze(read)
    refuse_unbounded(read, allowed=frozenset(map(IRI, allow_unbounded or ())))
    target = Target(output, output_format)
    target.check(read)
    asked = _Asked(
        text=text,
        dialect=dialect,
        content=content,
        query=read,
        streams=tuple(parse_streams(stream or [])),
        streams_file=streams,
        static=tuple(static or ()),
        schema=tuple(schema or ()),
        target=target,
        shards=shards,
        master=master,
        delay=parse_option("--delay", delay) if delay is not None else None,
        idle=parse_option("--idle", idle) if idle is not None else None,
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
                f"answers written as {target.form} cannot be checked while they go on",
                hint="Write them as jsonl.",
            )
        if reload_static and (verify or why):
            raise UsageError(
                "static data is not reloaded while answers are explained or checked",
                hint="Leave --reload-static out, or --verify and --why.",
            )
        from quadweir.commands import querylive

        querylive.run(
            querylive.LiveQuery(
                text=text,
                dialect=dialect,
                content=content,
                declarations=tuple(asked.declarations(live=True)),
                streams_file=streams,
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
                oracle=_oracle(asked, None, tell=False) if verify else None,
                reasons=_reasons(asked, ()) if why else None,
                reload_static=reload_static,
            )
        )
        return
    for given, name in (
        (checkpoint, "--checkpoint"),
        (shards_in, "--shards-in"),
        (every, "--every"),
        (idle, "--idle"),
        (metrics_port, "--metrics-port"),
        (reload_static or None, "--reload-static"),
    ):
        if given is not None:
            raise UsageError(f"{name} is of use to a run that goes on", hint="Add --live.")
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
    """What the command line asked for."""

    text: str
    dialect: str | None
    content: str | None
    query: ContinuousQuery
    streams: tuple[Named, ...]
    streams_file: Path | None
    static: tuple[str, ...]
    schema: tuple[str, ...]
    target: Target
    shards: int | None
    master: str | None
    delay: timedelta | None
    idle: timedelta | None
    allow_unbounded: tuple[str, ...]
    max_reports: int
    strict: bool
    why: bool
    dead_letters: str | None

    def declarations(self, *, live: bool) -> list[StreamDeclaration]:
        from quadweir.commands.querystreams import declare, predicates

        timed_by = predicates(self.query)
        return [
            declare(each, timed_by, live=live, delay=self.delay, idle=self.idle)
            for each in self.streams
        ]

    @property
    def schemas(self) -> tuple[str, ...]:
        """The files of the schema, with those that are named beside the streams."""
        from quadweir.sources.declare import schema_files

        beside = schema_files(self.streams_file) if self.streams_file is not None else ()
        return (*self.schema, *map(str, beside))

    def quads(self) -> Iterator[Quad]:
        from quadweir.sources.staticfiles import StaticFile, read_static

        return read_static([StaticFile.of(each) for each in self.static])


def _check_why(asked: _Asked, *, live: bool, verify: bool) -> None:
    """Refuse to explain what cannot be explained."""
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
    if asked.streams_file is not None and not live:
        raise UsageError("--why takes its streams from --stream", hint="Write --stream IRI=FILE.")


def _reasons(asked: _Asked, feed: Iterable[Element]) -> Reasons:
    from quadweir.commands.why import Reasons

    return Reasons(asked.query, feed, asked.quads(), schema_of(asked.schemas, tell=False))


def _write_answers(asked: _Asked, answers: Iterable[Answer]) -> None:
    reasons = None
    if asked.why:
        from quadweir.commands.querystreams import predicates, read_elements_of

        feed = read_elements_of(asked.streams, predicates(asked.query), bad=[])
        reasons = _reasons(asked, feed)
    with _opened(asked.target.output) as out:
        for answer in answers:
            line = answer.to_json()
            if reasons is not None:
                line["why"] = reasons.of(answer)
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


def _check_streams(asked: _Asked) -> None:
    """Refuse a query that reads a stream which nothing was said of."""
    from quadweir.terms import IRI

    if asked.streams_file is not None:
        return
    given = {each.iri for each in asked.streams}
    read = {w.stream.value: w for w in asked.query.windows if isinstance(w.stream, IRI)}
    for iri, window in read.items():
        if iri not in given:
            raise UsageError(
                f"the query reads <{iri}>, and no --stream says where it comes from",
                hint=f"Add --stream {iri}=FILE",
                span=window.span,
            )
    if not read and asked.query.windows:
        return  # over a stream variable: all that are given
    unread = sorted(given - set(read))
    if unread:
        print(
            f"quadweir: the query does not read {', '.join(f'<{iri}>' for iri in unread)}",
            file=sys.stderr,
        )


# --- by the oracle ---


def _oracle(asked: _Asked, delay_ms: int | None, *, tell: bool) -> Oracle:
    from quadweir.testing.oracle import Oracle
    from quadweir.testing.reasoner import Reasoner

    schema = schema_of(asked.schemas, tell=tell)
    return Oracle(
        asked.query,
        static=asked.quads(),
        delay_ms=delay_ms,
        max_reports=asked.max_reports,
        entail=Reasoner(schema) if schema is not None else None,
    )


def _run_oracle(
    asked: _Asked, bad: list[DeadLetter] | None, delay_ms: int | None, *, tell: bool
) -> Run:
    from quadweir.commands.querystreams import predicates, read_elements_of

    if asked.streams_file is not None:
        raise UsageError(
            "the oracle takes its streams from --stream", hint="Write --stream IRI=FILE."
        )
    feed = read_elements_of(asked.streams, predicates(asked.query), bad=bad)
    return _oracle(asked, delay_ms, tell=tell).run(feed)


def _answer_by_oracle(asked: _Asked) -> None:
    from datetime import timedelta

    if asked.target.form != "jsonl" or asked.target.is_kafka:
        raise UsageError("the oracle writes jsonl to files only", hint="Leave --oracle out.")
    bad: list[DeadLetter] = []
    delay = asked.delay if asked.delay is not None else timedelta(0)
    run = _run_oracle(
        asked, None if asked.strict else bad, delay // timedelta(milliseconds=1), tell=True
    )
    _write_answers(asked, run.answers)
    _summarise("record could not be read", [f"{x.source} {x.place}: {x.reason}" for x in bad])
    _summarise(
        "element without an event time", [f"{e.stream} {e.position}: {why}" for e, why in run.dead]
    )
    _summarise("late element", [f"{e.stream} {e.position}" for e in run.late])


# --- on Spark, to the end of the streams ---


def _answer_bounded(asked: _Asked, *, verify: bool) -> bool:
    """Answer by the engine; tells whether the oracle, if asked, agrees."""
    from quadweir.commands.interrupts import quieten_gateway
    from quadweir.commands.queryoutput import write_bounded
    from quadweir.engine import Engine
    from quadweir.runtime.session import build
    from quadweir.testing.frames import answers_from_rows

    declarations = asked.declarations(live=False)
    spark = build(app_name="quadweir-query", master=asked.master, shards=asked.shards)
    quieten_gateway()
    try:
        engine = Engine(spark)
        if asked.streams_file is not None:
            engine.load_streams(asked.streams_file)
        engine.declare(*declarations)
        engine.schema(*asked.schema)
        tell_of(engine.schema_warnings)
        registered = engine.query(
            asked.text,
            dialect=asked.dialect,
            content=asked.content,
            static=asked.static,
            shards=asked.shards,
            allow_unbounded=asked.allow_unbounded,
        )
        answers = registered.to_dataframe()
        if answers.isStreaming:
            raise UsageError("some stream goes on for ever", hint="Add --live.")
        if verify:
            answers = answers.persist()
        if asked.why:
            # Sorted, so that each report's windows are looked at once.
            given = sorted(answers_from_rows(answers.toLocalIterator()), key=lambda each: each.t)
            _tell_of_letters(registered, asked)
            _write_answers(asked, given)
        else:
            written = write_bounded(asked.target, registered, answers=answers)
            try:
                _tell_of_letters(registered, asked)
                written.publish()
            finally:
                written.discard()
        if not verify:
            return True
        return _agrees(asked, answers_from_rows(answers.toLocalIterator()))
    finally:
        spark.stop()


def _tell_of_letters(registered: RegisteredQuery, asked: _Asked) -> None:
    """Count what could not be read, name some of it, and keep all of it where that is wanted."""
    count = registered.input_counts()["dead_letters"]
    # The streams are read once more for them, and only if there is something to be found.
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


def _agrees(asked: _Asked, actual: list[Answer]) -> bool:
    from quadweir.testing import diff_answers

    # All elements are there before time goes on: none of them is late.
    expected = _run_oracle(asked, [], None, tell=False).answers
    difference = diff_answers(expected, actual)
    if not difference:
        print(f"quadweir: the oracle gives the same {len(expected)} answers", file=sys.stderr)
        return True
    print(f"quadweir: the oracle answers otherwise: {difference}", file=sys.stderr)
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
