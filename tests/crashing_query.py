"""A driver of its own for the crash tests of queries.

    python crashing_query.py OUT live|rest driver|executors ADDRESS S T TO

Answers a join over the Kafka topics S and T, in small batches, into OUT/answers and into the topic
TO. `live` never ends, so that it cannot end before it is killed; `rest` ends with the topics.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from quadweir import Engine
from quadweir.commands.querystreams import Named, declare
from quadweir.runtime.spark.session import build
from quadweir.sinks.files import FileSink
from quadweir.sinks.kafka import KafkaSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.start import both, wait
from quadweir.sources.declare import KafkaSource

QUERY = """SELECT ?x ?z {
  STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } STREAM <urn:t> [RANGE 60ms] { ?y <urn:q> ?z } }"""
BATCH = 10


def main(
    out: Path, how: str, shards_in: str, address: str, topics: tuple[str, str], to: str
) -> None:
    config = {"spark.driver.memory": "600m"}
    spark = build(master="local[2]", shards=2, app_name="crashing-query", config=config)
    engine = Engine(spark)
    for iri, topic in zip(("urn:s", "urn:t"), topics, strict=True):
        named = Named(iri, f"kafka:{address}/{topic}")
        declared = declare(named, {}, live=True, delay=None, idle=None)
        assert isinstance(declared.source, KafkaSource)
        few = replace(declared.source, options={"maxOffsetsPerTrigger": str(BATCH)})
        engine.declare(replace(declared, source=few))
    query = engine.query(QUERY)
    sink = both(
        FileSink(out / "answers", LineFormat.ANSWERS_JSONL),
        KafkaSink(address, to, LineFormat.ANSWERS_JSONL, name="crashing", time="t"),
    )
    query.start(
        sink, checkpoint=out / "checkpoint", available_now=how == "rest", shards_in=shards_in
    )
    wait(query.streaming)
    spark.stop()


if __name__ == "__main__":
    _, folder, how, shards_in, address, s, t, to = sys.argv
    main(Path(folder), how, shards_in, address, (s, t), to)
