"""Pieces of the report on Spark: answers checked, throughput measured, peers compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir.bench import method, peer_comparison, speed, workloads
from quadweir.bench.suite import Workbench

pytestmark = pytest.mark.spark

EFFORT = replace(method.QUICK, checked=250, batches=2, triples=4_000, counted=1, peers=1_500)


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Workbench:
    return Workbench(tmp_path, spark=spark)


def work(pieces, name: str, bench: Workbench):  # type: ignore[no-untyped-def]
    (piece,) = [each for each in pieces if each.name == name]
    return piece.work(bench)


def test_answers_are_checked_in_one_and_in_several_batches(bench: Workbench) -> None:
    found = work(method.correctness(EFFORT), "LSBench Q8", bench)
    assert [row["way"] for row in found] == [
        "kernel, 10 at a time",
        "Spark, all at once",
        "Spark, 2 batches",
    ]
    for row in found:
        assert row["size"] == row["other_size"] > 0
        assert row["eager"] == row["eager_back"] == row["periodic"] == row["periodic_back"] == 0.0


def test_a_query_is_measured_on_the_live_path(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = replace(workloads.LARGE, users=60, days=7)
    monkeypatch.setattr(workloads, "LARGE", small)
    found = work(speed.performance(EFFORT), "LSBench Q10", bench)
    assert found["answers"] > 0 and found["memory_mib"] > 0 and found["runs"] == 1
    assert found["least"] <= found["triples_per_second"] <= found["most"]
    assert found["kernel_ms"] <= found["batch_ms"]
    assert "addBatch" in found["split_ms"]


def test_peers_answer_the_same(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workloads, "LARGE", replace(workloads.SMALL, first_user=900))
    found = work(peer_comparison.peers(EFFORT), "Q5", bench)
    assert [(row["peer"], row["dialect"]) for row in found] == [
        ("Quadweir", "cqels"),
        ("Spark SQL by hand", "cqels"),
        ("Quadweir", "csparql"),
        ("re-evaluation with pyoxigraph", "csparql"),
    ]
    for row in found:
        assert row["size"] == row["other_size"] > 0
        assert row["eager"] == row["eager_back"] == 0.0
        assert row["seconds"] > 0
