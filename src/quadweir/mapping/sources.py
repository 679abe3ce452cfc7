"""Where a mapping's records come from and where its triples go, as dataclasses.

Two `LogicalSource`s are equal if they read the same records, wherever the mapping defines them. So
triples maps over the same records share one pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, final

from quadweir.addresses import read_addresses, read_host, spell
from quadweir.errors import MappingError
from quadweir.fileformats import Compression
from quadweir.spans import Span


class FormulationKind(StrEnum):
    """The languages of references and iterators."""

    CSV = "CSV"
    JSONPATH = "JSONPath"
    XPATH = "XPath"
    SPARQL_CSV = "SPARQL results"
    SQL_TABLE = "SQL table"
    SQL_QUERY = "SQL query"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Formulation:
    """A reference formulation; `namespaces` are the (prefix, URL) pairs of an XPath."""

    kind: FormulationKind
    namespaces: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.namespaces and self.kind is not FormulationKind.XPATH:
            raise MappingError(f"namespaces are given for {self.kind}, which has none")


class PathRoot(StrEnum):
    """The start of a relative path."""

    MAPPING_DIRECTORY = "MappingDirectory"
    WORKING_DIRECTORY = "CurrentWorkingDirectory"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """The parts of a CSVW dialect that change how a file is read.

    Spec: https://www.w3.org/TR/tabular-metadata/#dialect-descriptions
    """

    delimiter: str = ","
    quote: str | None = '"'
    double_quote: bool = True
    header: bool = True
    comment_prefix: str | None = None
    skip_rows: int = 0
    skip_columns: int = 0
    skip_blank_rows: bool = False
    skip_initial_space: bool = False
    trim: bool = False
    line_terminators: tuple[str, ...] = ("\r\n", "\n")

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1:
            raise MappingError(
                f"the delimiter {self.delimiter!r} is not one character",
                hint='Give csvw:delimiter one character, such as ";" or "\\t".',
            )
        if self.quote is not None and len(self.quote) != 1:
            raise MappingError(f"the quote {self.quote!r} is not one character")
        if self.skip_rows < 0 or self.skip_columns < 0:
            raise MappingError("a CSV dialect cannot skip fewer than 0 rows or columns")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappedFile:
    """A file; `path` is unchanged from the mapping, and `root` is the start of a relative path.

    `dialect=None` means the usual form of CSV.
    """

    path: str
    root: PathRoot | str = PathRoot.MAPPING_DIRECTORY
    encoding: str = "UTF-8"
    compression: Compression = Compression.NONE
    dialect: CsvDialect | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileStream:
    """A file or folder that is read as it grows (`rmls:FileStream`)."""

    path: str
    root: PathRoot | str = PathRoot.MAPPING_DIRECTORY


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaStream:
    """A Kafka topic; `offset` is `earliest`, `latest` or None for the run's own choice.

    `brokers` are normalised addresses (`quadweir.addresses`).
    """

    brokers: str
    topic: str
    group_id: str | None = None
    offset: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "brokers", spell(read_addresses(self.brokers, error=MappingError)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TcpStream:
    """Lines from a TCP server."""

    host: str
    port: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", read_host(self.host, error=MappingError))
        if not 0 < self.port < 65_536:
            raise MappingError(
                f"{self.port} is not a TCP port", hint="Give rmls:port a number from 1 to 65535."
            )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MqttStream:
    """An MQTT topic, given by a Web of Things form; `options` are its `mqv:options`."""

    host: str
    topic: str
    port: int = 1883
    tls: bool = False
    options: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "host", read_host(self.host, error=MappingError))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WebSocketStream:
    """Messages of a WebSocket, given by a Web of Things form."""

    url: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredStream:
    """A stream named by IRI whose source is declared elsewhere (TOML or Python)."""

    iri: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSource:
    """A DataFrame of the caller's, by the name it is given in Python (`"name"` or `"{name}"`)."""

    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSource:
    """A relational database, which is not supported; the model keeps it so that the error can name
    its place.
    """

    dsn: str


MappingSource: TypeAlias = (
    MappedFile
    | FileStream
    | KafkaStream
    | TcpStream
    | MqttStream
    | WebSocketStream
    | DeclaredStream
    | FrameSource
    | DatabaseSource
)
STREAM_SOURCES: Final = (
    FileStream,
    KafkaStream,
    TcpStream,
    MqttStream,
    WebSocketStream,
    DeclaredStream,
)


class ValueRules(StrEnum):
    """How the values of a source become terms, where the vocabularies of mappings differ.

    The source's vocabulary decides, unless the run sets the rules; see `docs/reference/rml.md`.
    """

    CURRENT = "current"
    """The rules of RML-Core and RML-IO."""
    OLDER = "older"
    """As engines read the older vocabulary and YARRRML: JSON values without a datatype are plain
    strings, an array stands for its elements, and an empty CSV cell without quotes is missing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalSource:
    """Records of a source: each match of `iterator`, or each row or message if there is none.

    Spec: https://kg-construct.github.io/rml-io/spec/docs/#logical-source
    """

    source: MappingSource
    formulation: Formulation
    iterator: str | None = None
    nulls: tuple[str, ...] | None = None
    """Values that count as missing; None means the default of the format (CSV: none, see the
    docs)."""
    rules: ValueRules = ValueRules.CURRENT
    span: Span | None = field(default=None, compare=False)

    @property
    def is_stream(self) -> bool:
        """Whether the source is unbounded."""
        return isinstance(self.source, STREAM_SOURCES)

    @property
    def has_plain_values(self) -> bool:
        """Whether values of JSON have no types, and arrays stand for their elements."""
        is_json = self.formulation.kind is FormulationKind.JSONPATH
        return is_json and self.rules is ValueRules.OLDER

    @property
    def empty_is_missing(self) -> bool:
        """Whether an empty cell without quotes is a missing value."""
        return self.formulation.kind is FormulationKind.CSV and self.rules is ValueRules.OLDER


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogicalTarget:
    """A target of triples, in addition to the run's own output or instead of it.

    Spec: https://kg-construct.github.io/rml-io/spec/docs/#logical-target
    """

    name: str
    path: str
    root: PathRoot | str = PathRoot.WORKING_DIRECTORY
    serialization: str = "http://www.w3.org/ns/formats/N-Quads"
    """An IRI under `http://www.w3.org/ns/formats/`."""
    encoding: str = "UTF-8"
    compression: Compression = Compression.NONE
    span: Span | None = field(default=None, compare=False)
