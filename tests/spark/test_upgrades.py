"""A live query takes over the checkpoint of another text of it, on both hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quadweir.errors import StateError
from quadweir.runtime.checkpoint import Fingerprint
from quadweir.sinks.files import FileSink
from quadweir.sinks.lineformat import LineFormat
from quadweir.testing import Oracle, diff_answers
from spark_queries import LAST, engine_over, write_batches, written
from stopped_checkpoints import STATIC, TWO_STAGES, make_feed

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

HEAD = TWO_STAGES + " HAVING (COUNT(*) > 1)"
BY_X = TWO_STAGES.replace("SELECT ?z", "SELECT ?x").replace("BY ?z", "BY ?x")
LONGER = TWO_STAGES.replace("60ms", "90ms")
CUT = 60


class Query:
    """A query whose text changes from run to run."""

    def __init__(self, spark: SparkSession, folder: Path, shards_in: str) -> None:
        self.spark, self.folder, self._shards_in = spark, folder, shards_in
        self.checkpoint = folder / "checkpoint"
        self._feed, self._next = make_feed(), 0
        folder.mkdir()
        (folder / "static.nt").write_text("".join(f"{quad}\n" for quad in STATIC))

    def go_on(self, text: str, elements: int | None, **options: bool) -> Path:
        """Answer the next elements, or all that are left; return where the answers are."""
        count = len(self._feed) if elements is None else elements
        now, self._feed = self._feed[:count], self._feed[count:]
        more = [LAST] if elements is None else []
        self._next = write_batches(self.folder / "in", [*now, *more], 10, first=self._next)
        engine = engine_over(self.spark, self.folder / "in")
        query = engine.query(text, static=[self.folder / "static.nt"])
        out = self.folder / f"out-{len(self._feed)}"
        query.start(
            FileSink(out, LineFormat.ANSWERS_JSONL),
            checkpoint=self.checkpoint,
            available_now=True,
            shards_in=self._shards_in,
            **options,
        )
        query.awaitTermination()
        assert query.exception() is None
        return out


@pytest.mark.parametrize("shards_in", ["driver", "executors"])
@pytest.mark.parametrize("text", [HEAD, BY_X])
def test_another_head_continues_over_the_same_windows(
    spark: SparkSession, tmp_path: Path, text: str, shards_in: str
) -> None:
    """Also where the groups then lie in other shards."""
    query = Query(spark, tmp_path / "run", shards_in)
    query.go_on(TWO_STAGES, CUT)
    with pytest.raises(StateError, match="was made for something else"):
        query.go_on(text, 0)
    out = query.go_on(text, None, upgrade=True)
    # The streams take turns: up to here, both are known.
    through = make_feed()[CUT - 2].event_time - 1
    expected = [
        each for each in Oracle(text, static=STATIC).answers(make_feed()) if each.t > through
    ]
    assert expected
    assert diff_answers(expected, written(out)) == ""
    kept = query.checkpoint.with_name("checkpoint.before")
    known, now = Fingerprint.left_in(kept), Fingerprint.left_in(query.checkpoint)
    assert known is not None
    assert now is not None
    assert known.algebra != now.algebra


def test_what_would_be_lost_is_said_and_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path / "run", "driver")
    query.go_on(TWO_STAGES, CUT)
    before = {each: each.read_bytes() for each in query.checkpoint.rglob("*") if each.is_file()}
    with pytest.raises(StateError) as caught:
        query.go_on(LONGER, 0, upgrade=True)
    assert "begins with the last 0.06 s; it is complete after 0.09 s" in str(caught.value)
    assert "--allow-loss" in str(caught.value)
    after = {each: each.read_bytes() for each in query.checkpoint.rglob("*") if each.is_file()}
    assert after == before
    query.go_on(LONGER, None, upgrade=True, allow_loss=True)


def test_another_stream_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, tmp_path / "run", "driver")
    query.go_on(TWO_STAGES, CUT)
    with pytest.raises(StateError, match="it reads <urn:s>, <urn:t>, and the new query <urn:s>"):
        query.go_on("SELECT ?x { STREAM <urn:s> [RANGE 60ms] { ?x <urn:p> ?y } }", 0, upgrade=True)
