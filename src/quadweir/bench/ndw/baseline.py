"""Plain Spark as a baseline: its stream-stream join with a time bound, and parsing without a
join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from quadweir import rows
from quadweir.bench.ndw.publisher import FLOW, SPEED, PublishedStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_KEYS: Final = ("internalId", "lat", "long", "timestamp")
_BODY: Final = (
    "internalId string, lat string, long string, timestamp string, number bigint, sent bigint"
)
_PREDICATE: Final = "<http://example.com/ontology/laneFlow>"


def spark_interval_join(frames: Mapping[str, DataFrame], distance_ms: int) -> DataFrame:
    """Join the two streams and make the quads that our mapping makes."""
    child, parent = (_parsed(frames[side.name], side) for side in (SPEED, FLOW))
    near = F.expr(
        f"parent_at >= child_at - INTERVAL {distance_ms} MILLISECONDS AND "
        f"parent_at <= child_at + INTERVAL {distance_ms} MILLISECONDS"
    )
    same = [F.col(f"child_{key}") == F.col(f"parent_{key}") for key in _KEYS]
    condition = near
    for each in same:
        condition = condition & each
    return (
        child.select(*[F.col(name).alias(f"child_{name}") for name in child.columns])
        .withWatermark("child_at", "0 seconds")
        .join(
            parent.select(
                *[F.col(name).alias(f"parent_{name}") for name in parent.columns]
            ).withWatermark("parent_at", "0 seconds"),
            condition,
        )
        .select(
            F.col("child_iri").alias(rows.SUBJECT),
            F.lit(_PREDICATE).alias(rows.PREDICATE),
            F.col("parent_iri").alias(rows.OBJECT),
        )
    )


def spark_parsing(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Parse the records of both streams, and make one quad of each: every join needs at least
    this.
    """
    child, parent = (
        _parsed(frames[side.name], side).select(
            F.col("iri").alias(rows.SUBJECT),
            F.lit(_PREDICATE).alias(rows.PREDICATE),
            F.concat_ws(" ", *_KEYS).alias(rows.OBJECT),
        )
        for side in (SPEED, FLOW)
    )
    return child.unionByName(parent)


def _parsed(frame: DataFrame, side: PublishedStream) -> DataFrame:
    body = frame.select(F.from_json(rows.VALUE, _BODY).alias("body")).select("body.*")
    iri = F.concat(
        F.lit(f"<http://example.com/{side.reading}/"), "number", F.lit("/"), "sent", F.lit(">")
    )
    return body.select(*_KEYS, iri.alias("iri"), F.timestamp_millis("sent").alias("at"))
