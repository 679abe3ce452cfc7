"""A mapping applied to the caller's own DataFrames, streaming or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.mapping.compile import Compiled, compile_mapping
from quadweir.mapping.frames import from_frame
from quadweir.mapping.functions.registry import FUNCTIONS, Registry
from quadweir.mapping.joins import Host
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
    registry: Registry = FUNCTIONS,
    host: Host | None = None,
) -> DataFrame:
    """Map records to quads (`rows.QUAD_SCHEMA`); what cannot be mapped is left out.

    Args:
        mapping: the mapping; where its sources would be read from does not matter.
        frames: the records: one frame for every source, or one for each by name (a file's path, a
            topic, a stream's IRI, a frame's name). A frame with a string column `value` holds a
            JSON or XML text in each row; the columns of any other frame are the references.
        base: what relative IRIs are put after.
        registry: the functions that the mapping may call.
        host: joins streaming frames in windows (`quadweir.runtime.joins.host_join`).

    Raises:
        MappingError: a reference is no path, or names no column.
        UsageError: there is no frame for a source.
    """
    compiled = compile_frames(mapping, frames, base=base, registry=registry, host=host)
    return compiled.quads().select(*rows.TERMS)


def compile_frames(
    mapping: RmlMapping,
    frames: DataFrame | Mapping[str, DataFrame],
    *,
    base: str | None = None,
    registry: Registry = FUNCTIONS,
    host: Host | None = None,
) -> Compiled:
    """Like `apply`, but give what also knows the dead letters and can be explained."""

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

    return compile_mapping(mapping, open_source, base=base, registry=registry, host=host)
