"""What a stream is: its IRI, the source of its records, their format and their times.

Declarations are written in TOML (`docs/reference/streams.md`) or built in Python. The published
schema `quadweir/schemas/streams.schema.json` checks both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias, cast, final

from quadweir.addresses import read_addresses, read_host, spell
from quadweir.errors import DataError, DeclarationError, UsageError
from quadweir.paths import as_path
from quadweir.sources.schemacheck import first_problem
from quadweir.sources.tomlfile import AllowedPaths, TomlFile, parse_toml, problem_error, read_toml
from quadweir.sources.tomlplaces import KeyPath
from quadweir.spans import Span
from quadweir.times import (
    as_duration,
    as_instant,
    format_duration,
    parse_duration,
    parse_time,
)

LIVE_DELAY: Final = timedelta(seconds=10)
RECORDS_PER_BATCH: Final = 100_000
"""How many records a batch takes from a live source by default."""
AHEAD: Final = timedelta(hours=1)
"""How far ahead an element of a live stream may be by default (S4)."""
# Means "not given": the default depends on the source.
_DEFAULT: Final = timedelta(milliseconds=-1)


def _convert(declared: Any) -> None:
    """Convert what a caller gave to the types of the fields: text to a Path, "10s" to a timedelta."""
    converted = {
        "path": as_path,
        "dead_letters": as_path,
        "start": as_instant,
        "step": as_duration,
        "every": as_duration,
        "delay": as_duration,
        "idle": as_duration,
        "ahead": as_duration,
    }
    for name in type(declared).__dataclass_fields__:
        given = getattr(declared, name)
        if name in converted and given is not None and given != _DEFAULT:
            object.__setattr__(declared, name, converted[name](given))


class Format(StrEnum):
    """How the records of a stream are written."""

    TIMED_LINES = "timed-lines"
    TIMED_GRAPHS = "timed-graphs"
    TIMED_FILES = "timed-files"
    NTRIPLES = "ntriples"
    NQUADS = "nquads"
    JSONL = "jsonl"
    CSV = "csv"
    XML = "xml"

    @property
    def is_rdf(self) -> bool:
        """Whether the records are RDF, so that they need no mapping."""
        return self not in (Format.JSONL, Format.CSV, Format.XML)

    @property
    def is_stream_file(self) -> bool:
        """Whether this is a form of stream file, which has the times of its elements."""
        return self in (Format.TIMED_LINES, Format.TIMED_GRAPHS, Format.TIMED_FILES)


@final
@dataclass(frozen=True, slots=True)
class Envelope:
    """The time is outside the record: a line prefix, a Kafka timestamp, a place in a folder."""


@final
@dataclass(frozen=True, slots=True)
class Arrival:
    """The time is when the record arrived."""


@final
@dataclass(frozen=True, slots=True)
class FromPredicate:
    """The time is the object of a predicate inside the element."""

    predicate: str


@final
@dataclass(frozen=True, slots=True)
class FromColumn:
    """The time is a field of the record."""

    column: str


TimeSource: TypeAlias = Envelope | Arrival | FromPredicate | FromColumn


@final
@dataclass(frozen=True, slots=True)
class Speed:
    """Play `factor` times as fast as the event times say."""

    factor: float = 1.0


@final
@dataclass(frozen=True, slots=True)
class Rate:
    """Play `per_second` elements each second, evenly."""

    per_second: float


@final
@dataclass(frozen=True, slots=True)
class Burst:
    """Play `count` elements at once, then again after `every`."""

    count: int
    every: timedelta

    def __post_init__(self) -> None:
        _convert(self)


Pace: TypeAlias = Speed | Rate | Burst


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """One file, read to its end."""

    path: Path

    def __post_init__(self) -> None:
        _convert(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSource:
    """The files of a folder, in the order of their names; with `watch`, new files too."""

    path: Path
    pattern: str = "*"
    watch: bool = False
    start: int = 0
    step: timedelta | None = None

    def __post_init__(self) -> None:
        _convert(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySource:
    """Files played as a live source."""

    path: Path
    pattern: str = "*"
    start: int = 0
    step: timedelta | None = None
    pace: Pace = field(default_factory=Speed)
    loop: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        _convert(self)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource:
    """A Kafka topic."""

    servers: str
    topic: str
    starting: str = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        servers = spell(read_addresses(self.servers, error=DeclarationError))
        object.__setattr__(self, "servers", servers)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSource:
    """Lines from a TCP server."""

    port: int
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", read_host(self.host, error=DeclarationError))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MqttSource:
    """Messages from an MQTT broker."""

    topic: str
    host: str = "127.0.0.1"
    port: int | None = None
    qos: int = 1
    client_id: str | None = None
    tls: bool = False
    username: str | None = None
    password_env: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", read_host(self.host, error=DeclarationError))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource:
    """Elements that a Python program passes in."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PushSource:
    """Elements or records that clients of the service push.

    Attributes:
        log: where the service keeps them; None outside of a service.
        start: the byte of the log at which a new run begins.
        reader: the name of the run, by which the service knows how far it has read.
    """

    log: Path | None = field(default=None, compare=False)
    start: int = field(default=0, compare=False)
    reader: str = field(default="", compare=False)


