"""Frames of statements that the user provides: their columns and terms, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StringType

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.sources.ntriples import check_terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_statements(frame: DataFrame, iri: str) -> DataFrame:
    """Return the columns of `rows.STATEMENT_SCHEMA` of a frame.

    Raises:
        UsageError: a column is missing or has another type. Spark would convert a date or a
            fraction to an unexpected number.
    """
    there = {field.name: field.dataType for field in frame.schema.fields}
    names = ", ".join(rows.STATEMENT_SCHEMA.names)
    for field in rows.STATEMENT_SCHEMA.fields:
        found = there.get(field.name)
        if found is None:
            raise UsageError(
                f'the frame for <{iri}> has no column "{field.name}"',
                hint=f"A statement has the columns {names} (`rows.STATEMENT_SCHEMA`); a mapping gives "
                'them if it knows the time of records: mapping.apply(frame, time="REFERENCE").',
            )
        wanted = StringType if isinstance(field.dataType, StringType) else IntegralType
        if not isinstance(found, wanted) and found.typeName() != "void":
            raise UsageError(
                f'"{field.name}" in the frame for <{iri}> is {found.simpleString()}, and not '
                f"{field.dataType.simpleString()}",
                hint="Times are milliseconds since 1970, terms are spelled as in N-Triples.",
            )
    types = {field.name: field.dataType for field in rows.STATEMENT_SCHEMA.fields}
    return frame.select(*(F.col(name).cast(kind).alias(name) for name, kind in types.items()))


def check_statements(frame: DataFrame, iri: str) -> DataFrame:
    """Return the rows with canonical terms; rows that are no statements get a reason (P5).

    Args:
        frame: rows with the columns of `rows.STATEMENT_SCHEMA`.
        iri: the stream, which is the source of the dead letters.
    """
    names = [f"_given_{name}" for name in rows.TERMS]
    terms = zip(rows.TERMS, names, strict=True)
    checked = check_terms(frame.select("*", *(F.col(name).alias(own) for name, own in terms)))
    untimed = F.when(F.col(rows.EVENT_TIME).isNull(), F.lit("no event time")).when(
        F.col(rows.POSITION).isNull(), F.lit("no position")
    )
    found = checked.withColumn(rows.REASON, F.coalesce(untimed, F.col(rows.REASON)))
    is_bad = F.col(rows.REASON).isNotNull()
    position = F.coalesce(F.col(rows.POSITION).cast("string"), F.lit("?"))
    triple = [F.coalesce(F.col(name), F.lit("NULL")) for name in names[:3]]
    record = F.concat_ws(" ", *triple, F.col(names[3]))
    return found.select(
        *rows.ELEMENT,
        *rows.TERMS,
        F.when(is_bad, F.lit(iri)).alias(rows.SOURCE),
        F.when(is_bad, F.concat(F.lit("position "), position)).alias(rows.PLACE),
        rows.REASON,
        F.when(is_bad, F.left(record, F.lit(rows.DEAD_LETTER_TEXT))).alias(rows.RECORD),
    )
