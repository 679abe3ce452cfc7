"""The file of `quadweir run`: streams, mappings, and the queries of a network, in TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

from quadweir.commands.deadletters import KAFKA
from quadweir.commands.querymappings import Mapped, Mappings, own_streams
from quadweir.commands.queryoutput import OutputTarget
from quadweir.commands.querytext import read_text
from quadweir.errors import QuadweirError
from quadweir.sources.declare import StreamDeclaration, schema_files_of, streams_of
from quadweir.sources.declare import schema as streams_schema
from quadweir.sources.staticfiles import StaticFile
from quadweir.sources.tomlfile import AllowedPaths, TomlFile, read_toml
from quadweir.spans import Span
from quadweir.terms import IRI
from quadweir.times import parse_duration

if TYPE_CHECKING:
    from quadweir.algebra.query import ContinuousQuery
    from quadweir.algebra.warn import QueryWarning
    from quadweir.runtime.network.querytext import QueryText

NONE: Final = "none"
"""The output of a network whose answers go only to the outputs of single queries."""
_OUTSIDE: Final = "Keep it below the folder of this file, or allow its folder with --allow-dir."
_QUOTES: Final = ('"""\n', "'''\n", '"""', "'''", '"', "'")


@final
@dataclass(frozen=True, slots=True)
class QueryOrigin:
    """Where the text of a query is.

    Attributes:
        source: the file.
        line: how many lines of the file are before the text.
        column: how many columns are before the text in its first line.
        whole: the place of the text as a whole, if it is not written in the file as it is.
    """

    source: str
    line: int = 0
    column: int = 0
    whole: Span | None = None

    def locate(self, span: Span | None) -> Span | None:
        """Return a place of the text as a place of the file."""
        if span is None or self.whole is not None:
            return self.whole
        return Span(
            span.line + self.line,
            span.column + (self.column if span.line == 1 else 0),
            None if span.end_line is None else span.end_line + self.line,
            None
            if span.end_column is None
            else span.end_column + (self.column if span.end_line == 1 else 0),
            self.source,
        )

    def placed(self, error: QuadweirError) -> QuadweirError:
        """Return an error about the text with its place in the file."""
        error.span = self.locate(error.span)
        return error

    def warning(self, warning: QueryWarning) -> QueryWarning:
        """Return a warning about the text with its place in the file."""
        return replace(warning, span=self.locate(warning.span))


@final
@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query of an application.

    Attributes:
        name: its name.
        text: its text, and how it is meant.
        query: what it means.
        origin: where it is written.
        target: where its answers go, in addition to the output of the network.
        is_paused: whether it gives no answers for now.
    """

    name: str
    text: QueryText
    query: ContinuousQuery
    origin: QueryOrigin
    target: OutputTarget | None = None
    is_paused: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What a file says.

    Attributes:
        name: the name of the file, without its extension.
        streams: the declared streams, by IRI.
        mappings: the mappings, each with its own times.
        queries: the queries, by name.
        folder: the folder of further queries.
        backfill: whether queries see what windows hold already when they join.
        reload_static: whether the checkpoint may have been made with other static data.
        output: where all answers go, as JSON lines that name the query; `NONE` for nowhere.
    """

    name: str
    streams: Mapping[str, StreamDeclaration]
    mappings: tuple[Mappings, ...] = ()
    queries: Mapping[str, NamedQuery]
    folder: Path | None = None
    schema: tuple[Path, ...] = ()
    static: tuple[StaticFile, ...] = ()
    checkpoint: Path | None = None
    shards: int | None = None
    every: timedelta | None = None
    most_held: int | None = None
    most_answers: int | None = None
    backfill: bool = False
    reload_static: bool = False
    dead_letters: str | None = None
    output: str = "-"

    @property
    def target(self) -> OutputTarget | None:
        """Where the answers of all queries go."""
        return None if self.output == NONE else OutputTarget(self.output, "jsonl")

    def with_backfill(self) -> Application:
        """Return it with backfill for all queries."""
        queries = {
            name: replace(each, text=replace(each.text, backfill=True))
            for name, each in self.queries.items()
        }
        return replace(self, queries=queries, backfill=True)

    @property
    def mapped(self) -> frozenset[str]:
        """The streams that mappings make."""
        return frozenset(iri for each in self.mappings for iri in each.iris)

    @property
    def read(self) -> tuple[str, ...]:
        """The streams that queries can read; others have records, for mappings."""
        declared = [iri for iri, each in self.streams.items() if each.format.is_rdf]
        return tuple(dict.fromkeys((*declared, *sorted(self.mapped))))


