"""Sets of terms that tasks look terms up in, and that change while a plan stays the same."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from quadweir.runtime.spark.sharedsets import SharedSet

pytestmark = pytest.mark.spark


def test_a_plan_sees_the_set_as_it_is_when_it_runs(spark) -> None:
    terms = [f'<urn:{number}> "ü"' for number in range(6)]
    # Not from rows in the driver: Spark filters those while it plans.
    number = F.col("id").cast("string")
    frame = spark.range(6).select(F.concat(F.lit("<urn:"), number, F.lit('> "ü"')).alias("x"))
    held = SharedSet(spark, "quadweir.test.sets")
    found = frame.where(held.has(F.col("x")))

    def seen() -> list[str]:
        return sorted(row.x for row in found.collect())

    assert seen() == []
    held.add(terms[:3])
    held.add(terms[1:2])
    assert seen() == terms[:3]
    held.remove(terms[:2])
    assert seen() == terms[1:3], "a term that was added twice stays until it is removed twice"
    held.remove(terms[1:3])
    assert seen() == []
    held.close()
