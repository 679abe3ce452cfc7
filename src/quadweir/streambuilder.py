"""Declares a stream in one chain of calls, as `Engine.stream` begins it.

A chain makes the same `StreamDeclaration` that a table of a TOML file makes.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Options
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

from quadweir.errors import DeclarationError
from quadweir.paths import PathLike, as_path
from quadweir.sources.declare import (
    Arrival,
    Burst,
    DeclaredSource,
    Envelope,
    FileSource,
    FolderSource,
    Format,
    FromColumn,
    FromPredicate,
    KafkaSource,
    MemorySource,
    MqttSource,
    Pace,
    Rate,
    ReplaySource,
    Speed,
    StreamDeclaration,
    TcpSource,
    TimeSource,
)
from quadweir.terms import IRI
from quadweir.times import DurationLike, as_duration, as_instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.mapping.model import Mapping

_SOURCES: Final = "kafka, mqtt, tcp, file, folder, replay or dataframe"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamMapping:
    """The mapping that turns the records of a stream into its elements.

    Attributes:
        mapping: the mapping.
        source: the source of the mapping that the records take the place of, by its name; None if
            the mapping reads the stream by its IRI, or has one source only.
        base: the base of relative IRIs.
        allow_dirs: other folders whose files the mapping may read, in addition to its own.
        allow_hosts: other hosts that the mapping may connect to, in addition to this one.
    """

    mapping: Mapping
    source: str | None
    base: str | None
    allow_dirs: tuple[Path, ...]
    allow_hosts: tuple[str, ...]


@final
class StreamBuilder:
    """A stream that is being declared: each call adds to it and returns it.

    What a call is given is checked at once, and whether the parts go together when the stream is
    first needed, or when `declaration` is asked for.

    >>> speed = (
    ...     StreamBuilder("http://example.org/speed")
    ...     .kafka("localhost:9092", "speed")
    ...     .format("jsonl")
    ...     .event_time(column="measured_at")
    ...     .delay("5s")
    ... )
    >>> speed.declaration.delay
    datetime.timedelta(seconds=5)

    Args:
        iri: the name of the stream.

    Raises:
        DeclarationError: it is not an absolute IRI.
    """

    def __init__(self, iri: str) -> None:
        if not IRI(iri).is_valid():
            raise DeclarationError(
                f"the name of a stream must be an absolute IRI, not {iri[:80]!r}",
                hint='Write it as the query does, such as "urn:doors" or "http://example.org/doors".',
            )
        self.iri = iri
        self._source: DeclaredSource | None = None
        self._frame: DataFrame | None = None
        self._mapping: StreamMapping | None = None
        self._options: dict[str, Any] = {}
        self._declared: StreamDeclaration | None = None

    # --- where records come from ---

    def kafka(
        self,
        servers: str,
        topic: str,
        *,
        starting: str = "earliest",
        options: Options[str, str] | None = None,
    ) -> Self:
        """Read a Kafka topic.

        Args:
            servers: brokers as `HOST:PORT`, separated by commas.
            topic: the topic.
            starting: where a new query begins: `earliest` or `latest`.
            options: options of the client and of Spark's connector, such as
                `kafka.security.protocol`.
        """
        return self._from(
            KafkaSource(
                servers=servers, topic=topic, starting=starting, options=dict(options or {})
            )
        )

    def mqtt(
        self,
        topic: str,
        *,
        host: str = "127.0.0.1",
        port: int | None = None,
        qos: int = 1,
        client_id: str | None = None,
        tls: bool = False,
        username: str | None = None,
        password_env: str | None = None,
    ) -> Self:
        """Read the messages of an MQTT broker.

        Args:
            topic: a topic filter.
            host: the broker.
            port: its port; default: 1883, and 8883 with TLS.
            qos: the quality of service.
            client_id: the session to continue after a restart.
            tls: whether to use TLS.
            username: the user.
            password_env: the environment variable that holds the password.
        """
        return self._from(
            MqttSource(
                topic=topic,
                host=host,
                port=port,
                qos=qos,
                client_id=client_id,
                tls=tls,
                username=username,
                password_env=password_env,
            )
        )

    def tcp(self, port: int, *, host: str = "127.0.0.1") -> Self:
        """Read lines from a TCP server."""
        return self._from(TcpSource(port=port, host=host))

    def file(self, path: PathLike) -> Self:
        """Read one file to its end."""
        return self._from(FileSource(path=as_path(path)))

    def folder(
        self,
        path: PathLike,
        *,
        pattern: str = "*",
        watch: bool = False,
        start: datetime | int | str = 0,
        step: DurationLike | None = None,
    ) -> Self:
        """Read the files of a folder, in the order of their names.

        Args:
            path: the folder.
            pattern: which of its files, as a shell pattern.
            watch: whether to continue with new files as they come.
            start: for `timed-files`, the event time of the first file.
            step: for `timed-files`, the time from one file to the next.
        """
        return self._from(
            FolderSource(
                path=as_path(path),
                pattern=pattern,
                watch=watch,
                start=as_instant(start),
                step=None if step is None else as_duration(step),
            )
        )

    def replay(
        self,
        path: PathLike,
        *,
        pattern: str = "*",
        pace: Pace | None = None,
        speed: float | None = None,
        rate: float | None = None,
        burst: int | None = None,
        every: DurationLike | None = None,
        loop: bool = False,
        limit: int | None = None,
        start: datetime | int | str = 0,
        step: DurationLike | None = None,
    ) -> Self:
        """Play files as a live source.

        Args:
            path: a file or a folder.
            pattern: which files of the folder, as a shell pattern.
            pace: how fast, instead of the next four; default: as fast as the event times say.
            speed: so many times as fast as the event times say.
            rate: so many elements per second.
            burst: so many elements at once, with `every`.
            every: the time from one burst to the next.
            loop: whether to begin again at the end, with later times.
            limit: stop after so many elements.
            start: for `timed-files`, the event time of the first file.
            step: for `timed-files`, the time from one file to the next.

        Raises:
            DeclarationError: more than one pace is given, or half of a burst.
        """
        return self._from(
            ReplaySource(
                path=as_path(path),
                pattern=pattern,
                pace=_pace(pace, speed, rate, burst, every),
                loop=loop,
                limit=limit,
                start=as_instant(start),
                step=None if step is None else as_duration(step),
            )
        )

    def dataframe(self, frame: DataFrame) -> Self:
        """Read a DataFrame of Spark, bounded or streaming.

        Its rows are statements (`STATEMENT_SCHEMA`); with `mapping`, they are records, whose columns
        are the references of the mapping. They have no format.
        """
        self._from(MemorySource())
        self._frame = frame
        return self

    # --- what the records are ---

    def format(self, name: Format | str) -> Self:
        """Set how records are written, such as `timed-lines`, `ntriples`, `jsonl` or `csv`.

        Raises:
            DeclarationError: there is no such format.
        """
        try:
            return self._set(format=Format(name))
        except ValueError:
            raise DeclarationError(
                f"there is no format {str(name)[:40]!r}", hint=f"Choose {', '.join(Format)}."
            ) from None

    def mapping(
        self,
        mapping: Mapping | PathLike,
        *,
        source: str | None = None,
        base: str | None = None,
        allow_dirs: Iterable[PathLike] = (),
        allow_hosts: Iterable[str] = (),
    ) -> Self:
        """Turn records into elements with an RML mapping, or its file.

        The records of this stream take the place of a source of the mapping.

        Args:
            mapping: the mapping, or its file.
            source: the name of that source: a file's path, a topic, a frame's name. It may be left
                out if the mapping reads this stream by its IRI, or has only one source.
            base: the base of relative IRIs.
            allow_dirs: other folders whose files the mapping may read, in addition to its own.
            allow_hosts: other hosts that the mapping may connect to, in addition to this one.

        Raises:
            MappingError: the mapping is not valid.
        """
        from quadweir.mapping.model import Mapping as Model

        self._mapping = StreamMapping(
            mapping=mapping if isinstance(mapping, Model) else Model.read(as_path(mapping)),
            source=source,
            base=base,
            allow_dirs=tuple(as_path(each) for each in allow_dirs),
            allow_hosts=tuple(allow_hosts),
        )
        return self._set()

    def event_time(
        self, *, column: str | None = None, predicate: str | None = None, arrival: bool = False
    ) -> Self:
        """Set where event times come from (S2); by default they are outside the records.

        Args:
            column: the field of a record.
            predicate: the IRI of the predicate inside an element whose object is the time.
            arrival: the time when the record arrives.

        Raises:
            DeclarationError: several of them are given.
        """
        given: list[TimeSource] = []
        if column is not None:
            given.append(FromColumn(column))
        if predicate is not None:
            given.append(FromPredicate(predicate))
        if arrival:
            given.append(Arrival())
        if len(given) > 1:
            raise DeclarationError(
                "a stream has one source of event times",
                hint="Name a column, or a predicate, or arrival.",
            )
        return self._set(time=given[0] if given else Envelope())

    # --- rules ---

    def delay(self, delay: DurationLike) -> Self:
        """Set how far elements may lag before they are late (S4)."""
        return self._set(delay=as_duration(delay))

    def idle(self, idle: DurationLike | None) -> Self:
        """Set after how long without elements the stream stops holding back the watermark."""
        return self._set(idle=None if idle is None else as_duration(idle))

    def ahead(self, ahead: DurationLike) -> Self:
        """Set how far ahead elements may be (S4); those further ahead become dead letters."""
        return self._set(ahead=as_duration(ahead))

    def in_order(self, in_order: bool = True) -> Self:
        """Promise that elements always arrive in the order of their times (E1)."""
        return self._set(in_order=in_order)

    def max_per_batch(self, count: int) -> Self:
        """Set how many records, or files of a watched folder, a batch takes at most."""
        return self._set(max_per_batch=count)

    def dead_letters(self, folder: PathLike | None) -> Self:
        """Keep records that cannot be used in a folder; without it they are only counted."""
        return self._set(dead_letters=None if folder is None else as_path(folder))

    def description(self, text: str) -> Self:
        """Describe the stream for readers."""
        return self._set(description=text)

    # --- the result ---

    @property
    def declaration(self) -> StreamDeclaration:
        """The stream as declared so far.

        Raises:
            DeclarationError: a part is missing, or parts do not go together.
        """
        if self._declared is None:
            self._declared = self._declare()
        return self._declared

    @property
    def records(self) -> DataFrame | None:
        """The DataFrame that the stream is read from, if it is one."""
        return self._frame

    @property
    def mapped_by(self) -> StreamMapping | None:
        """The mapping of its records, if there is one."""
        return self._mapping

    def __repr__(self) -> str:
        parts = [f"source={type(self._source).__name__}" if self._source else "source=None"]
        parts += [f"{name}={str(value)!r}" for name, value in self._options.items()]
        if self._mapping is not None:
            parts.append(f"mapping={str(self._mapping.mapping.path)!r}")
        return f"<stream {self.iri} {' '.join(parts)}>"

    def _declare(self) -> StreamDeclaration:
        if self._source is None:
            raise DeclarationError(
                f"the stream <{self.iri}> has no source", hint=f"Add a call of {_SOURCES}."
            )
        options, is_mapped = dict(self._options), self._mapping is not None
        if self._frame is not None:
            if "format" in options:
                raise DeclarationError(
                    f"<{self.iri}> is read from a DataFrame, which has no format",
                    hint="Leave format() out.",
                )
            time = options.get("time", Envelope())
            if not isinstance(time, Envelope) and not (is_mapped and isinstance(time, FromColumn)):
                raise DeclarationError(
                    f"<{self.iri}> is read from a DataFrame, whose times are in a column",
                    hint="Statements have the column event_time. Of records that are mapped, name "
                    "the column: event_time(column=...).",
                )
            options["format"] = Format.JSONL if is_mapped else Format.TIMED_LINES
        if "format" not in options:
            raise DeclarationError(
                f"the stream <{self.iri}> has no format", hint='Add .format("timed-lines").'
            )
        found = StreamDeclaration(iri=self.iri, source=self._source, **options)
        if is_mapped and found.format.is_rdf:
            raise DeclarationError(
                f"<{self.iri}> has RDF ({found.format}), which no mapping reads",
                hint="Leave mapping() out, or choose jsonl, csv or xml.",
            )
        return found

    def _from(self, source: DeclaredSource) -> Self:
        self._source, self._frame = source, None
        return self._set()

    def _set(self, **options: Any) -> Self:
        self._options |= options
        self._declared = None
        return self


def _pace(
    pace: Pace | None,
    speed: float | None,
    rate: float | None,
    burst: int | None,
    every: DurationLike | None,
) -> Pace:
    given: list[Pace] = [] if pace is None else [pace]
    if speed is not None:
        given.append(Speed(speed))
    if rate is not None:
        given.append(Rate(rate))
    if burst is not None and every is not None:
        given.append(Burst(burst, as_duration(every)))
    elif burst is not None or every is not None:
        raise DeclarationError(
            "a burst needs a number of elements and a time",
            hint='Write replay(path, burst=500, every="10s").',
        )
    if len(given) > 1:
        raise DeclarationError(
            "a replay has one pace", hint="Choose one of speed, rate, and burst with every."
        )
    return given[0] if given else Speed()
