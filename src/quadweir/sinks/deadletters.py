"""Statements to one sink and dead letters to another, in one pass.

Every source has its statements and its dead letters in one frame; dead letters have a reason. The
batch is cached while both sinks write, so the source is read and parsed once (semantics P5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quadweir.rowfilters import dead_letters, good_statements, unusable, usable
from quadweir.sinks.base import Sink
from quadweir.sinks.start import Split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame


def with_dead_letters(good: Sink, dead: Sink) -> Split:
    """Return a sink that writes statements to `good` and dead letters to `dead`.

    `dead` must accept any columns. It is for frames of `sources.filesource.open_statements`,
    `sources.replaysource.open_replay` and `sources.live.open_live`.
    """
    return Split(lambda parsed: [good_statements(parsed), dead_letters(parsed)], [good, dead])


def records_with_dead_letters(
    good: Sink, dead: Sink, use: Callable[[DataFrame], DataFrame] = lambda records: records
) -> Split:
    """Return a sink that writes usable records to `good`, after `use`, and the others to `dead`.

    It is for frames of records that are not RDF.
    """

    def split(records: DataFrame) -> Sequence[DataFrame]:
        return [use(usable(records)), unusable(records)]

    return Split(split, [good, dead])
