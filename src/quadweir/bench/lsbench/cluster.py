"""A large network, written by Spark in parallel: a task for each range of users, then for each day.

All workers must see the folder. The bytes are those of `write.generate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from quadweir.bench.lsbench.activity import EVENTS, gathering_events, in_order, user_events
from quadweir.bench.lsbench.network import make_network
from quadweir.bench.lsbench.parameters import DAY_MS, STREAMS, Parameters
from quadweir.bench.lsbench.write import (
    EVENTS_OF_TASK,
    USERS_OF_FILE,
    finish,
    prepare,
    ranges,
    write_day,
    write_static,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STATIC: Final = "static"
_MADE: Final = pa.schema([pa.field("stream", pa.string()), pa.field("day", pa.int32()), *EVENTS])
_MADE_SQL: Final = (
    "stream string, day int, time long, kind byte, item long, actor long, parent long"
)
_COUNTS: Final = pa.schema([pa.field("stream", pa.string()), pa.field("triples", pa.int64())])


def generate_with_spark(
    spark: SparkSession,
    parameters: Parameters,
    folder: Path,
    *,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Make a network and write it; return the content of the manifest.

    Raises:
        SourceError: the folder is not empty, or cannot be written.
    """
    folder = folder.absolute()
    prepare(folder)
    on_step("friendships")
    shared = spark.sparkContext.broadcast(make_network(parameters))

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        network = shared.value
        for batch in batches:
            for task in batch.to_pylist():
                numbers = np.arange(task["first"], task["last"])
                if task["gatherings"]:
                    yield _by_day(parameters, "gps", gathering_events(network, numbers))
                    continue
                for stream, events in user_events(network, numbers).items():
                    yield _by_day(parameters, stream, events)

    def write(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        stream, day = (each.as_py() for each in key)
        events = in_order(table.select(EVENTS.names).cast(EVENTS).to_batches())
        count = write_day(shared.value, folder, stream, day, events)
        return pa.table({"stream": [stream], "triples": [count]}, schema=_COUNTS)

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.to_pylist():
                users = np.arange(task["first"], task["last"])
                count = write_static(shared.value, folder, users)
                yield pa.RecordBatch.from_pydict(
                    {"stream": [_STATIC], "triples": [count]}, schema=_COUNTS
                )

    users = [
        (False, int(each[0]), int(each[-1]) + 1) for each in ranges(parameters.users, USERS_OF_FILE)
    ]
    guests = [
        (True, int(each[0]), int(each[-1]) + 1)
        for each in ranges(parameters.events, EVENTS_OF_TASK)
    ]
    columns = "gatherings boolean, first long, last long"
    context: Any = spark.sparkContext
    cores = int(context.defaultParallelism)
    counts = dict.fromkeys((_STATIC, *STREAMS), 0)
    on_step("static data")
    tasks = spark.createDataFrame(users, columns)
    users_written = tasks.repartition(min(len(users), 4 * cores)).mapInArrow(
        tell, "stream string, triples long"
    )
    # One task for each day of each stream: more tasks than cores, since some days have far more to
    # write.
    made = spark.createDataFrame(users + guests, columns).repartition(
        min(len(users) + len(guests), 8 * cores)
    )
    days = made.mapInArrow(make, _MADE_SQL).repartition(
        min(len(STREAMS) * parameters.days, 16 * cores), "stream", "day"
    )
    written = days.groupBy("stream", "day").applyInArrow(write, "stream string, triples long")
    for step, frame in (("static data", users_written), ("streams", written)):
        on_step(step)
        for row in frame.collect():
            counts[row["stream"]] += row["triples"]
    for stream in STREAMS:
        for day in range(parameters.days):
            # A day without events has a file too.
            path = folder / stream / f"day-{day:05}.stream"
            if not path.exists():
                path.write_bytes(b"")
    return finish(parameters, folder, counts)


def _by_day(parameters: Parameters, stream: str, events: pa.RecordBatch) -> pa.RecordBatch:
    day = (events.column("time").to_numpy() - parameters.start) // DAY_MS
    names = pa.array([stream] * events.num_rows, pa.string())
    columns = [names, pa.array(day.astype(np.int32)), *events.columns]
    return pa.RecordBatch.from_arrays(columns, schema=_MADE)
