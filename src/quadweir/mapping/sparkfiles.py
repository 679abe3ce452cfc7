"""Large files that Spark reads in parallel: JSON Lines, CSV and plain XML.

One compiled scan of a file finds how to split it, and whether its texts need escapes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir.fileformats import Compression
from quadweir.mapping.files import open_text
from quadweir.mapping.formats.filejob import FileJob, FileReading
from quadweir.mapping.formats.prescan import CsvShape, Look, first_line, look_at_csv, look_at_json
from quadweir.mapping.jsoncolumns import (
    BROKEN,
    flat_schema,
    is_blank,
    read_flat,
)
from quadweir.mapping.records import Records, describe, read_texts, with_position, xml_plan
from quadweir.mapping.sources import (
    CsvDialect,
    LogicalSource,
)
from quadweir.mapping.values import ColumnForm, ReferenceValues
from quadweir.paths import spark_path

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import StructType


_SNIFF: Final = 2**20
_CELLS: Final = "_quadweir_cells"
_SHOWN: Final = 80
_EMPTY: Final = "\x00empty"
"""Stands for an empty cell in quotes, where Spark reads a file. It begins with a zero byte, which texts lack."""


def read_by_spark(
    spark: SparkSession, job: FileJob, logical: LogicalSource, references: Mapping[str, bool]
) -> Records | str | None:
    """The records of a file that Spark reads; None, or the reason, if it cannot."""
    path = spark_path(job.path)
    is_plain = job.compression is Compression.NONE and job.encoding.upper() in ("UTF-8", "UTF8")
    if path is None or not is_plain:
        return None
    if job.reading is FileReading.JSON_TEXTS and _is_json_lines(job.path):
        return _json_lines(spark, path, job, logical, references)
    if job.reading is FileReading.CSV and _is_plain(job.dialect):
        look = look_at_csv(job.path, job.dialect.quote, job.dialect.delimiter)
        match look.shape:
            case CsvShape.PLAIN:
                return _split_csv(spark, path, job, logical, look)
            case CsvShape.LINES:
                return _plain_csv(spark, path, job, logical)
            case CsvShape.ANY:
                return None
    if job.reading is FileReading.XML:
        return _plain_xml(spark, path, job, logical, references)
    return None


def _plain_xml(
    spark: SparkSession,
    path: str,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
) -> Records | str:
    """The records of a file that is a plain list of records; otherwise the reason why it is not."""
    # Compiled code is loaded only if the file is large enough.
    from quadweir.mapping.formats.xmlscan import PlainXml, look_at_xml
    from quadweir.mapping.xmlcolumns import plain_values, read_plain

    look = look_at_xml(job.path, xml_plan(logical, references))
    if not isinstance(look, PlainXml):
        return look
    return Records(
        frame=read_plain(spark, path, look),
        values=plain_values(look, references, logical.nulls or ()),
        shown=describe(logical),
        place=_numbered_place(),
        text=F.col("value"),
        reason=None,
        count=look.records,
        how=(
            f"{describe(logical)}: XML records of elements with text, cut by Spark in parallel",
            "XPaths are Spark expressions",
        ),
    )


def _numbered_place() -> Column:
    # Spark does not count lines across the pieces of a file that it reads in parallel.
    number = F.monotonically_increasing_id()
    return F.concat(
        F.lit("piece "),
        F.shiftright(number, 33).cast("string"),
        F.lit(", record "),
        (number.bitwiseAND(F.lit((1 << 33) - 1)) + 1).cast("string"),
    )


def _json_lines(
    spark: SparkSession,
    path: str,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
) -> Records:
    schema = flat_schema(references)
    if schema is not None and (logical.iterator or "$") == "$":
        look = look_at_json(job.path)
        if look.shape:
            return _flat_json(spark, path, logical, references, schema, look.is_clean)
    frame = spark.read.text(path).where(~is_blank(F.col("value")))
    records = read_texts(frame, "value", logical, references)
    return replace(
        records,
        place=with_position(records.frame, _numbered_place()),
        how=(f"{describe(logical)}: JSON Lines, read by Spark in parallel", *records.how),
    )


def _flat_json(
    spark: SparkSession,
    path: str,
    logical: LogicalSource,
    references: Mapping[str, bool],
    schema: StructType,
    is_clean: bool,
) -> Records:
    # Spark parses the bytes of a file twice as fast as a column of texts.
    frame = spark.read.json(
        path, schema=schema, mode="PERMISSIVE", columnNameOfCorruptRecord=BROKEN
    )
    values, text, reason = read_flat(frame, references, logical.nulls or (), is_clean)
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=_numbered_place(),
        text=text,
        reason=reason,
        how=(
            f"{describe(logical)}: JSON Lines of flat objects, read by Spark in parallel",
            "JSONPaths are Spark expressions",
        ),
    )


def _is_json_lines(path: Path) -> bool:
    """Whether each of the first two lines is a JSON value."""
    import json

    with path.open("rb") as file:
        head = file.read(_SNIFF)
    lines = [line for line in head.split(b"\n") if line.strip()]
    whole = lines[:-1] if len(head) == _SNIFF else lines
    if len(whole) < 2:
        return False
    try:
        return all(isinstance(json.loads(line), dict | list) for line in whole[:2])
    except ValueError:
        return False


def _is_plain(dialect: CsvDialect) -> bool:
    return (
        dialect.quote is not None
        and dialect.double_quote
        and dialect.header
        and dialect.comment_prefix is None
        and not (dialect.skip_rows or dialect.skip_columns or dialect.skip_initial_space)
        and not (dialect.trim or dialect.skip_blank_rows)
    )


def _header(job: FileJob) -> list[str]:
    from quadweir.mapping.formats.csvfile import header_of

    with job.path.open("rb") as file, open_text(file, job.encoding) as text:
        return header_of(text, job.dialect)


def _split_csv(
    spark: SparkSession, path: str, job: FileJob, logical: LogicalSource, look: Look[CsvShape]
) -> Records:
    """Cut the lines of a file that has no quotes; only its first line is the header."""
    import re

    names = _header(job)
    line, cells = F.col("value"), F.col(_CELLS)
    delimiter = job.dialect.delimiter
    pattern = delimiter if delimiter.isalnum() or delimiter in ",; \t" else re.escape(delimiter)
    header = first_line(job.path)
    frame = (
        spark.read.text(path)
        .where((line != "") & (line != header))
        .withColumn(_CELLS, F.split(line, pattern))
    )
    values = {
        reference: ReferenceValues(
            _cell(F.get(cells, names.index(reference)), logical),
            ColumnForm.TEXT,
            logical.nulls or (),
            is_clean=look.is_clean,
        )
        for reference in job.references
    }
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=_numbered_place(),
        text=line,
        # If all rows are as wide as the header, no row needs a check.
        reason=F.when(F.size(cells) != len(names), F.lit(_other_width(names)))
        if look.records is None
        else None,
        count=look.records,
        how=(f"{describe(logical)}: CSV without quotes, cut by Spark in parallel",),
    )


def _cell(cell: Column, logical: LogicalSource) -> Column:
    return F.nullif(cell, F.lit("")) if logical.empty_is_missing else cell


def _field(field: Column, logical: LogicalSource) -> Column:
    if not logical.empty_is_missing:
        return F.coalesce(field, F.lit(""))
    # Spark reads an empty cell as NULL, unless the marker for a quoted empty cell is not empty.
    return F.when(field == _EMPTY, F.lit("")).otherwise(field)


def _other_width(names: list[str]) -> str:
    return f"the row has not {len(names)} fields, as the header has"


def _plain_csv(spark: SparkSession, path: str, job: FileJob, logical: LogicalSource) -> Records:
    from pyspark.sql.types import StringType, StructField, StructType

    names = _header(job)
    broken = BROKEN
    schema = StructType(
        [StructField(f"c{number}", StringType()) for number in range(len(names))]
        + [StructField(broken, StringType())]
    )
    # With column pruning, Spark would count only the requested columns, and accept a short row.
    frame = spark.read.option("columnPruning", "false").csv(
        path,
        schema=schema,
        sep=job.dialect.delimiter,
        quote=job.dialect.quote,
        escape=job.dialect.quote,
        header=True,
        enforceSchema=True,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=broken,
        emptyValue=_EMPTY if logical.empty_is_missing else "",
        maxCharsPerColumn=-1,
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
    )
    nulls = logical.nulls or ()
    values = {
        reference: ReferenceValues(
            _field(F.col(f"c{names.index(reference)}"), logical), ColumnForm.TEXT, nulls
        )
        for reference in job.references
    }
    # The reason names the first field, also because Spark refuses to read only the broken rows.
    reason = F.when(
        F.col(broken).isNotNull(),
        F.concat(
            F.lit(f"the row has not {len(names)} fields, as the header has; its first is '"),
            F.substring(F.coalesce("c0", F.lit("")), 1, _SHOWN),
            F.lit("'"),
        ),
    )
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=_numbered_place(),
        text=F.col(broken),
        reason=reason,
        how=(f"{describe(logical)}: CSV, read by Spark in parallel",),
    )
