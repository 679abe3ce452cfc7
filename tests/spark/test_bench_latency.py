"""The latency benchmark measures every record once, in both modes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from brokers import KafkaBroker
from quadweir.bench.latency import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]


def test_both_ways_see_every_record(spark: SparkSession, kafka: KafkaBroker) -> None:
    # One partition: the session of the tests has two slots, and the counting needs one.
    result = run(spark, kafka.address, rate=40, seconds=1, warm_up=1, partitions=1)
    for found in result["latency"].values():
        assert found["records"] == 40
        assert 0 < found["median_ms"] <= found["p99_ms"] <= found["most_ms"]
    assert set(result["latency"]) == {"micro-batch", "real-time"}
