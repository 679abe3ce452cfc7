"""RDF files and folders as quad rows, read in parallel by Spark.

Spark alone reads and parses plain N-Triples and N-Quads. Gzip files of them are unpacked in Python:
unlike Spark's own reader, it returns what is before a damaged place. pyoxigraph parses Turtle,
TriG, RDF/XML and JSON-LD, one file after the other in each task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from quadweir import rows, spelling
from quadweir.errors import SourceError
from quadweir.paths import spark_path
from quadweir.sources.lines import Fault, is_gzip, read_blocks
from quadweir.sources.ntriples import parse_lines
from quadweir.sources.rdfdocuments import BadQuad, rdf_suffix, read_quads

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_BLOCK: Final = "block"
_ID: Final = "id"
_PATH: Final = "path"
_BATCH_ROWS: Final = 8192

_LETTER_FIELDS: Final = (rows.SOURCE, rows.PLACE, rows.REASON, rows.RECORD)
_DOCUMENTS: Final = pa.schema(
    [pa.field(name, pa.string()) for name in (*_LETTER_FIELDS, *rows.TERMS)]
)
_UNPACKED: Final = pa.schema(
    [
        pa.field(rows.SOURCE, pa.string()),
        pa.field(rows.LINE, pa.int64()),
        pa.field(rows.VALUE, pa.string()),
        pa.field("fault", pa.string()),
    ]
)


@final
@dataclass(frozen=True, slots=True)
class RdfFiles:
    """The quads of files, and the dead letters with file, line and reason."""

    quads: DataFrame
    dead_letters: DataFrame


def read_rdf(spark: SparkSession, *paths: Path | str) -> RdfFiles:
    """Return the quads and dead letters of RDF files and folders; suffixes say the formats.

    `.gz` after the suffix means gzip. A folder is read with all its subfolders, except hidden
    files. If there are several files, each gets its own labels of blank nodes, because a label
    belongs to its document.

    Raises:
        SourceError: a path does not exist.
    """
    files = [file for path in paths for file in list_files(Path(path))]
    plain, packed, documents = _sort_out(files)
    apart = len(files) > 1
    quads: list[DataFrame] = []
    letters: list[DataFrame] = []
    if plain:
        lines = _text(spark, plain)
        parsed = _in_right_format(parse_lines(lines, F.col(rows.VALUE)))
        quads.append(_quads(parsed, apart))
        letters.append(_numbered(lines, parsed))
    if packed:
        unpacked = _per_file(spark, packed, _unpack, _UNPACKED)
        parsed = _in_right_format(parse_lines(unpacked, F.col(rows.VALUE)))
        reason = F.coalesce("fault", rows.REASON)
        parsed = parsed.withColumn(rows.REASON, reason)
        quads.append(_quads(parsed, apart))
        letters.append(_letters(parsed, F.col(rows.LINE), F.col(rows.VALUE)))
    if documents or not files:
        parsed = _per_file(spark, documents, _parse_documents, _DOCUMENTS)
        quads.append(_quads(parsed, apart))
        letters.append(parsed.where(F.col(rows.REASON).isNotNull()).select(*_LETTER_FIELDS))
    return RdfFiles(_union(quads), _union(letters))


def list_files(path: Path) -> list[Path]:
    """Return the files of a path: itself, or all files below it that are not hidden, in order.

    Raises:
        SourceError: the path does not exist.
    """
    if path.is_file():
        return [path.absolute()]
    if path.is_dir():
        found: list[Path] = []
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name[0] not in "._")
            found += [Path(folder, name) for name in sorted(names) if name[0] not in "._"]
        return [file.absolute() for file in found]
    raise SourceError(f"no such file or folder: {path}", hint="Check the path.")


def _sort_out(files: Iterable[Path]) -> tuple[list[Path], list[Path], list[Path]]:
    plain, packed, documents = [], [], []
    for file in files:
        if rdf_suffix(file) not in (".nt", ".nq"):
            documents.append(file)
        elif is_gzip(file) or spark_path(file) is None:
            packed.append(file)
        else:
            plain.append(file)
    return plain, packed, documents


def _text(spark: SparkSession, files: list[Path]) -> DataFrame:
    names = [name for file in files if (name := spark_path(file)) is not None]
    encoded = F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B"))
    return spark.read.text(names).select(
        F.col("value").alias(rows.VALUE),
        F.regexp_replace(F.url_decode(encoded), "^file:/+", "/").alias(rows.SOURCE),
        F.col("_metadata.file_block_start").alias(_BLOCK),
        F.monotonically_increasing_id().alias(_ID),
    )


def _in_right_format(parsed: DataFrame) -> DataFrame:
    misplaced = F.col(rows.GRAPH).isNotNull() & ~F.col(rows.SOURCE).rlike(r"(?i)\.nq(\.gz)?$")
    reason = F.when(misplaced, F.lit("a graph name in N-Triples")).otherwise(F.col(rows.REASON))
    return parsed.withColumn(rows.REASON, reason)


def _numbered(lines: DataFrame, parsed: DataFrame) -> DataFrame:
    """Return the dead letters of plain files with their line numbers.

    Spark's text source has no line numbers. Row ids grow by one inside each block of a file. So the
    number of a line is the number of lines in the blocks before, plus the distance from the first
    id of its block. Counting reads the files again, but only if the dead letters are used.
    """
    blocks = lines.groupBy(rows.SOURCE, _BLOCK).agg(
        F.min(_ID).alias("first"), F.count(F.lit(1)).alias("lines")
    )
    before = (
        Window.partitionBy(rows.SOURCE)
        .orderBy(_BLOCK)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    blocks = blocks.select(
        rows.SOURCE,
        _BLOCK,
        "first",
        (F.sum("lines").over(before) - F.col("lines")).alias("before"),
    )
    bad = parsed.where(F.col(rows.REASON).isNotNull())
    number = F.col("before") + F.col(_ID) - F.col("first") + 1
    return _letters(bad.join(F.broadcast(blocks), [rows.SOURCE, _BLOCK]), number, F.col(rows.VALUE))


def _letters(parsed: DataFrame, line: Column, text: Column) -> DataFrame:
    return parsed.where(F.col(rows.REASON).isNotNull()).select(
        rows.SOURCE,
        F.concat(F.lit("line "), line).alias(rows.PLACE),
        rows.REASON,
        F.substring(F.make_valid_utf8(text), 1, rows.DEAD_LETTER_TEXT).alias(rows.RECORD),
    )


def _quads(parsed: DataFrame, apart: bool) -> DataFrame:
    good = parsed.where(F.col(rows.REASON).isNull() & F.col(rows.SUBJECT).isNotNull())
    if not apart:
        return rows.select_quads(good)
    prefix = F.concat(F.lit("f"), F.lower(F.hex(F.xxhash64(rows.SOURCE))), F.lit("."))
    named = {
        name: spelling.with_labels(F.col(name), prefix)
        for name in (rows.SUBJECT, rows.OBJECT, rows.GRAPH)
    }
    return rows.select_quads(good.withColumns(named))


def _union(frames: list[DataFrame]) -> DataFrame:
    first, *others = frames
    for other in others:
        first = first.unionByName(other)
    return first


def _per_file(
    spark: SparkSession,
    files: list[Path],
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    paths = spark.createDataFrame([(str(file),) for file in files], f"{_PATH} string")
    # Each file is its own task, so that one large file does not delay the small ones.
    spread = paths.repartition(max(1, min(len(files), 1000)))
    return spread.mapInArrow(read, from_arrow_schema(schema))


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path in _paths(batches):
        for block in read_blocks(path):
            if isinstance(block, Fault):
                columns = [[str(path)], [block.number], [block.excerpt], [block.reason]]
                arrays = [
                    pa.array(column, field.type)
                    for column, field in zip(columns, _UNPACKED, strict=True)
                ]
            else:
                arrays = _split(path, block.number, block.data)
            yield pa.RecordBatch.from_arrays(arrays, schema=_UNPACKED)


def _split(path: Path, number: int, data: bytes) -> list[pa.Array]:
    try:
        text = data.removesuffix(b"\n").decode()
        faults: pa.Array | None = None
    except UnicodeDecodeError:
        # Only the lines that are not UTF-8 are faults, so each line is decoded alone.
        pieces = data.removesuffix(b"\n").split(b"\n")
        sound = [_decodes(piece) for piece in pieces]
        text = "\n".join(piece.decode(errors="replace") for piece in pieces)
        faults = pa.array([None if good else "not valid UTF-8" for good in sound], pa.string())
    lines = pc.split_pattern(pa.array([text], pa.large_string()), "\n").flatten()
    values = pc.utf8_rtrim(lines, "\r").cast(pa.string())
    count = len(values)
    numbers = pa.array(range(number, number + count), pa.int64())
    sources = pa.repeat(pa.scalar(str(path), pa.string()), count)
    return [
        sources,
        numbers,
        values,
        faults if faults is not None else pa.nulls(count, pa.string()),
    ]


def _decodes(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse_documents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for path in _paths(batches):
        held: list[dict[str, str | None]] = []
        for item in read_quads(path):
            if isinstance(item, BadQuad):
                held.append(
                    {
                        rows.SOURCE: str(path),
                        rows.PLACE: item.place,
                        rows.REASON: item.reason,
                        rows.RECORD: item.record,
                    }
                )
            else:
                held.append(
                    {
                        rows.SOURCE: str(path),
                        rows.SUBJECT: str(item.subject),
                        rows.PREDICATE: str(item.predicate),
                        rows.OBJECT: str(item.object),
                        rows.GRAPH: str(item.graph) if item.graph is not None else None,
                    }
                )
            if len(held) == _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(held, schema=_DOCUMENTS)
                held = []
        yield pa.RecordBatch.from_pylist(held, schema=_DOCUMENTS)


def _paths(batches: Iterator[pa.RecordBatch]) -> Iterator[Path]:
    for batch in batches:
        for name in batch.column(_PATH).to_pylist():
            yield Path(name)
