"""How long an element waits for its answer: in a watched folder, in a file.

A pass-through of the same rows, with the same trigger and sink, shows the time that Spark needs for
a batch.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.bench.kernel_pipeline import Measurement

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WARM_ELEMENTS: Final = 20
_TRIGGERS: Final = {"at once": None, "every 500 ms": timedelta(milliseconds=500)}
_EAGER: Final = """SELECT ?s ?sent ?kind {
  STREAM <urn:bench> [RANGE 10s] { ?s <urn:sent> ?sent }
  STREAM <urn:bench> [RANGE 10s] { ?s <urn:kind> ?kind } }"""


PASSED: Final = "pass-through"
ANSWERED: Final = "eager query"
IN_EXECUTORS: Final = "eager query in executors"


def compare_waits(spark: SparkSession, folder: Path, seconds: int) -> Iterator[Measurement]:
    """Compare latencies, with batches as fast as possible and with a batch at intervals."""
    for trigger, every in _TRIGGERS.items():
        medians = {}
        for name in (PASSED, ANSWERED, IN_EXECUTORS):
            waits = waits_of(name, spark, folder / trigger, seconds, every=every)
            medians[name] = waits[len(waits) // 2]
            within = f"95 % within {waits[len(waits) * 95 // 100]:,.0f} ms"
            yield Measurement(
                f"{name}, {trigger}, median latency",
                medians[name],
                "ms",
                note=f"{len(waits):,} elements, {within}",
            )
        for name, most in ((ANSWERED, 2.0), (IN_EXECUTORS, None)):
            yield Measurement(
                f"{name} / {PASSED}, {trigger}, median latency",
                medians[name] / medians[PASSED],
                "x",
                at_most=most,
            )


def waits_of(
    name: str,
    spark: SparkSession,
    folder: Path,
    seconds: int,
    *,
    every: timedelta | None = None,
) -> list[float]:
    """The latency of each element in milliseconds, sorted.

    Args:
        name: the kind of run: `PASSED`, `ANSWERED`, or answered `IN_EXECUTORS`.
        spark: the session.
        folder: the folder for elements and answers.
        seconds: how long elements arrive.
        every: the time between batches; by default a batch starts as soon as the last one is done.
    """
    start: Callable[[SparkSession, Path, timedelta | None], Callable[[], None]] = _start_through
    if name != PASSED:
        start = partial(_start_eager, shards_in="executors" if name == IN_EXECUTORS else None)
    own = folder / name.replace(" ", "-")
    return _watch(partial(start, spark, own, every), own, seconds)


def _start_through(
    spark: SparkSession, folder: Path, every: timedelta | None
) -> Callable[[], None]:
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat
    from quadweir.sinks.start import start

    query = start(
        _arriving(spark, folder),
        FileSink(folder / "out", LineFormat.TIMED_LINES),
        checkpoint=folder / "checkpoint",
        every=every,
    )
    return query.stop


def _start_eager(
    spark: SparkSession, folder: Path, every: timedelta | None, *, shards_in: str | None
) -> Callable[[], None]:
    from quadweir.engine import Engine
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    engine = Engine(spark)
    engine.provide("urn:bench", _arriving(spark, folder), canonical=True)
    registered = engine.query(_EAGER)
    registered.start(
        FileSink(folder / "out", LineFormat.ANSWERS_JSONL),
        checkpoint=folder / "checkpoint",
        every=every,
        shards_in=shards_in,
    )
    return registered.stop


def _arriving(spark: SparkSession, folder: Path) -> DataFrame:
    from quadweir import rows

    (folder / "in").mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(rows.STATEMENT_SCHEMA).json(str(folder / "in"))


def _watch(start: Callable[[], Callable[[], None]], folder: Path, seconds: int) -> list[float]:
    """Add an element at intervals; return the time from each to its answer, sorted."""
    folder.mkdir(parents=True)
    stop = start()
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    try:
        number, ends = 0, time.time() + 240
        # The first batches load and compile, so elements come one at a time: each waits for the
        # answer to the one before.
        while number < _WARM_ELEMENTS and time.time() < ends:
            _arrive(folder / "in", f"warm{number}", sent)
            number += 1
            while len(seen) < len(sent) and time.time() < ends:
                _look(folder / "out", seen)
                time.sleep(0.01)
        began = time.time()
        while time.time() < began + seconds:
            _arrive(folder / "in", f"e{number}", sent)
            number += 1
            for _ in range(10):
                _look(folder / "out", seen)
                time.sleep(0.01)
        while len(seen) < len(sent) and time.time() < began + seconds + 60:
            _look(folder / "out", seen)
            time.sleep(0.01)
    finally:
        stop()
    waits = [1000 * (at - sent[name]) for name, at in seen.items() if name.startswith("e")]
    return sorted(waits)


def _arrive(folder: Path, name: str, sent: dict[str, float]) -> None:
    now = round(time.time() * 1000)
    common = {"stream": "urn:bench", "event_time": now, "position": len(sent)}
    triples = [("urn:sent", f'"{name}"'), ("urn:kind", '"ping"')]
    lines = [
        json.dumps(
            {**common, "subject": f"<urn:{name}>", "predicate": f"<{predicate}>", "object": end}
        )
        for predicate, end in triples
    ]
    file = folder / f".{name}.json"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sent[name] = time.time()
    file.rename(folder / f"{name}.json")


def _look(folder: Path, seen: dict[str, float]) -> None:
    """Note when answers are first seen in the output's files."""
    if not folder.is_dir():
        return
    now = time.time()
    for entry in os.scandir(folder):
        path = entry.path
        if path in _LOOKED_AT or not entry.name[0].isdigit():
            continue
        _LOOKED_AT.add(path)
        for word in Path(path).read_text(encoding="utf-8").replace('\\"', '"').split('"'):
            if word.startswith(("e", "warm")) and word[-1].isdigit():
                seen.setdefault(word, now)


_LOOKED_AT: Final[set[str]] = set()
