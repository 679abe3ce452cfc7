"""A bounded run: read every source to its end, write once, and report unusable records."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.errors import DataError, UsageError
from quadweir.fileformats import Compression
from quadweir.mapping.compile import Compiled, OpenRecords, compile_mapping
from quadweir.mapping.elements import ElementRule
from quadweir.mapping.files import Folders
from quadweir.mapping.functions.registry import FUNCTIONS, MappingFunctions
from quadweir.mapping.model import Mapping as RmlMapping
from quadweir.mapping.quads import TARGET
from quadweir.mapping.readfile import DRIVER_CHARACTERS, read_file
from quadweir.mapping.records import Records
from quadweir.mapping.sources import LogicalSource, LogicalTarget, MappedFile
from quadweir.mapping.targets import target_paths
from quadweir.private import make_folder
from quadweir.runtime.mappings.streams import Streams
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import element_lines, with_line
from quadweir.sinks.rdf_documents import Syntax, opened, syntax_of, write_file, write_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.sources.declare import StreamDeclaration

_SHOWN_LETTERS: Final = 5
_CHUNK: Final = 2**20
_SENT: Final = 2**30
_OWN: Final = -1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappingOutcome:
    """The result of a bounded run."""

    records: int
    bad_records: int
    outputs: tuple[Path, ...] = ()
    explanation: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MappingJob:
    """The options of a bounded run.

    Attributes:
        output: the file to write; None for standard output.
        syntax: the RDF syntax of the output.
        distinct: leave out quads that were already written.
        base: the base of relative IRIs.
        folders: the folders that the mapping may use.
        strict: stop if some record cannot be used.
        dead_letters: the file for records that cannot be used, as JSON Lines.
        declarations: the streams that are declared elsewhere, by IRI.
        hosts: the other hosts that the mapping may connect to.
        is_timed: write timed lines, element by element, in place of `syntax`.
        times: the references that hold event times, by the names of sources; see `Streams`.
        mapping_file: the file of the mapping itself, so that no target replaces it.
        overwrite: logical targets may replace files.
    """

    folders: Folders
    output: Path | None = None
    syntax: Syntax = Syntax.NQUADS
    distinct: bool = False
    base: str | None = None
    strict: bool = False
    dead_letters: Path | None = None
    driver_characters: int = DRIVER_CHARACTERS
    registry: MappingFunctions = field(default=FUNCTIONS)
    declarations: Mapping[str, StreamDeclaration] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    is_timed: bool = False
    times: Mapping[str, str] = field(default_factory=dict)
    mapping_file: Path | None = None
    overwrite: bool = False

    def target_paths(self, mapping: RmlMapping) -> list[Path]:
        """Where the logical targets are written; see `targets.target_paths`."""
        return target_paths(
            mapping,
            self.folders,
            own=[path for path in (self.output, self.dead_letters) if path is not None],
            read=[self.mapping_file] if self.mapping_file is not None else [],
            overwrite=self.overwrite,
        )


def bounded_streams(spark: SparkSession, job: MappingJob) -> Streams:
    """The sources of a mapping, to be read to their end."""
    return Streams(
        spark=spark,
        folders=job.folders,
        declarations=job.declarations,
        hosts=job.hosts,
        bounded=True,
        times=job.times,
    )


def open_bounded(spark: SparkSession, job: MappingJob) -> OpenRecords:
    """A function that opens the sources of a mapping for `compile_mapping`, to read them to their
    end.
    """
    streams = bounded_streams(spark, job)

    def open_source(logical: LogicalSource, references: Mapping[str, bool]) -> Records:
        if not isinstance(logical.source, MappedFile):
            return streams.open(logical, references)
        limit = job.driver_characters
        return read_file(spark, logical, references, job.folders, driver_characters=limit)

    return open_source


def run_bounded(
    mapping: RmlMapping, spark: SparkSession, job: MappingJob, out: IO[bytes] | None = None
) -> MappingOutcome:
    """Map everything, write it, and return the counts.

    Raises:
        DataError: `strict`, and some record could not be used; nothing is written then.
        SourceError: a file cannot be read or written.
    """
    check_graphs(mapping, job.syntax)
    targets = mapping.targets()
    paths = job.target_paths(mapping)
    compiled = compile_mapping(
        mapping,
        open_bounded(spark, job),
        base=job.base,
        registry=job.registry,
        stream_time=bounded_streams(spark, job).time_of,
        elements=ElementRule(lambda _: "") if job.is_timed else None,
    )
    observations = compiled.observations()
    if job.is_timed:
        lines = _timed_lines(compiled.statements(observations), bool(targets))
    elif targets or job.distinct:
        lines = compiled.lines(observations)
    else:
        lines = compiled.texts(observations)
    if job.distinct:
        lines = lines.dropDuplicates()
    with tempfile.TemporaryDirectory(prefix="quadweir-map-") as scratch:
        is_small = all(group.records.is_small for group in compiled.groups)
        pieces = (
            _collect(lines, bool(targets))
            if is_small
            else _spill(lines, bool(targets), Path(scratch))
        )
        records, bad = compiled.counts(observations)
        if bad:
            _tell(compiled, job, bad, records)
        # Written here, while the parts still exist.
        outputs = tuple(_write(pieces, targets, paths, job, out))
    return MappingOutcome(
        records=records,
        bad_records=bad,
        outputs=outputs,
        explanation=compiled.explain(),
    )


def _timed_lines(statements: DataFrame, with_target: bool) -> DataFrame:
    """Write elements as timed lines; logical targets get quads."""
    if not with_target:
        return element_lines(statements, named=True).select(rows.LINE)
    own = element_lines(statements.where(F.col(TARGET).isNull()), named=True)
    others = statements.where(F.col(TARGET).isNotNull())
    return own.select(rows.LINE, F.lit(None).cast("int").alias(TARGET)).unionByName(
        with_line(others, LineFormat.NQUADS).select(rows.LINE, TARGET)
    )


def check_graphs(mapping: RmlMapping, syntax: Syntax) -> None:
    """Refuse a syntax that would lose the graphs of a mapping."""
    if syntax.has_graphs:
        return
    for triples_map in mapping.triples_maps:
        pairs = triples_map.predicate_objects
        graphs = [*triples_map.subject.graphs, *(g for pair in pairs for g in pair.graphs)]
        if any(not graph.is_default_graph for graph in graphs):
            raise UsageError(
                f"the mapping makes named graphs, which {syntax} cannot hold",
                hint="Write nquads, trig or jsonld.",
                span=triples_map.span,
            )


# -- dead letters -----------------------------------------------------------------------------


def _tell(compiled: Compiled, job: MappingJob, bad: int, records: int) -> None:
    letters = compiled.dead_letters()
    if job.strict:
        shown = letters.limit(_SHOWN_LETTERS).collect()
        raise DataError(
            f"{bad} of {records} records could not be used",
            detail="\n".join(f"{one.source}, {one.place}: {one.reason}" for one in shown),
            hint="Fix the records, or run without --strict to skip them.",
        )
    if job.dead_letters is not None:
        write_letters(letters, job.dead_letters)


def write_letters(letters: DataFrame, path: Path) -> None:
    """Write dead letters as JSON Lines."""
    make_folder(path.parent)
    with path.open("w", encoding="utf-8") as file:
        for letter in letters.toLocalIterator():
            file.write(json.dumps(letter.asDict(), ensure_ascii=False) + "\n")


# -- lines ------------------------------------------------------------------------------------

Pieces = dict[int, Iterator[bytes]]
"""For each target (and -1, the run's own output), its lines in chunks."""


def _collect(lines: DataFrame, with_target: bool) -> Pieces:
    """Collect a small result in the driver: one job, no files."""
    held: dict[int, list[str]] = {}
    if with_target:
        for line, target in lines.collect():
            held.setdefault(_OWN if target is None else target, []).append(line)
    else:
        held[_OWN] = [line for (line,) in lines.collect()]
    return {
        target: iter(("".join(f"{line}\n" for line in some).encode(),))
        for target, some in held.items()
    }


def _spill(lines: DataFrame, with_target: bool, scratch: Path) -> Pieces:
    """Let Spark write parts in parallel."""
    folder = scratch / "parts"
    writer = lines.write
    if with_target:
        lines = lines.withColumn(TARGET, F.coalesce(TARGET, F.lit(_OWN)))
        lines.write.partitionBy(TARGET).text(str(folder))
        found = {
            int(one.name.partition("=")[2]): one for one in folder.iterdir() if "=" in one.name
        }
    else:
        writer.text(str(folder))
        found = {_OWN: folder}
    return {target: _Parts(some) for target, some in found.items()}


@final
class _Parts(Iterator[bytes]):
    """The lines of the files that Spark wrote, in chunks; each file is removed after use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._chunks = self._read()

    def __next__(self) -> bytes:
        return next(self._chunks)

    def _read(self) -> Iterator[bytes]:
        for part in self._files():
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk

    def _files(self) -> Iterator[Path]:
        for part in sorted(self._folder.glob("part-*")):
            yield part
            part.unlink(missing_ok=True)

    def append_to(self, out: IO[bytes]) -> None:
        """Let the operating system copy all of it into an empty plain file, without Python."""
        path = Path(out.name)
        files = self._files()
        for part in files:
            try:
                # The first part becomes the file, which saves copying it.
                part.replace(path)
            except OSError:
                _copy(part, path)  # The file is on another disk.
            break
        for part in files:
            _copy(part, path)


def _copy(part: Path, path: Path) -> None:
    # Not opened for appending: the system cannot copy into such a file.
    with path.open("r+b") as out, part.open("rb") as file:
        out.seek(0, os.SEEK_END)
        at = 0
        while sent := os.sendfile(out.fileno(), file.fileno(), at, _SENT):
            at += sent


def _write(
    pieces: Pieces,
    targets: tuple[LogicalTarget, ...],
    paths: list[Path],
    job: MappingJob,
    out: IO[bytes] | None,
) -> Iterator[Path]:
    own = pieces.get(_OWN, iter(()))
    if job.output is not None:
        is_plain = job.syntax.is_lines and job.output.suffix.lower() != ".gz"
        if isinstance(own, _Parts) and is_plain and sys.platform == "linux":
            with opened(job.output, Compression.NONE) as file:
                own.append_to(file)
        else:
            write_file(own, job.output, job.syntax)
        yield job.output
    else:
        write_stream(own, out if out is not None else sys.stdout.buffer, job.syntax)
    for number, (target, path) in enumerate(zip(targets, paths, strict=True)):
        write_file(
            pieces.get(number, iter(())),
            path,
            syntax_of(target.serialization),
            encoding=target.encoding,
            compression=target.compression,
        )
        yield path


__all__ = [
    "MappingJob",
    "MappingOutcome",
    "check_graphs",
    "open_bounded",
    "run_bounded",
    "write_letters",
]
