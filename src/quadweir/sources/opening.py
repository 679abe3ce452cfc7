"""Opens any declared stream: the one place that chooses a reader by the kind of its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from quadweir.errors import DeclarationError, UsageError
from quadweir.sources.declare import (
    FileSource,
    FolderSource,
    KafkaSource,
    MemorySource,
    MqttSource,
    PushSource,
    ReplaySource,
    StreamDeclaration,
    TcpSource,
)
from quadweir.sources.filesource import open_records, open_statements
from quadweir.sources.live import open_live
from quadweir.sources.push import open_push
from quadweir.sources.replaysource import open_replay

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Stream = TypeVar("_Stream")


def find_stream(iri: str, streams: Mapping[str, _Stream]) -> _Stream:
    """Return the stream of an IRI.

    Raises:
        UsageError: no stream has that IRI.
    """
    if iri not in streams:
        known = ", ".join(f"<{one}>" for one in streams) or "none"
        raise UsageError(f"no stream is declared as <{iri}>", hint=f"Declared streams: {known}.")
    return streams[iri]


def open_declared(
    spark: SparkSession,
    declaration: StreamDeclaration,
    *,
    spool: Path | None = None,
    index: Path | None = None,
    roots: Sequence[Path] = (),
) -> DataFrame:
    """Return the rows of a declared stream.

    Args:
        spark: the session.
        declaration: the stream.
        spool: where TCP and MQTT keep what arrived until it is processed; a folder for this query
            and stream alone. Other sources do not need it.
        index: where the order of the files of a watched folder is noted; None is in that folder.
        roots: the folders that links in a folder may lead to, in addition to that folder.

    Returns:
        For RDF, rows that are statements or dead letters (`rowfilters.good_statements`,
        `rowfilters.dead_letters`). For other formats, records; a record with a reason is a dead
        letter.

    Raises:
        UsageError: the stream needs a spool, or is in memory.
        SourceError: the source cannot be reached.
    """
    match declaration.source:
        case FileSource() | FolderSource():
            read = open_statements if declaration.format.is_rdf else open_records
            return read(spark, declaration, index=index, roots=roots)
        case ReplaySource():
            return open_replay(spark, declaration)
        case KafkaSource():
            return open_live(spark, declaration, spool=Path())
        case TcpSource() | MqttSource():
            if spool is None:
                raise UsageError(
                    f"<{declaration.iri}> arrives once and has to be kept until it is processed",
                    hint="Name a folder: `engine.statements(iri, spool=Path(...))`.",
                )
            return open_live(spark, declaration, spool=spool)
        case PushSource():
            return open_push(spark, declaration)
        case MemorySource():
            raise UsageError(
                f"<{declaration.iri}> is a stream in memory, which only tests can read",
                span=declaration.span,
            )


def open_rdf(
    spark: SparkSession, declaration: StreamDeclaration, *, spool: Path | None = None
) -> DataFrame:
    """Return the statements and dead letters of a declared stream of RDF.

    Args:
        spark: the session.
        declaration: the stream.
        spool: as in `open_declared`.

    Raises:
        DeclarationError: the records of the stream are not RDF.
        UsageError: the stream needs a spool, or is in memory.
        SourceError: the source cannot be reached.
    """
    if not declaration.format.is_rdf:
        raise DeclarationError(
            f"the records of <{declaration.iri}> are {declaration.format}, not RDF",
            hint="Map them with RML first.",
            span=declaration.span,
        )
    return open_declared(spark, declaration, spool=spool)
