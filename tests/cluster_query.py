"""A driver of its own for the cluster test: `python cluster_query.py FOLDER MASTER`.

Waits for two executors, and answers a join over JSON statements in FOLDER/in and FOLDER/static.nt
into FOLDER/out: first what is there, then, once FOLDER/lost says that a worker was killed and Spark
has seen it, what has come since.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from brokers import until
from quadweir.runtime.spark.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import wait
from spark_queries import engine_over

QUERY = """SELECT ?x ?y ?z ?w {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z }
  ?z <urn:r> ?w }"""


def executors(spark: Any) -> int:
    """How many there are; Spark counts the driver too."""
    return spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1


def main(folder: Path, master: str) -> None:
    memory = {"spark.driver.memory": "600m", "spark.executor.memory": "600m"}
    spark = build(master=master, shards=2, app_name="cluster-query", config=memory)
    query = engine_over(spark, folder / "in").query(QUERY, static=[folder / "static.nt"])
    sink = FileSink(folder / "out", LineFormat.ANSWERS_JSONL)
    until(lambda: executors(spark) == 2, "two executors")
    query.start(sink, checkpoint=folder / "checkpoint", available_now=True)
    wait(query.streaming)
    until((folder / "lost").exists, "the kill of a worker")
    until(lambda: executors(spark) == 1, "Spark's notice of it")
    query.start(sink, checkpoint=folder / "checkpoint", available_now=True)
    wait(query.streaming)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
