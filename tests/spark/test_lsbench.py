"""A network that Spark writes is, byte for byte, the one that a single process writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir.bench.lsbench.cluster import generate_with_spark
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.bench.lsbench.write import generate

pytestmark = pytest.mark.spark


def test_spark_writes_the_same_bytes(spark: SparkSession, tmp_path: Path) -> None:
    # More users than fit in one file; days on which some streams are empty.
    parameters = Parameters(users=1100, days=2, gps_events=20, lone_trackers=0, max_photos=1)
    assert generate(parameters, tmp_path / "one") == (
        generate_with_spark(spark, parameters, tmp_path / "many")
    )
    names = sorted(
        str(path.relative_to(tmp_path / "one")) for path in (tmp_path / "one").rglob("*")
    )
    assert len(names) > 15
    assert names == sorted(
        str(path.relative_to(tmp_path / "many")) for path in (tmp_path / "many").rglob("*")
    )
    for name in names:
        path = tmp_path / "one" / name
        if path.is_file():
            assert path.read_bytes() == (tmp_path / "many" / name).read_bytes(), name
