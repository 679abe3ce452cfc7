"""The streams that a mapping makes from its sources, as feeds of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import NotImplementedYetError, UsageError
from quadweir.mapping.check import check_mapping
from quadweir.mapping.compile import Compiled
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.records import describe
from quadweir.mapping.sources import DeclaredStream, LogicalSource
from quadweir.runtime.joins.frames import host_join
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.runtime.match.feeds import Feed
from quadweir.sources.declare import AHEAD, LIVE_DELAY, ReplaySource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.sources.declare import StreamDeclaration

_MILLISECOND: Final = timedelta(milliseconds=1)


def mapped_feeds(
    spark: SparkSession,
    mapping: RmlMapping | Path | str,
    declarations: Mapping[str, StreamDeclaration],
    *,
    stream: str | None,
    time: str | dict[str, str] | None,
    base: str | None,
    bounded: bool,
    delay: timedelta | None,
    idle: timedelta | None,
    ahead: timedelta | None,
    allow_dirs: Iterable[Path],
    allow_hosts: Iterable[str],
) -> dict[str, Feed]:
    """Return the streams of a mapping by their IRIs; `Engine.map` describes the arguments.

    Raises:
        MappingError: the mapping is not valid.
        UsageError: nothing names the stream of a source.
    """
    read = mapping if isinstance(mapping, RmlMapping) else RmlMapping.read(mapping)
    check_mapping(read)
    folder = read.path.resolve().parent if read.path is not None else Path.cwd()
    lag = delay if delay is not None else timedelta(0) if bounded else LIVE_DELAY
    return MappedStreams(
        spark=spark,
        mapping=read,
        folders=Folders(mapping=folder, allowed=tuple(allow_dirs)),
        stream=stream,
        declarations=declarations,
        hosts=tuple(allow_hosts),
        times={"": time} if isinstance(time, str) else dict(time or {}),
        base=base,
        bounded=bounded,
        delay_ms=lag // _MILLISECOND,
        idle_ms=idle // _MILLISECOND if idle is not None else None,
        ahead_ms=(ahead if ahead is not None else max(AHEAD, lag)) // _MILLISECOND,
    ).feeds()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappedStreams:
    """The streams that a mapping makes from its sources.

    Attributes:
        spark: the session.
        mapping: the mapping; its logical targets are ignored.
        folders: which files it may read.
        stream: the IRI of the one stream for all elements. Without it, each source has to be a
            declared stream, and its elements go into the stream of the same IRI.
        declarations: the streams of records that are declared elsewhere, by IRI.
        hosts: other hosts that the mapping may connect to.
        times: the references that hold event times, by the names of sources (`Streams`).
        base: the base of relative IRIs.
        bounded: read what the sources have now, and end.
        delay_ms: how late elements may be, if no declaration says so.
        idle_ms: after how long without elements a stream is idle, if no declaration says so.
        ahead_ms: how far ahead of the clock elements of a live stream may be, if no declaration
            says so.
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
        """Return the streams by their IRIs.

        Raises:
            UsageError: nothing names the stream of some source.
        """
        found: dict[str, list[LogicalSource]] = {}
        for one in self.mapping.triples_maps:
            if one.subject.classes or one.predicate_objects:
                found.setdefault(self.stream_of(one.source), []).append(one.source)
        return {iri: self._feed(iri, sources) for iri, sources in found.items()}

    def stream_of(self, logical: LogicalSource) -> str:
        """Return the IRI of the stream that the elements of a source go into."""
        if self.stream is not None:
            return self.stream
        if isinstance(logical.source, DeclaredStream):
            return logical.source.iri
        raise UsageError(
            f"nothing says which stream the elements of {describe(logical)} go into",
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
            ahead = None  # The times of a recording have nothing to do with the clock.

        def open_mapped(predicate: str | None, spool: Path | None) -> DataFrame:
            return self._open(iri, predicate, spool)

        return Feed(iri, open_mapped, delay, idle, ahead_ms=ahead)

    def _open(self, iri: str, predicate: str | None, spool: Path | None) -> DataFrame:
        if not self.bounded:
            if predicate is not None:
                raise NotImplementedYetError(
                    f"a window takes the times of <{iri}> from <{predicate}>, but a live mapping "
                    "takes them from its records",
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
        """Return the part of a compiled mapping that goes into one stream."""
        groups = [
            one for one in compiled.groups if one.is_timed and self.stream_of(one.logical) == iri
        ]
        for one in groups:
            if not self.bounded and not one.records.frame.isStreaming:
                raise UsageError(
                    f"{one.records.shown} has an end, but the run is live",
                    hint="Leave --live out, or make it a stream (rmls:FileStream).",
                    span=one.logical.span,
                )
        joins = [
            one
            for one in compiled.joins
            if self.stream_of((one.child if one.child.is_timed else one.parent).logical) == iri
        ]
        return replace(compiled, groups=groups, joins=joins, targets=())
