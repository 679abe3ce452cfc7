"""Stream files as a data source of Spark's: bounded, as a stream, in every form and mode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from quadweir import STATEMENT_SCHEMA, Engine, EnvironmentProblem, register_formats
from quadweir.runtime.spark.session import build

pytestmark = pytest.mark.spark

LINES = """\
1000 <urn:ann> <urn:enters> "Hall"@EN .
soon <urn:bob> <urn:enters> "Hall"@en .
2000 <urn:bob> <urn:enters> "\\u0048all"@en <urn:g> .
"""
GOOD = [
    (1000, "<urn:ann>", '"Hall"@en', None),
    (2000, "<urn:bob>", '"Hall"@en', "<urn:g>"),
]


@pytest.fixture
def file(spark: SparkSession, tmp_path: Path) -> Path:
    register_formats(spark)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.stream").write_text(LINES)
    return tmp_path / "in" / "1.stream"


def reader(spark: SparkSession):
    return spark.read.format("quadweir-stream")


def test_modes_say_what_becomes_of_bad_lines(spark: SparkSession, file: Path) -> None:
    frame = reader(spark).load(str(file))
    found = frame.orderBy("event_time").collect()
    assert [row.reason for row in found] == ["not an event time: soon", None, None]
    assert [(r.event_time, r.subject, r.object, r.graph) for r in found[1:]] == GOOD
    assert found[1].stream == file.as_uri()
    dropped = (
        reader(spark).option("mode", "dropmalformed").option("stream", "urn:s").load(str(file))
    )
    assert dropped.columns == STATEMENT_SCHEMA.names
    assert {row.stream for row in dropped.collect()} == {"urn:s"}
    with pytest.raises(PySparkException, match="line 2: not an event time: soon"):
        reader(spark).option("mode", "FAILFAST").load(str(file)).collect()


def test_sql_and_a_query_begin_with_it(spark: SparkSession, file: Path) -> None:
    frame = reader(spark).option("mode", "DROPMALFORMED").load(f"file://{file.parent}")
    frame.createOrReplaceTempView("entered")
    (row,) = spark.sql(
        "SELECT count(*) AS n, max(timestamp_millis(event_time)) AS t FROM entered"
    ).collect()
    assert row.n == 2
    spark.catalog.dropTempView("entered")
    engine = Engine(spark)
    engine.stream("urn:s").dataframe(frame)
    query = engine.query("SELECT ?who { STREAM <urn:s> [NOW] { ?who <urn:enters> 'Hall'@en } }")
    assert sorted(row.who for row in query.to_dataframe().collect()) == ["urn:ann", "urn:bob"]


def test_a_folder_is_watched(spark: SparkSession, file: Path, tmp_path: Path) -> None:
    frame = spark.readStream.format("quadweir-stream").option("maxFilesPerTrigger", 1)
    live = frame.option("mode", "DROPMALFORMED").load(str(file.parent))
    (file.parent / "2.stream").write_text("3000 <urn:eve> <urn:enters> <urn:hall> .\n")
    seen: list[list[int]] = []
    writer = live.writeStream.foreachBatch(
        lambda frame, _: seen.append(sorted(row.event_time for row in frame.collect()))
    )
    query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert [each for each in seen if each] == [[1000, 2000], [3000]]


def test_forms_are_known_by_names_or_by_options(spark: SparkSession, file: Path) -> None:
    folder = file.parent.parent
    (folder / "a.trig").write_text(
        "@prefix prov: <http://www.w3.org/ns/prov#> .\n"
        "<urn:g> prov:generatedAtTime 5000 .\n<urn:g> { <urn:a> <urn:p> <urn:b> }\n"
    )
    snapshots = folder / "snapshots"
    snapshots.mkdir()
    (snapshots / "1.ttl").write_text("<urn:a> <urn:p> <urn:b> .\n")
    (snapshots / "2.ttl").write_text("<urn:a> <urn:p> <urn:c> .\n")
    graphs = reader(spark).load(str(folder / "a.trig")).collect()
    assert [(row.event_time, row.subject) for row in graphs] == [(5000, "<urn:a>")]
    files = reader(spark).option("step", "10 seconds").option("start", "1970-01-01T00:00:01Z")
    found = files.load(str(snapshots)).orderBy("event_time").collect()
    assert [(row.event_time, row.object) for row in found] == [
        (1000, "<urn:b>"),
        (11_000, "<urn:c>"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "jsonl"}, "quadweir-stream does not read jsonl"),
        ({"mode": "RELAXED"}, "'RELAXED' is not a valid LineMode"),
        ({"step": "soon"}, "not a duration: soon"),
    ],
)
def test_wrong_options_are_named(spark: SparkSession, file: Path, options, message: str) -> None:
    with pytest.raises(PySparkException, match=message):
        reader(spark).options(**options).load(str(file))


CONNECTED = """
import sys
from pyspark.sql import SparkSession
import quadweir

spark = SparkSession.builder.remote("local[1]").getOrCreate()
quadweir.register_formats(spark)
frame = spark.read.format("quadweir-stream").option("mode", "DROPMALFORMED").load(sys.argv[1])
print("read", frame.count())
try:
    quadweir.Engine(spark)
except quadweir.EnvironmentProblem as error:
    print(error)
spark.stop()
"""


def test_over_spark_connect_files_are_read_and_an_engine_is_refused(file: Path) -> None:
    pytest.importorskip("grpc", reason="needs pyspark[connect]")
    done = subprocess.run(
        [sys.executable, "-c", CONNECTED, str(file)], capture_output=True, text=True, timeout=500
    )
    assert "read 2\n" in done.stdout, done.stderr
    assert "this session is one of Spark Connect, over which the engine cannot run" in done.stdout
    assert "register_formats(spark)" in done.stdout


def test_an_engine_is_not_started_over_spark_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    with pytest.raises(EnvironmentProblem, match="SPARK_REMOTE asks for Spark Connect"):
        build()
