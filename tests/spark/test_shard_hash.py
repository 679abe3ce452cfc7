"""Terms of static data go to the shards that Spark sends the terms of streams to."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from quadweir.kernel.xxhash import shard_numbers

pytestmark = pytest.mark.spark


def test_terms_are_sharded_as_spark_shards_them(spark) -> None:
    terms = [f"<urn:{'é' * (n % 3)}{'x' * n}>" for n in range(80)]
    frame = spark.createDataFrame([(each,) for each in terms], "term string")
    found = frame.select("term", F.pmod(F.xxhash64("term"), F.lit(5)).cast("int")).collect()
    assert shard_numbers(pa.array(terms), 5).tolist() == [dict(found)[each] for each in terms]
