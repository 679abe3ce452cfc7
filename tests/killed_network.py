"""A driver of its own for the test that kills a network while queries are registered.

    python killed_network.py FOLDER

Runs a network over the stream files in FOLDER/in, with its checkpoint in FOLDER/checkpoint. After the
first file it registers queries, some in each call, and notes in FOLDER/calls each call that returned.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from quadweir.runtime.network.network import Network
from quadweir.runtime.spark.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sources.streamfiles import Element
from spark_queries import engine_over
from streaming import quads

STREAMS = ("urn:s", "urn:t")
CALLS = 10
IN_CALL = 100
TEXT = """SELECT ?x ?z { STREAM <urn:s> [RANGE 20ms] { ?x <urn:p> ?y }
  STREAM <urn:t> [RANGE 30ms] { ?y <urn:q> ?z } }"""


def text_of(number: int) -> str:
    """One of a thousand queries, which differ in a constant and in a window length."""
    ranged = TEXT.replace("20ms", f"{5 + number % 40}ms")
    return ranged.replace("SELECT ?x ?z", "SELECT ?x").replace("?z", f"<urn:c{number % 5}>")


def make_feed(count: int) -> list[Element]:
    """Elements of both streams in their order."""
    dice = random.Random(11)
    found, now = [], 1000
    for position in range(count):
        now += dice.randrange(4)
        text, name = f"a{dice.randrange(4)} p b{dice.randrange(3)}", "urn:s"
        if dice.random() < 0.5:
            text, name = f"b{dice.randrange(3)} q c{dice.randrange(3)}", "urn:t"
        found.append(Element(name, now, position, quads(text)))
    return found


def open_network(spark: SparkSession, folder: Path) -> Network:
    return engine_over(spark, folder / "in").network(shards=2)


def main(folder: Path) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="killed-network", config=config)
    network = open_network(spark, folder)
    network.register("first", TEXT)
    sink = FileSink(folder / "out", LineFormat.ANSWERS_JSONL)
    network.start(sink, checkpoint=folder / "checkpoint")
    network.processAllAvailable()
    with (folder / "calls").open("a") as calls:
        for call in range(CALLS):
            first = call * IN_CALL
            texts = {f"q{n}": text_of(n) for n in range(first, first + IN_CALL)}
            assert not network.register_all(texts).refused
            print(call, file=calls, flush=True)
            os.fsync(calls.fileno())
    network.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
