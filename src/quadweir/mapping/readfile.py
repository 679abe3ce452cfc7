"""Reads a file into records.

The file and the references decide where the work is done; `how` describes it for `explain`:

- small files are read in the driver, which saves starting a job;
- large JSON Lines and CSV files, and plain XML, are read by Spark itself, in parallel
  (`sparkfiles`);
- other large files are read by Python in a worker, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from quadweir.errors import UnsupportedError
from quadweir.fileformats import Compression
from quadweir.mapping.files import BROKEN as UNREADABLE
from quadweir.mapping.files import Folders, missing, open_members, open_text
from quadweir.mapping.formats.filejob import FileJob, FileReading
from quadweir.mapping.jsoncolumns import (
    read_json,
)
from quadweir.mapping.records import (
    Records,
    check_references,
    describe,
    no_such_column,
    why_python,
    xml_plan,
)
from quadweir.mapping.sources import (
    CsvDialect,
    FormulationKind,
    LogicalSource,
    MappedFile,
)
from quadweir.mapping.sparkfiles import read_by_spark
from quadweir.mapping.values import TYPED, ColumnForm, ReferenceValues

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession


DRIVER_CHARACTERS: Final = 4 * 2**20
"""Files up to this size are read in the driver."""


def find_file(logical: LogicalSource, source: MappedFile, folders: Folders) -> Path:
    """Find the file that a mapping names.

    Raises:
        MappingError: it lies outside of the folders that may be read.
        SourceError: it is not there.
    """
    path = folders.resolve(source.path, source.root, span=logical.span)
    if not path.is_file():
        raise missing(path, source.path, logical.span)
    return path


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
        driver_characters: how much the driver reads before it passes the file to a worker.
    """
    source = logical.source
    assert isinstance(source, MappedFile)
    path = find_file(logical, source, folders)
    job = FileJob(
        path=path,
        reading=_reading(logical, references),
        references=tuple(references),
        compression=source.compression,
        encoding=source.encoding,
        iterator=logical.iterator,
        dialect=source.dialect or CsvDialect(),
        namespaces=logical.formulation.namespaces,
        empty_is_missing=logical.empty_is_missing,
    )
    check_references(logical, references)
    if job.reading is FileReading.CSV:
        _check_columns(job, logical)
    batches = _read_here(job, driver_characters)
    if batches is not None:
        return _from_batches(spark, job, logical, references, batches)
    native = read_by_spark(spark, job, logical, references)
    if isinstance(native, Records):
        return native
    return _read_in_worker(spark, job, logical, references, why=native)


def _reading(logical: LogicalSource, references: Mapping[str, bool]) -> FileReading:
    match logical.formulation.kind:
        case FormulationKind.CSV:
            return FileReading.CSV
        case FormulationKind.JSONPATH:
            return (
                FileReading.JSON_VALUES
                if why_python(logical, references)
                else FileReading.JSON_TEXTS
            )
        case FormulationKind.XPATH:
            return FileReading.XML
        case FormulationKind.SPARQL_CSV:
            return FileReading.SPARQL
        case FormulationKind.SQL_TABLE | FormulationKind.SQL_QUERY:
            raise UnsupportedError(
                "the mapping reads a relational database, which Quadweir does not",
                hint="Export the table to CSV, or pass it as a DataFrame.",
                span=logical.span,
            )


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
        return  # Reported as a dead letter when the rows are read.
    for reference in job.references:
        if reference not in names:
            raise no_such_column(reference, names, describe(logical), logical)


def _read_here(job: FileJob, limit: int) -> list[pa.RecordBatch] | None:
    """Read a file in the driver; None if it is larger than `limit`."""
    if job.compression is Compression.NONE and job.path.stat().st_size > limit:
        return None
    batches: list[pa.RecordBatch] = []
    size = 0
    # Small batches at first, so that a large packed file is noticed early.
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

    schema = job.schema()
    # PySpark cannot convert a column of lists that has no chunk at all.
    none = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)
    frame = spark.createDataFrame(pa.Table.from_batches(batches or [none]))
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
        FileReading.CSV: "string",
        FileReading.JSON_TEXTS: "string",
        FileReading.JSON_VALUES: TYPED,
        FileReading.XML: "array<string>",
        FileReading.SPARQL: TYPED,
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
    if job.reading is FileReading.JSON_TEXTS:
        frame, values, problem = read_json(frame, "value", None, references, nulls)
        reason = F.coalesce(reason, F.when(F.col("value").isNotNull(), problem))
        record = F.coalesce(record, F.col("value"))
        how.append("JSONPaths are Spark expressions")
    else:
        form = {
            FileReading.CSV: ColumnForm.TEXT,
            FileReading.XML: ColumnForm.TEXTS,
        }.get(job.reading, ColumnForm.TYPED)
        values = {
            reference: ReferenceValues(F.col(name), form, nulls)
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
        case FileReading.JSON_VALUES:
            return [f"JSONPaths run in Python: {why_python(logical, references)}"]
        case FileReading.XML:
            whole = xml_plan(logical, references).why_whole()
            small = "the file is small, packed or not UTF-8"
            return [
                f"XPaths run in Python: {why or small}",
                f"the whole document is held: {whole}" if whole else "elements come one by one",
            ]
        case _:
            return []
