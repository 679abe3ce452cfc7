"""Matches on their way from Java to Python: few columns, and batches that need not be weighed.

An Arrow batch must not grow beyond bounds. Spark can see to that by asking for the size of every column
after every row, a fifth of Java's time for matching and handing over. In a running query that hands nothing else to Python
it only counts rows instead, and a row with long terms is followed by as many that say nothing as make it
count for its length. Blobs are followed by such rows in the same way (`exchange.blob_rows`).

An event time and the bits of a match (`matchbits`), which are few, are one integer, and Python parts them
again: every column takes its time, too.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from quadweir import rows
from quadweir.kernel.arrays import ALWAYS, FOREVER
from quadweir.runtime.match.bits import TOLD, WORD, MatchBits
from quadweir.runtime.match.matching import VALUES, match_statements, stream_numbers
from quadweir.runtime.wire.pack import BLOB_SCHEMA, Packer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from quadweir.plan.query import QueryPlan

# A row counts once more for every so many bytes of terms, as a power of two; so many rows are then at
# most 128 MiB, and the next row.
TERM_BITS: Final = 10
_MOST_ROWS: Final = 1 << 16  # as `session` sets it
_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BYTES: Final = "spark.sql.execution.arrow.maxBytesPerBatch"
# The highest that Spark takes, and the one for which it asks nothing.
_UNWEIGHED: Final = str(2**31 - 1)
_IN_PYTHON: Final = ("MapIn", "FlatMapGroupsIn", "FlatMapCoGroupsIn", "TransformWithState")
_PLACE: Final = "place_of_row"
_BEGINNING: Final = threading.Lock()

MOMENT: Final = "moment"
"""The column of both: the bits are the lowest of it."""
MOST_BITS: Final = 63 - rows.TIME_BITS
"""So many bits go with a time into an integer."""
_ONLY: Final = f"{WORD}0"
_LAST: Final = (1 << rows.TIME_BITS) - 1


def pack_matches(
    statements: DataFrame, plan: QueryPlan, keys: tuple[int, ...], *, clock: str = ""
) -> DataFrame:
    """Match statements and pack what matched, a blob for each shard and task.

    Args:
        statements: rows of `rows.STATEMENT_SCHEMA`; those that have a reason besides are dead
            letters, and leave as such.
        plan: the query's plan.
        keys: the shuffle keys of the shards, in their order.
        clock: where Spark notes when it began each batch (`exchange.Packer`).

    Returns:
        Rows of `BLOB_SCHEMA`.
    """
    matched = matched_rows(statements, plan, len(keys))
    return matched.mapInArrow(Handed(Packer.of(plan, keys, clock=clock)), BLOB_SCHEMA)


def matched_rows(statements: DataFrame, plan: QueryPlan, shards: int) -> DataFrame:
    """Match statements, and give what matched in few columns: rows that `widened` takes.

    Args:
        statements: as for `pack_matches`.
        plan: the query's plan.
        shards: how many shards there are.
    """
    bits = MatchBits.of(plan.wanted, streams=len(stream_numbers(plan)), shards=shards)
    tests = bits.masks(True for _ in plan.wanted)
    return narrowed(padded(match_statements(statements, plan, shards), tests), bits)


@contextmanager
def counting_rows(spark: SparkSession, *, when: bool = True) -> Iterator[None]:
    """Have Spark count rows instead of weighing batches, in what is begun meanwhile.

    What the user set stays as it is. What is begun by others waits: settings are all of a session's.
    """
    with _BEGINNING:
        is_counted = 0 < int(spark.conf.get(_ROWS) or 0) <= _MOST_ROWS
        if not when or not is_counted or _BYTES in spark.conf.getAll:
            yield
            return
        spark.conf.set(_BYTES, _UNWEIGHED)
        try:
            yield
        finally:
            spark.conf.unset(_BYTES)


def count_rows_in(spark: SparkSession) -> None:
    """Have Spark count rows instead of weighing batches in a session that is one query's alone."""
    if 0 < int(spark.conf.get(_ROWS) or 0) <= _MOST_ROWS and _BYTES not in spark.conf.getAll:
        spark.conf.set(_BYTES, _UNWEIGHED)


