"""What Spark's tasks and the shards beside the driver hand one another, as files.

Both sides are on one machine. Tasks read answers of the batch that is written just now; where a batch is
large, they leave its rows for the shards.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PLACE: Final = "place"


def answer_file(folder: Path, number: int) -> Path:
    """Where a process leaves its answers; there is always a file, be there no answers in it."""
    return folder / f"answers-{number}.arrow"


def link_answers(files: Iterable[Path], batch: int) -> list[Path]:
    """Give the answers of a batch names of their own, which no other batch has."""
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
    """Reads the files whose places among these it is given."""

    files: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self.read(batch.column(0).to_pylist())

    def read(self, places: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Read some of the files, all of which are there."""
        for place in places:
            with pa.memory_map(self.files[place]) as data:
                yield from pa.ipc.open_stream(data)


def answers_in(spark: SparkSession, files: Sequence[Path], schema: StructType) -> DataFrame:
    """Give the answers in files, as these are when it is computed."""
    places = spark.range(0, len(files), 1, len(files))
    return places.mapInArrow(AnswerFiles(tuple(map(str, files))), schema)


@final
@dataclass(frozen=True)
class RowFiles:
    """Writes the rows of a task to a file and tells where; of what a failed task left, nobody is told."""

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
    """Have tasks write rows to files of a folder, and give their places."""
    told = rows_of.mapInArrow(RowFiles(str(folder)), f"{_PLACE} string")
    return [place for (place,) in told.collect()]
