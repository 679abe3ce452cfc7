"""A driver of its own for the tests that kill and tamper: a query over a watched folder, to its end.

    python killed_query.py FOLDER driver|executors

Answers QUERY over the stream files in FOLDER/in, a few in each batch, into FOLDER/out, with its
checkpoint in FOLDER/checkpoint, until all of them have been read.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from quadweir.runtime.spark.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import wait
from quadweir.sources.streamfiles import Element
from spark_queries import engine_over
from streaming import quads

QUERY = """SELECT ?z (COUNT(*) AS ?n) {
  STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }
GROUP BY ?z"""


def make_feed(count: int) -> list[Element]:
    """Elements of both streams in their order."""
    dice = random.Random(11)
    found, now = [], 1000
    for position in range(count):
        now += dice.randrange(4)
        if dice.random() < 0.6:
            text, name = f"a{dice.randrange(4)} p b{dice.randrange(3)}", "urn:s"
        else:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, now, position, quads(text)))
    return found


def answer(spark: SparkSession, folder: Path, shards_in: str) -> None:
    """Answer what is in the folder now, and end."""
    query = engine_over(spark, folder / "in").query(QUERY)
    query.start(
        FileSink(folder / "out", LineFormat.ANSWERS_JSONL),
        checkpoint=folder / "checkpoint",
        available_now=True,
        shards_in=shards_in,
    )
    try:
        wait(query.streaming)
    finally:
        query.stop()


def main(folder: Path, shards_in: str) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="killed-query", config=config)
    answer(spark, folder, shards_in)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
