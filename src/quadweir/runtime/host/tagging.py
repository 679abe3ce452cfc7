"""Rows of several jobs in one frame, so that Spark reads their streams in one query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TAG: Final = "job"


def tagged(frames: Sequence[DataFrame]) -> DataFrame:
    """Return the rows of all frames, each with the number of its frame; one frame stays as it is."""
    from pyspark.sql import functions as F

    if len(frames) == 1:
        return frames[0]
    # Columns of two frames may share a name, and have different types.
    numbered = [
        frame.select(
            F.lit(number).cast("int").alias(_TAG),
            *(F.col(f"`{name}`").alias(f"{number}_{name}") for name in frame.columns),
        )
        for number, frame in enumerate(frames)
    ]
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), numbered)


def untagged(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of one of the frames that `tagged` put together."""
    for batch in batches:
        if _TAG not in batch.schema.names:
            yield batch
            continue
        prefix = f"{number}_"
        names = [name for name in batch.schema.names if name.startswith(prefix)]
        mine = batch.filter(pc.equal(batch.column(_TAG), number)).select(names)
        yield mine.rename_columns([name.removeprefix(prefix) for name in names])
