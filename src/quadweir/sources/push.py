"""The Spark data source `quadweir_push`: what clients of the service pushed, in the order of arrival.

An offset is a byte of the log. So any number of runs can read a log, each at its own pace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from quadweir import rows
from quadweir.errors import DeclarationError, SourceError, UsageError
from quadweir.private import make_folder, replaced
from quadweir.sources.declare import (
    Envelope,
    Format,
    FromPredicate,
    PushSource,
    StreamDeclaration,
)
from quadweir.sources.pushlog import READERS, PushLogReader, raw_batches
from quadweir.sources.records import parse_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "quadweir_push"
MAX_RECORDS_PER_BATCH: Final = 500_000
MAX_BYTES_PER_BATCH: Final = 64 * 2**20

_SCHEMA: Final = pa.schema(
    [
        pa.field(rows.SOURCE, pa.string(), nullable=False),
        pa.field(rows.PLACE, pa.string(), nullable=False),
        pa.field(rows.ARRIVAL, pa.int64(), nullable=False),
        pa.field(rows.VALUE, pa.string()),
        pa.field(rows.POSITION, pa.int64(), nullable=False),
        pa.field(rows.EVENT_TIME, pa.int64()),
        pa.field(rows.REASON, pa.string()),
    ]
)


def open_push(spark: SparkSession, declaration: StreamDeclaration) -> DataFrame:
    """Return what was pushed into a stream.

    Guarantee: exactly once in the query's input, across restarts from its checkpoint.

    Returns:
        For RDF, rows that are statements or dead letters; for other records, rows of
        `rows.RECORD_SCHEMA` with position, event time and reason.

    Raises:
        DeclarationError: the stream is not pushed.
        UsageError: nobody keeps what is pushed.
    """
    source = declaration.source
    if not isinstance(source, PushSource):
        raise DeclarationError(f"<{declaration.iri}> is not pushed", span=declaration.span)
    if source.log is None:
        raise UsageError(
            f"<{declaration.iri}> is pushed over HTTP, which `quadweir serve` takes",
            hint="Run the file with `quadweir serve`.",
            span=declaration.span,
        )
    spark.dataSource.register(Push)
    options = {
        "log": str(source.log.absolute()),
        "stream": declaration.iri,
        "start": str(source.start),
        "reader": source.reader,
    }
    frame = spark.readStream.format(NAME).options(**options).load()
    if not declaration.format.is_rdf:
        return frame
    # Elements are kept as N-Quads next to their times, whatever they were pushed as.
    has_own = isinstance(declaration.time, FromPredicate)
    kept = replace(
        declaration, format=Format.NQUADS, time=declaration.time if has_own else Envelope()
    )
    return parse_records(frame, kept)


class Push(DataSource):
    """The data source; use `open_push`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_SCHEMA)

    def streamReader(self, schema: Any) -> _PushReader:  # noqa: ARG002, N802 - Spark's names
        return _PushReader(dict(self.options))


class _PushReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._folder = Path(options["log"])
        self._log = PushLogReader(self._folder)
        self._stream = options["stream"]
        self._start = int(options["start"])
        self._name = options["reader"]
        self._until: int | None = None
        self._noted = -1

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"byte": self._start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(MAX_RECORDS_PER_BATCH)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._until = self._log.end()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        begin = start["byte"]
        # Spark asks for the next batch once the one before is done for good.
        self._note(begin)
        if begin > self._log.end():
            raise SourceError(
                f"the log of pushed records in {self._folder} ends at byte {self._log.end()}, and "
                f"the checkpoint has read it up to {begin}",
                hint="Restore the folder, or start again with an empty checkpoint.",
            )
        if isinstance(limit, ReadAllAvailable):
            end = self._log.end()
        else:
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else MAX_RECORDS_PER_BATCH
            end = self._log.limit(begin, size=MAX_BYTES_PER_BATCH, count=most)
        if self._until is not None:
            end = min(end, self._until)
        return {"byte": max(begin, end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        pieces = self._log.read(start["byte"], end["byte"])
        return [InputPartition(piece) for piece in pieces] or [InputPartition(b"")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for found in raw_batches(partition.value, self._stream):
            values, numbers = found["values"], found["numbers"]
            count = len(values)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self._stream] * count, pa.string()),
                    pa.array(numbers).cast(pa.string()),
                    pa.array(np.full(count, found["arrival_ms"], dtype=np.int64)),
                    values,
                    pa.array(numbers),
                    found["times"],
                    pa.nulls(count, pa.string()),
                ],
                schema=_SCHEMA,
            )

    def commit(self, end: dict[str, int]) -> None:
        self._note(end["byte"])

    def _note(self, byte: int) -> None:
        """Say up to where this run has read: the service forgets what all have read."""
        if self._name and byte > self._noted:
            make_folder(self._folder / READERS)
            with replaced(self._folder / READERS / self._name) as scratch:
                scratch.write_text(str(byte), encoding="ascii")
            self._noted = byte
