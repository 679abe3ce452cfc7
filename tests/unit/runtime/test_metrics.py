"""What Spark says of batches, added up, and served to Prometheus."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from types import SimpleNamespace
from typing import Any

import pytest

from quadweir.errors import UsageError
from quadweir.runtime.metrics import Meter, MetricsServer


def report(batch: int, *, run: str = "r", through: int = 1000, **counts: int) -> Any:
    known = {"statements": 10, "dead_letters": 0, "answers": 4, "late": 0, **counts}
    answers = {"answers": known["answers"], "late": known["late"], "through": through, "held": 7,
               "kernel_ms": 20}  # fmt: skip
    return SimpleNamespace(
        runId=run,
        batchId=batch,
        batchDuration=300,
        observedMetrics={"quadweir_input": known, "quadweir_answers": answers},
        stateOperators=[
            SimpleNamespace(
                numRowsTotal=6, memoryUsedBytes=5000, commitTimeMs=60, numShufflePartitions=2
            )
        ],
    )


def test_each_batch_counts_once_and_a_restart_counts_on() -> None:
    clock = iter(range(100))
    meter = Meter(clock=lambda: next(clock))
    meter.add([report(0), report(1, late=2)])
    meter.add([report(0), report(1, late=2), report(2, dead_letters=1)])
    found = meter.metrics()
    assert (found["batches"], found["statements"], found["answers"]) == (3, 30, 12)
    assert (found["late"], found["dead_letters"]) == (2, 1)
    meter.add([report(2, run="another")])
    assert meter.metrics()["statements"] == 40


def test_what_sources_give_counts_where_nothing_else_is_counted() -> None:
    meter = Meter()
    plain = report(0)
    del plain.observedMetrics["quadweir_input"]
    plain.numInputRows = 12
    meter.add([plain])
    assert meter.metrics()["statements"] == 12


def test_a_batch_is_split_into_where_its_time_went() -> None:
    meter = Meter()
    meter.add([report(0)])
    found = meter.metrics()
    assert [found[f"{part}_ms"] for part in ("batch", "kernel", "state", "spark")] == [
        300, 20, 30, 250,
    ]  # fmt: skip
    assert (found["state_rows"], found["state_bytes"], found["held"]) == (6, 5000, 7)
    assert found["lag_ms"] >= round(time.time() * 1000) - 1000 - 60_000


def test_rates_are_of_the_last_seconds() -> None:
    now = [0.0]
    meter = Meter(clock=lambda: now[0])
    meter.add([])
    now[0] = 5.0
    meter.add([report(0)])
    found = meter.metrics()
    assert (found["input_rate"], found["answer_rate"]) == (2.0, 0.8)
    now[0] = 50.0
    meter.add([report(1)])
    assert meter.metrics()["input_rate"] < 1


def test_before_the_first_batch_and_after_the_end_no_watermark_is_told() -> None:
    meter = Meter()
    assert meter.metrics()["lag_ms"] is None
    meter.add([report(0, through=2**60)])
    assert meter.metrics()["lag_ms"] is None


def test_prometheus_gets_the_numbers_on_this_machine_alone() -> None:
    meter = Meter()
    meter.add([report(0)])
    server = MetricsServer(lambda: {"doors": meter.metrics()}, 0)
    try:
        assert server._server.server_address[0] == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        assert 'quadweir_answers_total{query="doors"} 4' in lines
        assert 'quadweir_batch_state_seconds{query="doors"} 0.03' in lines
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/etc")
        with pytest.raises(UsageError, match=f"port {server.port}"):
            MetricsServer(dict, server.port)
    finally:
        server.close()