@cache
def schema() -> Mapping[str, Any]:
    """Return the published JSON Schema of applications; it refers to that of declarations."""
    text = files("quadweir.schemas").joinpath("application.schema.json").read_text("utf-8")
    return cast(Mapping[str, Any], json.loads(text))


def load(
    path: Path, *, allow_dirs: Iterable[Path] = (), allow_hosts: Iterable[str] = ()
) -> Application:
    """Read the file of an application.

    Args:
        path: the file; paths inside it are relative to its folder.
        allow_dirs: other folders that those paths, and mappings, may lead to.
        allow_hosts: hosts that mappings may connect to.

    Raises:
        DeclarationError: the file is not valid; the error has the place.
        QuadweirError: a query or a mapping is not valid.
    """
    places = AllowedPaths(path.parent, tuple(allow_dirs), hint=_OUTSIDE)
    return _Reader(read_toml(path, schema(), places, streams_schema())).application(
        path.stem, tuple(allow_hosts)
    )


def query_of(
    name: str, text: QueryText, origin: QueryOrigin, *, streams: Iterable[str] | None = None
) -> NamedQuery:
    """Check a query without Spark.

    Args:
        name: its name.
        text: its text.
        origin: where the text is.
        streams: the streams that it may read; None for any.

    Raises:
        QuadweirError: it is not valid; the error has the place.
    """
    from quadweir.algebra.analyze import analyze, refuse_unbounded
    from quadweir.commands.preflight import check_declared

    try:
        query = text.parsed()
        analyze(query)
        refuse_unbounded(query, allowed=frozenset(map(IRI, text.allow_unbounded)))
        if streams is not None:
            check_declared(query, streams)
    except QuadweirError as error:
        raise origin.placed(error) from None
    return NamedQuery(name, text, query, origin)