def stages_in_python(frame: DataFrame) -> int | None:
    """Count how often rows go to Python; None if a function is called there for single columns."""
    context: Any = frame.sparkSession.sparkContext
    called = context._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    found, waiting = 0, [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        if node.nodeName().startswith(_IN_PYTHON):
            found += 1
        elif any(each.containsPattern(called) for each in _listed(node.expressions())):
            return None
        waiting += _listed(node.children())
    return found


def _listed(found: Any) -> list[Any]:
    """List what is in a sequence of Scala's."""
    return [found.apply(place) for place in range(found.size())]


def padded(matched: DataFrame, tests: Mapping[str, int]) -> DataFrame:
    """Have a row with long terms followed by some that only say its time.

    Args:
        matched: what `match_statements` gives.
        tests: the bits, for each column that has some, that say that a row passed a test.
    """
    from pyspark.sql import functions as F

    terms = [name for name in VALUES if name in matched.columns]
    if not terms:
        return matched
    lengths = [F.coalesce(F.octet_length(name), F.lit(0)).cast("bigint") for name in terms]
    more = F.shiftright(reduce(add, lengths), TERM_BITS)
    # A generator is asked of all rows, and makes nothing of NULL: that costs next to nothing.
    places = F.explode_outer(F.when(more > 0, F.sequence(F.lit(0).cast("bigint"), more)))
    numbered = matched.select("*", places.alias(_PLACE))
    is_first = F.col(_PLACE).isNull() | (F.col(_PLACE) == 0)

    def said(name: str) -> Column:
        if name in terms:
            return F.when(is_first, F.col(name)).alias(name)
        if name in tests:
            others = F.col(name).bitwiseAND(F.lit(~tests[name]).cast("bigint"))
            return F.when(is_first, F.col(name)).otherwise(others).alias(name)
        return F.col(name)

    return numbered.select(*map(said, matched.columns))


def narrowed(matched: DataFrame, bits: MatchBits) -> DataFrame:
    """Put time and bits into one column, if these are few enough."""
    from pyspark.sql import functions as F

    if bits.used > MOST_BITS:
        return matched
    time = F.col(rows.EVENT_TIME)
    # What is told of time may be that all is known, or nothing.
    time = F.greatest(F.least(time, F.lit(_LAST)), F.lit(-_LAST - 1))
    moment = F.shiftleft(time, bits.used).bitwiseOR(F.col(_ONLY))
    # A letter need not have a time, and integers among which is a NULL would become fractions.
    moment = F.coalesce(moment, F.lit(0).cast("bigint"))
    others = [name for name in matched.columns if name not in (rows.EVENT_TIME, _ONLY)]
    return matched.select(moment.alias(MOMENT), *others)


def widened(batch: pa.RecordBatch, bits: MatchBits) -> pa.RecordBatch:
    """Part time and bits again."""
    if bits.used > MOST_BITS:
        return batch
    moment = batch.column(MOMENT).to_numpy()
    word = moment & ((1 << bits.used) - 1)
    time = moment >> bits.used
    others = batch.drop_columns([MOMENT])
    columns = [pa.array(time), pa.array(word), *others.columns]
    found = pa.RecordBatch.from_arrays(columns, [rows.EVENT_TIME, _ONLY, *others.schema.names])
    told = bits.read(TOLD, found) != 0
    if told.any():
        time = np.where(told & (time == _LAST), FOREVER, time)
        time = np.where(told & (time == -_LAST - 1), ALWAYS, time)
        found = found.set_column(0, rows.EVENT_TIME, pa.array(time))
    return found


@final
@dataclass(frozen=True)
class Handed:
    """Packs matches as they are handed over."""

    packer: Packer

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.packer(widened(batch, self.packer.bits) for batch in batches)
