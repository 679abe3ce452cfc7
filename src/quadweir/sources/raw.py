"""The columns of raw records from live sources.

They are the columns of `rows.RECORD_SCHEMA` and `reason`, which is NULL for a usable record.
Records that cannot be used (too long, cut short, not UTF-8) are in the same frame. So they become
dead letters without reading the source a second time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.types import StringType, StructField, StructType

from quadweir import rows

if TYPE_CHECKING:
    pass

RAW_SCHEMA: Final = StructType(
    [*rows.RECORD_SCHEMA.fields, StructField(rows.REASON, StringType(), nullable=True)]
)
