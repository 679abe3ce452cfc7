"""Engine, the Python entry point: declare streams, register queries, start and stop them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as Frames
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

from quadweir.errors import UsageError
from quadweir.paths import PathLike, as_path
from quadweir.times import DurationLike, as_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.algebra.query import ContinuousQuery
    from quadweir.algebra.windowing import Windowing
    from quadweir.entailment.schema import Axiom, Schema, SchemaWarning
    from quadweir.mapping.model import Mapping
    from quadweir.runtime.claims import Claim
    from quadweir.runtime.match.mapped import MappedQuads
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.query import RegisteredQuery
    from quadweir.runtime.spark.session import SessionReport
    from quadweir.runtime.static.data import StaticInput
    from quadweir.sinks.base import Sink
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.rdf_files import RdfFiles
    from quadweir.streambuilder import StreamBuilder
    from quadweir.terms import Quad


@final
class Engine:
    """One Spark session, the streams declared on it, and the queries that it started.

    Args:
        spark: your own session. Settings that you chose are kept, `changes` says which others were
            set, and the engine never stops it. Without one, the engine starts an embedded session
            and stops it with itself.
        master: the Spark master URL of a session to start; default: this machine.
        shards: how many shards state is divided into; default: one for each core.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        shards: int | None = None,
    ) -> None:
        from quadweir.runtime.spark.session import adopt, build
        from quadweir.sources.sparkformat import register_formats
        from quadweir.streamregistry import StreamRegistry
        from quadweir.syntax.parser import build_ahead

        if spark is not None and (master is not None or shards is not None):
            raise UsageError(
                "your own session already has a master and shards",
                hint="Pass a session, or a master and the number of shards.",
            )
        build_ahead()
        self._own = spark is None
        self._is_stopped = False
        self.changes: SessionReport | None = adopt(spark) if spark is not None else None
        self.spark: SparkSession = spark or build(master=master, shards=shards)
        register_formats(self.spark)
        self._streams = StreamRegistry(self.spark)
        self._queries: list[StreamingQuery | RegisteredQuery | Network] = []
        self._claims: list[Claim] = []
        self._axioms: list[Axiom] = []
        self._static: list[StaticInput] = []
        self.schema_warnings: list[SchemaWarning] = []

    @property
    def streams(self) -> dict[str, StreamDeclaration]:
        """The declared streams, by their IRIs."""
        return self._streams.declared

    def declare(self, *declarations: StreamDeclaration) -> None:
        """Declare streams by their IRIs; a later declaration replaces one of the same IRI."""
        for one in declarations:
            self._streams.declare(one)

    def stream(self, iri: str) -> StreamBuilder:
        """Declare a stream in one chain of calls; it replaces one of the same IRI.

        Example, with an engine:

            engine.stream("urn:doors").folder("doors", watch=True).format("timed-lines").delay("5s")

        Args:
            iri: the name of the stream.
        """
        return self._streams.begin(iri)

    def load_streams(self, path: PathLike) -> Sequence[str]:
        """Declare the streams of a TOML file (`docs/reference/streams.md`) and return their IRIs.

        If the file names a schema, this is added too, as with `schema`.

        Raises:
            DeclarationError: the file is not valid; the error says where and why.
        """
        from quadweir.sources.declare import load, schema_files

        path = as_path(path)
        found = load(path)
        self.declare(*found.values())
        self.schema(*schema_files(path))
        return tuple(found)

    def schema(self, *given: PathLike | Schema) -> list[SchemaWarning]:
        """Add RDFS and OWL files, or axioms, to the schema of all later queries (N1).

        Returns:
            Warnings about what is probably a mistake in the files, with its place.

        Raises:
            SourceError: a file does not exist.
            DataError: a file is not RDF.
            UnsupportedError: the schema has an axiom about `rdf:type` that is not supported.
        """
        from quadweir.entailment.schema import Schema
        from quadweir.sources.schemafiles import read_schema

        files = [as_path(each) for each in given if not isinstance(each, Schema)]
        read, warnings = read_schema(files)
        for each in (read, *(each for each in given if isinstance(each, Schema))):
            self._axioms += each.axioms
        self.schema_warnings += warnings
        return warnings

    def static(
        self, *given: PathLike | Quad | DataFrame | Iterable[Quad], graph: str | None = None
    ) -> None:
        """Add static data that all later queries and networks join with.

        It is read when a query needs it. Files can be read again while a query runs
        (`RegisteredQuery.reload_static`).

        Args:
            given: files and folders of RDF, quads, and DataFrames of quads (`QUAD_SCHEMA`; the column
                `graph` may be missing), whose terms are spelled as in N-Triples.
            graph: the IRI of the named graph that all of it goes into; default: where it is.

        Raises:
            UsageError: a DataFrame does not have the columns of quads, or is a stream.
        """
        from quadweir.runtime.static.data import in_graph

        self._static += in_graph(given, graph)

    def read(self, *paths: PathLike) -> RdfFiles:
        """Return the quads and the dead letters of RDF files and folders, bounded.

        Raises:
            SourceError: a path does not exist.
        """
        from quadweir.sources.rdf_files import read_rdf

        return read_rdf(self.spark, *map(as_path, paths))

    def statements(self, iri: str, *, spool: PathLike | None = None) -> DataFrame:
        """Return the statements of a declared stream, without dead letters.

        The rows are of `rows.STATEMENT_SCHEMA`. The frame is a streaming one, unless the stream is
        read from files and has an end.

        Args:
            iri: the stream.
            spool: where TCP and MQTT keep what arrived until it is processed.

        Raises:
            UsageError: no stream has that IRI, or it needs a spool.
            DeclarationError: the records of the stream are not RDF.
        """
        from quadweir.rowfilters import good_statements

        return good_statements(self._open(iri, None if spool is None else as_path(spool)))

    def write(
        self,
        iri: str,
        sink: Sink,
        *,
        checkpoint: PathLike,
        dead_letters: PathLike | None = None,
        every: DurationLike | None = None,
        available_now: bool = False,
    ) -> StreamingQuery:
        """Start writing a declared live stream to a sink, and its dead letters in the same pass.

        Args:
            iri: the stream.
            sink: where its statements go.
            checkpoint: the folder of offsets and state; with it, a later run continues this one.
            dead_letters: the folder for dead letters, as JSON Lines; default: as declared.
            every: how often a batch begins; default: as soon as the last one is done.
            available_now: take what is there now and end.

        Raises:
            UsageError: no stream has that IRI, or it is not live.
            StateError: another process runs with the checkpoint.
        """
        from quadweir.runtime.claims import Claim
        from quadweir.sinks.deadletters import start_writing

        checkpoint = as_path(checkpoint)
        parsed = self._open(iri, checkpoint / "spool")
        if not parsed.isStreaming:
            raise UsageError(
                f"<{iri}> is read from files and has an end",
                hint="Watch the folder (watch = true), replay the files, or write the DataFrame "
                "`engine.statements(iri)` yourself.",
            )
        self._claims.append(Claim(checkpoint))
        query = start_writing(
            parsed,
            sink,
            dead_letters=as_path(dead_letters)
            if dead_letters is not None
            else self.streams[iri].dead_letters,
            checkpoint=checkpoint,
            every=None if every is None else as_duration(every),
            available_now=available_now,
        )
        self._queries.append(query)
        return query

    def provide(
        self,
        iri: str,
        statements: DataFrame | RegisteredQuery,
        *,
        delay: DurationLike = "0s",
        idle: DurationLike | None = None,
        ahead: DurationLike | None = None,
        canonical: bool = False,
    ) -> None:
        """Declare a frame of statements, or the answers of a CONSTRUCT query, as a stream.

        Terms are compared by their canonical spelling (`quadweir.terms`). So terms in any spelling
        of N-Triples are made canonical, and rows that are no statements become dead letters.

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
            found = query.to_dataframe().collect()  # one answer: urn:ann
            dead = query.dead_letters().collect()  # one dead letter: urn:bob is no IRI

        Args:
            iri: the name of the stream; all statements get it.
            statements: rows of `rows.STATEMENT_SCHEMA`, bounded or streaming. All statements of an
                element have to be in one batch; otherwise a statement that the element has or
                implies twice may count twice (W8, N1). An element of the stream
                `runtime.match.rowform.END` ends all streams, and their windows become empty. Or a
                CONSTRUCT query: it becomes part of the run of every query that reads the stream,
                and its answers are never late.
            delay: how far elements may lag before they are late (S4).
            idle: after how long without elements the stream stops holding back the watermark.
            ahead: how far ahead of the clock elements of a streaming frame may be (S4); others are
                dead letters. None for any time.
            canonical: whether all rows are known to be statements with canonical terms, such as the
                rows of sources and mappings of this package. They are then not checked, which is
                faster; with other rows, answers would be wrong.

        Raises:
            UsageError: the frame does not have the columns of a statement.
        """
        from quadweir.runtime.match.provided import provided_feed
        from quadweir.runtime.query import RegisteredQuery

        if isinstance(statements, RegisteredQuery):
            self._streams.provide(iri, statements.as_feed(iri))
            return
        feed = provided_feed(
            iri,
            statements,
            delay=as_duration(delay),
            idle=None if idle is None else as_duration(idle),
            ahead=None if ahead is None else as_duration(ahead),
            canonical=canonical,
        )
        self._streams.provide(iri, feed)

    def map(
        self,
        mapping: Mapping | PathLike,
        frames: DataFrame | Frames[str, DataFrame] | None = None,
        *,
        stream: str | None = None,
        time: str | Frames[str, str] | None = None,
        base: str | None = None,
        bounded: bool | None = None,
        delay: DurationLike | None = None,
        idle: DurationLike | None = None,
        ahead: DurationLike | None = None,
        allow_dirs: Iterable[PathLike] = (),
        allow_hosts: Iterable[str] = (),
    ) -> MappedQuads:
        """Apply an RML mapping: its quads are DataFrames, and its streams can be queried.

        The statements that the mapping makes from one record in one graph are an element of a
        stream. It has the time of the record: the value of a reference, or as the source is
        declared, or else Kafka's timestamp or the time of arrival. A record without a time is a
        dead letter.

        Args:
            mapping: the mapping, or its file.
            frames: DataFrames to read instead of the sources that the mapping names: one for all of
                them, or some by name (a file's path, a topic, a frame's name).
            stream: the IRI of one stream for all elements. By default, if each source is a stream
                that is declared here, its elements are the stream of the same IRI; else queries can
                read no stream of the mapping.
            time: the reference that holds the event time; or one for each source, by name.
            base: the base of relative IRIs.
            bounded: read what the sources have now, and end. By default, if no source goes on.
            delay: how late elements may be, if not declared; default: 10 s, or 0 if `bounded`.
            idle: after how long without elements a stream is idle, if not declared.
            ahead: how far ahead of the clock elements may be (S4), if not declared; default: 1 h,
                or `delay` if that is longer.
            allow_dirs: other folders whose files the mapping may read, in addition to its own.
            allow_hosts: other hosts that the mapping may connect to, in addition to this one.

        Raises:
            MappingError: the mapping is not valid.
            UsageError: a frame is given for a source that the mapping does not have.
        """
        from quadweir.runtime.match.mapped import MappedQuads, mapped

        self._streams.settle()
        made = mapped(
            self.spark,
            mapping,
            frames,
            dict(self.streams),
            stream=stream,
            time=time,
            base=base,
            bounded=bounded,
            delay=delay,
            idle=idle,
            ahead=ahead,
            allow_dirs=allow_dirs,
            allow_hosts=allow_hosts,
        )
        feeds = made.feeds() if made.names_streams else {}
        self._streams.take_mapped(feeds)
        return MappedQuads(made, tuple(feeds))

    def query(
        self,
        text: str | ContinuousQuery,
        *,
        dialect: str | None = None,
        content: str | None = None,
        base: str | None = None,
        windowing: Windowing | None = None,
        static: Iterable[StaticInput] = (),
        shards: int | None = None,
        allow_unbounded: Iterable[str] = (),
    ) -> RegisteredQuery:
        """Register a continuous query over the streams declared so far.

        Static data is read later, when the query starts or when its answers or its plan are needed.
        A missing or bad file is an error then.

        Args:
            text: the query; if it is parsed already, without `dialect`, `content` and `base`.
            dialect: its language; default: recognised from the text.
            content: what windows contain, `bag` or `graph`; default: as in the dialect.
            base: the base of relative IRIs in the text.
            windowing: where windows begin and when they report; default: as in the text.
            static: more static data than that of the engine, as `static` takes it; also `IRI=FILE`
                for a named graph.
            shards: the highest number of shards; default: the number of shuffle partitions.
            allow_unbounded: IRIs of windows or streams that may be kept as a whole.

        Raises:
            QuerySyntaxError: the text is not a query.
            UnboundedStateError: the query would have to keep a whole stream.
            UnsupportedError: a window would need the closure of a transitive property.
            UsageError: `windowing` does not fit the windows of the query.
        """
        from quadweir.algebra.windowing import AS_WRITTEN, with_windowing
        from quadweir.algebra.windows import Content
        from quadweir.entailment.schema import Schema
        from quadweir.runtime.planned import PlannedQuery
        from quadweir.runtime.query import RegisteredQuery
        from quadweir.runtime.static.data import StaticData
        from quadweir.syntax.read import parse

        self._check_running()
        if isinstance(text, str):
            kind = Content(content) if content is not None else None
            text = parse(text, dialect=dialect, base=base, content=kind, allow=("FROM",))
        for window in text.windows:
            self._streams.check(window.stream)
        planned = PlannedQuery(
            self.spark,
            with_windowing(text, windowing or AS_WRITTEN),
            self._streams.feeds(),
            static=StaticData.of([*self._static, *static]),
            shards=shards,
            allow_unbounded=allow_unbounded,
            schema=Schema.of(self._axioms) if self._axioms else None,
        )
        registered = RegisteredQuery(planned)
        self._queries.append(registered)
        return registered

    def network(
        self,
        *,
        streams: Iterable[str] | None = None,
        static: Iterable[StaticInput] = (),
        shards: int | None = None,
        most_held: int | None = None,
        most_answers: int | None = None,
    ) -> Network:
        """Make a network: many queries over the same streams, which come and go while it runs.

        Args:
            streams: the streams that its queries may read; default: all that are declared so far.
            static: more static data of all its queries than that of the engine, as `static` takes
                it; also `IRI=FILE` for a named graph.
            shards: the number of shards; default: the number of shuffle partitions.
            most_held: how many mappings the queries of one template may hold in a shard; queries that
                hold more are stopped.
            most_answers: how many answers a query may give in a second, over ten seconds; queries
                that give more are stopped.

        Raises:
            UsageError: a stream is not declared.
        """
        from quadweir.entailment.schema import Schema
        from quadweir.runtime.network.network import Network
        from quadweir.runtime.network.templates import NetworkInputs
        from quadweir.runtime.static.data import StaticData
        from quadweir.sources.declare import undeclared

        self._check_running()
        feeds = self._streams.feeds()
        for iri in streams or ():
            self._streams.check(iri)
            if iri not in feeds:
                raise undeclared(iri, feeds)
        chosen = feeds if streams is None else {iri: feeds[iri] for iri in streams}
        partitions = int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        inputs = NetworkInputs(
            self.spark,
            chosen,
            StaticData.of([*self._static, *static]),
            Schema.of(self._axioms) if self._axioms else None,
            shards or partitions,
        )
        network = Network(inputs, most_held=most_held, most_answers=most_answers)
        self._queries.append(network)
        return network

    def stop(self) -> None:
        """Stop the queries of this engine, and its session if the engine started it."""
        self._is_stopped = self._own
        for query in self._queries:
            query.stop()
        self._queries.clear()
        while self._claims:
            self._claims.pop().release()
        if self._own:
            self.spark.stop()

    def _check_running(self) -> None:
        if self._is_stopped:
            raise UsageError(
                "the engine was stopped, and its session with it", hint="Make another."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def open_feed(self, iri: str, predicate: str | None = None) -> DataFrame:
        """Return the rows of any known stream: statements, and dead letters, which have a reason.

        Args:
            iri: the stream: declared, provided or mapped.
            predicate: the predicate that event times are read from; default: those of the stream.

        Raises:
            UsageError: no stream has that IRI.
        """
        from quadweir.sources.opening import find_stream

        feed = find_stream(iri, self._streams.feeds())
        return feed.open(predicate if predicate != feed.timed_by else None, None)

    def _open(self, iri: str, spool: Path | None) -> DataFrame:
        from quadweir.sources.opening import find_stream, open_rdf

        self._streams.check(iri)
        self._streams.settle()
        return open_rdf(self.spark, find_stream(iri, self.streams), spool=spool)
