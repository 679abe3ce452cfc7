"""How the files of a stream are cut into partitions, and a partition is read into Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa

from quadweir import rows
from quadweir.errors import QuadweirError, SourceError
from quadweir.paths import check_inside
from quadweir.sources import timedlines
from quadweir.sources.declare import Format
from quadweir.sources.lines import MAX_LINE_BYTES, Fault, is_gzip
from quadweir.sources.recordfiles import NumberedRecord, read_document, read_records
from quadweir.sources.streamfiles import FILE_SHIFT, DeadLetter, ElementReader, StreamForm
from quadweir.sources.timedlines import FilePart, count_lines

PART_BYTES: Final = 32 * 2**20
_BATCH_ROWS: Final = 8192

PARSED: Final = pa.schema(
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
RECORDS: Final = pa.schema(
    [
        pa.field(rows.SOURCE, pa.string(), nullable=False),
        pa.field(rows.PLACE, pa.string(), nullable=False),
        pa.field(rows.ARRIVAL, pa.int64(), nullable=False),
        pa.field(rows.VALUE, pa.string()),
        pa.field(rows.POSITION, pa.int64(), nullable=False),
        pa.field(rows.REASON, pa.string()),
    ]
)


@final
@dataclass(frozen=True, slots=True)
class FilePlan:
    """The options of a load, read once; it travels to the workers."""

    path: str
    stream: str
    format: Format
    pattern: str = "*"
    start: int = 0
    step_ms: int | None = None
    predicate: str | None = None
    part_bytes: int = PART_BYTES
    max_line_bytes: int = MAX_LINE_BYTES
    max_files_per_batch: int | None = None
    index: str | None = None
    roots: tuple[str, ...] | None = None

    @staticmethod
    def of(options: Mapping[str, str]) -> FilePlan:
        def number(key: str) -> int | None:
            return int(options[key]) if key in options else None

        return FilePlan(
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

    def groups(self, files: Iterable[tuple[int, Path, int | None]]) -> list[list[FilePart]]:
        """Cut large plain files of timed lines; put small files together."""
        groups: list[list[FilePart]] = []
        room = 0
        for index, path, found in files:
            size = found if found is not None else _size(path)
            if self.format is Format.TIMED_LINES and size > self.part_bytes and not _odd(path):
                starts = list(range(0, size, self.part_bytes))
                numbers = count_lines(path, starts)
                ends = [*starts[1:], None]
                groups.extend(
                    [FilePart(str(path), index, start, end, number, found)]
                    for start, end, number in zip(starts, ends, numbers, strict=True)
                )
                room = 0
                continue
            if size > room or not groups:
                groups.append([])
                room = self.part_bytes
            groups[-1].append(FilePart(str(path), index, size=found))
            room -= size
        return groups

    def read(self, parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
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

    def _elements(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        letters: list[DeadLetter] = []
        reader = ElementReader(
            form=StreamForm(self.format),
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
                    yield _batch([*waiting, *map(_letter_row, letters)], PARSED)
                    waiting.clear()
                    letters.clear()
        except QuadweirError as error:
            letters.append(DeadLetter(part.path, "file", error.message))
        if waiting or letters:
            yield _batch([*waiting, *map(_letter_row, letters)], PARSED)

    def _records(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        waiting: list[tuple[Any, ...]] = []
        for record in self._read_records(Path(part.path)):
            place = f"line {record.number}"
            position = (part.index << FILE_SHIFT) + record.number
            text = record.excerpt if isinstance(record, Fault) else record.text
            reason = record.reason if isinstance(record, Fault) else None
            waiting.append((part.path, place, 0, text, position, reason))
            if len(waiting) >= _BATCH_ROWS:
                yield _batch(waiting, RECORDS)
                waiting.clear()
        if waiting:
            yield _batch(waiting, RECORDS)

    def _read_records(self, path: Path) -> Iterator[NumberedRecord | Fault]:
        if self.format is Format.XML:
            return iter((read_document(path),))
        is_csv = self.format is Format.CSV
        return read_records(path, is_csv=is_csv, max_line_bytes=self.max_line_bytes)

    def _unreadable(self, part: FilePart, reason: str) -> pa.RecordBatch:
        position = (part.index << FILE_SHIFT) + part.number
        if self.format is Format.TIMED_LINES:
            return timedlines.unusable_line(part, Fault(part.number, reason))
        if self.format in (Format.TIMED_GRAPHS, Format.TIMED_FILES):
            return _batch([_letter_row(DeadLetter(part.path, "file", reason))], PARSED)
        return _batch([(part.path, "file", 0, None, position, reason)], RECORDS)


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


def _check_unchanged(part: FilePart) -> None:
    if part.size is None:
        return
    path = Path(part.path)
    if not path.exists():
        raise SourceError("the file was removed before it was read")
    if path.stat().st_size != part.size:
        raise SourceError(
            "the file changed after it was found; move finished files into the folder"
        )
