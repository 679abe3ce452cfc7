from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir import Engine
from quadweir.errors import UsageError
from quadweir.runtime.session import LOCAL_CHECKPOINTS, adopt
from quadweir.sinks.files import FileSink
from quadweir.sinks.lines import LineFormat

pytestmark = pytest.mark.spark

STREAM = "http://example.org/stream"


def _declare(folder: Path, source: str) -> Path:
    toml = folder / "streams.toml"
    toml.write_text(f'[streams."{STREAM}"]\nformat = "timed-lines"\n{source}\n')
    return toml


def test_adopting_sets_what_was_left_open_and_says_so(spark: SparkSession) -> None:
    key = "spark.sql.session.timeZone"
    manager = "spark.sql.streaming.checkpointFileManagerClass"
    other = spark.newSession()
    # A session made by somebody else has neither in its SparkConf; this one has both.
    other.conf.set(key, "Europe/Madrid")
    report = adopt(other)
    assert other.conf.get(manager) == LOCAL_CHECKPOINTS
    assert any(key in note for note in report.notes)
    assert other.conf.get(key) == "Europe/Madrid"
    assert "kept your" in str(report)


def test_code_stays_in_methods_that_java_compiles(spark: SparkSession) -> None:
    key = "spark.sql.codegen.hugeMethodLimit"
    session = spark.newSession()
    assert session.conf.get(key) == "8000"
    session.conf.set(key, "65535")
    report = adopt(session)
    assert any(key in note for note in report.notes)
    assert session.conf.get(key) == "65535"


def test_adopting_twice_changes_nothing_more(spark: SparkSession) -> None:
    session = spark.newSession()
    adopt(session)
    assert str(adopt(session)) == "nothing to change"


def test_a_session_cannot_be_adopted_onto_another_master(spark: SparkSession) -> None:
    with pytest.raises(UsageError):
        Engine(spark, shards=3)


def test_files_come_back_as_statements(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.stream").write_text(
        "1000 <urn:s> <urn:p> <urn:o> .\n2026-01-01T00:00:00Z <urn:s> <urn:p> <urn:o2> .\nwrong\n"
    )
    engine = Engine(spark)
    assert engine.load_streams(
        _declare(tmp_path, 'source = { kind = "file", path = "a.stream" }')
    ) == (STREAM,)
    rows = engine.statements(STREAM).collect()
    assert [
        (row.stream, row.event_time, row.object) for row in sorted(rows, key=lambda r: r.event_time)
    ] == [
        (STREAM, 1000, "<urn:o>"),
        (STREAM, 1767225600000, "<urn:o2>"),
    ]
    with pytest.raises(UsageError, match="all there"):
        engine.write(STREAM, FileSink(tmp_path / "out"), checkpoint=tmp_path / "checkpoint")


def test_a_watched_folder_goes_to_files_with_its_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.stream").write_text("1000 <urn:s> <urn:p> <urn:o> .\nwrong\n")
    engine = Engine(spark)
    engine.load_streams(
        _declare(tmp_path, 'source = { kind = "folder", path = "in", watch = true }')
    )
    for _ in range(2):
        query = engine.write(
            STREAM,
            FileSink(tmp_path / "out", LineFormat.TIMED_LINES),
            checkpoint=tmp_path / "checkpoint",
            dead_letters=tmp_path / "letters",
            available_now=True,
        )
        assert query.awaitTermination(120)
        (folder / "b.stream").write_text("2000 <urn:s> <urn:p> <urn:o2> .\n")
    lines = sorted(
        line
        for path in (tmp_path / "out").glob("*.stream")
        for line in path.read_text().splitlines()
    )
    assert lines == ["1000 <urn:s> <urn:p> <urn:o> .", "2000 <urn:s> <urn:p> <urn:o2> ."]
    (letter,) = [
        json.loads(line)
        for path in (tmp_path / "letters").glob("*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert letter["place"].startswith("line 2")
    engine.stop()
    assert spark.range(1).count() == 1


def test_an_unknown_stream_is_named(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="no stream is declared as <urn:none>"):
        Engine(spark).statements("urn:none")
