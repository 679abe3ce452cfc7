"""Matched rows in few columns, on their way from Java to Python.

Every column costs time. So the event time and the bits of a match (`bits.py`), which are few, share
one integer, and Python splits them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Final, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.runtime.match.bits import REPORTS_TIME, WORD, MatchBits
from quadweir.runtime.match.matching import NOTHING_ASKED, Asked, match_statements
from quadweir.runtime.match.rowform import VALUES, stream_numbers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from quadweir.plan.matchtests import Matching
    from quadweir.runtime.wire.pack import Packer

# Long rows are followed by padding rows, one per KiB of terms (a power of two). The most rows that
# Spark puts into an Arrow batch then have at most 128 MiB, and one row more.
TERM_BITS: Final = 10
_PLACE: Final = "place_of_row"

MOMENT: Final = "moment"
"""The column that holds the event time and, as its lowest bits, the bits of the match."""
MOST_BITS: Final = 63 - rows.TIME_BITS
"""How many bits fit into one integer with a time."""
_ONLY: Final = f"{WORD}0"
_LAST: Final = (1 << rows.TIME_BITS) - 1


def matched_rows(
    statements: DataFrame, matching: Matching, shards: int, asked: Asked = NOTHING_ASKED
) -> DataFrame:
    """Return the rows that match, in few columns; `widened` reads them.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`. Rows that have a reason as well are dead
            letters, and leave as such.
        matching: what statements are tested for.
        shards: how many shards the first stage has.
        asked: tests of parameters of templates.
    """
    bits = MatchBits.of(matching.wanted, streams=len(stream_numbers(matching)), shards=shards)
    tests = bits.masks(True for _ in matching.wanted)
    return narrowed(padded(match_statements(statements, matching, shards, asked), tests), bits)


def padded(matched: DataFrame, tests: Mapping[str, int]) -> DataFrame:
    """Return the rows, with padding rows, which have only a time, after rows with long terms.

    Args:
        matched: what `match_statements` returns.
        tests: for each column of bits, those that say that a row passed a test.
    """
    from pyspark.sql import functions as F

    terms = [name for name in VALUES if name in matched.columns]
    if not terms:
        return matched
    lengths = [F.coalesce(F.octet_length(name), F.lit(0)).cast("bigint") for name in terms]
    more = F.shiftright(reduce(add, lengths), TERM_BITS)
    # The generator sees all rows, and makes nothing of NULL: that costs next to nothing.
    places = F.explode_outer(F.when(more > 0, F.sequence(F.lit(0).cast("bigint"), more)))
    numbered = matched.select("*", places.alias(_PLACE))
    is_first = F.col(_PLACE).isNull() | (F.col(_PLACE) == 0)

    def padded_column(name: str) -> Column:
        if name in terms:
            return F.when(is_first, F.col(name)).alias(name)
        if name in tests:
            others = F.col(name).bitwiseAND(F.lit(~tests[name]).cast("bigint"))
            return F.when(is_first, F.col(name)).otherwise(others).alias(name)
        return F.col(name)

    return numbered.select(*map(padded_column, matched.columns))


def narrowed(matched: DataFrame, bits: MatchBits) -> DataFrame:
    """Return the rows with time and bits in one column, if there are few enough bits."""
    from pyspark.sql import functions as F

    if bits.used > MOST_BITS:
        return matched
    time = F.col(rows.EVENT_TIME)
    # A stream may report that everything is known, or nothing.
    time = F.greatest(F.least(time, F.lit(_LAST)), F.lit(-_LAST - 1))
    moment = F.shiftleft(time, bits.used).bitwiseOR(F.col(_ONLY))
    # A dead letter may have no time, and a column of integers with a NULL would become floats.
    moment = F.coalesce(moment, F.lit(0).cast("bigint"))
    others = [name for name in matched.columns if name not in (rows.EVENT_TIME, _ONLY)]
    return matched.select(moment.alias(MOMENT), *others)


def widened(batch: pa.RecordBatch, bits: MatchBits) -> pa.RecordBatch:
    """Return the rows with time and bits in two columns again."""
    if bits.used > MOST_BITS:
        return batch
    moment = batch.column(MOMENT).to_numpy()
    word = moment & ((1 << bits.used) - 1)
    time = moment >> bits.used
    others = batch.drop_columns([MOMENT])
    columns = [pa.array(time), pa.array(word), *others.columns]
    found = pa.RecordBatch.from_arrays(columns, [rows.EVENT_TIME, _ONLY, *others.schema.names])
    reports = bits.read(REPORTS_TIME, found) != 0
    if reports.any():
        time = np.where(reports & (time == _LAST), FOREVER, time)
        time = np.where(reports & (time == -_LAST - 1), ALWAYS, time)
        found = found.set_column(0, rows.EVENT_TIME, pa.array(time))
    return found


@final
@dataclass(frozen=True)
class NarrowPacker:
    """Packs rows that `matched_rows` made: `base.RowPacker`."""

    packer: Packer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.packer(self._widened(batches))

    def for_shards(
        self, shards: Iterable[int], batches: Iterable[pa.RecordBatch], now: int
    ) -> list[list[bytes]]:
        return self.packer.for_shards(shards, self._widened(batches), now)

    def _widened(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (widened(batch, self.packer.bits) for batch in batches)
