"""What a mapping makes from its sources: quads, and streams as feeds of a query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, final

from quadweir import rows
from quadweir.errors import NotImplementedYetError, UsageError
from quadweir.mapping.check import check_mapping
from quadweir.mapping.compile import Compiled
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.prune import may_match
from quadweir.mapping.records import describe
from quadweir.mapping.sources import DeclaredStream, FrameSource, LogicalSource
from quadweir.paths import PathLike, as_path
from quadweir.runtime.joins.frames import host_join
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.runtime.match.feeds import AllAsked, Feed
from quadweir.sources.declare import AHEAD, LIVE_DELAY, ReplaySource
from quadweir.times import DurationLike, as_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.sources.declare import StreamDeclaration

_MILLISECOND: Final = timedelta(milliseconds=1)


@final
class MappedQuads:
    """What a mapping makes: quads, or statements of streams if its records have event times.

    Args:
        made: the mapping with its sources.
        streams: the IRIs of the streams that queries can read.

    Attributes:
        streams: these IRIs.
    """

    def __init__(self, made: MappedStreams, streams: tuple[str, ...]) -> None:
        self._made = made
        self.streams = streams

    def quads(self, *, spool: PathLike | None = None) -> DataFrame:
        """Return the quads as rows of `rows.QUAD_SCHEMA`; a streaming frame if a source goes on.

        Records that cannot be mapped are left out; `dead_letters` has them.

        Args:
            spool: where TCP, MQTT and watched folders keep what arrived until it is processed.
        """
        compiled = self._made.compiled(_folder(spool))
        return replace(compiled, targets=()).quads().select(*rows.TERMS)

    def dead_letters(self, *, spool: PathLike | None = None) -> DataFrame:
        """Return the records that cannot be mapped, as rows of `rows.DEAD_LETTER_SCHEMA`."""
        return self._made.compiled(_folder(spool)).dead_letters()

    def __repr__(self) -> str:
        return f"<mapping, streams: {', '.join(self.streams) or 'none'}>"


def _folder(spool: PathLike | None) -> Path | None:
    return None if spool is None else as_path(spool)


def mapped(
    spark: SparkSession,
    mapping: RmlMapping | PathLike,
    frames: DataFrame | Mapping[str, DataFrame] | None,
    declarations: Mapping[str, StreamDeclaration],
    *,
    stream: str | None = None,
    time: str | Mapping[str, str] | None = None,
    base: str | None = None,
    bounded: bool | None = None,
    delay: DurationLike | None = None,
    idle: DurationLike | None = None,
    ahead: DurationLike | None = None,
    allow_dirs: Iterable[PathLike] = (),
    allow_hosts: Iterable[str] = (),
) -> MappedStreams:
    """Return what a mapping makes; `Engine.map` describes the arguments.

    Raises:
        MappingError: the mapping is not valid.
        UsageError: it has no source for a frame.
    """
    read = mapping if isinstance(mapping, RmlMapping) else RmlMapping.read(as_path(mapping))
    check_mapping(read)
    given: dict[str, DataFrame] = {}
    if frames is not None:
        names = {describe(each.source): None for each in read.triples_maps}
        given = dict(frames) if isinstance(frames, Mapping) else dict.fromkeys(names, frames)
        read = _reading(read, given, list(names))
    if bounded is None:
        bounded = not any(_goes_on(each.source, given, declarations) for each in read.triples_maps)
    lag = as_duration(delay) if delay is not None else timedelta(0) if bounded else LIVE_DELAY
    bound = as_duration(ahead) if ahead is not None else max(AHEAD, lag)
    return MappedStreams(
        spark=spark,
        mapping=read,
        frames=given,
        folders=Folders(
            mapping=read.path.resolve().parent if read.path is not None else Path.cwd(),
            allowed=tuple(as_path(each) for each in allow_dirs),
        ),
        stream=stream,
        declarations=declarations,
        hosts=tuple(allow_hosts),
        times={"": time} if isinstance(time, str) else dict(time or {}),
        base=base,
        bounded=bounded,
        delay_ms=lag // _MILLISECOND,
        idle_ms=as_duration(idle) // _MILLISECOND if idle is not None else None,
        ahead_ms=bound // _MILLISECOND,
    )


def _reading(mapping: RmlMapping, frames: Mapping[str, DataFrame], names: list[str]) -> RmlMapping:
    """Return a mapping that reads frames instead of its sources of these names."""
    for name in frames:
        if name not in names:
            raise UsageError(
                f"the mapping has no source {name!r} that a frame could take the place of",
                hint=f"Its sources are {', '.join(map(repr, names))}.",
            )
    maps = [
        replace(each, source=replace(each.source, source=FrameSource(name=describe(each.source))))
        if describe(each.source) in frames
        else each
        for each in mapping.triples_maps
    ]
    return replace(mapping, triples_maps=tuple(maps))


def _goes_on(
    logical: LogicalSource,
    frames: Mapping[str, DataFrame],
    declarations: Mapping[str, StreamDeclaration],
) -> bool:
    """Whether a source has no end."""
    match logical.source:
        case FrameSource(name=name) if name in frames:
            return bool(frames[name].isStreaming)
        case DeclaredStream(iri=iri) if iri in declarations:
            return not declarations[iri].has_end
        case _:
            return logical.is_stream


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
    frames: Mapping[str, DataFrame] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    times: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    bounded: bool = False
    delay_ms: int = 0
    idle_ms: int | None = None
    ahead_ms: int | None = None

    @property
    def names_streams(self) -> bool:
        """Whether something says which stream the elements of each source go into."""
        return self.stream is not None or all(
            isinstance(each.source, DeclaredStream) for each in self._mapped_sources()
        )

    def _mapped_sources(self) -> list[LogicalSource]:
        return [
            each.source
            for each in self.mapping.triples_maps
            if each.subject.classes or each.predicate_objects
        ]

    def feeds(self) -> dict[str, Feed]:
        """Return the streams by their IRIs.

        Raises:
            UsageError: nothing names the stream of some source.
        """
        found: dict[str, list[LogicalSource]] = {}
        for each in self._mapped_sources():
            found.setdefault(self.stream_of(each), []).append(each)
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
            return self._open(iri, predicate, spool).tagged()

        def only(asked: AllAsked) -> Feed:
            wanted = may_match(asked.tests, asked.table)

            def open_asked(predicate: str | None, spool: Path | None) -> DataFrame:
                part = self._open(iri, predicate, spool)
                # With a predicate, any statement may hold the time of its element.
                return part.tagged() if predicate is not None else part.pruned(wanted).tagged()

            def left_out() -> str | None:
                with TemporaryDirectory(prefix="quadweir-explain-") as folder:
                    return self._open(iri, None, Path(folder)).pruned(wanted).left_out

            return replace(feed, open=open_asked, left_out=left_out)

        feed = Feed(iri, open_mapped, delay, idle, ahead_ms=ahead, asked=only)
        return feed

    def _open(self, iri: str, predicate: str | None, spool: Path | None) -> Compiled:
        if not self.bounded and predicate is not None:
            raise NotImplementedYetError(
                f"a window takes the times of <{iri}> from <{predicate}>, but a live mapping "
                "takes them from its records",
                hint="Name the reference that holds the time (--time), and drop the predicate.",
            )
        compiled = self.compiled(
            spool, ElementRule(self.stream_of, times_inside=predicate is not None)
        )
        return self._part(compiled, iri)

    def compiled(self, spool: Path | None, elements: ElementRule | None = None) -> Compiled:
        """Return the mapping over its sources, opened.

        Args:
            spool: where sources that cannot be read twice keep what arrived.
            elements: the streams of the records' elements; without it quads have no times.
        """
        streams = Streams(
            spark=self.spark,
            folders=self.folders,
            spool=spool,
            declarations=self.declarations,
            frames=self.frames,
            hosts=self.hosts,
            times=self.times,
            bounded=self.bounded,
            ahead_ms=self.ahead_ms,
        )
        return compile_live(
            self.mapping,
            streams,
            base=self.base,
            host=host_join,
            elements=elements,
            run=str(spool.absolute()) if spool is not None else "",
        )

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
