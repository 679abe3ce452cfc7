"""The streams that a mapping names, opened as frames of records.

A mapping is untrusted, so it may connect only to this machine and to hosts that the run allows by
name. Files that it names beside its streams are read once, at the start.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urlsplit

from quadweir.errors import MappingError, NotImplementedYetError, UnsupportedError
from quadweir.mapping.compile import Compiled, compile_mapping
from quadweir.mapping.files import Folders, missing
from quadweir.mapping.frames import from_frame
from quadweir.mapping.functions.registry import FUNCTIONS, Registry
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.records import Records, read_file
from quadweir.mapping.sources import (
    DatabaseSource,
    DeclaredStream,
    FileSource,
    FileStream,
    FormulationKind,
    FrameSource,
    KafkaStream,
    LogicalSource,
    MqttStream,
    TcpStream,
    WebSocketStream,
)
from quadweir.sources.declare import FileSource as DeclaredFile
from quadweir.sources.declare import (
    FolderSource,
    Format,
    KafkaSource,
    MqttSource,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
)
from quadweir.sources.filesource import open_records
from quadweir.sources.kafka import read_kafka
from quadweir.sources.live import open_live
from quadweir.sources.mqtt import read_mqtt
from quadweir.sources.replaysource import open_replay
from quadweir.sources.tcp import read_tcp
from quadweir.spans import Span

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOCAL_NAMES: Final = frozenset(("localhost", "ip6-localhost"))
_FORMATS: Final = {
    FormulationKind.CSV: Format.CSV,
    FormulationKind.JSONPATH: Format.JSONL,
    FormulationKind.XPATH: Format.XML,
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Opens the sources of a mapping for a live run.

    Attributes:
        spark: the session.
        folders: which files may be read.
        spool: where sources that cannot be asked again keep what they received; it belongs to the
            run's checkpoint.
        declarations: the streams that are declared elsewhere, by IRI.
        hosts: the hosts besides this one that may be connected to.
        frames: frames of the caller's, by name.
    """

    spark: SparkSession
    folders: Folders
    spool: Path
    declarations: Mapping[str, StreamDeclaration] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    frames: Mapping[str, DataFrame] = field(default_factory=dict)

    def open(self, logical: LogicalSource, references: Mapping[str, bool]) -> Records:
        """Open a source for `compile_mapping`."""
        if isinstance(logical.source, FileSource):
            return read_file(self.spark, logical, references, self.folders)
        return from_frame(self._frame(logical), logical, references)

    def _frame(self, logical: LogicalSource) -> DataFrame:
        source, span = logical.source, logical.span
        match source:
            case KafkaStream():
                self._check_hosts(source.brokers, span)
                return read_kafka(
                    self.spark,
                    servers=source.brokers,
                    topic=source.topic,
                    starting=source.offset or "earliest",
                    options={"groupIdPrefix": source.group_id} if source.group_id else None,
                )
            case TcpStream():
                self._check_hosts(source.host, span)
                return read_tcp(
                    self.spark, host=source.host, port=source.port, spool=self._spool(logical)
                )
            case MqttStream():
                self._check_hosts(source.host, span)
                return read_mqtt(
                    self.spark,
                    host=source.host,
                    port=source.port,
                    topic=source.topic,
                    tls=source.tls,
                    spool=self._spool(logical),
                )
            case FileStream():
                return self._files(logical, source)
            case DeclaredStream():
                return self._declared(logical, source)
            case FrameSource():
                if source.name not in self.frames:
                    raise MappingError(
                        f"the mapping reads the frame {source.name!r}, which the run was not given",
                        span=span,
                    )
                return self.frames[source.name]
            case WebSocketStream():
                raise UnsupportedError(
                    f"the mapping reads the WebSocket {source.url}, which Quadweir does not",
                    hint="Send its messages to Kafka, MQTT or a TCP socket.",
                    span=span,
                )
            case DatabaseSource():
                raise UnsupportedError(
                    "the mapping reads a relational database, which Quadweir does not",
                    hint="Export the table to CSV, or hand it in as a DataFrame.",
                    span=span,
                )
            case FileSource():
                raise AssertionError("files are read elsewhere")

    def _declared(self, logical: LogicalSource, source: DeclaredStream) -> DataFrame:
        declaration = self.declarations.get(source.iri)
        if declaration is None:
            known = ", ".join(f"<{iri}>" for iri in sorted(self.declarations)) or "none"
            raise MappingError(
                f"the mapping reads the stream <{source.iri}>, which is not declared",
                hint=f"Declare it in the file given with --streams. Declared are: {known}.",
                span=logical.span,
            )
        match declaration.source:
            case KafkaSource() | TcpSource() | MqttSource():
                return open_live(self.spark, declaration, spool=self._spool(logical))
            case ReplaySource():
                return open_replay(self.spark, declaration)
            case DeclaredFile() | FolderSource():
                return open_records(self.spark, declaration, index=self._spool(logical))
            case _:
                raise NotImplementedYetError(
                    f"<{source.iri}> is fed by a Python program, which a mapping alone cannot be",
                    hint="Apply the mapping to its DataFrame in Python: mapping.apply(frame).",
                    span=logical.span,
                )

    def _files(self, logical: LogicalSource, source: FileStream) -> DataFrame:
        path = self.folders.resolve(source.path, source.root, span=logical.span)
        if not path.exists():
            raise missing(path, source.path, logical.span)
        if logical.formulation.kind not in _FORMATS:
            raise UnsupportedError(
                f"files of {logical.formulation.kind} cannot be watched", span=logical.span
            )
        watched: FolderSource | DeclaredFile
        if path.is_dir():
            watched = FolderSource(path=path, watch=True)
        else:
            watched = FolderSource(path=path.parent, pattern=path.name, watch=True)
        declaration = StreamDeclaration(
            iri=path.as_uri(),
            source=watched,
            format=_FORMATS[logical.formulation.kind],
            # A declaration with a place counts as checked. This one would not pass, since nothing
            # says the time of a record; but nothing asks for it either: quads have no times.
            span=logical.span or Span(1, 1),
        )
        return open_records(self.spark, declaration, index=self._spool(logical) / "index")

    def _spool(self, logical: LogicalSource) -> Path:
        name = hashlib.sha256(repr(logical.source).encode()).hexdigest()[:16]
        folder = self.spool / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _check_hosts(self, servers: str, span: Span | None) -> None:
        for server in servers.split(","):
            host = urlsplit(f"//{server.strip()}").hostname or ""
            if not is_local(host) and host not in self.hosts and server.strip() not in self.hosts:
                raise MappingError(
                    f"the mapping connects to {host}, which is not this machine",
                    hint=f"Allow it with --allow-net {host}.",
                    span=span,
                )


