"""One element whose time is far ahead neither ends a query nor makes later elements late (S4)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brokers import until
from quadweir import Engine
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.sources.declare import (
    Burst,
    DeclaredSource,
    FolderSource,
    Format,
    ReplaySource,
    StreamDeclaration,
)
from quadweir.sources.streamfiles import read_elements
from quadweir.testing import Answer, Oracle, diff_answers
from spark_queries import lines_of, written

pytestmark = pytest.mark.spark

QUERY = """SELECT ?x ?y FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT0.02S STEP PT0.01S]
{ WINDOW <urn:w> { ?x <urn:p> ?y } }"""
YEAR_2200 = 7_258_118_400_000
RIGHT = [1000, 1012, 1025, 1031, 1044, 1059]
TIMES = [*RIGHT[:2], YEAR_2200, *RIGHT[2:]]
AT_ONCE = Burst(100, timedelta(hours=1))
BOTH = pytest.mark.parametrize("shards_in", ["driver", "executors"])


def line(time: int) -> str:
    return f"{time} <urn:a{time % 3}> <urn:p> <urn:b> .\n"


def run(
    spark: SparkSession,
    folder: Path,
    source: DeclaredSource,
    shards_in: str,
    right: list[Answer],
) -> dict[str, int]:
    """Run until the right answers are there, or as many others; gives the metrics."""
    engine = Engine(spark)
    engine.declare(StreamDeclaration(iri="urn:s", source=source, format=Format.TIMED_LINES))
    query = engine.query(QUERY)
    query.start(
        FileSink(folder / "out", LineFormat.ANSWERS_JSONL),
        checkpoint=folder / "checkpoint",
        dead_letters=FileSink(folder / "dead", LineFormat.JSONL),
        shards_in=shards_in,
    )

    def is_done() -> bool:
        # Answers are there before Spark says how its batch went.
        return query.metrics()["statements"] > 0 and len(written(folder / "out")) >= len(right)

    try:
        until(lambda: is_done() or not query.streaming.isActive, "answers")
        found = query.metrics()
    finally:
        query.stop()
    assert right
    assert diff_answers(right, written(folder / "out")) == ""
    return found


def expected(folder: Path, times: list[int]) -> list[Answer]:
    """What the oracle answers over these times, as far as the watermark comes."""
    file = folder / "right.stream"
    file.write_text("".join(map(line, times)))
    answers = Oracle(QUERY).answers(read_elements(file, stream="urn:s"))
    return [each for each in answers if each.t < times[-1]]


@BOTH
def test_it_is_a_dead_letter_of_a_stream_that_goes_on(
    spark: SparkSession, tmp_path: Path, shards_in: str
) -> None:
    (tmp_path / "in").mkdir()
    for number, time in enumerate(TIMES):
        (tmp_path / "in" / f"{number}.stream").write_text(line(time))
    source = FolderSource(path=tmp_path / "in", watch=True)
    found = run(spark, tmp_path, source, shards_in, expected(tmp_path, RIGHT))
    assert (found["statements"], found["dead_letters"]) == (len(RIGHT), 1)
    assert (found["ahead"], found["late"]) == (1, 0)
    (letter,) = lines_of(tmp_path / "dead")
    assert letter["reason"].startswith(f"ahead: it is of {YEAR_2200}, and that is ")


@BOTH
def test_a_recording_is_judged_by_its_neighbours(
    spark: SparkSession, tmp_path: Path, shards_in: str
) -> None:
    file = tmp_path / "r.stream"
    file.write_text("".join(map(line, TIMES)))
    source = ReplaySource(path=file, pace=AT_ONCE)
    found = run(spark, tmp_path, source, shards_in, expected(tmp_path, RIGHT))
    assert (found["ahead"], found["dead_letters"], found["late"]) == (1, 1, 0)


def test_a_recording_of_the_future_is_no_mistake(spark: SparkSession, tmp_path: Path) -> None:
    times = [YEAR_2200 + each for each in range(0, 100, 7)]
    file = tmp_path / "r.stream"
    file.write_text("".join(map(line, times)))
    source = ReplaySource(path=file, pace=AT_ONCE)
    found = run(spark, tmp_path, source, "driver", expected(tmp_path, times))
    assert (found["ahead"], found["dead_letters"], found["late"]) == (0, 0, 0)
