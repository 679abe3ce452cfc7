"""A driver of its own for the test of executors that come and go: `python elastic_query.py FOLDER MASTER`.

Answers a join over JSON statements in FOLDER/in into FOLDER/out, and writes what its metrics say after each
batch to FOLDER/seen, until FOLDER/stop is there.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from brokers import until
from cluster_query import QUERY, executors
from quadweir.runtime.spark.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from spark_queries import engine_over

SHARDS = 6
SHOWN = (
    "batches",
    "batch_ms",
    "executors",
    "executor_shards",
    "shard_moves",
    "executors_lost",
    "recovery_ms",
)


def main(folder: Path, master: str, settings: dict[str, str]) -> None:
    memory = {"spark.driver.memory": "600m", "spark.executor.memory": "600m"}
    spark = build(
        master=master, shards=SHARDS, app_name="elastic-query", config={**memory, **settings}
    )
    until(lambda: executors(spark) == 1, "an executor")
    query = engine_over(spark, folder / "in").query(QUERY, static=[folder / "static.nt"])
    sink = FileSink(folder / "out", LineFormat.ANSWERS_JSONL)
    query.start(sink, checkpoint=folder / "checkpoint")
    last: dict[str, Any] = {}
    with (folder / "seen").open("w", encoding="utf-8") as seen:
        while not (folder / "stop").exists():
            assert query.isActive, query.exception()
            found = query.metrics()
            now = {name: found.get(name) for name in SHOWN}
            if now != last:
                seen.write(json.dumps(now | {"at": time.time()}) + "\n")
                seen.flush()
                last = now
            query.awaitTermination(1)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
