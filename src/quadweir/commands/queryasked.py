"""What `quadweir query` is asked: its options, checked, and the inputs that they name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.commands.mappingtimes import parse_times
from quadweir.errors import UsageError

if TYPE_CHECKING:
    from datetime import timedelta

    from pyspark.sql import SparkSession

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.commands.querymappings import Mappings
    from quadweir.commands.queryoutput import OutputTarget
    from quadweir.commands.querystreams import Named
    from quadweir.engine import Engine
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.streamfiles import DeadLetter, Element
    from quadweir.terms import Quad


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuery:
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

    def check_bounded(self) -> None:
        """Check inputs and outputs of a run that has an end, before anything is started.

        Raises:
            QuadweirError: an input is missing or wrong, or an output cannot be written.
        """
        from quadweir.commands.preflight import check_file, check_query_inputs

        check_query_inputs(
            self.query,
            declared=self.declarations(live=False),
            streams_file=self.streams_file,
            static=self.static,
            schema=self.schema,
            mapped=self.mappings.iris,
            live=False,
        )
        self.target.check_place()
        if self.dead_letters is not None:
            check_file(Path(self.dead_letters))

    def quads(self) -> Iterator[Quad]:
        from quadweir.sources.staticfiles import StaticFile, read_static

        return read_static([StaticFile.of(each) for each in self.static])


def mappings_of(
    given: list[str],
    query: ContinuousQuery,
    named: Iterable[Named],
    streams_file: Path | None,
    base: str | None,
    times: list[str],
    allow_dirs: list[Path],
    allow_hosts: list[str],
) -> Mappings:
    """Read the mappings of the command line.

    Raises:
        UsageError: an option about mappings is given without a mapping, or nothing says which
            stream a mapping makes.
        MappingError: a file is no mapping.
    """
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


def check_why(asked: AskedQuery, *, live: bool, verify: bool) -> None:
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


def check_streams(asked: AskedQuery) -> None:
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
