"""Runs of the engine over a play: results, throughput, latency and cost."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from quadweir import rows
from quadweir.bench.ndw.baseline import spark_interval_join, spark_parsing
from quadweir.bench.ndw.feeds import FileFeed, LiveStreams, Publisher, write_bounded
from quadweir.bench.ndw.publisher import Ints, LaneReadings, SendSchedule, Workload, play
from quadweir.bench.ndw.sinks import CountSink, LatencySink, PairSink, pair_codes
from quadweir.bench.ndw.windows import (
    INTERVAL_MS,
    bounded_mapping,
    join_mapping,
    pass_through_mapping,
)
from quadweir.bench.processes import Sample, Watch
from quadweir.errors import SourceError
from quadweir.mapping.files import Folders
from quadweir.mapping.read import parse_mapping
from quadweir.runtime.joins.frames import JOIN_METRICS, host_join
from quadweir.runtime.mappings.bounded import MappingJob, run_bounded
from quadweir.runtime.mappings.streams import Streams, compile_live
from quadweir.sinks.start import start, wait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PASS_THROUGH: Final = "pass-through"
SPARK_JOIN: Final = "Spark's interval join"
PARSING: Final = "parsing alone, by hand"
_AHEAD_S: Final = 1.0
_PATIENCE_S: Final = 120.0


def mapped(
    spark: SparkSession, text: str, frames: Mapping[str, DataFrame], folder: Path
) -> DataFrame:
    """The quads that a mapping makes of two streams."""
    streams = Streams(spark=spark, folders=Folders(mapping=folder), frames=frames)
    return compile_live(parse_mapping(text), streams, host=host_join, run=str(folder)).quads()


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="quadweir-ndw-") as name:
        yield Path(name)


# -- completeness --------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Completeness:
    """The share of the whole join that a window gives.

    Attributes:
        generated: results of the run.
        expected: results of the bounded join.
        common: results that are in both.
        doubled: results that the run gave more than once.
    """

    generated: int
    expected: int
    common: int
    doubled: int

    @classmethod
    def of(cls, found: Ints, wanted: Ints) -> Completeness:
        """Compare results; each result is a distinct number.

        >>> Completeness.of(np.array([1, 2, 2]), np.array([1, 2, 3, 4])).iou
        0.5
        """
        once = np.unique(found)
        common = len(np.intersect1d(once, wanted, assume_unique=True))
        return cls(len(found), len(wanted), common, len(found) - len(once))

    @property
    def iou(self) -> float:
        """Intersection over union."""
        distinct = self.generated - self.doubled
        return self.common / max(1, distinct + self.expected - self.common)

    def as_json(self) -> dict[str, Any]:
        return {
            "generated": self.generated,
            "expected": self.expected,
            "common": self.common,
            "doubled": self.doubled,
            "iou": round(self.iou, 6),
        }


def bounded_join(spark: SparkSession, recording: LaneReadings, records: SendSchedule) -> Ints:
    """The whole join by a bounded run of the mapping over files."""
    with _scratch() as folder:
        write_bounded(folder, recording, records)
        output = folder / "joined.nq"
        job = MappingJob(folders=Folders(mapping=folder), output=output)
        run_bounded(parse_mapping(bounded_mapping()), spark, job)
        from pyspark.sql import functions as F

        parts = F.split("value", " ")
        quads = spark.read.text(str(output)).select(
            parts[0].alias(rows.SUBJECT), parts[2].alias(rows.OBJECT)
        )
        return pair_codes(quads)


def windowed_join(spark: SparkSession, feed: FileFeed, window: str) -> Ints:
    """The join in a window over files played batch by batch."""
    with _scratch() as folder:
        sink = PairSink()
        # The play is in order, so no delay is needed.
        text = join_mapping(window, delay_ms=0)
        quads = mapped(spark, text, feed.frames(spark), folder)
        query = start(quads, sink, checkpoint=folder / "query", available_now=True)
        wait(query)
        return sink.codes


# -- throughput ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JoinThroughput:
    """The throughput of a join over a play that is complete from the start.

    Attributes:
        records: how many records counted: those after the first batches.
        seconds: how long their batches took.
        results: how many results there were in all.
        all_records: how many records there were in all.
        digest: a sum over all results; equal for equal results.
        cores: how many cores were busy, on average.
        split_ms: the time of a batch, by Spark's phases.
    """

    records: int
    seconds: float
    results: int
    all_records: int
    digest: int
    cores: float
    split_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def results_per_second(self) -> float:
        return self.records_per_second * self.results / self.all_records

    def as_json(self) -> dict[str, Any]:
        return {
            "records_per_second": round(self.records_per_second),
            "results_per_second": round(self.results_per_second),
            "records": self.records,
            "seconds": round(self.seconds, 2),
            "results": self.results,
            "digest": self.digest,
            "cores": round(self.cores, 2),
            "split_ms": {name: round(value, 1) for name, value in self.split_ms.items()},
        }


def throughput(
    spark: SparkSession, feed: FileFeed, name: str, *, warm_batches: int
) -> JoinThroughput:
    """Join a play at full speed: with one of our windows, or with plain Spark."""
    with _scratch() as folder:
        sink, frames = CountSink(), feed.frames(spark)
        if name == SPARK_JOIN:
            quads = spark_interval_join(frames, INTERVAL_MS)
        elif name == PARSING:
            quads = spark_parsing(frames)
        else:
            quads = mapped(spark, join_mapping(name, delay_ms=0), frames, folder)
        with Watch() as watch:
            query = start(quads, sink, checkpoint=folder / "query", available_now=True)
            wait(query)
        metrics = [each for each in query.recentProgress if each.numInputRows]
        batches = metrics[warm_batches:]
        spent = [each.batchDuration for each in batches]
        names = batches[-1].durationMs
        return JoinThroughput(
            records=sum(each.numInputRows for each in batches),
            seconds=sum(spent) / 1000,
            results=sink.count,
            all_records=sum(each.numInputRows for each in metrics),
            digest=sink.digest,
            cores=watch.cores,
            split_ms={n: float(np.mean([b.durationMs.get(n, 0) for b in batches])) for n in names},
        )


# -- live ----------------------------------------------------------------------------------------


@final
@dataclass(slots=True)
class Live:
    """The figures of a live run.

    Attributes:
        sent_ms: when the later record of each result was sent, from the beginning of the play.
        latency_ms: the time until the result was written.
        samples: memory and processor time, over time.
        begun: the monotonic time at which the play began.
        cores: how many cores were busy, on average.
        held: for each batch of the join: seconds since the play began, and records held.
        windows: the same, with the sizes of the windows that hold most.
        behind_ms: how far the publisher fell behind, at most.
        batch_ms: how long each batch took.
    """

    sent_ms: Ints
    latency_ms: Any
    samples: list[Sample]
    begun: float
    cores: float
    held: list[tuple[float, int]]
    windows: list[tuple[float, float]]
    behind_ms: float
    batch_ms: list[float]


def live(
    spark: SparkSession,
    feed: LiveStreams,
    recording: LaneReadings,
    workload: Workload,
    name: str,
    *,
    every: timedelta,
    warm_s: int,
) -> Live:
    """Send a play in real time through a query, and measure the latency of results.

    The first `warm_s` seconds are sent but do not count: Spark compiles, and workers start.
    """
    with _scratch() as folder:
        sink = LatencySink()
        frames = feed.open(spark)
        text = pass_through_mapping()
        if name != PASS_THROUGH:
            text = join_mapping(name, delay_ms=feed.delay_ms)
        quads = mapped(spark, text, frames, folder)
        whole = replace(workload, seconds=workload.seconds + warm_s)
        query = start(quads, sink, checkpoint=folder / "query", every=every)
        try:
            # Plays begin at an even second, as windows do.
            first_ms = 1000 * (2 * int((time.time() + _AHEAD_S) / 2) + 2)
            records = play(whole, first_ms)
            publisher = Publisher(feed, recording, records)
            publisher.start()
            counted_ms = first_ms + 1000 * warm_s
            time.sleep(max(0.0, counted_ms / 1000 - time.time()))
            with Watch() as watch:
                begun = time.monotonic()
                publisher.wait()
            _settled(query, sink, _wanted(records, name))
            # The batch must report its progress before the query stops.
            query.processAllAvailable()
        finally:
            query.stop()
        sent, latency = sink.latencies()
        counts = sent >= counted_ms
        progress = list(query.recentProgress)
    return Live(
        sent_ms=sent[counts] - counted_ms,
        latency_ms=latency[counts],
        samples=watch.samples,
        begun=begun,
        cores=watch.cores,
        held=[
            (_second(each, counted_ms), metrics["held"])
            for each, metrics in _join_metrics(progress)
        ],
        windows=[
            (_second(each, counted_ms), size)
            for each, metrics in _join_metrics(progress)
            for size in _sizes(metrics)
        ],
        behind_ms=publisher.behind_ms,
        batch_ms=[float(each.batchDuration) for each in progress if each.numInputRows],
    )


def _wanted(records: SendSchedule, name: str) -> Callable[[LatencySink], bool]:
    """The end of a run: the last sent record has its result."""
    last = int(records.sent_ms[-1])
    if name == PASS_THROUGH:
        return lambda sink: sink.count >= len(records)
    return lambda sink: any(len(each) and each.max() >= last for each in sink.sent[-3:])


def _settled(
    query: StreamingQuery, sink: LatencySink, is_done: Callable[[LatencySink], bool]
) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_done(sink):
        if not query.isActive:
            raise SourceError("the query ended", detail=str(query.exception())[:500])
        if time.monotonic() > deadline:
            raise SourceError(f"results are still missing after {_PATIENCE_S:.0f} s")
        time.sleep(0.05)


def _join_metrics(progress: list[Any]) -> Iterator[tuple[Any, Any]]:
    for each in progress:
        for name, metrics in each.observedMetrics.items():
            if name.startswith(JOIN_METRICS) and metrics["held"] is not None:
                yield each, metrics


def _second(progress: Any, first_ms: int) -> float:
    from datetime import datetime

    at = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00"))
    return at.timestamp() + float(progress.batchDuration) / 1000 - first_ms / 1000


def _sizes(metrics: Any) -> list[float]:
    sizes = [
        one["size_ms"]
        for text in metrics["windows"] or ()
        for one in json.loads(text)
        if one["size_ms"] is not None
    ]
    return [float(np.median(sizes))] if sizes else []
