"""A mapping's logical source becomes one row per record, with a value for each reference.

Where the work is done depends on what is asked, and `how` says so for `explain`:

- small files are read in the driver, which saves starting a job;
- large JSON Lines and CSV files are read by Spark itself, in parallel;
- other large files are read by Python in a worker, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from pyspark.sql import functions as F

from quadweir.errors import MappingError, UnsupportedError
from quadweir.mapping.files import BROKEN as UNREADABLE
from quadweir.mapping.files import Folders, missing, open_members, open_text
from quadweir.mapping.formats.filejob import FileJob, Reading
from quadweir.mapping.formats.prescan import CsvShape, Look, first_line, look_at_csv, look_at_json
from quadweir.mapping.jsoncolumns import (
    BROKEN,
    POSITION,
    flat_schema,
    is_blank,
    read_flat,
    read_json,
    spells,
)
from quadweir.mapping.jsonpath import check_path, simple_steps, why_not_simple
from quadweir.mapping.sources import (
    Compression,
    CsvDialect,
    FileSource,
    FormulationKind,
    LogicalSource,
)
from quadweir.mapping.values import TYPED, Form, Value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from quadweir.mapping.formats.xmlfile import XmlPlan

DRIVER_CHARACTERS: Final = 4 * 2**20
"""Files up to this size are read in the driver."""
_SNIFF: Final = 2**20
_CELLS: Final = "_quadweir_cells"
_SHOWN: Final = 80


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """The records of one logical source."""

    frame: DataFrame
    values: Mapping[str, Value]
    shown: str
    """What the source is called in dead letters."""
    place: Column
    is_placed: bool = True
    """Whether `place` tells every record from the others, whenever it is computed."""
    text: Column
    """The record as it was, as far as it is known."""
    reason: Column | None
    """Why a record is unusable, NULL if it is not; None if all can be used."""
    how: tuple[str, ...] = ()
    is_small: bool = False
    """Whether the records were read into the driver."""
    uses_python: bool = False
    """Whether Python workers take part."""
    count: int | None = None
    """How many there are, where that is known already, and that all can be used."""


def describe(logical: LogicalSource) -> str:
    """Name a source in a few words.

    >>> from quadweir.mapping.sources import Formulation
    >>> describe(LogicalSource(
    ...     source=FileSource(path="a.csv"), formulation=Formulation(kind=FormulationKind.CSV)))
    'a.csv'
    """
    source = logical.source
    for name in ("path", "topic", "iri", "name", "url"):
        if hasattr(source, name):
            return str(getattr(source, name))
    return type(source).__name__


# -- files ------------------------------------------------------------------------------------


def read_file(
    spark: SparkSession,
    logical: LogicalSource,
    references: Mapping[str, bool],
    folders: Folders,
    *,
    driver_characters: int = DRIVER_CHARACTERS,
) -> Records:
    """Read a file to its end.

    Args:
        spark: the session.
        logical: the source; its `source` is a file.
        references: each reference that is wanted, and whether the type of its value matters.
        folders: which files may be read.
        driver_characters: how much is read in the driver before a worker is asked.
    """
    source = logical.source
    assert isinstance(source, FileSource)
    path = folders.resolve(source.path, source.root, span=logical.span)
    if not path.is_file():
        raise missing(path, source.path, logical.span)
    job = FileJob(
        path=path,
        reading=_reading(logical, references),
        references=tuple(references),
        compression=source.compression,
        encoding=source.encoding,
        iterator=logical.iterator,
        dialect=source.dialect or CsvDialect(),
        namespaces=logical.formulation.namespaces,
    )
    check_references(logical, references)
    if job.reading is Reading.CSV:
        _check_columns(job, logical)
    batches = _read_here(job, driver_characters)
    if batches is not None:
        return _from_batches(spark, job, logical, references, batches)
    if (native := _read_by_spark(spark, job, logical, references)) is not None:
        return native
    return _read_in_worker(spark, job, logical, references)


def check_references(logical: LogicalSource, references: Mapping[str, bool]) -> None:
    """Raise a MappingError for a path that is none."""
    try:
        match logical.formulation.kind:
            case FormulationKind.JSONPATH:
                check_path(logical.iterator or "$", "the iterator")
                for reference in references:
                    check_path(reference, "a reference")
            case FormulationKind.XPATH:
                from quadweir.mapping.formats.xmlfile import check_plan

                check_plan(xml_plan(logical, references))
            case _:
                pass
    except MappingError as error:
        error.span = error.span or logical.span
        raise


def xml_plan(logical: LogicalSource, references: Iterable[str]) -> XmlPlan:
    """How the elements of a source are found and read."""
    from quadweir.mapping.formats.xmlfile import XmlPlan

    return XmlPlan(logical.iterator or "/*", tuple(references), logical.formulation.namespaces)


def _reading(logical: LogicalSource, references: Mapping[str, bool]) -> Reading:
    match logical.formulation.kind:
        case FormulationKind.CSV:
            return Reading.CSV
        case FormulationKind.JSONPATH:
            return Reading.JSON_VALUES if why_python(logical, references) else Reading.JSON_TEXTS
        case FormulationKind.XPATH:
            return Reading.XML
        case FormulationKind.SPARQL_CSV:
            return Reading.SPARQL
        case FormulationKind.SQL_TABLE | FormulationKind.SQL_QUERY:
            raise UnsupportedError(
                "the mapping reads a relational database, which Quadweir does not",
                hint="Export the table to CSV, or hand it in as a DataFrame.",
                span=logical.span,
            )


def why_python(logical: LogicalSource, references: Mapping[str, bool]) -> str | None:
    """Say why the JSONPaths of a source are evaluated in Python; None if Spark can do it."""
    for path in (logical.iterator or "$", *references):
        steps = simple_steps(path)
        if steps is None:
            return f"{path} {why_not_simple(path)}"
        if not spells(steps):
            return f"{path} has both kinds of quotes in a name"
    return None


def _check_columns(job: FileJob, logical: LogicalSource) -> None:
    from quadweir.mapping.formats.csvfile import header_of

    try:
        names: list[str] = []
        with open_members(job.path, job.compression) as members:
            for member in members:
                with open_text(member, job.encoding) as text:
                    names = header_of(text, job.dialect)
                break
    except UNREADABLE:
        return  # Told as a dead letter when the rows are read.
    for reference in job.references:
        if reference not in names:
            raise no_such_column(reference, names, describe(logical), logical)


def no_such_column(
    reference: str, names: list[str], shown: str, logical: LogicalSource
) -> MappingError:
    """The error for a reference to a column that is not there."""
    import difflib

    near = difflib.get_close_matches(reference, names, 1, 0.6) or [
        name for name in names if name.lower() == reference.lower()
    ]
    return MappingError(
        f"the mapping reads the column {reference!r}, which {shown} does not have",
        detail=f"It has {', '.join(map(repr, names[:30])) or 'no columns at all'}.",
        hint=f"Did you mean {near[0]!r}?" if near else "Check the name, and the CSV dialect.",
        span=logical.span,
    )


def _read_here(job: FileJob, limit: int) -> list[pa.RecordBatch] | None:
    """Read a file in the driver, or give up if it is larger than `limit`."""
    if job.compression is Compression.NONE and job.path.stat().st_size > limit:
        return None
    batches: list[pa.RecordBatch] = []
    size = 0
    # Small rows at first, so that a packed file that grows large is left early.
    for batch in job.batches():
        batches.append(batch)
        size += batch.nbytes
        if size > 4 * limit:
            return None
    return batches


def _from_batches(
    spark: SparkSession,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
    batches: list[pa.RecordBatch],
) -> Records:
    import pyarrow as pa

    table = pa.Table.from_batches(batches, job.schema())
    frame = spark.createDataFrame(table)
    records = _finish(frame, job, logical, references, "in the driver")
    return replace(records, is_small=True)


def _read_in_worker(
    spark: SparkSession,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
    why: str | None = None,
) -> Records:
    def read(_: Iterator[Any]) -> Iterator[Any]:
        return job.batches()

    frame = spark.range(0, 1, 1, 1).mapInArrow(read, _ddl(job))
    return _finish(frame, job, logical, references, "by Python in one worker", why)


def _ddl(job: FileJob) -> str:
    kind = {
        Reading.CSV: "string",
        Reading.JSON_TEXTS: "string",
        Reading.JSON_VALUES: TYPED,
        Reading.XML: "array<string>",
        Reading.SPARQL: TYPED,
    }[job.reading]
    return ", ".join(
        ["place string", "reason string", "record string"]
        + [f"{name} {kind}" for name in job.columns()]
    )


def _finish(
    frame: DataFrame,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
    where: str,
    why: str | None = None,
) -> Records:
    nulls = logical.nulls or ()
    reason: Column = F.col("reason")
    how = [f"{describe(logical)}: read {where}"]
    record: Column = F.col("record")
    if job.reading is Reading.JSON_TEXTS:
        frame, values, problem = read_json(frame, "value", None, references, nulls)
        reason = F.coalesce(reason, F.when(F.col("value").isNotNull(), problem))
        record = F.coalesce(record, F.col("value"))
        how.append("JSONPaths are Spark expressions")
    else:
        form = {
            Reading.CSV: Form.TEXT,
            Reading.XML: Form.TEXTS,
        }.get(job.reading, Form.TYPED)
        values = {
            reference: Value(F.col(name), form, nulls)
            for reference, name in zip(references, job.columns(), strict=True)
        }
        how.extend(_why(job, logical, references, why))
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=F.col("place"),
        text=record,
        reason=reason,
        how=tuple(how),
    )


def _why(
    job: FileJob, logical: LogicalSource, references: Mapping[str, bool], why: str | None
) -> list[str]:
    match job.reading:
        case Reading.JSON_VALUES:
            return [f"JSONPaths run in Python: {why_python(logical, references)}"]
        case Reading.XML:
            whole = xml_plan(logical, references).why_whole()
            small = "the file is small, packed or not UTF-8"
            return [
                f"XPaths run in Python: {why or small}",
                f"the whole document is held: {whole}" if whole else "elements come one by one",
            ]
        case _:
            return []


# -- files that Spark reads -------------------------------------------------------------------


def _read_by_spark(
    spark: SparkSession, job: FileJob, logical: LogicalSource, references: Mapping[str, bool]
) -> Records | None:
    if job.compression is not Compression.NONE or job.encoding.upper() not in ("UTF-8", "UTF8"):
        return None
    if job.reading is Reading.JSON_TEXTS and _is_json_lines(job.path):
        return _json_lines(spark, job, logical, references)
    if job.reading is Reading.CSV and _is_plain(job.dialect):
        look = look_at_csv(job.path, job.dialect.quote, job.dialect.delimiter)
        match look.shape:
            case CsvShape.PLAIN:
                return _split_csv(spark, job, logical, look)
            case CsvShape.LINES:
                return _plain_csv(spark, job, logical)
            case CsvShape.ANY:
                return None
    if job.reading is Reading.XML:
        return _plain_xml(spark, job, logical, references)
    return None


def _plain_xml(
    spark: SparkSession, job: FileJob, logical: LogicalSource, references: Mapping[str, bool]
) -> Records | None:
    """Cut the records of a file that is no more than a list of them."""
    # Compiled code is loaded only for a file that is worth it.
    from quadweir.mapping.formats.xmlscan import PlainXml, look_at_xml
    from quadweir.mapping.xmlcolumns import plain_values, read_plain

    look = look_at_xml(job.path, xml_plan(logical, references))
    if not isinstance(look, PlainXml):
        return _read_in_worker(spark, job, logical, references, why=look)
    return Records(
        frame=read_plain(spark, job.path, look),
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


def with_position(frame: DataFrame, place: Column) -> Column:
    """Add to a place where in its text a record stands, if a text can hold several."""
    if POSITION not in frame.columns:
        return place
    return F.concat_ws(".", place, F.col(POSITION).cast("string"))


def _json_lines(
    spark: SparkSession, job: FileJob, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    schema = flat_schema(references)
    if schema is not None and (logical.iterator or "$") == "$":
        look = look_at_json(job.path)
        if look.shape:
            return _flat_json(spark, job, logical, references, schema, look.is_clean)
    frame = spark.read.text(str(job.path)).where(~is_blank(F.col("value")))
    records = read_texts(frame, "value", logical, references)
    return replace(
        records,
        place=with_position(records.frame, _numbered_place()),
        how=(f"{describe(logical)}: JSON Lines, read by Spark in parallel", *records.how),
    )


def _flat_json(
    spark: SparkSession,
    job: FileJob,
    logical: LogicalSource,
    references: Mapping[str, bool],
    schema: StructType,
    is_clean: bool,
) -> Records:
    # Spark parses the bytes of a file in half of the time that its parsing of a column takes.
    frame = spark.read.json(
        str(job.path), schema=schema, mode="PERMISSIVE", columnNameOfCorruptRecord=BROKEN
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


def read_texts(
    frame: DataFrame, text: str, logical: LogicalSource, references: Mapping[str, bool]
) -> Records:
    """Read a column of JSON texts by Spark expressions."""
    raw = F.col(text)
    frame, values, problem = read_json(
        frame, text, logical.iterator, references, logical.nulls or ()
    )
    broken = F.when(~F.is_valid_utf8(raw), F.lit("not UTF-8"))
    return Records(
        frame=frame,
        values=values,
        shown=describe(logical),
        place=F.lit(""),
        text=F.make_valid_utf8(raw),
        reason=F.coalesce(broken, problem),
        how=("JSONPaths are Spark expressions",),
    )


def _is_json_lines(path: Path) -> bool:
    """Tell whether the first two lines are a JSON value each."""
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
    spark: SparkSession, job: FileJob, logical: LogicalSource, look: Look[CsvShape]
) -> Records:
    """Cut the lines of a file that has no quotes; only its first line is the header."""
    import re

    names = _header(job)
    line, cells = F.col("value"), F.col(_CELLS)
    delimiter = job.dialect.delimiter
    pattern = delimiter if delimiter.isalnum() or delimiter in ",; \t" else re.escape(delimiter)
    header = first_line(job.path)
    frame = (
        spark.read.text(str(job.path))
        .where((line != "") & (line != header))
        .withColumn(_CELLS, F.split(line, pattern))
    )
    values = {
        reference: Value(
            F.get(cells, names.index(reference)),
            Form.TEXT,
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
        # Where all rows are as wide as the header, no row has to be asked.
        reason=F.when(F.size(cells) != len(names), F.lit(_other_width(names)))
        if look.records is None
        else None,
        count=look.records,
        how=(f"{describe(logical)}: CSV without quotes, cut by Spark in parallel",),
    )


def _other_width(names: list[str]) -> str:
    return f"the row has not {len(names)} fields, as the header has"


def _plain_csv(spark: SparkSession, job: FileJob, logical: LogicalSource) -> Records:
    from pyspark.sql.types import StringType, StructField, StructType

    names = _header(job)
    broken = BROKEN
    schema = StructType(
        [StructField(f"c{number}", StringType()) for number in range(len(names))]
        + [StructField(broken, StringType())]
    )
    # Pruned, Spark would count only the columns that are asked for, and take a short row for whole.
    frame = spark.read.option("columnPruning", "false").csv(
        str(job.path),
        schema=schema,
        sep=job.dialect.delimiter,
        quote=job.dialect.quote,
        escape=job.dialect.quote,
        header=True,
        enforceSchema=True,
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=broken,
        emptyValue="",
        maxCharsPerColumn=-1,
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
    )
    nulls = logical.nulls or ()
    values = {
        reference: Value(
            F.coalesce(F.col(f"c{names.index(reference)}"), F.lit("")), Form.TEXT, nulls
        )
        for reference in job.references
    }
    # It names the first field also because Spark refuses to read nothing but the broken rows.
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


__all__ = [
    "DRIVER_CHARACTERS",
    "Records",
    "check_references",
    "describe",
    "no_such_column",
    "read_file",
    "read_texts",
    "why_python",
]
