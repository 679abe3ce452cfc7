"""`quadweir bench ndw`: the whole evaluation, section by section, as one result."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.measure import machine
from quadweir.bench.ndw import model, runs
from quadweir.bench.ndw.adaptation import Course, follow
from quadweir.bench.ndw.feeds import FileFeed, LiveFiles, LiveKafka, LiveStreams
from quadweir.bench.ndw.publisher import LANES, LaneReadings, Rhythm, Workload, load, play
from quadweir.bench.ndw.windows import (
    COUNT,
    PAPER,
    RELEASED,
    SAFE,
    TUMBLING,
    WINDOWS,
    kernel_window,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUBLISHED_IOU: Final = {
    Rhythm.CONSTANT: {TUMBLING: 0.749, PAPER: 1.0},
    Rhythm.PERIODIC: {TUMBLING: 0.780, PAPER: 0.982},
}
THROUGHPUT: Final = 100_000
SATURATING: Final = {
    "15 results a record": Workload(),
    # The same number of records a second, from thirty times as many lanes.
    "a result for every two records": Workload(lanes=30 * LANES, publishers=1, slots=1),
}
"""The workloads played at full speed: as in the paper, and with one partner for each record."""
_POINTS: Final = 200
_WARM_BATCHES: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NdwSize:
    """How much is measured.

    Attributes:
        seconds: stream time of the plays for completeness.
        live_seconds: how long each live run counts.
        warm_seconds: how long it runs before.
        every_ms: the trigger of live runs.
        batch_records: how many records a batch of the throughput runs has, about.
        batches: how many batches count there.
        adapt_seconds: stream time of the plays that windows adapt to; a tenth of it with V = 33.
    """

    seconds: int = 180
    live_seconds: int = 30
    warm_seconds: int = 12
    every_ms: int = 1000
    batch_records: int = 300_000
    batches: int = 3
    adapt_seconds: int = 60


QUICK: Final = NdwSize(
    seconds=20,
    live_seconds=6,
    warm_seconds=8,
    batch_records=5_000,
    batches=2,
    adapt_seconds=20,
)


@final
@dataclass(slots=True)
class Bench:
    """The sections, over one session and one recording."""

    spark: SparkSession
    recording: LaneReadings
    size: NdwSize
    kafka: str | None
    on_step: Callable[[str], None]
    figures: dict[str, list[Measurement]] = field(default_factory=dict)

    # -- completeness ----------------------------------------------------------------------------

    def completeness(self) -> dict[str, Any]:
        """Every window in both rhythms against the bounded join."""
        found: dict[str, Any] = {}
        for rhythm in Rhythm:
            records = play(Workload(rhythm=rhythm, seconds=self.size.seconds))
            self.on_step(f"completeness, {rhythm}: bounded join")
            wanted = np.sort(runs.bounded_join(self.spark, self.recording, records))
            with self._feed() as feed:
                feed.write(self.recording, records, every_ms=20_000)
                table = {}
                for window in WINDOWS:
                    self.on_step(f"completeness, {rhythm}: {window}")
                    codes = runs.windowed_join(self.spark, feed, window)
                    table[window] = runs.Completeness.of(codes, wanted).as_json()
            found[rhythm] = {
                "windows": table,
                "model": {"bounded": model.bounded(records), TUMBLING: model.tumbling(records)},
            }
        self.figures["completeness"] = list(_completeness_figures(found))
        return found

    # -- adaptation ------------------------------------------------------------------------------

    def adaptation(self) -> dict[str, Any]:
        """How window sizes and limits follow the input, in the kernel."""
        long, short = self.size.adapt_seconds, max(4, self.size.adapt_seconds // 8)
        scenes = {
            "V = 33, timestamp in the key": (Workload(seconds=short, copies=33), True),
            "V = 1, no timestamp in the key": (Workload(seconds=long), False),
            "V = 33, no timestamp in the key": (Workload(seconds=short, copies=33), False),
            "bursts of V = 10, no timestamp in the key": (
                Workload(rhythm=Rhythm.PERIODIC, seconds=long, copies=10),
                False,
            ),
        }
        found: dict[str, Any] = {}
        figures = self.figures["adaptation"] = []
        for scene, (workload, with_time) in scenes.items():
            records = play(workload)
            found[scene] = {}
            for window in (PAPER, RELEASED, SAFE, COUNT):
                self.on_step(f"adaptation, {scene}: {window}")
                course = follow(kernel_window(window), records, with_time=with_time)
                found[scene][window] = {**course.as_json(), "course": _course(course)}
            figures += _adaptation_figures(scene, found[scene].values(), workload)
        return found

    # -- throughput ------------------------------------------------------------------------------

    def throughput(self) -> dict[str, Any]:
        """The dynamic join at full speed, compared with Spark's own interval join and with no join
        at all.
        """
        found: dict[str, Any] = {}
        figures = self.figures["throughput"] = []
        for scene, workload in SATURATING.items():
            by_name = found[scene] = {}
            per_batch = max(1, self.size.batch_records // workload.a_second)
            for names, batches, seconds in (
                ((SAFE, PAPER, runs.PARSING), _WARM_BATCHES + self.size.batches, per_batch),
                # Spark's join is so much slower that the same input would take too long.
                ((runs.SPARK_JOIN,), _WARM_BATCHES + 2, max(1, per_batch // 24)),
            ):
                records = play(replace(workload, seconds=batches * seconds))
                with self._feed() as feed:
                    self.on_step(f"throughput, {scene}: writing records")
                    feed.write(self.recording, records, every_ms=1000 * seconds)
                    wanted = model.bounded(records)
                    # The first run of its kind does not count: Java compiles during it for all
                    # later runs.
                    self.on_step(f"throughput, {scene}: warming up")
                    runs.throughput(self.spark, feed, names[0], warm_batches=_WARM_BATCHES)
                    for name in names:
                        self.on_step(f"throughput, {scene}: {name}")
                        went = runs.throughput(self.spark, feed, name, warm_batches=_WARM_BATCHES)
                        by_name[name] = {
                            **went.as_json(),
                            "batch_records": seconds * workload.a_second,
                            "expected_results": len(records) if name == runs.PARSING else wanted,
                        }
            figures += _throughput_figures(scene, by_name)
        return found

    # -- live ------------------------------------------------------------------------------------

    def live(self) -> dict[str, Any]:
        """Latency, rate, processor and memory, in the play's own time."""
        found: dict[str, Any] = {}
        for rhythm in Rhythm:
            workload = Workload(rhythm=rhythm, seconds=self.size.live_seconds)
            found[rhythm] = {}
            # As for throughput, the first join does not count.
            ways = (TUMBLING, runs.PASS_THROUGH, TUMBLING, PAPER, SAFE)
            for turn, name in enumerate(ways):
                self.on_step(f"live, {rhythm}: {name}")
                with self._live_feed() as feed:
                    went = runs.live(
                        self.spark,
                        feed,
                        self.recording,
                        workload,
                        name,
                        every=timedelta(milliseconds=self.size.every_ms),
                        warm_s=self.size.warm_seconds,
                    )
                if turn:
                    found[rhythm][name] = _live(went, self.size.live_seconds)
        self.figures["latency"] = list(_latency_figures(found, self.size.every_ms))
        return found

    @contextmanager
    def _feed(self) -> Iterator[FileFeed]:
        with tempfile.TemporaryDirectory(prefix="quadweir-ndw-") as name:
            yield FileFeed(Path(name))

    @contextmanager
    def _live_feed(self) -> Iterator[LiveStreams]:
        if self.kafka is None:
            with self._feed() as files:
                yield LiveFiles(files)
            return
        feed = LiveKafka(self.spark, self.kafka)
        try:
            yield feed
        finally:
            feed.close()


