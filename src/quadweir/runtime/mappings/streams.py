"""Opens the streams that a mapping names as frames of records: live, or bounded.

A mapping is untrusted, so it may connect only to this machine and to hosts that the run allows by
name. Its files are read once, at the start. In a bounded run, a stream gives its content at the
start: the messages of a topic, the files of a folder, a recording.
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.addresses import Address, read_addresses
from quadweir.errors import MappingError, NotImplementedYetError, UnsupportedError, UsageError
from quadweir.mapping.compile import Compiled, compile_mapping
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.frames import from_frame
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.joins import JoinHost, StreamTime
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.readfile import read_file
from quadweir.mapping.records import Records, describe
from quadweir.mapping.sources import (
    DatabaseSource,
    DeclaredStream,
    FileStream,
    FormulationKind,
    FrameSource,
    KafkaStream,
    LogicalSource,
    MappedFile,
    MqttStream,
    TcpStream,
    WebSocketStream,
)
from quadweir.private import make_folder
from quadweir.runtime.mappings.checks import (
    FORMATS,
    check_hosts,
    declaration_of,
    existing_path,
    quality,
)
from quadweir.sources.declare import (
    AHEAD,
    Arrival,
    Envelope,
    FolderSource,
    Format,
    FromColumn,
    KafkaSource,
    MqttSource,
    PushSource,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
)
from quadweir.sources.declare import FileSource as DeclaredFile
from quadweir.sources.kafka import read_kafka
from quadweir.sources.mqtt import read_mqtt
from quadweir.sources.opening import open_declared
from quadweir.sources.tcp import read_tcp
from quadweir.spans import Span

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A declaration with a span counts as checked. Declarations made here would fail the check, because
# they have no event time. None is needed: quads have no times.
_CHECKED: Final = Span(1, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """Opens the sources of a mapping for a live run.

    Attributes:
        spark: the session.
        folders: which files may be read.
        spool: where sources that cannot be read twice keep their records; it belongs to the run's
        checkpoint. A bounded run needs none.
        declarations: the streams that are declared elsewhere, by IRI.
        hosts: the other hosts that the mapping may connect to.
        frames: the caller's frames, by name.
        bounded: whether to read only the records that exist now.
        times: the references that hold event times, by the names of sources; the entry "" is for
        all other sources.
        ahead_ms: how far ahead of the clock records of streams may be where they are joined, if no
            declaration says so; None for any time.
    """

    spark: SparkSession
    folders: Folders
    spool: Path | None = None
    declarations: Mapping[str, StreamDeclaration] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    bounded: bool = False
    times: Mapping[str, str] = field(default_factory=dict)
    ahead_ms: int | None = AHEAD // timedelta(milliseconds=1)

    def open(self, logical: LogicalSource, references: Mapping[str, bool]) -> Records:
        """Open a source for `compile_mapping`."""
        if isinstance(logical.source, MappedFile):
            return read_file(self.spark, logical, references, self.folders)
        return from_frame(self._frame(logical), logical, references)

    def time_of(self, logical: LogicalSource) -> StreamTime:
        """Where the records of a source have their times, if known."""
        source = logical.source
        named = self.times.get(describe(logical))
        declared = None
        if isinstance(source, DeclaredStream):
            declared = self.declarations.get(source.iri)
        if declared is None:
            # A file that a live run reads once, at its start, is not a stream.
            is_lookup = isinstance(source, MappedFile) and not self.bounded
            reference = named or (None if is_lookup else self.times.get(""))
            return StreamTime(
                reference,
                has_own_time=not isinstance(source, MappedFile | FileStream),
                ahead_ms=None if self.bounded else self.ahead_ms,
            )
        match declared.time:
            case FromColumn(column):
                # A replay reads the times itself, because it plays by them.
                is_played = isinstance(declared.source, ReplaySource) and not self.bounded
                reference = None if is_played else column
            case Envelope():
                reference = self.times.get("")
            case _:
                reference = None
        return StreamTime(
            named or reference,
            declared.delay_ms,
            declared.idle_ms,
            # What is pushed has its time with it already: that of its request, or the arrival.
            is_arrival=isinstance(declared.time, Arrival)
            and not isinstance(declared.source, PushSource),
            # The times of a recording are far from the clock.
            ahead_ms=None
            if self.bounded or isinstance(declared.source, ReplaySource)
            else declared.ahead_ms,
        )

    def _frame(self, logical: LogicalSource) -> DataFrame:
        source, span = logical.source, logical.span
        match source:
            case KafkaStream():
                check_hosts(read_addresses(source.brokers), self.hosts, span)
                options = {"groupIdPrefix": source.group_id} if source.group_id else None
                return self._kafka(
                    source.brokers, source.topic, source.offset, options, hosts=self.hosts
                )
            case TcpStream():
                check_hosts((Address(source.host, source.port),), self.hosts, span)
                self._check_endless("the lines of a TCP server", span)
                self._check_csv(logical)
                return read_tcp(
                    self.spark, host=source.host, port=source.port, spool=self._spool(logical)
                )
            case MqttStream():
                check_hosts((Address(source.host, source.port),), self.hosts, span)
                self._check_endless("the messages of an MQTT broker", span)
                return read_mqtt(
                    self.spark,
                    host=source.host,
                    port=source.port,
                    topic=source.topic,
                    tls=source.tls,
                    qos=quality(source, span),
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
                    hint="Export the table to CSV, or pass it as a DataFrame.",
                    span=span,
                )
            case MappedFile():
                raise AssertionError("files are read elsewhere")

    def _declared(self, logical: LogicalSource, source: DeclaredStream) -> DataFrame:
        declaration = declaration_of(logical, source, self.declarations)
        match declaration.source:
            case KafkaSource() as kafka if self.bounded:
                return self._kafka(kafka.servers, kafka.topic, kafka.starting, kafka.options)
            case TcpSource() | MqttSource() | KafkaSource() as live:
                if not isinstance(live, KafkaSource):
                    self._check_endless(f"<{source.iri}>", logical.span)
                if isinstance(live, TcpSource):
                    self._check_csv(logical)
                return open_declared(self.spark, declaration, spool=self._spool(logical))
            case ReplaySource() as recording if self.bounded:
                return self._recording(logical, declaration, recording)
            case ReplaySource() as recording:
                return _with_file(open_declared(self.spark, declaration), timed=recording.loop)
            case PushSource():
                self._check_endless(f"<{source.iri}>", logical.span)
                return open_declared(self.spark, declaration)
            case DeclaredFile() | FolderSource() as files:
                watched = isinstance(files, FolderSource) and files.watch and not self.bounded
                if isinstance(files, FolderSource):
                    files = replace(files, watch=watched)
                return self._records(logical, replace(declaration, source=files))
            case _:
                raise NotImplementedYetError(
                    f"<{source.iri}> is fed by a Python program, which a mapping alone cannot be",
                    hint="Apply the mapping to its DataFrame in Python: mapping.apply(frame).",
                    span=logical.span,
                )

    def _kafka(
        self,
        servers: str,
        topic: str,
        starting: str | None,
        options: Mapping[str, str] | None,
        hosts: tuple[str, ...] | None = None,
    ) -> DataFrame:
        # A bounded run reads from the beginning, unless the offsets are given.
        if self.bounded and starting == "latest":
            starting = None
        return read_kafka(
            self.spark,
            servers=servers,
            topic=topic,
            starting=starting or "earliest",
            options=options,
            bounded=self.bounded,
            hosts=hosts,
        )

    def _recording(
        self, logical: LogicalSource, declaration: StreamDeclaration, recording: ReplaySource
    ) -> DataFrame:
        if recording.limit is not None:
            raise UsageError(
                f"<{declaration.iri}> plays only a part of its recording, which has no meaning "
                "in a run that plays nothing",
                hint="Run it with --live, or declare the files without a limit.",
                span=logical.span,
            )
        files: FolderSource | DeclaredFile = DeclaredFile(path=recording.path)
        if recording.path.is_dir():
            files = FolderSource(path=recording.path, pattern=recording.pattern)
        return self._records(
            logical, replace(declaration, source=files, span=declaration.span or _CHECKED)
        )

    def _files(self, logical: LogicalSource, source: FileStream) -> DataFrame:
        path = existing_path(logical, source, self.folders)
        kind = logical.formulation.kind
        if kind not in FORMATS:
            raise UnsupportedError(f"files of {kind} cannot be watched", span=logical.span)
        files = (
            FolderSource(path=path, watch=not self.bounded)
            if path.is_dir()
            else FolderSource(
                path=path.parent, pattern=glob.escape(path.name), watch=not self.bounded
            )
        )
        declaration = StreamDeclaration(
            iri=path.as_uri(), source=files, format=FORMATS[kind], span=logical.span or _CHECKED
        )
        return self._records(logical, declaration)

    def _records(self, logical: LogicalSource, declaration: StreamDeclaration) -> DataFrame:
        source = declaration.source
        watch = isinstance(source, FolderSource) and source.watch
        index = self._spool(logical) / "index" if watch else None
        frame = open_declared(self.spark, declaration, index=index, roots=self.folders.homes)
        if declaration.format is not Format.XML:
            return _with_file(frame)
        # A file is one record, so its name is the record's place.
        return frame.withColumn(rows.PLACE, _file_name())

    def _check_endless(self, what: str, span: Span | None) -> None:
        if self.bounded:
            raise UsageError(
                f"the mapping reads {what}, which have no end",
                detail="Nobody keeps what was sent, so there is nothing to read to its end.",
                hint="Run it with --live.",
                span=span,
            )

    def _check_csv(self, logical: LogicalSource) -> None:
        if logical.formulation.kind is FormulationKind.CSV:
            raise UnsupportedError(
                "the mapping reads the lines of a TCP server as CSV",
                detail="A record is a line, and a line of CSV lacks the names of its columns.",
                hint="Send JSON, a document in each line.",
                span=logical.span,
            )

    def _spool(self, logical: LogicalSource) -> Path:
        if self.spool is None:
            raise UsageError(
                f"records of {describe(logical)} arrive once and have to be kept until they are "
                "processed",
                hint="Start the query with a checkpoint, or name a folder: spool=....",
                span=logical.span,
            )
        # Two readers of one source must not share a spool.
        key = (
            logical.source,
            logical.formulation,
            logical.iterator,
            logical.nulls,
            logical.rules,
        )
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        folder = self.spool / name
        make_folder(folder)
        return folder


def _with_file(frame: DataFrame, *, timed: bool = False) -> DataFrame:
    """Add the file's name to the places, because a record's blank nodes are named by its place."""
    # In a looped replay, each repetition is a new record.
    again = [F.concat(F.lit("due at "), F.col(rows.ARRIVAL))] if timed else []
    return frame.withColumn(rows.PLACE, F.concat_ws(", ", _file_name(), rows.PLACE, *again))


def _file_name() -> Column:
    return F.element_at(F.split(rows.SOURCE, "/"), -1)


def compile_live(
    mapping: RmlMapping,
    streams: Streams,
    *,
    base: str | None = None,
    registry: MappingFunctions = FUNCTIONS,
    host: JoinHost | None = None,
    elements: ElementRule | None = None,
    run: str = "",
) -> Compiled:
    """Compile a mapping over the streams that it names.

    Args:
        mapping: the mapping.
        streams: opens its sources.
        base: the base of relative IRIs.
        registry: the functions that it may call.
        host: joins streams in windows (`quadweir.runtime.joins.frames.host_join`).
        elements: the streams of the records' elements; without it quads have no times.
        run: a name that distinguishes this run from others of the mapping: its checkpoint.
    """
    return compile_mapping(
        mapping,
        streams.open,
        base=base,
        registry=registry,
        host=host,
        stream_time=streams.time_of,
        elements=elements,
        run=run,
    )
