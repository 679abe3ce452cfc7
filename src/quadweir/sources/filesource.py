"""Stream files in Spark: bounded, or a folder watched for new files.

A Spark data source cuts files into parts and reads each into Arrow columns; column expressions do
the rest. The same elements, at the same positions, as `streamfiles.read_elements` gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from quadweir import rows
from quadweir.errors import DeclarationError
from quadweir.sources import timedlines
from quadweir.sources.declare import (
    FileSource,
    FolderSource,
    Format,
    FromPredicate,
    StreamDeclaration,
)
from quadweir.sources.fileplan import PARSED, PART_BYTES, RECORDS, FilePlan
from quadweir.sources.lines import MAX_LINE_BYTES
from quadweir.sources.ntriples import parse_line
from quadweir.sources.records import parse_records
from quadweir.sources.streamfiles import is_wanted, list_files
from quadweir.sources.timedlines import FilePart
from quadweir.sources.watch import FolderIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "quadweir_stream_files"
BATCH_BYTES: Final = 64 * 2**20
"""Unless a number of files is given, a batch of a watched folder ends with the file that passes this."""


def open_statements(
    spark: SparkSession,
    declaration: StreamDeclaration,
    *,
    part_bytes: int = PART_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_files_per_batch: int | None = None,
    index: Path | None = None,
    roots: Sequence[Path] = (),
) -> DataFrame:
    """Read the stream files of a declaration, once or, where it says watch, as they come.

    Args:
        spark: the session.
        declaration: a stream whose source is a file or folder and whose format is RDF.
        part_bytes: larger plain files are cut into parts of this size, read side by side.
        max_line_bytes: longer lines are dead letters.
        max_files_per_batch: how many new files of a watched folder one batch takes; default: as
            declared, or as many as have 64 MiB.
        index: where to write down the order of a watched folder's files; None is in the folder.
        roots: the folders that links in the folder may lead to, besides the folder itself.

    Returns:
        Rows that are statements or dead letters; `records.good_statements` and
        `records.dead_letters` take them apart.

    Raises:
        DeclarationError: the source or the format is another.
    """
    if not declaration.format.is_rdf:
        raise DeclarationError(
            f"the records of <{declaration.iri}> are {declaration.format}, not RDF",
            hint="Map them with RML first.",
            span=declaration.span,
        )
    frame = _load(spark, declaration, part_bytes, max_line_bytes, max_files_per_batch, index, roots)
    if declaration.format is Format.TIMED_LINES:
        return _parse_timed_lines(frame, declaration.iri)
    if declaration.format in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
        return frame
    return parse_records(frame, declaration)


def open_records(
    spark: SparkSession,
    declaration: StreamDeclaration,
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
    max_files_per_batch: int | None = None,
    index: Path | None = None,
    roots: Sequence[Path] = (),
) -> DataFrame:
    """Read record files (JSON Lines, CSV, XML) of a declaration; otherwise like `open_statements`.

    A file of XML is one record.

    Returns:
        Rows of `rows.RECORD_SCHEMA` with the columns `rows.POSITION` and `rows.REASON`; a row with
        a reason is a dead letter.

    Raises:
        DeclarationError: the source is not a file or folder, or the records are RDF.
    """
    if declaration.format.is_rdf:
        raise DeclarationError(
            f"{declaration.format} files of <{declaration.iri}> are not files of records",
            span=declaration.span,
        )
    return _load(spark, declaration, PART_BYTES, max_line_bytes, max_files_per_batch, index, roots)


def _load(
    spark: SparkSession,
    declaration: StreamDeclaration,
    part_bytes: int,
    max_line_bytes: int,
    max_files_per_batch: int | None,
    index: Path | None,
    roots: Sequence[Path],
) -> DataFrame:
    source = declaration.source
    if not isinstance(source, (FileSource, FolderSource)):
        raise DeclarationError(f"<{declaration.iri}> is not read from files", span=declaration.span)
    options: dict[str, str | int | None] = {
        "path": str(source.path.absolute()),
        "stream": declaration.iri,
        "format": str(declaration.format),
        "part_bytes": part_bytes,
        "max_line_bytes": max_line_bytes,
        "max_files_per_batch": max_files_per_batch or declaration.max_per_batch,
        "index": str(index.absolute()) if index is not None else None,
    }
    if isinstance(declaration.time, FromPredicate):
        options["predicate"] = declaration.time.predicate
    watch = False
    if isinstance(source, FolderSource):
        watch = source.watch
        options["pattern"] = source.pattern
        options["roots"] = json.dumps([str(root.absolute()) for root in (source.path, *roots)])
        options["start"] = source.start
        if source.step is not None:
            options["step_ms"] = source.step // timedelta(milliseconds=1)
    spark.dataSource.register(StreamFiles)
    reader: Any = spark.readStream if watch else spark.read
    given = {key: str(value) for key, value in options.items() if value is not None}
    frame: DataFrame = reader.format(NAME).options(**given).load()
    return frame


def _parse_timed_lines(lines: DataFrame, stream: str) -> DataFrame:
    odd = F.when(F.col("value").isNotNull(), parse_line(F.col("value")))
    terms = [F.coalesce(f"plain_{name}", f"odd.{name}").alias(name) for name in rows.TERMS]
    reason = F.coalesce(rows.REASON, f"odd.{rows.REASON}").alias(rows.REASON)
    places = ("source", "line", "run", "event_time", "lead", "value")
    parsed = lines.select(
        *places, *(f"plain_{name}" for name in rows.TERMS), rows.REASON, odd.alias("odd")
    )
    parsed = parsed.select(*places, reason, *terms)
    known = F.col(rows.SUBJECT).isNotNull()
    empty = F.when(~known, F.lit("no statement"))
    lead = F.coalesce("lead", F.concat(F.col("event_time").cast("string"), F.lit(" ")))
    # A plain statement is spelled in one way only, so the line need not be sent as well.
    spelled = F.when(known, F.concat_ws(" ", *rows.TERMS, F.lit(".")))
    record = F.concat(lead, F.coalesce(F.col("value"), spelled))
    return parsed.select(
        F.lit(stream).alias(rows.STREAM),
        rows.EVENT_TIME,
        F.col("run").alias(rows.POSITION),
        *rows.TERMS,
        rows.SOURCE,
        F.concat(F.lit("line "), F.col("line")).alias(rows.PLACE),
        F.coalesce(F.col(rows.REASON), empty).alias(rows.REASON),
        F.left(record, F.lit(rows.DEAD_LETTER_TEXT)).alias(rows.RECORD),
    )


class StreamFiles(DataSource):
    """The Spark data source `quadweir_stream_files`; use `open_statements` and `open_records`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        written = Format(self.options["format"])
        if written is Format.TIMED_LINES:
            return from_arrow_schema(timedlines.SCHEMA)
        if written in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
            return from_arrow_schema(PARSED)
        return from_arrow_schema(RECORDS)

    def reader(self, schema: Any) -> BoundedReader:
        del schema
        return BoundedReader(FilePlan.of(self.options))

    def streamReader(self, schema: Any) -> WatchingReader:  # noqa: N802 - Spark's name
        del schema
        return WatchingReader(FilePlan.of(self.options))


