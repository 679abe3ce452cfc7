"""Applies a mapping to the caller's own DataFrames, streaming or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql.types import IntegralType

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.mapping.compile import Compiled, compile_mapping
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.frames import from_frame
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.joins import JoinHost, StreamTime
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.records import Records, describe
from quadweir.mapping.sources import LogicalSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def apply(
    mapping: RmlMapping,
    frames: DataFrame | Mapping[str, DataFrame],
    *,
    base: str | None = None,
    time: str | Mapping[str, str] | None = None,
    registry: MappingFunctions = FUNCTIONS,
    host: JoinHost | None = None,
) -> DataFrame:
    """Map records to quads (`rows.QUAD_SCHEMA`); records that cannot be mapped are left out.

    If records have event times, quads become statements of elements (`rows.STATEMENT_SCHEMA`),
    which `Engine.provide` makes a stream. The quads of one record in one graph are an element, with
    the time of the record. The time is the value of a reference, or a whole number of milliseconds
    in a column `event_time`. If the mapping has one source, a column `position` orders elements of
    one time. Without such a column, equal records with equal times count once.

    Args:
        mapping: the mapping; the places of its sources are ignored.
        frames: the records: one frame for every source, or one for each by name (a file's path, a
            topic, a stream's IRI, a frame's name). A frame with a string column `value` holds a
            JSON or XML text in each row; the columns of any other frame are the references.
        base: the base of relative IRIs.
        time: the reference that holds the event time; or one for each source by name.
        registry: the functions that the mapping may call.
        host: joins streaming frames in windows (`quadweir.runtime.joins.frames.host_join`).

    Raises:
        MappingError: a reference is no path, or names no column; or some records have times, and
            others that triples are made of have none.
        UsageError: there is no frame for a source.
    """
    timed = time is not None or _have_times(frames)
    compiled = compile_frames(
        mapping, frames, base=base, registry=registry, host=host, timed=timed, time=time
    )
    if timed:
        return rows.select_statements(compiled.statements())
    return compiled.quads().select(*rows.TERMS)


def _have_times(frames: DataFrame | Mapping[str, DataFrame]) -> bool:
    given = frames.values() if isinstance(frames, Mapping) else (frames,)
    return any(
        rows.EVENT_TIME in frame.columns
        and isinstance(frame.schema[rows.EVENT_TIME].dataType, IntegralType)
        for frame in given
    )


def compile_frames(
    mapping: RmlMapping,
    frames: DataFrame | Mapping[str, DataFrame],
    *,
    base: str | None = None,
    registry: MappingFunctions = FUNCTIONS,
    host: JoinHost | None = None,
    timed: bool = False,
    time: str | Mapping[str, str] | None = None,
) -> Compiled:
    """Like `apply`, but return the compiled mapping, which has the dead letters and an explanation.

    With `timed`, it also has statements; the stream of each has the name of its source.
    """
    times = {"": time} if isinstance(time, str) else dict(time or {})

    def time_of(logical: LogicalSource) -> StreamTime:
        return StreamTime(times.get(describe(logical), times.get("")))

    def open_source(logical: LogicalSource, references: Mapping[str, bool]) -> Records:
        if not isinstance(frames, Mapping):
            return from_frame(frames, logical, references)
        name = describe(logical)
        if name not in frames:
            raise UsageError(
                f"there is no frame for {name}, which the mapping reads",
                hint=f"Frames were given for {', '.join(sorted(frames)) or 'nothing'}.",
                span=logical.span,
            )
        return from_frame(frames[name], logical, references)

    return compile_mapping(
        mapping,
        open_source,
        base=base,
        registry=registry,
        host=host,
        stream_time=time_of,
        elements=ElementRule(describe) if timed else None,
    )
