"""Streams that a mapping makes of its sources, as a query reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, final

from quadweir.errors import NotImplementedYetError, UsageError
from quadweir.mapping.compile import Compiled
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.records import describe
from quadweir.mapping.sources import DeclaredStream, LogicalSource
from quadweir.runtime.joins.frames import host_join
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.runtime.match.feeds import Feed
from quadweir.sources.declare import ReplaySource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.sources.declare import StreamDeclaration


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappedStreams:
    """The streams that a mapping makes of its sources.

    Attributes:
        spark: the session.
        mapping: the mapping; its logical targets are of no account here.
        folders: which files it may read.
        stream: the IRI of the one stream that all of its elements go into. Without it each source has
            to be a declared stream, and its elements go into the stream of the same IRI.
        declarations: the streams of records that are declared elsewhere, by IRI.
        hosts: the hosts besides this one that may be connected to.
        times: the references that hold event times, by the names of sources; see `Streams`.
        base: what relative IRIs are put after.
        bounded: read what is there now, and no more.
        delay_ms: how late elements may be, where no declaration says so.
        idle_ms: after how long without elements a stream is no longer waited for, likewise.
        ahead_ms: how far ahead of the clock elements of a stream that goes on may be, likewise.
    """

    spark: SparkSession
    mapping: RmlMapping
    folders: Folders
    stream: str | None = None
    declarations: Mapping[str, StreamDeclaration] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    bounded: bool = False
    delay_ms: int = 0
    idle_ms: int | None = None
    ahead_ms: int | None = None

    def feeds(self) -> dict[str, Feed]:
        """Give the streams by their IRIs.

        Raises:
            UsageError: nothing names the stream of some source.
        """
        found: dict[str, list[LogicalSource]] = {}
        for one in self.mapping.triples_maps:
            if one.subject.classes or one.predicate_objects:
                found.setdefault(self.stream_of(one.source), []).append(one.source)
        return {iri: self._feed(iri, sources) for iri, sources in found.items()}

    def stream_of(self, logical: LogicalSource) -> str:
        """Name the stream of a source's elements."""
        if self.stream is not None:
            return self.stream
        if isinstance(logical.source, DeclaredStream):
            return logical.source.iri
        raise UsageError(
            f"nothing says which stream the elements of {describe(logical)} are",
            hint="Name the stream that the mapping makes.",
            span=logical.span,
        )

    def _feed(self, iri: str, sources: list[LogicalSource]) -> Feed:
        known = [
            self.declarations[one.source.iri]
            for one in sources
            if isinstance(one.source, DeclaredStream) and one.source.iri in self.declarations
        ]
        delay = max((one.delay_ms for one in known), default=self.delay_ms)
        idle = max((one.idle_ms for one in known if one.idle_ms is not None), default=self.idle_ms)
        ahead = max((one.ahead_ms for one in known), default=self.ahead_ms)
        if any(isinstance(one.source, ReplaySource) for one in known):
            ahead = None  # A recording is of another time than the clock's.

        def open_mapped(predicate: str | None, spool: Path | None) -> DataFrame:
            return self._open(iri, predicate, spool)

        return Feed(iri, open_mapped, delay, idle, ahead_ms=ahead)

    def _open(self, iri: str, predicate: str | None, spool: Path | None) -> DataFrame:
        if not self.bounded:
            if predicate is not None:
                raise NotImplementedYetError(
                    f"a window wants the times of <{iri}> from <{predicate}>, and a live mapping takes "
                    "them from its records",
                    hint="Name the reference that holds the time (--time), and drop the predicate.",
                )
            if spool is None:
                raise UsageError(
                    f"<{iri}> is mapped as records arrive, which needs a checkpoint",
                    hint="Start the query with a checkpoint, or read the sources to their end.",
                )
        streams = Streams(
            spark=self.spark,
            folders=self.folders,
            spool=spool,
            declarations=self.declarations,
            hosts=self.hosts,
            times=self.times,
            bounded=self.bounded,
            ahead_ms=self.ahead_ms,
        )
        compiled = compile_live(
            self.mapping,
            streams,
            base=self.base,
            host=host_join,
            elements=ElementRule(self.stream_of, times_inside=predicate is not None),
            run=str(spool.absolute()) if spool is not None else "",
        )
        return self._part(compiled, iri).tagged()

    def _part(self, compiled: Compiled, iri: str) -> Compiled:
        """Take what goes into one stream."""
        groups = [
            one for one in compiled.groups if one.is_timed and self.stream_of(one.logical) == iri
        ]
        for one in groups:
            if not self.bounded and not one.records.frame.isStreaming:
                raise UsageError(
                    f"{one.records.shown} is read to its end, and the run goes on",
                    hint="Leave --live out, or make it a stream (rmls:FileStream).",
                    span=one.logical.span,
                )
        joins = [
            one
            for one in compiled.joins
            if self.stream_of((one.child if one.child.is_timed else one.parent).logical) == iri
        ]
        return replace(compiled, groups=groups, joins=joins, targets=())
