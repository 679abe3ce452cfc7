"""A query goes on with other shards, in executors and in local worker processes, and is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from command_line import main
from quadweir.errors import StateError
from quadweir.runtime.portable.checkpoints import move, reshard
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, engine_over, write_batches, written
from stopped_checkpoints import JOIN, STATIC, TWO_STAGES, make_feed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200)]


class Query:
    """A query that is started again and again over what has come since."""

    def __init__(self, spark: SparkSession, folder: Path, text: str) -> None:
        self.spark, self.folder, self.text = spark, folder, text
        self.checkpoint = folder / "checkpoint"
        self._feed, self._next = make_feed(), 0
        folder.mkdir()
        (folder / "static.nt").write_text("".join(f"{quad}\n" for quad in STATIC))

    def go_on(self, elements: int | None, *, shards: int, shards_in: str | None = None) -> str:
        """Answer the next elements, or all that are left; return where the shards were."""
        count = len(self._feed) if elements is None else elements
        now, self._feed = self._feed[:count], self._feed[count:]
        more = [LAST] if elements is None else []
        self._next = write_batches(self.folder / "in", [*now, *more], 10, first=self._next)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(shards))
        query = engine_over(self.spark, self.folder / "in").query(
            self.text, static=[self.folder / "static.nt"]
        )
        sink = FileSink(self.folder / "out", LineFormat.ANSWERS_JSONL)
        query.start(sink, checkpoint=self.checkpoint, available_now=True, shards_in=shards_in)
        query.awaitTermination()
        assert query.exception() is None
        return query._host.name

    def check(self) -> None:
        expected = Oracle(self.text, static=STATIC).answers(make_feed())
        assert diff_answers(expected, written(self.folder / "out")) == ""


@pytest.fixture(autouse=True)
def partitions(spark: SparkSession):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


def test_shards_in_executors_are_2_then_5_then_3(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path / "run", TWO_STAGES)
    assert query.go_on(40, shards=2, shards_in="executors") == "executors"
    reshard(query.checkpoint, 5, spark=lambda: spark)
    assert query.go_on(30, shards=5) == "executors"
    reshard(query.checkpoint, 3, spark=lambda: spark)
    assert query.go_on(None, shards=3) == "executors"
    query.check()


@pytest.mark.parametrize("text", [JOIN, TWO_STAGES])
def test_shards_go_from_the_driver_to_executors_and_back(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    query = Query(spark, tmp_path / "run", text)
    assert query.go_on(40, shards=2) == "driver"
    move(query.checkpoint, "executors", spark=lambda: spark)
    assert query.go_on(30, shards=2) == "executors"
    move(query.checkpoint, "driver", spark=lambda: spark)
    assert query.go_on(None, shards=2) == "driver"
    query.check()


def test_state_that_spark_cannot_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path / "run", JOIN)
    query.go_on(40, shards=2, shards_in="executors")
    for each in (query.checkpoint / "state").glob("0/1/*.changelog"):
        each.write_bytes(b"")
    for each in (query.checkpoint / "state").glob("0/1/*.zip"):
        each.unlink()
    with pytest.raises(StateError, match="state"):
        move(query.checkpoint, "driver", spark=lambda: spark)
    assert not list(query.folder.glob("*.before"))


def test_the_command_divides_a_checkpoint(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query = Query(spark, tmp_path / "run", JOIN)
    query.go_on(40, shards=2, shards_in="driver")
    main(["checkpoint", "reshard", str(query.checkpoint), "--shards", "3"])
    assert "--shards 3 --shards-in driver" in capsys.readouterr().out
    main(["checkpoint", "info", str(query.checkpoint), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["shards"], found["host"]) == (3, "driver")
    query.go_on(None, shards=3)
    query.check()
    with pytest.raises(SystemExit):
        main(["checkpoint", "reshard", str(tmp_path), "--shards", "3"])
    said = capsys.readouterr().err
    assert "is no checkpoint of a Quadweir query" in said
    assert "hint:" in said
