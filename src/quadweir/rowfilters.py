"""Rows of a source that can be used, and dead letters; event times as columns.

A source gives both in one frame, so that it is read once. Rows with a reason are dead letters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.times import INSTANT, MILLISECONDS, ZONE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def good_statements(parsed: DataFrame) -> DataFrame:
    """The statements among rows of `parse_records`, in the form of `rows.STATEMENT_SCHEMA`."""
    return rows.select_statements(parsed.where(F.col(rows.REASON).isNull()))


def dead_letters(parsed: DataFrame) -> DataFrame:
    """The dead letters among rows of `parse_records`, as rows of `rows.DEAD_LETTER_SCHEMA`."""
    bad = parsed.where(F.col(rows.REASON).isNotNull())
    return bad.select(rows.SOURCE, rows.PLACE, rows.REASON, rows.RECORD)


def event_time(text: Column) -> Column:
    """Read a column of texts as event times, NULL where they are none; as `times.parse_time` does.

    Spark's casts alone would let spaces, signs and half a date through.
    """
    zoned = F.when(text.rlike(ZONE), text).otherwise(F.concat(text, F.lit("Z")))
    return F.when(text.rlike(f"^{MILLISECONDS}\\z"), text.try_cast("bigint")).when(
        text.rlike(f"^{INSTANT}\\z") & ~text.startswith("0000"),
        F.unix_millis(zoned.try_cast("timestamp")),
    )


def ahead_reason(time: Column, ahead_ms: int) -> Column:
    """Say why a time is implausible: it is more than `ahead_ms` ahead of the clock (S4); NULL if it is not.

    The clock is that of the batch. A batch that is begun again after a crash has the clock of its first
    begin: Spark logs it.
    """
    clock = F.unix_millis(F.current_timestamp())
    lead = F.try_subtract(time, clock)
    return F.when(
        time > clock + F.lit(ahead_ms),
        F.concat(
            F.lit(f"{rows.AHEAD}it is of "),
            time.cast("string"),
            F.lit(", and that is "),
            lead.cast("string"),
            F.lit(" ms ahead of the clock; if it is right, declare a longer `ahead`"),
        ),
    )
