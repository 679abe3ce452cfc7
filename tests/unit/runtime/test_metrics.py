"""What Spark says of batches, added up."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from quadweir.runtime.metrics import QueryMeter


def report(batch: int, *, run: str = "r", through: int = 1000, **counts: int) -> Any:
    known = {"statements": 10, "dead_letters": 0, "ahead": 0, "answers": 4, "late": 0, **counts}
    answers = {"answers": known["answers"], "late": known["late"], "through": through, "held": 7,
               "kernel_ms": 20}  # fmt: skip
    return SimpleNamespace(
        runId=run,
        batchId=batch,
        timestamp=f"2026-01-01T00:00:{batch:02d}.000Z",
        sources=[
            SimpleNamespace(metrics={"numFilesOutstanding": "3"}),
            SimpleNamespace(metrics={}),
        ],
        batchDuration=300,
        durationMs={"addBatch": 290, "triggerExecution": 300},
        numInputRows=10,
        observedMetrics={"quadweir_input": known, "quadweir_answers": answers},
        stateOperators=[
            SimpleNamespace(
                numRowsTotal=6, memoryUsedBytes=5000, commitTimeMs=60, numShufflePartitions=2
            )
        ],
    )


def test_each_batch_counts_once_and_a_restart_counts_on() -> None:
    clock = iter(range(100))
    meter = QueryMeter(clock=lambda: next(clock))
    meter.add([report(0), report(1, late=2)])
    meter.add([report(0), report(1, late=2), report(2, dead_letters=3, ahead=1)])
    found = meter.metrics()
    assert (found["batches"], found["statements"], found["answers"]) == (3, 30, 12)
    assert (found["late"], found["dead_letters"], found["ahead"]) == (2, 3, 1)
    meter.add([report(2, run="another")])
    assert meter.metrics()["statements"] == 40


def test_what_sources_give_counts_where_nothing_else_is_counted() -> None:
    meter = QueryMeter()
    plain = report(0)
    del plain.observedMetrics["quadweir_input"]
    plain.numInputRows = 12
    meter.add([plain])
    assert meter.metrics()["statements"] == 12


def test_a_report_that_nothing_arrived_is_no_batch() -> None:
    """It has the number of the next batch, and so the facts that shards report about that one."""
    meter = QueryMeter()
    idle = report(1)
    idle.batchDuration, idle.numInputRows = 3, 0
    idle.durationMs = {"latestOffset": 2, "triggerExecution": 3}
    meter.add([report(0), idle])
    assert (meter.metrics()["batches"], meter.metrics()["batch_ms"]) == (1, 300)
    meter.add([report(0), idle, report(1)])
    found = meter.metrics()
    assert (found["batches"], found["statements"], found["batch_ms"]) == (2, 20, 300)


def test_what_is_held_is_not_known_before_the_first_batch() -> None:
    found = QueryMeter().metrics()
    assert [found[key] for key in ("held", "state_rows", "state_bytes", "through")] == [None] * 4


def test_a_batch_is_split_into_where_its_time_went() -> None:
    meter = QueryMeter()
    meter.add([report(0)])
    found = meter.metrics()
    assert [found[f"{part}_ms"] for part in ("batch", "kernel", "state", "spark")] == [
        300, 20, 30, 250,
    ]  # fmt: skip
    assert (found["state_rows"], found["state_bytes"], found["held"]) == (6, 5000, 7)
    assert found["lag_ms"] >= round(time.time() * 1000) - 1000 - 60_000


def test_rates_are_of_the_last_seconds() -> None:
    now = [0.0]
    meter = QueryMeter(clock=lambda: now[0])
    meter.add([])
    now[0] = 5.0
    meter.add([report(0)])
    found = meter.metrics()
    assert (found["input_rate"], found["answer_rate"]) == (2.0, 0.8)
    now[0] = 50.0
    meter.add([report(1)])
    assert meter.metrics()["input_rate"] < 1


def test_before_the_first_batch_and_after_the_end_no_watermark_is_reported() -> None:
    meter = QueryMeter()
    assert meter.metrics()["lag_ms"] is None
    meter.add([report(0, through=2**60)])
    assert meter.metrics()["lag_ms"] is None


def test_the_load_is_the_share_of_time_that_batches_take() -> None:
    meter = QueryMeter()
    meter.add([report(0)])
    assert meter.metrics()["busy"] is None
    meter.add([report(1)])
    assert (meter.metrics()["busy"], meter.metrics()["backlog"]) == (0.3, 3)


def test_sources_that_do_not_say_what_waits_have_no_backlog() -> None:
    meter = QueryMeter()
    silent = report(0)
    silent.sources = [SimpleNamespace(metrics=None)]
    meter.add([silent])
    assert meter.metrics()["backlog"] is None
