"""The Spark data source `quadweir_replay`: a recording played into a streaming query.

An offset is the start of the play and the number of units played. Records are read where offsets
are made, in the driver's Python process, and are sent to the tasks inside the partitions. So no
file is opened twice for a batch, and workers need no access to the files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from quadweir import rows
from quadweir.errors import DeclarationError
from quadweir.sources.clock import Clock, FileClock, SystemClock
from quadweir.sources.declare import (
    RECORDS_PER_BATCH,
    Burst,
    Envelope,
    Format,
    FromColumn,
    FromPredicate,
    Pace,
    Rate,
    ReplaySource,
    Speed,
    StreamDeclaration,
)
from quadweir.sources.records import parse_records
from quadweir.sources.replay import Play, Recording

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME: Final = "quadweir_replay"
_PARTITION_ROWS: Final = 65_536

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


def open_replay(
    spark: SparkSession,
    declaration: StreamDeclaration,
    *,
    clock: Path | None = None,
    max_units_per_batch: int | None = None,
) -> DataFrame:
    """Return the rows of a recording, as they become due.

    Guarantee: exactly once in the query's input, across restarts from its checkpoint. The play
    continues while the query is down; the first batches then have what became due.

    Args:
        spark: the session.
        declaration: a stream whose source is a replay.
        clock: a file with the present time, for tests; None is the system's clock.
        max_units_per_batch: how many units one batch takes at most; default: as declared.

    Returns:
        For RDF, rows that are statements or dead letters (`rowfilters.good_statements`,
        `rowfilters.dead_letters`); for other records, rows of `rows.RECORD_SCHEMA` with position,
        event time and reason, where a row with a reason is a dead letter. The arrival is the time
        when a record was due.

    Raises:
        DeclarationError: the source is not a replay, or its pace needs times that the records lack.
    """
    source = declaration.source
    if not isinstance(source, ReplaySource):
        raise DeclarationError(f"<{declaration.iri}> is not a replay", span=declaration.span)
    options = _options(declaration, source)
    if isinstance(source.pace, Speed) and not _recording(options).is_timed:
        raise DeclarationError(
            f"the records of <{declaration.iri}> have no times to play by",
            hint="Name the column of the time, or choose a rate or a burst.",
            span=declaration.span,
        )
    if clock is not None:
        options["clock"] = str(clock.absolute())
    most = max_units_per_batch or declaration.max_per_batch or RECORDS_PER_BATCH
    options["max_units_per_batch"] = str(most)
    spark.dataSource.register(Replay)
    frame = spark.readStream.format(NAME).options(**options).load()
    if not declaration.format.is_rdf:
        return frame
    if declaration.format in (Format.NTRIPLES, Format.NQUADS):
        return parse_records(frame.drop(rows.EVENT_TIME), declaration)
    # Elements are played as timed lines, whatever the form of the files is.
    timed = StreamDeclaration(
        iri=declaration.iri,
        source=source,
        format=Format.TIMED_LINES,
        time=Envelope(),
        span=declaration.span,
    )
    return parse_records(frame.drop(rows.EVENT_TIME), timed)


def _options(declaration: StreamDeclaration, source: ReplaySource) -> dict[str, str]:
    options = {
        "path": str(source.path.absolute()),
        "format": str(declaration.format),
        "pattern": source.pattern,
        "start": str(source.start),
        "loop": str(source.loop).lower(),
        "ahead_ms": str(declaration.ahead_ms),
    }
    if source.step is not None:
        options["step_ms"] = str(source.step // timedelta(milliseconds=1))
    if source.limit is not None:
        options["limit"] = str(source.limit)
    match declaration.time:
        case FromPredicate(predicate=predicate):
            options["predicate"] = predicate
        case FromColumn(column=column):
            options["column"] = column
        case _:
            pass
    match source.pace:
        case Speed(factor=factor):
            options["speed"] = repr(factor)
        case Rate(per_second=rate):
            options["rate"] = repr(rate)
        case Burst(count=count, every=every):
            options["burst"] = str(count)
            options["every_ms"] = str(every // timedelta(milliseconds=1))
    return options


def _recording(options: Mapping[str, str]) -> Recording:
    return Recording(
        path=Path(options["path"]),
        format=Format(options["format"]),
        pattern=options.get("pattern", "*"),
        start=int(options.get("start", "0")),
        step_ms=int(options["step_ms"]) if "step_ms" in options else None,
        predicate=options.get("predicate"),
        column=options.get("column"),
        ahead_ms=int(options["ahead_ms"]) if "ahead_ms" in options else None,
    )


def _pace(options: Mapping[str, str]) -> Pace:
    if "rate" in options:
        return Rate(float(options["rate"]))
    if "burst" in options:
        return Burst(int(options["burst"]), timedelta(milliseconds=int(options["every_ms"])))
    return Speed(float(options.get("speed", "1")))


class Replay(DataSource):
    """The data source; use `open_replay`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> Any:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(_SCHEMA)

    def streamReader(self, schema: Any) -> _ReplayReader:  # noqa: ARG002, N802 - Spark's names
        return _ReplayReader(dict(self.options))


