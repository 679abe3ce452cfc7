"""A driver of its own for the cluster test: `python cluster_query.py FOLDER MASTER`.

Answers a join over JSON statements in FOLDER/in and FOLDER/static.nt into FOLDER/out, and ends. How
many executors there were after the first batch and at the end is written to FOLDER/executors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from quadweir.runtime.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lines import LineFormat
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
    most = 0
    query.start(sink, checkpoint=folder / "checkpoint", available_now=True)
    while query.isActive:
        most = max(most, executors(spark))
        query.awaitTermination(1)
    wait(query.streaming)
    (folder / "executors").write_text(f"{most} {executors(spark)}")
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