def is_local(host: str) -> bool:
    """Tell whether a name or address means this machine.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("192.0.2.1")
    (True, True, False)
    """
    if host in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def compile_live(
    mapping: RmlMapping,
    streams: Streams,
    *,
    base: str | None = None,
    registry: Registry = FUNCTIONS,
) -> Compiled:
    """Compile a mapping over the streams that it names."""
    return compile_mapping(mapping, streams.open, base=base, registry=registry)


def check_realtime(mapping: RmlMapping, compiled: Compiled) -> None:
    """Refuse what Spark's real-time mode cannot run, and say which part it is.

    Raises:
        UnsupportedError: a source is not Kafka, or Python or a join takes part.
    """
    from quadweir.mapping.functions.compile import uses_python
    from quadweir.mapping.model import FunctionExecution

    hint = "Run it with --live instead: micro-batches take all of this."
    for triples_map in mapping.triples_maps:
        source = triples_map.source.source
        if not isinstance(source, KafkaStream):
            raise UnsupportedError(
                f"real-time mode reads Kafka only; triples map {triples_map.name} reads "
                f"{type(source).__name__}",
                hint=hint,
                span=triples_map.span,
            )
        for term in triples_map.term_maps():
            expression = term.expression
            if isinstance(expression, FunctionExecution) and uses_python(expression):
                raise UnsupportedError(
                    f"real-time mode runs no Python; triples map {triples_map.name} calls "
                    f"{expression.function}",
                    hint=hint,
                    span=term.span or triples_map.span,
                )
    for group in compiled.groups:
        if group.records.uses_python:
            raise UnsupportedError(
                f"real-time mode runs no Python; {group.records.how[-1]}", hint=hint
            )
    if compiled.joins:
        raise UnsupportedError(f"real-time mode has no joins; {compiled.joins[0].how}", hint=hint)
