"""A driver of its own for the crash tests of queries: `python crashing_query.py OUT FOLDER`.

Answers a join over JSON statements in FOLDER, a file for each batch, into OUT/answers, and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import StreamingQueryException

from quadweir import Engine, rows
from quadweir.runtime.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.lines import LineFormat
from quadweir.sinks.start import wait
from spark_queries import provide

QUERY = """SELECT ?x ?y ?z {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z } }"""


def main(out: Path, folder: Path) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="crashing-query", config=config)
    engine = Engine(spark)
    frame = spark.readStream.schema(rows.STATEMENT_SCHEMA).option("maxFilesPerTrigger", 1)
    provide(engine, frame.json(str(folder)), ("urn:s", "urn:t"))
    query = engine.query(QUERY)
    sink = FileSink(out / "answers", LineFormat.ANSWERS_JSONL)
    query.start(sink, checkpoint=out / "checkpoint", available_now=True)
    try:
        wait(query.streaming)
    except StreamingQueryException as error:
        # What Spark's Python error leaves out.
        cause = getattr(error, "_origin", None)
        while cause is not None:
            print(f"cause: {cause.toString()}", file=sys.stderr)
            cause = cause.getCause()
        raise
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