class BoundedReader(DataSourceReader):
    """Reads what is there now."""

    def __init__(self, plan: FilePlan) -> None:
        self.plan = plan

    def partitions(self) -> list[InputPartition]:
        found = list_files(Path(self.plan.path), self.plan.pattern)
        groups = self.plan.groups((index, path, None) for index, path in enumerate(found))
        return _partitions(groups)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition.value)


class WatchingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the files of a folder as they come."""

    def __init__(self, plan: FilePlan) -> None:
        self.plan = plan
        self.registry = FolderIndex(Path(plan.path), Path(plan.index) if plan.index else None)
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"files": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self.plan.max_files_per_batch
        return ReadMaxFiles(most) if most is not None else ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        count = self._last if self._last is not None else self.registry.scan()
        if isinstance(limit, ReadMaxFiles):
            count = min(count, start["files"] + limit.max_files)
        elif self.plan.max_files_per_batch is None:
            count = self._up_to_size(start["files"], count)
        # Never back: the files may have been counted by a run that saw more of them.
        return {"files": max(count, start["files"])}

    def _up_to_size(self, start: int, end: int) -> int:
        """Return the end of a batch that has not much more than `BATCH_BYTES`."""
        size = 0
        for found in self.registry.between(start, max(end, start)):
            size += found.size
            if size > BATCH_BYTES:
                return found.index + 1
        return end

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"files": self.registry.scan()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = self.registry.scan()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        folder = Path(self.plan.path)
        groups = self.plan.groups(
            (found.index, folder / found.name, found.size)
            for found in self.registry.between(start["files"], end["files"])
            if is_wanted(found.name, self.plan.pattern)
        )
        return _partitions(groups)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition.value)

    def commit(self, end: dict[str, int]) -> None:
        del end


def _partitions(groups: Sequence[Sequence[FilePart]]) -> list[InputPartition]:
    return [InputPartition(group) for group in groups] or [InputPartition([])]
