"""Frames of statements that the user provides, as feeds of a query."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.runtime.match.feeds import Feed, other_times
from quadweir.runtime.match.rowform import END
from quadweir.sources.provided import as_statements, check_statements

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MILLISECOND: Final = timedelta(milliseconds=1)


def provided_feed(
    iri: str,
    statements: DataFrame,
    *,
    delay: timedelta,
    idle: timedelta | None,
    ahead: timedelta | None,
    canonical: bool,
) -> Feed:
    """Return a frame of statements as a feed; `Engine.provide` describes the arguments.

    Raises:
        UsageError: the frame does not have the columns of a statement.
    """
    named = as_statements(statements, iri)
    # The element that ends all streams keeps the name of its stream.
    stream = F.when(F.col(rows.STREAM) == END, F.lit(END)).otherwise(F.lit(iri))
    named = named.withColumn(rows.STREAM, stream)
    if not canonical:
        named = check_statements(named, iri)

    def open_frame(predicate: str | None, spool: Path | None) -> DataFrame:
        del spool
        if predicate is not None and named.isStreaming:
            raise other_times(iri, predicate)
        return named

    return Feed(
        iri,
        open_frame,
        delay // _MILLISECOND,
        idle // _MILLISECOND if idle is not None else None,
        ahead_ms=ahead // _MILLISECOND if ahead is not None else None,
    )
