"""Engine: the Python entry point; declare streams, read files, start and stop what runs on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from quadweir.errors import NotImplementedYetError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.algebra.windowing import Windowing
    from quadweir.entailment.schema import Axiom, Schema, SchemaWarning
    from quadweir.mapping.model import Mapping
    from quadweir.runtime.claims import Claim
    from quadweir.runtime.match.feeds import Feed
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.runtime.spark.session import SessionReport
    from quadweir.sinks.base import Sink
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.rdf_files import RdfFiles
    from quadweir.sources.staticfiles import StaticFile
    from quadweir.terms import Quad


@final
class Engine:
    """One Spark session, the streams declared on it, and the queries that it started.

    Args:
        spark: your own session, which stays yours: settings that you chose are kept, and `changes`
            says which others were set. Without one, an embedded session is started, and stopped
            with the engine.
        master: where to start one, if not on this machine: any Spark master URL.
        shards: how many parts state is cut into; default: one for each core.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        shards: int | None = None,
    ) -> None:
        from quadweir.runtime.spark.session import adopt, build

        if spark is not None and (master is not None or shards is not None):
            raise UsageError(
                "your own session already has its master and its shards",
                hint="Pass either a session, or a master and the number of shards.",
            )
        self._own = spark is None
        self.changes: SessionReport | None = None
        if spark is None:
            spark = build(master=master, shards=shards)
        else:
            self.changes = adopt(spark)
        self.spark: SparkSession = spark
        self.streams: dict[str, StreamDeclaration] = {}
        self._queries: list[StreamingQuery | RegisteredQuery] = []
        self._claims: list[Claim] = []
        self._provided: dict[str, Feed] = {}
        self._axioms: list[Axiom] = []
        self.schema_warnings: list[SchemaWarning] = []

    def declare(self, *declarations: StreamDeclaration) -> None:
        """Make streams known by their IRIs; a later declaration of the same IRI wins."""
        self.streams.update({one.iri: one for one in declarations})

    def load_streams(self, path: Path | str) -> Sequence[str]:
        """Declare the streams of a TOML file (`docs/reference/streams.md`) and give their IRIs.

        If the file names a schema, it is taken up too, as by `schema`.

        Raises:
            DeclarationError: the file is not valid; the error says where and why.
        """
        from quadweir.sources.declare import load, schema_files

        found = load(path)
        self.streams.update(found)
        self.schema(*schema_files(path))
        return tuple(found)

    def schema(self, *given: Path | str | Schema) -> list[SchemaWarning]:
        """Add RDFS and OWL files, or axioms, to the schema that queries from now on go by (N1).

        Returns:
            What in the files is probably not meant as it stands, with its place.

        Raises:
            SourceError: a file is not there.
            DataError: a file is not RDF.
            UnsupportedError: the schema says of `rdf:type` what cannot be followed.
        """
        from quadweir.entailment.schema import Schema
        from quadweir.sources.schemafiles import read_schema

        files = [each for each in given if not isinstance(each, Schema)]
        read, warnings = read_schema(files)
        for each in (read, *(each for each in given if isinstance(each, Schema))):
            self._axioms += each.axioms
        self.schema_warnings += warnings
        return warnings

    def read(self, *paths: Path | str) -> RdfFiles:
        """Read RDF files and folders, bounded: the quads, and the dead letters.

        Raises:
            SourceError: a path does not exist.
        """
        from quadweir.sources.rdf_files import read_rdf

        return read_rdf(self.spark, *paths)

    def statements(self, iri: str, *, spool: Path | None = None) -> DataFrame:
        """The statements of a declared stream (`rows.STATEMENT_SCHEMA`), without dead letters.

        The frame is a streaming one unless the stream is read from files and has an end.

        Args:
            iri: the stream.
            spool: where TCP and MQTT keep what arrived until it is processed; only they need it.

        Raises:
            UsageError: no stream has that IRI, or it needs a spool.
        """
        from quadweir.rowfilters import good_statements

        return good_statements(self._open(iri, spool))

    def write(
        self,
        iri: str,
        sink: Sink,
        *,
        checkpoint: Path,
        dead_letters: Path | None = None,
        every: timedelta | None = None,
        available_now: bool = False,
    ) -> StreamingQuery:
        """Start writing a declared live stream to a sink, its dead letters beside it in one pass.

        Args:
            iri: the stream.
            sink: where its statements go.
            checkpoint: offsets and state; the same folder makes the query go on where it stopped.
            dead_letters: the folder for what cannot be used, as JSON Lines; default: what the
                stream declares.
            every: how often a batch is taken; default: as soon as the last one is done.
            available_now: take what is there now and end.

        Raises:
            UsageError: no stream has that IRI, or it is not live.
            StateError: another process runs with the checkpoint.
        """
        from quadweir.rowfilters import dead_letters as unusable
        from quadweir.rowfilters import good_statements
        from quadweir.runtime.claims import Claim
        from quadweir.sinks.files import FileSink
        from quadweir.sinks.lines import LineFormat
        from quadweir.sinks.start import Split, start

        parsed = self._open(iri, checkpoint / "spool")
        if not parsed.isStreaming:
            raise UsageError(
                f"<{iri}> is read from files and has an end",
                hint="Watch the folder (watch = true), replay the files, or take "
                "`engine.statements(iri)` and write it as any DataFrame.",
            )
        self._claims.append(Claim(checkpoint))
        letters = dead_letters or self.streams[iri].dead_letters
        if letters is None:
            query = start(
                good_statements(parsed),
                sink,
                checkpoint=checkpoint,
                every=every,
                available_now=available_now,
            )
        else:
            query = start(
                parsed,
                Split(
                    lambda batch: (good_statements(batch), unusable(batch)),
                    (sink, FileSink(letters, LineFormat.JSONL)),
                ),
                checkpoint=checkpoint,
                every=every,
                available_now=available_now,
            )
        self._queries.append(query)
        return query

    def provide(
        self,
        iri: str,
        statements: DataFrame | RegisteredQuery,
        *,
        delay: timedelta = timedelta(0),
        idle: timedelta | None = None,
        ahead: timedelta | None = None,
        canonical: bool = False,
    ) -> None:
        """Make a frame of statements known as a stream: mapped records; or a CONSTRUCT's answers.

        Terms are compared by their spelling, of which each has one that is canonical
        (`quadweir.terms`). Rows are checked: terms in any spelling of N-Triples are made canonical,
        and what is no statement becomes a dead letter.

        Example, with a session `spark` and an engine on it:

            frame = spark.createDataFrame(
                [
                    ("urn:doors", 1000, 0, "<urn:ann>", "<urn:enters>", '"Hall"@EN', None),
                    ("urn:doors", 2000, 1, "urn:bob", "<urn:enters>", '"Hall"@EN', None),
                ],
                rows.STATEMENT_SCHEMA,
            )
            engine.provide("urn:doors", frame)
            query = engine.query(
                'SELECT ?who { STREAM <urn:doors> [RANGE 1s] { ?who <urn:enters> "Hall"@en } }'
            )
            found = query.to_dataframe().collect()  # one answer: <urn:ann>
            dead = query.dead_letters().collect()  # one dead letter: urn:bob is no IRI

        Args:
            iri: the name of the stream; all statements get it.
            statements: rows of `rows.STATEMENT_SCHEMA`, bounded or streaming, those of an element
                in one batch: only so is what it says or implies twice sure to count once (W8,
                N1). An element of the stream `runtime.matching.END` in it ends all streams: their
                windows run empty. Or a CONSTRUCT query, which becomes part of the run of every
                query that reads the stream; its answers are never late.
            delay: how far elements may lag before they are late (S4).
            idle: after how long without elements the stream stops holding back the watermark.
            ahead: how far ahead of the clock elements of a streaming frame may be (S4); others are dead
                letters. None for any time.
            canonical: the rows are known to be statements whose terms are spelled canonically, such
                as those that sources and mappings of this package give: they are taken as they are,
                which is quicker. Of others answers would be wrong.

        Raises:
            UsageError: the frame has not the columns of a statement.
        """
        from pyspark.sql import functions as F

        from quadweir import rows
        from quadweir.runtime.match.feeds import Feed
        from quadweir.runtime.match.matching import END
        from quadweir.runtime.query import RegisteredQuery
        from quadweir.sources.provided import as_statements, check_statements

        if isinstance(statements, RegisteredQuery):
            self._provided[iri] = statements.as_feed(iri)
            return
        named = as_statements(statements, iri)
        # What ends all streams keeps its name.
        stream = F.when(F.col(rows.STREAM) == END, F.lit(END)).otherwise(F.lit(iri))
        named = named.withColumn(rows.STREAM, stream)
        if not canonical:
            named = check_statements(named, iri)

        def open_frame(predicate: str | None, spool: Path | None) -> DataFrame:
            del spool
            if predicate is not None and named.isStreaming:
                raise _no_predicate(iri, predicate)
            return named

        millisecond = timedelta(milliseconds=1)
        self._provided[iri] = Feed(
            iri,
            open_frame,
            delay // millisecond,
            idle // millisecond if idle is not None else None,
            ahead_ms=ahead // millisecond if ahead is not None else None,
        )

    def map(
        self,
        mapping: Mapping | Path | str,
        *,
        stream: str | None = None,
        time: str | dict[str, str] | None = None,
        base: str | None = None,
        bounded: bool = False,
        delay: timedelta | None = None,
        idle: timedelta | None = None,
        ahead: timedelta | None = None,
        allow_dirs: Iterable[Path] = (),
        allow_hosts: Iterable[str] = (),
    ) -> Sequence[str]:
        """Make streams of what a mapping makes of its sources, and give their IRIs.

        What is made of one record in one graph is an element; its time is that of the record: the value
        of a reference, else what the source's declaration says, else Kafka's timestamp or the time of
        arrival. A record without one is a dead letter.

        Args:
            mapping: the mapping, or its file.
            stream: the IRI of the stream that all elements go into; by default each source is a stream
                that is declared here, and its elements are the stream of the same IRI.
            time: the reference that holds the event time; or one for each source by name.
            base: what relative IRIs are put after.
            bounded: read what the sources hold now, and end.
            delay: how late elements may be, where no declaration says so; by default 10 s, 0 if `bounded`.
            idle: after how long without elements a stream is no longer waited for, likewise.
            ahead: how far ahead of the clock elements may be (S4), likewise; by default 1 h, or `delay` if
                that is longer.
            allow_dirs: folders whose files the mapping may read besides its own.
            allow_hosts: hosts that it may connect to besides this one.

        Raises:
            MappingError: the mapping is not valid.
            UsageError: nothing names the stream of some source.
        """
        from quadweir.mapping.check import check_mapping
        from quadweir.mapping.files import Folders
        from quadweir.mapping.model import Mapping
        from quadweir.runtime.match.mapped import MappedStreams
        from quadweir.sources.declare import AHEAD, LIVE_DELAY

        read = mapping if isinstance(mapping, Mapping) else Mapping.read(mapping)
        check_mapping(read)
        folder = read.path.resolve().parent if read.path is not None else Path.cwd()
        millisecond = timedelta(milliseconds=1)
        lag = delay if delay is not None else timedelta(0) if bounded else LIVE_DELAY
        feeds = MappedStreams(
            spark=self.spark,
            mapping=read,
            folders=Folders(mapping=folder, allowed=tuple(allow_dirs)),
            stream=stream,
            declarations=dict(self.streams),
            hosts=tuple(allow_hosts),
            times={"": time} if isinstance(time, str) else dict(time or {}),
            base=base,
            bounded=bounded,
            delay_ms=lag // millisecond,
            idle_ms=idle // millisecond if idle is not None else None,
            ahead_ms=(ahead if ahead is not None else max(AHEAD, lag)) // millisecond,
        ).feeds()
        self._provided.update(feeds)
        return tuple(feeds)

    def query(
        self,
        text: str,
        *,
        dialect: str | None = None,
        content: str | None = None,
        base: str | None = None,
        windowing: Windowing | None = None,
        static: Iterable[StaticFile | Path | str | Quad] = (),
        shards: int | None = None,
        allow_unbounded: Iterable[str] = (),
    ) -> RegisteredQuery:
        """Register a continuous query over the streams declared so far.

        Nothing is read yet. Static data is read when the query starts, or when somebody asks for
        its answers or its plan; a file that is missing or bad is an error then.

        Args:
            text: the query.
            dialect: its language; by default it is told from the text.
            content: what windows hold, `bag` or `graph`, in place of the dialect's own choice.
            base: what relative IRIs in the text are resolved against.
            windowing: where windows begin and when they report, in place of the text's own.
            static: static data: files and folders, `IRI=FILE` for a named graph, or quads.
            shards: how many shards to use, at most; default: as many as shuffle partitions.
            allow_unbounded: IRIs of windows or streams that may be kept whole.

        Raises:
            QuerySyntaxError: the text is no query.
            UnboundedStateError: the query would have to keep a stream whole.
            UnsupportedError: a window would need the closure of a transitive property.
            UsageError: `windowing` does not suit the windows of the query.
        """
        from quadweir.algebra.windowing import AS_WRITTEN, with_windowing
        from quadweir.algebra.windows import Content
        from quadweir.entailment.schema import Schema
        from quadweir.runtime.query import RegisteredQuery
        from quadweir.runtime.static.data import StaticData
        from quadweir.sources.staticfiles import StaticFile
        from quadweir.syntax.read import parse
        from quadweir.terms import Quad

        given = list(static)
        quads = [each for each in given if isinstance(each, Quad)]
        files = [
            each if isinstance(each, StaticFile) else StaticFile.of(each)
            for each in given
            if not isinstance(each, Quad)
        ]
        registered = RegisteredQuery(
            self.spark,
            with_windowing(
                parse(
                    text,
                    dialect=dialect,
                    base=base,
                    content=Content(content) if content is not None else None,
                    allow=("FROM",),
                ),
                windowing or AS_WRITTEN,
            ),
            self._feeds(),
            static=StaticData(tuple(files), tuple(quads)),
            shards=shards,
            allow_unbounded=allow_unbounded,
            schema=Schema.of(self._axioms) if self._axioms else None,
        )
        self._queries.append(registered)
        return registered

    def stop(self) -> None:
        """Stop the queries that this engine started, and its session if it is the engine's own."""
        for query in self._queries:
            query.stop()
        self._queries.clear()
        while self._claims:
            self._claims.pop().release()
        if self._own:
            self.spark.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def open_feed(self, iri: str, predicate: str | None = None) -> DataFrame:
        """The rows of any stream that a query could read: statements, and dead letters with a reason.

        Args:
            iri: the stream: declared, provided or mapped.
            predicate: where a window takes event times from, if not from the stream itself.

        Raises:
            UsageError: no stream has that IRI.
        """
        feeds = self._feeds()
        if iri not in feeds:
            known = ", ".join(f"<{one}>" for one in feeds) or "none"
            raise UsageError(f"no stream is known as <{iri}>", hint=f"Known streams: {known}.")
        feed = feeds[iri]
        return feed.open(predicate if predicate != feed.timed_by else None, None)

    def _feeds(self) -> dict[str, Feed]:
        from quadweir.runtime.match.feeds import Feed
        from quadweir.sources.declare import FromPredicate, ReplaySource

        def feed(declared: StreamDeclaration) -> Feed:
            def open_stream(predicate: str | None, spool: Path | None) -> DataFrame:
                return self._open_declared(_timed(declared, predicate), spool)

            time = declared.time
            own = time.predicate if isinstance(time, FromPredicate) else None
            # A replay judges times by their neighbours (`sources.plausible`), not by the clock.
            is_replay = isinstance(declared.source, ReplaySource)
            return Feed(
                declared.iri,
                open_stream,
                declared.delay_ms,
                declared.idle_ms,
                own,
                ahead_ms=None if is_replay else declared.ahead_ms,
            )

        return {iri: feed(declared) for iri, declared in self.streams.items()} | self._provided

    def _open(self, iri: str, spool: Path | None) -> DataFrame:
        try:
            declaration = self.streams[iri]
        except KeyError:
            known = ", ".join(f"<{one}>" for one in self.streams) or "none"
            raise UsageError(
                f"no stream is declared as <{iri}>", hint=f"Declared streams: {known}."
            ) from None
        return self._open_declared(declaration, spool)

    def _open_declared(self, declaration: StreamDeclaration, spool: Path | None) -> DataFrame:
        """Rows that are statements or dead letters."""
        from quadweir.sources.declare import (
            FileSource,
            FolderSource,
            KafkaSource,
            MemorySource,
            MqttSource,
            ReplaySource,
            TcpSource,
        )
        from quadweir.sources.filesource import open_statements
        from quadweir.sources.live import open_live
        from quadweir.sources.replaysource import open_replay

        iri = declaration.iri
        match declaration.source:
            case FileSource() | FolderSource():
                return open_statements(self.spark, declaration)
            case ReplaySource():
                return open_replay(self.spark, declaration)
            case KafkaSource():
                return open_live(self.spark, declaration, spool=Path())
            case TcpSource() | MqttSource():
                if spool is None:
                    raise UsageError(
                        f"<{iri}> arrives once and has to be kept until it is processed",
                        hint="Name a folder: `engine.statements(iri, spool=Path(...))`.",
                    )
                return open_live(self.spark, declaration, spool=spool)
            case MemorySource():
                raise UsageError(
                    f"<{iri}> is a stream in memory, which only tests can read",
                    span=declaration.span,
                )


def _timed(declared: StreamDeclaration, predicate: str | None) -> StreamDeclaration:
    """Take the event times of a stream that goes on from a predicate, if a window wants that.

    Streams that are all there are timed later, whatever their format.
    """
    from quadweir.sources.declare import FileSource, FolderSource, Format, FromPredicate

    source = declared.source
    is_bounded = isinstance(source, FileSource) or (
        isinstance(source, FolderSource) and not source.watch
    )
    if predicate is None or is_bounded:
        return declared
    if isinstance(declared.time, FromPredicate) or declared.format is Format.TIMED_LINES:
        raise _no_predicate(declared.iri, predicate)
    return replace(declared, time=FromPredicate(predicate))


def _no_predicate(iri: str, predicate: str) -> NotImplementedYetError:
    return NotImplementedYetError(
        f"a window takes the times of <{iri}> from <{predicate}>, and the stream has its own",
        hint="Declare the stream with this predicate as its time, in a format of whole elements "
        "(ntriples, nquads, timed-graphs).",
    )
