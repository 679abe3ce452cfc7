"""The throughput and memory of one query on the live path, over files that are complete.

Spark takes one batch of files after the other. The first batches do not count, because workers
start and functions are loaded in them.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.bench.memory import resident_mib

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quadweir.engine import Engine
    from quadweir.runtime.network.network import Network
    from quadweir.runtime.query import RegisteredQuery

WARM_BATCHES: Final = 2
FILES: Final = 2
"""How many files of a stream make a batch; Spark reads a small file in one task."""
_PAUSE: Final = 0.2


@final
@dataclass(frozen=True, slots=True)
class Throughput:
    """The figures of one query.

    Attributes:
        triples_per_second: input, over the batches that count.
        answers: in these batches.
        batch_ms: the mean time of a batch.
        kernel_ms: the part of it in shards: the time of the slowest shard of each stage.
        memory_mib: the most that all processes held together.
        split_ms: the mean time of a batch, by Spark's phases.
        rates: input a second of each of these batches.
    """

    triples_per_second: float
    answers: int
    batch_ms: float
    kernel_ms: float
    memory_mib: int
    split_ms: Mapping[str, float]
    rates: tuple[float, ...]


def engine_over(spark: SparkSession, streams: Mapping[str, Path]) -> Engine:
    """Register streams, each a folder of Parquet files of statements, `FILES` in a batch."""
    from quadweir import rows
    from quadweir.engine import Engine

    engine = Engine(spark)
    for iri, folder in streams.items():
        reader = spark.readStream.schema(rows.STATEMENT_SCHEMA)
        frame = reader.option("maxFilesPerTrigger", FILES).parquet(str(folder))
        engine.provide(iri, frame, canonical=True)
    return engine


def measure_query(
    spark: SparkSession,
    text: str,
    streams: Mapping[str, Path],
    *,
    static: Sequence[Path] = (),
    schema: Sequence[Path] = (),
    shards: int | None = None,
    allow_unbounded: Sequence[str] = (),
) -> Throughput:
    """The throughput and memory of a query over streams.

    Args:
        spark: the session.
        text: the query.
        streams: the folders of its streams, by their IRIs.
        static: files of static data.
        schema: files of a schema.
        shards: how many shards, at most.
        allow_unbounded: the streams whose windows may grow without limit.
    """
    from quadweir.sinks.start import Call

    engine = engine_over(spark, streams)
    engine.schema(*schema)
    registered = engine.query(text, static=static, shards=shards, allow_unbounded=allow_unbounded)
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as checkpoint, watched() as memory:
        registered.start(
            Call(lambda frame, _: drain(frame), whole=True),
            checkpoint=Path(checkpoint),
            available_now=True,
        )
        registered.awaitTermination()
    return throughput_of(registered, memory[0])


def measure_network(
    spark: SparkSession,
    queries: Mapping[str, str],
    streams: Mapping[str, Path],
    *,
    static: Sequence[Path | str] = (),
) -> Throughput:
    """The throughput and memory of many queries in one network; their answers are dropped."""
    network = engine_over(spark, streams).network(static=static)
    found = network.register_all(queries)
    for error in found.refused.values():
        raise error
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as checkpoint, watched() as memory:
        network.start(checkpoint=Path(checkpoint), available_now=True)
        network.awaitTermination()
    return throughput_of(network, memory[0])


def throughput_of(registered: RegisteredQuery | Network, memory: int) -> Throughput:
    """How a query fared that has taken its batches."""
    from quadweir.runtime.shard.spec import ANSWER_METRICS, STAGE_METRICS

    batches = [each for each in registered.recentProgress if each.numInputRows]
    counted = batches[WARM_BATCHES:]
    spent = sum(each.batchDuration for each in counted) / 1000
    stages = [
        facts
        for each in counted
        for name, facts in each.observedMetrics.items()
        if name.startswith((ANSWER_METRICS, STAGE_METRICS))
    ]
    return Throughput(
        triples_per_second=sum(each.numInputRows for each in counted) / spent,
        answers=sum(each["answers"] or 0 for each in stages),
        batch_ms=1000 * spent / len(counted),
        kernel_ms=sum(each["kernel_ms"] or 0 for each in stages) / len(counted),
        memory_mib=memory,
        split_ms={
            name: sum(each.durationMs.get(name, 0) for each in counted) / len(counted)
            for name in counted[-1].durationMs
        },
        rates=tuple(1000 * each.numInputRows / each.batchDuration for each in counted),
    )


@contextmanager
def watched() -> Iterator[list[int]]:
    """Watch the greatest memory of this process and its descendants, in MiB."""
    found, done = [resident_mib()], threading.Event()

    def watch() -> None:
        while not done.wait(_PAUSE):
            found[0] = max(found[0], resident_mib())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def drain(frame: DataFrame) -> None:
    """Compute all rows and drop them."""
    frame.write.format("noop").mode("overwrite").save()