class _ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets have `started`, milliseconds since 1970; `units` played; and `over`, 1 at the end."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        clock = options.get("clock")
        self._clock: Clock = FileClock(Path(clock)) if clock else SystemClock()
        self._most = int(options["max_units_per_batch"])
        self._play: Play | None = None
        self._until: int | None = None
        # The records of the last offset, until its batch asks for them.
        self._ready: tuple[int, int, list[pa.RecordBatch]] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"started": self._clock.now_ms(), "units": 0, "over": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._until = self._clock.now_ms()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        if start["over"]:
            return start
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self._most
        now = self._until if self._until is not None else self._clock.now_ms()
        play = self._at(start["units"])
        batches = self._taken(play, start["started"], now - start["started"], most)
        self._ready = (start["units"], play.played, batches)
        return {"started": start["started"], "units": play.played, "over": int(play.is_over)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        first, last = start["units"], end["units"]
        if self._ready is not None and self._ready[:2] == (first, last):
            batches = self._ready[2]
        else:
            # After a restart, the units of the unfinished batch are played again. The start of the
            # play is taken from the end offset: the start offset of a first batch is never stored.
            play = self._at(first)
            batches = self._taken(play, end["started"], 2**62, last - first)
        return [InputPartition(_packed(batch)) for batch in batches] or [InputPartition(b"")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value:
            with pa.ipc.open_stream(partition.value) as stream:
                yield from stream

    def commit(self, end: dict[str, int]) -> None:
        del end

    def _at(self, units: int) -> Play:
        """Return the play after this many units; it starts again if it is already further."""
        if self._play is None or self._play.played > units:
            limit = self._options.get("limit")
            self._play = Play(
                _recording(self._options),
                _pace(self._options),
                loop=self._options.get("loop") == "true",
                limit=int(limit) if limit is not None else None,
            )
        self._play.skip(units - self._play.played)
        return self._play

    def _taken(self, play: Play, started: int, elapsed: int, most: int) -> list[pa.RecordBatch]:
        tables = [
            pa.RecordBatch.from_arrays(
                [
                    batch.column("source"),
                    batch.column("place"),
                    pa.array(np.asarray(due + started)),
                    batch.column("value"),
                    batch.column("position"),
                    batch.column("time"),
                    batch.column("reason"),
                ],
                schema=_SCHEMA,
            )
            for batch, due in play.take(elapsed, most)
        ]
        table = pa.Table.from_batches(tables, schema=_SCHEMA).combine_chunks()
        batches: list[pa.RecordBatch] = table.to_batches(max_chunksize=_PARTITION_ROWS)
        return batches


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()
