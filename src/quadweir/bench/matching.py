"""Matching patterns and handing matches to shards, compared with a hand-written filter and
shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import drain
from quadweir.bench.measure import in_turns, take_turns
from quadweir.bench.socialstream import STREAM, SocialNetworkSize, write_streams

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_CREATOR: Final = "<http://rdfs.org/sioc/ns#creator_of>"
_HASHTAG: Final = "<http://www.ins.cwi.nl/sib/vocabulary/hashtag>"
_TAGGED: Final = f"""SELECT ?user ?post ?tag {{
  STREAM <http://www.ins.cwi.nl/sib/stream/posts> [RANGE 15s] {{
  ?user {_CREATOR} ?post . ?post {_HASHTAG} ?tag }} }}"""
_LEAST: Final = 0.8


def compare_matching(
    spark: SparkSession, folder: Path, *, triples: int, rounds: int
) -> Iterator[Measurement]:
    """Match `triples` triples of posts in each way, in turns, and compare.

    In the hand-written job, rows end in Spark partitions. With local worker processes they end in
    the processes of the shards, split by shard. In executors they are packed and shuffled; the
    shards there need them in Python, so both sides are also measured with that step.
    """
    from quadweir import rows
    from quadweir.engine import Engine
    from quadweir.runtime.host.processes import ProcessSink
    from quadweir.runtime.spark.arrowbatches import counting_rows
    from quadweir.runtime.wire.pack import BLOB_SCHEMA, SHARD_KEY, shard_keys
    from quadweir.sinks.gate import Gate

    count = write_streams(SocialNetworkSize(), ["posts"], folder, batches=1, triples=triples)
    statements = spark.read.schema(rows.STATEMENT_SCHEMA).parquet(str(folder / "posts"))
    statements.count()
    engine = Engine(spark)
    engine.provide(f"{STREAM}posts", statements, canonical=True)
    registered = engine.query(_TAGGED)
    shards = registered.shards
    filtered = _by_hand(statements, shards)
    # A running query has its own settings.
    own = spark.newSession()
    matched = own.read.schema(rows.STATEMENT_SCHEMA).parquet(str(folder / "posts"))
    job = registered.spec.job(matched, shards=shards)
    packer = job.packer(shard_keys(spark, shards, shards), "")
    shuffled = job.rows(shards).mapInArrow(packer, BLOB_SCHEMA).repartition(shards, SHARD_KEY)
    workers = ProcessSink([job], (), checkpoint=folder / "checkpoint", gate=Gate())
    workers.prepare()
    what = f"filter and shuffle of {count:,}"
    ways: dict[str, Callable[[], object]] = {
        f"{what}, by hand": partial(drain, filtered),
        f"{what}, quadweir": partial(workers.pack, workers.rows),
        f"{what}, quadweir in executors": partial(drain, shuffled),
        f"{what}, by hand, and all in Python": partial(
            drain, filtered.mapInArrow(_forget, BLOB_SCHEMA)
        ),
        f"{what}, quadweir in executors, and all in Python": partial(
            drain, shuffled.mapInArrow(_open_blobs, BLOB_SCHEMA)
        ),
    }
    try:
        with counting_rows(own):
            timings = take_turns(ways, rounds=rounds, warm_up=4)
    finally:
        workers.close()
    for name, timing in timings.items():
        yield Measurement(name, count / timing.median, "triples/s")
    hand, ours, executors, hand_python, executors_python = ways
    for name, base, least in (
        (ours, hand, _LEAST),
        (executors, hand, _LEAST),
        (ours, hand_python, None),
        (executors_python, hand_python, None),
    ):
        one, other = timings[base], timings[name]
        yield Measurement(
            f"{name} / {base.removeprefix(f'{what}, ')}",
            in_turns(one, other),
            "x",
            at_least=least,
            note=f"by the best turn of each {one.best / other.best:.2f}",
        )


def _by_hand(statements: DataFrame, shards: int) -> DataFrame:
    from pyspark.sql import functions as F

    from quadweir import rows

    post = F.when(F.col(rows.PREDICATE) == _CREATOR, F.col(rows.OBJECT)).otherwise(
        F.col(rows.SUBJECT)
    )
    is_wanted = F.col(rows.PREDICATE).isin(_CREATOR, _HASHTAG)
    return (
        statements.where((F.col(rows.STREAM) == f"{STREAM}posts") & is_wanted)
        .select(
            rows.EVENT_TIME,
            rows.POSITION,
            rows.SUBJECT,
            rows.PREDICATE,
            rows.OBJECT,
            post.alias("post"),
        )
        .repartition(shards, "post")
    )


def _forget(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    return iter(())


def _open_blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read all matches of all blobs, and drop them."""
    import pyarrow as pa

    from quadweir.runtime.wire.pack import BLOB

    for batch in batches:
        for blob in batch.column(BLOB).drop_null():
            pa.ipc.open_stream(blob.as_buffer()).read_all()
    return iter(())
