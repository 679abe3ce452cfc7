"""Engine: the Python entry point; register streams, mappings and queries, start and stop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Engine:
    """One Spark session and what runs on it."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        from quadweir.runtime.session import adopt, build

        self.spark = adopt(spark) if spark is not None else build()
