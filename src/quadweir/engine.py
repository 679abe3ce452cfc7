"""Engine: the Python entry point; declare streams, read files, start and stop what runs on them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, final

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.session import SessionReport
    from quadweir.sinks.start import Sink
    from quadweir.sources.declare import StreamDeclaration
    from quadweir.sources.rdf_files import RdfFiles


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
        from quadweir.runtime.session import adopt, build

        if spark is not None and (master is not None or shards is not None):
            raise UsageError(
                "a session of your own has its master and its shards already",
                hint="Hand in either a session, or a master and the number of shards.",
            )
        self._own = spark is None
        self.changes: SessionReport | None = None
        if spark is None:
            spark = build(master=master, shards=shards)
        else:
            self.changes = adopt(spark)
        self.spark: SparkSession = spark
        self.streams: dict[str, StreamDeclaration] = {}
        self._queries: list[StreamingQuery] = []

    def declare(self, *declarations: StreamDeclaration) -> None:
        """Make streams known by their IRIs; a later declaration of the same IRI wins."""
        self.streams.update({one.iri: one for one in declarations})

    def load_streams(self, path: Path | str) -> Sequence[str]:
        """Declare the streams of a TOML file (`docs/reference/streams.md`) and give their IRIs.

        Raises:
            DeclarationError: the file is not valid; the error says where and why.
        """
        from quadweir.sources.declare import load

        found = load(path)
        self.streams.update(found)
        return tuple(found)

    def read(self, *paths: Path | str) -> RdfFiles:
        """Read RDF files and folders, bounded: the quads, and the dead letters.

        Raises:
            SourceError: a path does not exist.
        """
        from quadweir.sources.rdf_files import read_rdf

        return read_rdf(self.spark, *paths)

    def statements(self, iri: str, *, spool: Path | None = None) -> DataFrame:
        """The statements of a declared stream (`rows.STATEMENT_SCHEMA`), without dead letters.

        The frame is a streaming one unless the stream is read from files that are all there.

        Args:
            iri: the stream.
            spool: where TCP and MQTT keep what arrived until it is processed; only they need it.

        Raises:
            UsageError: no stream has that IRI, or it needs a spool.
        """
        from quadweir.sources.records import good_statements

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
        """
        from quadweir.sinks.files import FileSink
        from quadweir.sinks.lines import LineFormat
        from quadweir.sinks.start import Split, start
        from quadweir.sources.records import dead_letters as unusable
        from quadweir.sources.records import good_statements

        parsed = self._open(iri, checkpoint / "spool")
        if not parsed.isStreaming:
            raise UsageError(
                f"<{iri}> is read from files that are all there",
                hint="Watch the folder (watch = true), replay the files, or take "
                "`engine.statements(iri)` and write it as any DataFrame.",
            )
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

    def stop(self) -> None:
        """Stop the queries that this engine started, and its session if it is the engine's own."""
        for query in self._queries:
            query.stop()
        self._queries.clear()
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

    def _open(self, iri: str, spool: Path | None) -> DataFrame:
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

        try:
            declaration = self.streams[iri]
        except KeyError:
            known = ", ".join(f"<{one}>" for one in self.streams) or "none"
            raise UsageError(
                f"no stream is declared as <{iri}>", hint=f"Declared streams: {known}."
            ) from None
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
