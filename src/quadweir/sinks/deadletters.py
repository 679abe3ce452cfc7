"""Statements to one sink and dead letters to another, in one pass.

Every source gives its statements and its dead letters in one frame, told apart by the reason. The
batch is kept while both sinks write, so the source is read and parsed once (semantics P5).
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
    """Write statements to `good` and dead letters to `dead`, which must take any columns.

    For frames of `sources.filesource.open_statements`, `sources.replaysource.open_replay` and
    `sources.live.open_live`.
    """
    return Split(lambda parsed: [good_statements(parsed), dead_letters(parsed)], [good, dead])


def records_with_dead_letters(
    good: Sink, dead: Sink, use: Callable[[DataFrame], DataFrame] = lambda records: records
) -> Split:
    """Write what `use` makes of the usable records to `good`, and the others to `dead`.

    For frames of records that are not RDF.
    """

    def split(records: DataFrame) -> Sequence[DataFrame]:
        return [use(usable(records)), unusable(records)]

    return Split(split, [good, dead])