SECTIONS: Final[dict[str, Callable[[Bench], dict[str, Any]]]] = {
    "completeness": Bench.completeness,
    "adaptation": Bench.adaptation,
    "throughput": Bench.throughput,
    "live": Bench.live,
}


def run(
    spark: SparkSession,
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: NdwSize | None = None,
    kafka: str | None = None,
    data: Path | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections.

    Args:
        spark: a session; with Kafka's connector if `kafka` is given.
        sections: which ones.
        size: how much.
        kafka: the broker for live runs; without one they use files.
        data: the folder of the recording; see `publisher.load`.
        on_step: called with the name of each measurement before it begins.
    """
    about = machine()
    recording = load(data)
    size = size or NdwSize()
    bench = Bench(spark, recording, size, kafka, on_step)
    found = {name: SECTIONS[name](bench) for name in sections}
    return {
        "benchmark": "ndw",
        "machine": about,
        "input": {
            "recording": "made up" if recording.origin == "made up" else "NDW",
            "live_feed": "Kafka" if kafka is not None else "files",
            "seconds": size.seconds,
            "live_seconds": size.live_seconds,
            "trigger_ms": size.every_ms,
        },
        "found": found,
        "sections": {
            name: [each.as_json() for each in figures] for name, figures in bench.figures.items()
        },
    }


def _completeness_figures(found: dict[str, Any]) -> Iterator[Measurement]:
    constant, periodic = (found[rhythm]["windows"] for rhythm in Rhythm)
    modelled = found[Rhythm.CONSTANT]["model"]
    name = "constant: tumbling, distance from the paper's 0.749"
    distance = abs(constant[TUMBLING]["iou"] - 0.749)
    yield Measurement(name, round(distance, 4), "", at_most=0.005)
    wrong = abs(constant[TUMBLING]["generated"] - modelled[TUMBLING])
    yield Measurement("constant: tumbling, results compared with the model's", wrong, "", at_most=0)
    wrong = abs(constant[TUMBLING]["expected"] - modelled["bounded"])
    yield Measurement(
        "constant: bounded join, results compared with the model's", wrong, "", at_most=0
    )
    for window in (PAPER, SAFE):
        yield Measurement(f"constant: {window}", constant[window]["iou"], "IOU", at_least=1.0)
    yield Measurement(f"periodic: {PAPER}", periodic[PAPER]["iou"], "IOU", at_least=0.982)
    yield Measurement(f"periodic: {SAFE}", periodic[SAFE]["iou"], "IOU", at_least=0.999)
    # Below the dynamic one, as in the paper.
    below = periodic[SAFE]["iou"] - periodic[TUMBLING]["iou"]
    yield Measurement(
        "periodic: tumbling, how far below boundary-safe", round(below, 4), "IOU", 0.001
    )
    doubled = sum(each["doubled"] for table in (constant, periodic) for each in table.values())
    yield Measurement("results given twice, all windows", doubled, "", at_most=0)


def _throughput_figures(scene: str, by_name: dict[str, Any]) -> Iterator[Measurement]:
    rates = {name: each["records_per_second"] for name, each in by_name.items()}
    for name, rate in rates.items():
        wanted = THROUGHPUT if name == SAFE else None
        yield Measurement(f"{scene}: {name}", rate, "records/s", at_least=wanted)
    wrong = sum(abs(each["results"] - each["expected_results"]) for each in by_name.values())
    yield Measurement(f"{scene}: results missing or too many", wrong, "", at_most=0)
    for name in (runs.SPARK_JOIN, runs.PARSING):
        ratio = round(rates[SAFE] / rates[name], 3)
        yield Measurement(f"{scene}: dynamic join, times {name}", ratio, "times")


def _adaptation_figures(
    scene: str, courses: Iterable[dict[str, Any]], workload: Workload
) -> Iterator[Measurement]:
    by_name = list(courses)
    lost = sum(each["keys_sent"] - each["keys_met"] for each in by_name)
    yield Measurement(f"{scene}: keys without a result", lost, "keys", at_most=0)
    changed = min(each["greatest_limit"] - each["least_limit"] for each in by_name)
    yield Measurement(f"{scene}: limits change by, at least", changed, "records", at_least=1)
    # The bound covers a window of 5 s, an equally long carry-over, and the wait for the watermark.
    # Two or three bursts fall into that time.
    most = 11 * workload.a_second
    if workload.rhythm is Rhythm.PERIODIC:
        most += 3 * workload.copies * workload.a_second
    held = max(each["most_held"] for each in by_name)
    yield Measurement(f"{scene}: most records held", held, "records", at_most=most)


def _latency_figures(found: dict[str, Any], every_ms: int) -> Iterator[Measurement]:
    constant = found[Rhythm.CONSTANT]
    empty = constant[runs.PASS_THROUGH]
    for key in ("median_ms", "p99_ms"):
        yield Measurement(f"{runs.PASS_THROUGH}, {key[:-3]}", empty[key], "ms")
        for window in (TUMBLING, PAPER, SAFE):
            value = constant[window][key]
            yield Measurement(f"{window}, {key[:-3]}", value, "ms")
            ratio = round(value / empty[key], 3)
            yield Measurement(
                f"{window}, {key[:-3]}, times pass-through", ratio, "times", at_most=2
            )
    for window in (PAPER, SAFE):
        added = constant[window]["median_ms"] - empty["median_ms"]
        yield Measurement(f"{window}, median added", round(added, 1), "ms", at_most=every_ms)


def _course(course: Course) -> dict[str, Any]:
    """The course with fewer points, for a chart."""
    chosen = _thinned(len(course.seconds))
    found: dict[str, Any] = {
        "seconds": [course.seconds[place] for place in chosen],
        "held": [course.held[place] for place in chosen],
        "keys": [course.keys[place] for place in chosen],
    }
    if len(course.sizes_ms) == len(course.seconds):
        found["sizes_ms"] = [course.sizes_ms[place] for place in chosen]
        found["limits"] = [course.limits[place] for place in chosen]
    return found


def _thinned(count: int) -> list[int]:
    step = max(1, count // _POINTS)
    return list(range(0, count, step))


def _live(went: runs.Live, seconds: int) -> dict[str, Any]:
    latency = went.latency_ms
    second = went.sent_ms // 1000
    over_time = []
    for number in range(seconds):
        mine = latency[second == number]
        if len(mine):
            spread = np.quantile(mine, [0, 0.5, 0.99])
            over_time.append([number, *(round(float(each), 1) for each in spread), len(mine)])
    shares = np.quantile(latency, np.linspace(0, 1, 101)) if len(latency) else np.zeros(101)
    memory = [
        [round(each.at - went.begun, 2), round(each.java_mib, 1), round(each.python_mib, 1)]
        for each in went.samples
    ]
    used = [
        [
            round(after.at - went.begun, 2),
            round((after.processor_s - before.processor_s) / (after.at - before.at), 3),
        ]
        for before, after in zip(went.samples[:-1], went.samples[1:], strict=True)
        if after.at > before.at + 0.1
    ]
    return {
        "results": len(latency),
        "results_per_second": round(len(latency) / seconds),
        "least_ms": round(float(shares[0]), 1),
        "median_ms": round(float(shares[50]), 1),
        "p99_ms": round(float(shares[99]), 1),
        "most_ms": round(float(shares[100]), 1),
        "cores": round(went.cores, 3),
        "java_mib": round(float(np.mean([each[1] for each in memory])), 1),
        "python_mib": round(float(np.mean([each[2] for each in memory])), 1),
        "most_held": max((held for _, held in went.held), default=0),
        "batch_ms": round(float(np.median(went.batch_ms)), 1) if went.batch_ms else 0.0,
        "publisher_behind_ms": round(went.behind_ms, 1),
        "over_time": over_time,
        "shares_ms": [round(float(each), 1) for each in shares],
        "memory": memory,
        "used_cores": used,
        "held": [[round(at, 2), held] for at, held in went.held],
        "windows": [[round(at, 2), size] for at, size in went.windows],
    }
