"""Raw records as live sources give them: those that can be used, those that cannot, and why.

A live source gives the columns of `rows.RECORD_SCHEMA` and one more, `reason`, which is NULL for
a record that can be used. What cannot be used (too long, cut short, not UTF-8) is thereby in the
same frame, so that it reaches the dead letters without a second reading of the source.
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