@final
@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes an application of a file that the schema accepts."""

    file: TomlFile
    outputs: dict[Path, str] = field(default_factory=dict)

    def application(self, name: str, allow_hosts: tuple[str, ...]) -> Application:
        document = self.file.document
        network = document.get("network", {})
        folder = self._path(document, "queries_folder")
        if folder is not None and not folder.is_dir():
            raise self.file.error(
                ("queries_folder",),
                f"there is no folder {folder}",
                "Create it, or correct the path.",
            )
        checkpoint = self._path(network, "checkpoint", "network")
        if checkpoint is not None:
            self.outputs[checkpoint.resolve()] = "the checkpoint"
        streams = streams_of(self.file)
        found = Application(
            name=name,
            streams=streams,
            mappings=tuple(self._mappings(allow_hosts)),
            queries={},
            folder=folder,
            schema=schema_files_of(self.file),
            static=tuple(self._static(network.get("static", []))),
            checkpoint=checkpoint,
            shards=network.get("shards"),
            every=parse_duration(network["every"]) if "every" in network else None,
            most_held=network.get("most_held"),
            most_answers=network.get("most_answers"),
            backfill=network.get("backfill", False),
            dead_letters=self._output(network, "dead_letters", "network"),
            output=self._output(network, "output", "network") or "-",
        )
        self._check_iris(found)
        queries = self._queries(found.read, backfill=found.backfill)
        return replace(found, queries={each.name: each for each in queries})

    def _path(self, table: Mapping[str, Any], key: str, *above: str) -> Path | None:
        return self.file.path(table[key], (*above, key)) if key in table else None

    def _output(self, table: Mapping[str, Any], key: str, *above: str) -> str | None:
        named = table.get(key)
        if named is None or named in ("-", NONE) or named.startswith(KAFKA):
            return named
        path = self.file.path(named, (*above, key))
        whose = ".".join((*above, key))
        other = self.outputs.setdefault(path.resolve(), whose)
        if other != whose:
            raise self.file.error(
                (*above, key), f"{named} is the folder of {other}, too", "Name another folder."
            )
        return str(path)

    def _static(self, given: Iterable[Any]) -> Iterator[StaticFile]:
        for number, each in enumerate(given):
            path = ("network", "static", number)
            if isinstance(each, str):
                yield StaticFile(self.file.path(each, path))
            else:
                yield StaticFile(self.file.path(each["file"], (*path, "file")), IRI(each["graph"]))

    # --- mappings ---

    def _mappings(self, allow_hosts: tuple[str, ...]) -> Iterator[Mappings]:
        from quadweir.commands.querymappings import read_mapping

        for name, table in self.file.document.get("mappings", {}).items():
            above = ("mappings", name)
            path = self.file.path(table["file"], (*above, "file"))
            if not path.is_file():
                raise self.file.error((*above, "file"), f"there is no mapping file {path}")
            mapping = read_mapping(path)
            stream = table.get("stream")
            own = own_streams(mapping)
            if stream is None and not own:
                raise self.file.error(
                    above, f"which stream does {path} make?", 'Add stream = "IRI".'
                )
            time = table.get("time", {})
            yield Mappings(
                mapped=(Mapped(mapping, stream, (stream,) if stream is not None else own),),
                times={"": time} if isinstance(time, str) else time,
                base=table.get("base"),
                allow_dirs=self.file.where.allowed,
                allow_hosts=allow_hosts,
            )

    def _check_iris(self, found: Application) -> None:
        """Refuse a stream that is given twice."""
        given = {iri for iri, each in found.streams.items() if each.format.is_rdf}
        names = list(self.file.document.get("mappings", {}))
        for name, mappings in zip(names, found.mappings, strict=True):
            for iri in mappings.iris:
                if iri in given:
                    raise self.file.error(
                        ("mappings", name),
                        f"this mapping makes <{iri}>, which is given already",
                        "Name another stream. A query can read several.",
                    )
                given.add(iri)

    # --- queries ---

    def _queries(self, streams: tuple[str, ...], *, backfill: bool) -> Iterator[NamedQuery]:
        from quadweir.runtime.network.querytext import QueryText

        for name, table in self.file.document.get("queries", {}).items():
            above = ("queries", name)
            text, origin = self._text(table, above)
            meant = QueryText(
                text,
                table.get("dialect"),
                table.get("content"),
                table.get("base"),
                tuple(table.get("allow_unbounded", ())),
                backfill=table.get("backfill", backfill),
            )
            found = query_of(name, meant, origin, streams=streams)
            target = self._target(table, above, found.query)
            yield replace(found, target=target, is_paused=table.get("paused", False))

    def _text(self, table: Mapping[str, Any], above: tuple[str, ...]) -> tuple[str, QueryOrigin]:
        if "text" in table:
            return table["text"], self._origin(table["text"], (*above, "text"))
        path = self.file.path(table["file"], (*above, "file"))
        try:
            text, source = read_text(str(path))
        except QuadweirError as error:
            raise self.file.error((*above, "file"), error.message) from None
        return text, QueryOrigin(source)

    def _origin(self, text: str, path: tuple[str, ...]) -> QueryOrigin:
        """Find a text in the file, where it may be written with escapes."""
        place = self.file.places[path].value
        source = place.source or "the file"
        lines = self.file.text.split("\n")
        rest = "\n".join([lines[place.line - 1][place.column - 1 :], *lines[place.line :]])
        quotes = next(each for each in _QUOTES if rest.startswith(each))
        if not rest.startswith(text, len(quotes)):
            return QueryOrigin(source, whole=place)
        if quotes.endswith("\n"):
            return QueryOrigin(source, place.line)
        return QueryOrigin(source, place.line - 1, place.column - 1 + len(quotes))

    def _target(
        self, table: Mapping[str, Any], above: tuple[str, ...], query: ContinuousQuery
    ) -> OutputTarget | None:
        output = self._output(table, "output", *above)
        if output is None:
            return None
        target = OutputTarget(output, table.get("format", "jsonl"))
        if target.is_kafka and target.form != "jsonl":
            raise self.file.error((*above, "format"), "Kafka gets the answers of a query as jsonl")
        try:
            target.check(query)
        except QuadweirError as error:
            raise self.file.error((*above, "format"), error.message, error.hint) from None
        return target
