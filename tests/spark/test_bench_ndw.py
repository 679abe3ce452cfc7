"""The evaluation of stream joins, small: what Spark joins is what the model counts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from brokers import KafkaBroker
from quadweir.bench.ndw import model, runs
from quadweir.bench.ndw.feeds import FileFeed, LiveFiles, LiveKafka
from quadweir.bench.ndw.publisher import Workload, made_up, play
from quadweir.bench.ndw.windows import SAFE, TUMBLING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_windows_give_what_the_model_counts(spark: SparkSession, tmp_path: Path) -> None:
    records = play(Workload(seconds=6, lanes=4))
    recording = made_up(minutes=6)
    wanted = np.sort(runs.bounded_join(spark, recording, records))
    assert len(wanted) == model.bounded(records)
    feed = FileFeed(tmp_path)
    assert feed.write(recording, records, every_ms=3500) == 2
    tumbling = runs.Completeness.of(runs.windowed_join(spark, feed, TUMBLING), wanted)
    assert (tumbling.generated, tumbling.doubled) == (model.tumbling(records), 0)
    ours = runs.throughput(spark, feed, SAFE, warm_batches=1)
    theirs = runs.throughput(spark, feed, runs.SPARK_JOIN, warm_batches=1)
    assert ours.results == theirs.results == len(wanted)
    assert ours.digest == theirs.digest != 0
    assert (
        ours.records == theirs.records == int((records.sent_ms >= records.sent_ms[0] + 3500).sum())
    )


@pytest.mark.kafka
@pytest.mark.parametrize("by_kafka", [False, True])
def test_live_runs_find_every_pair(
    spark: SparkSession, kafka: KafkaBroker, tmp_path: Path, by_kafka: bool
) -> None:
    feed = LiveKafka(spark, kafka.address) if by_kafka else LiveFiles(FileFeed(tmp_path))
    workload, name = Workload(seconds=1, lanes=2), SAFE if by_kafka else runs.PASS_THROUGH
    every = timedelta(milliseconds=200)
    went = runs.live(spark, feed, made_up(minutes=4), workload, name, every=every, warm_s=1)
    records = play(Workload(seconds=2, lanes=2))
    later = records.sent_ms >= records.sent_ms[0] + 1000
    if name == runs.PASS_THROUGH:
        assert len(went.latency_ms) == later.sum()
    else:
        first = model.bounded(play(Workload(seconds=1, lanes=2)))
        assert len(went.latency_ms) == model.bounded(records) - first
        assert went.held[-1][1] > 0
    assert (went.latency_ms > 0).all()
    assert went.samples[-1].java_mib > 0
    if isinstance(feed, LiveKafka):
        feed.close()
