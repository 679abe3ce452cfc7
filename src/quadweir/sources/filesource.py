"""Stream files in Spark: bounded, or a folder watched for new files.

A Spark data source cuts files into parts and reads each into Arrow columns; column expressions do
the rest. The same elements, at the same positions, as `streamfiles.read_elements` gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

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
from quadweir.errors import DeclarationError, QuadweirError, SourceError
from quadweir.paths import check_inside
from quadweir.sources import timedlines
from quadweir.sources.declare import (
    FileSource,
    FolderSource,
    Format,
    FromPredicate,
    StreamDeclaration,
)
from quadweir.sources.lines import MAX_LINE_BYTES, Fault, is_gzip
from quadweir.sources.ntriples import parse_lines
from quadweir.sources.recordfiles import Record, read_document, read_records
from quadweir.sources.records import parse_records
from quadweir.sources.streamfiles import (
    FILE_SHIFT,
    DeadLetter,
    ElementReader,
    Form,
    is_wanted,
    list_files,
)
from quadweir.sources.timedlines import Part, count_lines
from quadweir.sources.watch import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "quadweir_stream_files"
PART_BYTES: Final = 32 * 2**20
_BATCH_ROWS: Final = 8192

_PARSED: Final = pa.schema(
    [
        pa.field(rows.STREAM, pa.string()),
        pa.field(rows.EVENT_TIME, pa.int64()),
        pa.field(rows.POSITION, pa.int64()),
        *[pa.field(name, pa.string()) for name in rows.TERMS],
        pa.field(rows.SOURCE, pa.string()),
        pa.field(rows.PLACE, pa.string()),
        pa.field(rows.REASON, pa.string()),
        pa.field(rows.RECORD, pa.string()),
    ]
)
_RECORDS: Final = pa.schema(
    [
        pa.field(rows.SOURCE, pa.string(), nullable=False),
        pa.field(rows.PLACE, pa.string(), nullable=False),
        pa.field(rows.ARRIVAL, pa.int64(), nullable=False),
        pa.field(rows.VALUE, pa.string()),
        pa.field(rows.POSITION, pa.int64(), nullable=False),
        pa.field(rows.REASON, pa.string()),
    ]
)


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
        max_files_per_batch: how many new files of a watched folder one batch takes; None is all.
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
        "max_files_per_batch": max_files_per_batch,
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
    statement = F.rtrim(F.substr("value", F.col("cut") + 1), F.lit("\r\n"))
    renamed = lines.withColumnRenamed(rows.REASON, "_early").withColumnRenamed(
        rows.POSITION, "_own"
    )
    parsed = parse_lines(renamed, statement)
    # Lines of one graph stand at the position of the first of them.
    position = F.when(F.col(rows.GRAPH).isNull(), F.col("_own")).otherwise(F.col("run"))
    empty = F.when(F.col(rows.SUBJECT).isNull(), F.lit("no statement"))
    return parsed.select(
        F.lit(stream).alias(rows.STREAM),
        rows.EVENT_TIME,
        position.alias(rows.POSITION),
        *rows.TERMS,
        rows.SOURCE,
        F.concat(F.lit("line "), F.col("line")).alias(rows.PLACE),
        F.coalesce(F.col("_early"), F.col(rows.REASON), empty).alias(rows.REASON),
        F.left(F.rtrim(F.col("value"), F.lit("\r\n")), F.lit(rows.DEAD_LETTER_TEXT)).alias(
            rows.RECORD
        ),
    )


@final
@dataclass(frozen=True, slots=True)
class _Plan:
    """The options of a load, read once; it travels to the workers."""

    path: str
    stream: str
    format: Format
    pattern: str
    start: int
    step_ms: int | None
    predicate: str | None
    part_bytes: int
    max_line_bytes: int
    max_files_per_batch: int | None
    index: str | None
    roots: tuple[str, ...] | None

    @staticmethod
    def of(options: Mapping[str, str]) -> _Plan:
        def number(key: str) -> int | None:
            return int(options[key]) if key in options else None

        return _Plan(
            path=options["path"],
            stream=options["stream"],
            format=Format(options["format"]),
            pattern=options.get("pattern", "*"),
            start=number("start") or 0,
            step_ms=number("step_ms"),
            predicate=options.get("predicate"),
            part_bytes=number("part_bytes") or PART_BYTES,
            max_line_bytes=number("max_line_bytes") or MAX_LINE_BYTES,
            max_files_per_batch=number("max_files_per_batch"),
            index=options.get("index"),
            roots=tuple(json.loads(options["roots"])) if "roots" in options else None,
        )

    def partitions(self, files: Iterable[tuple[int, Path, int | None]]) -> list[InputPartition]:
        """Cut large plain files of timed lines; put small files together."""
        groups: list[list[Part]] = []
        room = 0
        for index, path, found in files:
            size = found if found is not None else _size(path)
            if self.format is Format.TIMED_LINES and size > self.part_bytes and not _odd(path):
                starts = list(range(0, size, self.part_bytes))
                numbers = count_lines(path, starts)
                ends = [*starts[1:], None]
                groups.extend(
                    [Part(str(path), index, start, end, number, found)]
                    for start, end, number in zip(starts, ends, numbers, strict=True)
                )
                room = 0
                continue
            if size > room or not groups:
                groups.append([])
                room = self.part_bytes
            groups[-1].append(Part(str(path), index, size=found))
            room -= size
        return [InputPartition(group) for group in groups] or [InputPartition([])]

    def read(self, parts: Sequence[Part]) -> Iterator[pa.RecordBatch]:
        for part in parts:
            try:
                if self.roots is not None:
                    check_inside(Path(part.path), map(Path, self.roots))
                _check_unchanged(part)
                if self.format is Format.TIMED_LINES:
                    yield from timedlines.read_part(part, max_line_bytes=self.max_line_bytes)
                elif self.format in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
                    yield from self._elements(part)
                else:
                    yield from self._records(part)
            except QuadweirError as error:
                # One file that cannot be read must not keep the others from being read.
                yield self._unreadable(part, error.message)

    def _elements(self, part: Part) -> Iterator[pa.RecordBatch]:
        letters: list[DeadLetter] = []
        reader = ElementReader(
            form=Form(self.format),
            stream=self.stream,
            start=self.start,
            step_ms=self.step_ms,
            predicate=self.predicate,
            on_bad=letters.append,
            max_line_bytes=self.max_line_bytes,
        )
        waiting: list[tuple[Any, ...]] = []
        try:
            for element in reader.read(Path(part.path), part.index):
                head = (element.stream, element.event_time, element.position)
                for quad in element.quads:
                    graph = str(quad.graph) if quad.graph is not None else None
                    terms = (str(quad.subject), str(quad.predicate), str(quad.object), graph)
                    waiting.append((*head, *terms, None, None, None, None))
                if len(waiting) + len(letters) >= _BATCH_ROWS:
                    yield _batch([*waiting, *map(_letter_row, letters)], _PARSED)
                    waiting.clear()
                    letters.clear()
        except QuadweirError as error:
            letters.append(DeadLetter(part.path, "file", error.message))
        if waiting or letters:
            yield _batch([*waiting, *map(_letter_row, letters)], _PARSED)

    def _records(self, part: Part) -> Iterator[pa.RecordBatch]:
        waiting: list[tuple[Any, ...]] = []
        for record in self._read_records(Path(part.path)):
            place = f"line {record.number}"
            position = (part.index << FILE_SHIFT) + record.number
            text = record.excerpt if isinstance(record, Fault) else record.text
            reason = record.reason if isinstance(record, Fault) else None
            waiting.append((part.path, place, 0, text, position, reason))
            if len(waiting) >= _BATCH_ROWS:
                yield _batch(waiting, _RECORDS)
                waiting.clear()
        if waiting:
            yield _batch(waiting, _RECORDS)

    def _read_records(self, path: Path) -> Iterator[Record | Fault]:
        if self.format is Format.XML:
            return iter((read_document(path),))
        is_csv = self.format is Format.CSV
        return read_records(path, is_csv=is_csv, max_line_bytes=self.max_line_bytes)

    def _unreadable(self, part: Part, reason: str) -> pa.RecordBatch:
        position = (part.index << FILE_SHIFT) + part.number
        if self.format is Format.TIMED_LINES:
            row: tuple[Any, ...] = (
                part.path,
                part.number,
                position,
                position,
                None,
                0,
                None,
                reason,
            )
            return _batch([row], timedlines.SCHEMA)
        if self.format in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
            return _batch([_letter_row(DeadLetter(part.path, "file", reason))], _PARSED)
        return _batch([(part.path, "file", 0, None, position, reason)], _RECORDS)


def _letter_row(letter: DeadLetter) -> tuple[Any, ...]:
    return (*[None] * 7, letter.source, letter.place, letter.reason, letter.record)


def _batch(table: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*table, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _odd(path: Path) -> bool:
    """Tell whether a file must be read from its start: gzip, binary, or not readable at all."""
    try:
        with path.open("rb") as file:
            return is_gzip(path) or b"\0" in file.read(8192)
    except OSError:
        return True


def _check_unchanged(part: Part) -> None:
    if part.size is None:
        return
    path = Path(part.path)
    if not path.exists():
        raise SourceError("the file was removed before it was read")
    if path.stat().st_size != part.size:
        raise SourceError(
            "the file changed after it was found; move finished files into the folder"
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
            return from_arrow_schema(_PARSED)
        return from_arrow_schema(_RECORDS)

    def reader(self, schema: Any) -> _BoundedReader:
        del schema
        return _BoundedReader(_Plan.of(self.options))

    def streamReader(self, schema: Any) -> _WatchingReader:  # noqa: N802 - Spark's name
        del schema
        return _WatchingReader(_Plan.of(self.options))


class _BoundedReader(DataSourceReader):
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan

    def partitions(self) -> list[InputPartition]:
        found = list_files(Path(self.plan.path), self.plan.pattern)
        return self.plan.partitions((index, path, None) for index, path in enumerate(found))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition.value)


class _WatchingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, plan: _Plan) -> None:
        self.plan = plan
        self.registry = Registry(Path(plan.path), Path(plan.index) if plan.index else None)
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
        # Never back: the files may have been counted by a run that saw more of them.
        return {"files": max(count, start["files"])}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"files": self.registry.scan()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = self.registry.scan()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        folder = Path(self.plan.path)
        return self.plan.partitions(
            (found.index, folder / found.name, found.size)
            for found in self.registry.between(start["files"], end["files"])
            if is_wanted(found.name, self.plan.pattern)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.plan.read(partition.value)

    def commit(self, end: dict[str, int]) -> None:
        del end
