"""Declared streams, as feeds of a query."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.runtime.match.feeds import Feed, other_times
from quadweir.sources.declare import Format, FromPredicate, ReplaySource, StreamDeclaration
from quadweir.sources.opening import open_rdf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def declared_feed(spark: SparkSession, declared: StreamDeclaration) -> Feed:
    """Return a declared stream as a feed; nothing is opened yet."""

    def open_stream(predicate: str | None, spool: Path | None) -> DataFrame:
        return open_rdf(spark, _timed_by(declared, predicate), spool=spool)

    time = declared.time
    own = time.predicate if isinstance(time, FromPredicate) else None
    # A replay compares times with their neighbours (`sources.plausible`), not with the clock.
    is_replay = isinstance(declared.source, ReplaySource)
    return Feed(
        declared.iri,
        open_stream,
        declared.delay_ms,
        declared.idle_ms,
        own,
        ahead_ms=None if is_replay else declared.ahead_ms,
    )


def _timed_by(declared: StreamDeclaration, predicate: str | None) -> StreamDeclaration:
    """Return a live stream with event times from a predicate, if a window asks for it.

    Bounded streams stay as they are: `feeds.timed_by` reads their times later, in any format.
    """
    if predicate is None or declared.has_end:
        return declared
    if isinstance(declared.time, FromPredicate) or declared.format is Format.TIMED_LINES:
        raise other_times(declared.iri, predicate)
    return replace(declared, time=FromPredicate(predicate))
