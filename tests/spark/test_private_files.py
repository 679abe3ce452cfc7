"""What Spark's Java and its Python processes write, only the owner can read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from quadweir.engine import Engine
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sources.declare import Envelope, FolderSource, Format, StreamDeclaration

QUERY = "SELECT ?a { STREAM <urn:s> [RANGE 1s] { ?a <urn:p> ?b } }"


def modes(folder: Path) -> set[int]:
    return {each.lstat().st_mode & 0o777 for each in (folder, *folder.rglob("*"))}


def test_java_and_python_workers_have_the_umask(spark: SparkSession) -> None:
    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            former = os.umask(0o077)
            os.umask(former)
            yield pa.RecordBatch.from_arrays([pa.array([former] * len(batch))], names=["umask"])

    assert spark.range(1).mapInArrow(own, "umask long").collect()[0][0] == 0o077
    context: Any = spark.sparkContext
    assert context._jsc.hadoopConfiguration().get("fs.permissions.umask-mode") == "077"


def test_files_that_spark_writes_are_private(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.csv(str(tmp_path / "out"))
    assert modes(tmp_path / "out") == {0o600, 0o700}


def test_state_and_answers_of_a_live_query_are_private(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "1.stream").write_text(
        "1000 <urn:a> <urn:p> <urn:b> .\n9000 <urn:c> <urn:p> <urn:d> .\n"
    )
    with Engine(spark) as engine:
        engine.declare(
            StreamDeclaration(
                iri="urn:s",
                source=FolderSource(path=source, watch=True),
                format=Format.TIMED_LINES,
                time=Envelope(),
            )
        )
        for place in ("driver", "executors"):
            out, checkpoint = tmp_path / f"{place}-out", tmp_path / f"{place}-state"
            query = engine.query(QUERY)
            sink = FileSink(out, LineFormat.ANSWERS_JSONL)
            query.start(sink, checkpoint=checkpoint, available_now=True, shards_in=place)
            query.awaitTermination()
            assert any(out.glob("*.jsonl"))
            assert modes(out) | modes(checkpoint) == {0o600, 0o700}
