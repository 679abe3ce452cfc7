"""Files through which Spark's tasks and worker processes exchange rows on one machine.

Tasks read the answers of the present batch. If a batch is large, tasks write its rows for the shards.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from quadweir.runtime.host.messages import Arrived
from quadweir.runtime.host.tagging import untagged
from quadweir.runtime.shard.base import Counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PLACE: Final = "place"


def answer_file(folder: Path, job: int, worker: int) -> Path:
    """Return the file for the answers of a worker to a job; it exists even without answers."""
    return folder / f"answers-{job}-{worker}.arrow"


def link_answers(files: Iterable[Path], batch: int) -> list[Path]:
    """Link the answer files of a batch under names that no other batch has."""
    found = []
    for file in files:
        link = file.with_name(f"{file.stem}-of-{batch}{file.suffix}")
        link.unlink(missing_ok=True)
        link.hardlink_to(file)
        found.append(link)
    return found


@final
@dataclass(frozen=True)
class AnswerFiles:
    """Reads those of the files whose places it gets."""

    files: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self.read(batch.column(0).to_pylist())

    def read(self, places: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Read some of the files, which all exist."""
        for place in places:
            with pa.memory_map(self.files[place]) as data:
                yield from pa.ipc.open_stream(data)


def read_rows(arrived: Arrived) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch."""
    if arrived.inline:
        yield from pa.ipc.open_stream(arrived.inline)
    for place in arrived.files:
        with pa.memory_map(place) as file:
            yield from pa.ipc.open_stream(file)


@final
@dataclass(frozen=True)
class PassedRows:
    """The rows of a job that passes them on.

    Attributes:
        job: the number of the job.
        schema: the columns of its rows.
        folder: where they are written.
    """

    job: int
    schema: StructType
    folder: Path

    @property
    def file(self) -> Path:
        """Where the rows of the present batch are."""
        return self.folder / "passed.arrow"

    def take(self, arrived: Arrived) -> Counts:
        """Write the rows of a batch to the file; return how many they are."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema, count = to_arrow_schema(self.schema), 0
        with pa.OSFile(str(self.file), "wb") as out, pa.ipc.new_stream(out, schema) as writer:
            for batch in untagged(read_rows(arrived), self.job):
                writer.write_batch(batch.cast(schema))
                count += batch.num_rows
        return Counts(count)


def answers_in(spark: SparkSession, files: Sequence[Path], schema: StructType) -> DataFrame:
    """Return the answers in files as a frame; it reads them when it is computed."""
    places = spark.range(0, len(files), 1, len(files))
    return places.mapInArrow(AnswerFiles(tuple(map(str, files))), schema)


@final
@dataclass(frozen=True)
class RowFiles:
    """Writes the rows of a task to a file and returns its path; files of failed tasks are ignored."""

    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file = f"{self.folder}/rows-{uuid.uuid4().hex}.arrow"
        found = iter(batches)
        first = next(found, None)
        if first is None:
            return
        with pa.OSFile(file, "wb") as out, pa.ipc.new_stream(out, first.schema) as writer:
            writer.write_batch(first)
            for batch in found:
                writer.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([file])], names=[_PLACE])


def rows_in_files(rows_of: DataFrame, folder: Path) -> list[str]:
    """Let tasks write rows to files of a folder; return their paths."""
    written = rows_of.mapInArrow(RowFiles(str(folder)), f"{_PLACE} string")
    return [place for (place,) in written.collect()]