DeclaredSource: TypeAlias = (
    FileSource
    | FolderSource
    | ReplaySource
    | KafkaSource
    | TcpSource
    | MqttSource
    | MemorySource
    | PushSource
)
_KINDS: Final[Mapping[str, type]] = {
    "file": FileSource,
    "folder": FolderSource,
    "replay": ReplaySource,
    "kafka": KafkaSource,
    "tcp": TcpSource,
    "mqtt": MqttSource,
    "memory": MemorySource,
    "push": PushSource,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDeclaration:
    """A stream as its author describes it (semantics S1 to S4).

    `Engine.stream` makes one in a chain of calls. In all declarations, a duration may be given as
    text (`"10s"`, `"PT10S"`), a path as text or as a `file:` URI.

    >>> flow = StreamDeclaration(
    ...     iri="http://example.org/flow",
    ...     source=FileSource(path="flow.stream"),
    ...     format="timed-lines",
    ...     idle="30s",
    ... )
    >>> flow.delay, flow.idle, flow.kind
    (datetime.timedelta(0), datetime.timedelta(seconds=30), 'file')

    Attributes:
        iri: the name of the stream.
        source: where its records come from.
        format: the format of its records.
        time: where the event time comes from (S2).
        delay: how far elements may lag before they are late (S4); by default 0 for files and 10 s
            for live sources.
        idle: after how long without elements the stream stops holding back the watermark; None is
            never.
        ahead: how far ahead an element may be (S4): of the clock, in a replay of its neighbours.
            Elements further ahead are dead letters. By default 1 h, or `delay` if that is longer.
            It is ignored for files that have an end: nothing in them is late.
        in_order: whether elements always arrive in the order of their times (E1).
        max_per_batch: how many records of a topic, server, broker or recording, or how many files of
            a watched folder, a batch takes at most. By default 100,000 records, or 64 MiB of files,
            so that a batch takes seconds even if much has piled up.
        dead_letters: a folder for records that cannot be used; None only counts them.
        description: a text for readers.
        span: the place of the declaration.

    Raises:
        DeclarationError: the parts do not fit together.
    """

    iri: str
    source: DeclaredSource
    format: Format
    time: TimeSource = field(default_factory=Envelope)
    delay: timedelta = _DEFAULT
    idle: timedelta | None = None
    ahead: timedelta = _DEFAULT
    in_order: bool = False
    max_per_batch: int | None = None
    dead_letters: Path | None = None
    description: str | None = None
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _convert(self)
        if self.delay == _DEFAULT:
            object.__setattr__(self, "delay", LIVE_DELAY if self.is_live else timedelta(0))
        if self.ahead == _DEFAULT:
            object.__setattr__(self, "ahead", max(AHEAD, self.delay))
        object.__setattr__(self, "format", Format(self.format))
        if self.span is not None:
            return
        # A declaration built in Python follows the same schema as one in a file.
        problem = first_problem({"streams": {self.iri: self.as_table()}}, schema())
        if problem is not None:
            raise problem_error(problem, {})

    @property
    def kind(self) -> str:
        """The kind of its source, as in the file."""
        return next(kind for kind, cls in _KINDS.items() if isinstance(self.source, cls))

    @property
    def is_live(self) -> bool:
        """Whether records arrive by themselves: from Kafka, TCP or MQTT."""
        return isinstance(self.source, (KafkaSource, TcpSource, MqttSource))

    @property
    def has_end(self) -> bool:
        """Whether it is read from files and has an end."""
        match self.source:
            case FileSource():
                return True
            case FolderSource(watch=watch):
                return not watch
            case _:
                return False

    @property
    def delay_ms(self) -> int:
        """The allowed delay in milliseconds."""
        return self.delay // timedelta(milliseconds=1)

    @property
    def idle_ms(self) -> int | None:
        """The idle time-out in milliseconds."""
        return None if self.idle is None else self.idle // timedelta(milliseconds=1)

    @property
    def ahead_ms(self) -> int:
        """How far ahead an element may be, in milliseconds."""
        return self.ahead // timedelta(milliseconds=1)

    def as_table(self) -> dict[str, Any]:
        """Return the declaration as a table of the file, without default values."""
        table: dict[str, Any] = {"source": _source_table(self.kind, self.source)}
        table["format"] = str(self.format)
        match self.time:
            case Arrival():
                table["time"] = "arrival"
            case FromPredicate(predicate=predicate):
                table["time"] = {"predicate": predicate}
            case FromColumn(column=column):
                table["time"] = {"column": column}
            case Envelope():
                pass
        if self.delay != (LIVE_DELAY if self.is_live else timedelta(0)):
            table["delay"] = format_duration(self.delay)
        if self.idle is not None:
            table["idle"] = format_duration(self.idle)
        if self.ahead != max(AHEAD, self.delay):
            table["ahead"] = format_duration(self.ahead)
        if self.in_order:
            table["in_order"] = True
        if self.max_per_batch is not None:
            table["max_per_batch"] = self.max_per_batch
        if self.dead_letters is not None:
            table["dead_letters"] = str(self.dead_letters)
        if self.description is not None:
            table["description"] = self.description
        return table


@cache
def schema() -> Mapping[str, Any]:
    """Return the published JSON Schema of stream declarations."""
    text = files("quadweir.schemas").joinpath("streams.schema.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text))


def load(path: Path | str, *, allow_outside: bool = False) -> dict[str, StreamDeclaration]:
    """Return the stream declarations of a TOML file, by IRI.

    Args:
        path: the file; paths inside it are relative to its folder.
        allow_outside: whether those paths may be outside that folder.

    Raises:
        DeclarationError: the file cannot be read or is not valid; the error has the place.
    """
    return streams_of(_read(path, allow_outside))


def loads(
    text: str, *, base: Path, source: str | None = None, allow_outside: bool = False
) -> dict[str, StreamDeclaration]:
    """Return the stream declarations of a TOML text, like `load`; `base` is the folder."""
    places = AllowedPaths(base, anywhere=allow_outside)
    return streams_of(parse_toml(text, schema(), places, source=source))


def schema_files(path: Path | str, *, allow_outside: bool = False) -> tuple[Path, ...]:
    """Return the schema files that a TOML file of declarations names; see `load`."""
    return schema_files_of(_read(path, allow_outside))


def _read(path: Path | str, allow_outside: bool) -> TomlFile:
    path = Path(path)
    return read_toml(path, schema(), AllowedPaths(path.parent, anywhere=allow_outside))


def streams_of(file: TomlFile) -> dict[str, StreamDeclaration]:
    """Return the streams that a checked file declares, by IRI."""
    tables = file.document.get("streams", {})
    return {iri: _stream(file, iri, table, ("streams", iri)) for iri, table in tables.items()}


def schema_files_of(file: TomlFile) -> tuple[Path, ...]:
    """Return the schema files that a checked file names."""
    named = file.document.get("schema", [])
    names = [named] if isinstance(named, str) else named
    return tuple(file.path(name, ("schema",)) for name in names)


def undeclared(iri: str, known: Iterable[str], span: Span | None = None) -> UsageError:
    """Return the error for a query that reads a stream that is not declared."""
    names = ", ".join(f"<{one}>" for one in known) or "none"
    return UsageError(
        f"the query reads the stream <{iri}>, which is not declared",
        hint=f"Declared streams: {names}.",
        span=span,
    )


def _stream(file: TomlFile, iri: str, table: Mapping[str, Any], path: KeyPath) -> StreamDeclaration:
    options: dict[str, Any] = {
        key: table[key] for key in ("in_order", "max_per_batch", "description") if key in table
    }
    for key in ("delay", "idle", "ahead"):
        if key in table:
            options[key] = parse_duration(table[key])
    if "dead_letters" in table:
        options["dead_letters"] = file.path(table["dead_letters"], (*path, "dead_letters"))
    return StreamDeclaration(
        iri=iri,
        source=_source(file, table["source"], (*path, "source")),
        format=Format(table["format"]),
        time=_time_source(table.get("time", "envelope")),
        span=file.span(path) or Span(1, 1),
        **options,
    )


def _source(file: TomlFile, table: Mapping[str, Any], path: KeyPath) -> DeclaredSource:
    options = dict(table)
    cls = _KINDS[options.pop("kind")]
    if "path" in options:
        options["path"] = file.path(options["path"], (*path, "path"))
    if "step" in options:
        options["step"] = parse_duration(options["step"])
    if "start" in options:
        options["start"] = _instant(file, options["start"], (*path, "start"))
    if "pace" in options:
        options["pace"] = _pace(options["pace"])
    try:
        return cast(DeclaredSource, cls(**options))
    except DeclarationError as error:
        key = "servers" if "servers" in options else "host"
        raise file.error((*path, key), error.message, error.hint) from None


def _instant(file: TomlFile, value: int | str, path: KeyPath) -> int:
    try:
        return parse_time(value) if isinstance(value, str) else int(value)
    except DataError as error:
        raise file.error(path, error.message) from None


def _time_source(value: Any) -> TimeSource:
    if isinstance(value, Mapping):
        return FromPredicate(**value) if "predicate" in value else FromColumn(**value)
    return Arrival() if value == "arrival" else Envelope()


def _pace(table: Mapping[str, Any]) -> Pace:
    if "speed" in table:
        return Speed(float(table["speed"]))
    if "rate" in table:
        return Rate(float(table["rate"]))
    return Burst(table["burst"], parse_duration(table["every"]))


def _source_table(kind: str, source: DeclaredSource) -> dict[str, Any]:
    def spelled(value: Any) -> Any:
        match value:
            case Path():
                return str(value)
            case timedelta():
                return format_duration(value)
            case Speed():
                return {"speed": value.factor}
            case Rate():
                return {"rate": value.per_second}
            case Burst():
                return {"burst": value.count, "every": format_duration(value.every)}
            case Mapping():
                return dict(value)
            case _:
                return value

    if isinstance(source, PushSource):
        # The service decides where it is kept, not the author.
        return {"kind": kind}
    fields: Iterator[str] = iter(type(source).__dataclass_fields__)
    values = {name: getattr(source, name) for name in fields}
    return {"kind": kind, **{k: spelled(v) for k, v in values.items() if v is not None}}
