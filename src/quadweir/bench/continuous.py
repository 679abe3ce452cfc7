"""Continuous queries on Spark: how many triples a second, how soon, and beside what.

Throughput is measured on the live path with large batches: everything is there, Spark takes a batch
of it after the other, and the first batches, in which workers start and functions are loaded, do not
count. Every ratio is of two things measured in one run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench.kernel_pipeline import Figure
from quadweir.bench.live import WARM_BATCHES, Throughput, drain, measure_query
from quadweir.bench.measure import in_turns, machine, take_turns
from quadweir.bench.socialstream import STREAM, Network, write_streams

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


_WARM_ELEMENTS: Final = 20

SHAPES: Final[dict[str, tuple[str, ...]]] = {
    "q01": ("posts",),
    "q02": ("posts",),
    "q03": ("posts",),
    "q04": ("posts",),
    "q05": ("photo-likes", "photos"),
    "q06": ("post-likes", "posts"),
    "q10": ("posts",),
}
"""The LSBench queries that are measured, and the streams they read."""
_FAST: Final = ("q01", "q02", "q03")
_LEAST: Final = 300_000
_LEAST_FAST: Final = 500_000
_JOIN_HEAVY: Final = ("q04", "q06")
"""Of the first, half of the matches have to go to every shard; the second has one key throughout."""
_WITH_STATIC: Final = "q05"


@final
@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        batches: batches that count.
        triples: triples in a batch.
        users: persons in the static data.
        many_users: persons where static data is large.
        rounds: how often contenders take turns.
        seconds: how long latency is watched.
    """

    batches: int = 4
    triples: int = 1_000_000
    users: int = 1_000
    many_users: int = 1_000_000
    rounds: int = 24
    seconds: int = 20


QUICK: Final = Size(batches=2, triples=100_000, many_users=20_000, rounds=2, seconds=5)


def query_text(name: str) -> str:
    """The CQELS-QL text of an LSBench query."""
    folder = resources.files("quadweir.bench") / "queries" / "lsbench" / "cqels"
    return (folder / f"{name}.rq").read_text(encoding="utf-8")


# --- one query over files, batch by batch -------------------------------------------------------


def measure(
    spark: SparkSession,
    name: str,
    *,
    folder: Path,
    static: Sequence[Path],
    shards: int | None = None,
) -> Throughput:
    """Answer an LSBench query over the streams of a folder and see how fast that goes."""
    streams = {f"{STREAM}{each}": folder / each for each in SHAPES[name]}
    return measure_query(spark, query_text(name), streams, static=static, shards=shards)


# --- sections -----------------------------------------------------------------------------------


_TAGGED: Final = """PREFIX sioc: <http://rdfs.org/sioc/ns#>
PREFIX sib: <http://www.ins.cwi.nl/sib/vocabulary/>
SELECT ?user ?post ?tag { STREAM <http://www.ins.cwi.nl/sib/stream/posts> [RANGE 15s] {
  ?user sioc:creator_of ?post . ?post sib:hashtag ?tag } }"""


def matching(spark: SparkSession, size: Size, folder: Path) -> Iterator[Figure]:
    """Patterns matched and rows shuffled, beside the same by hand; then the way to Python besides."""
    # What a batch costs whatever its size weighs less in a large one, and is watched by `latency`.
    for times in (1, size.batches):
        yield from _matching(
            spark, replace(size, triples=times * size.triples), folder / str(times)
        )


def _matching(spark: SparkSession, size: Size, folder: Path) -> Iterator[Figure]:
    from pyspark.sql import functions as F

    from quadweir import rows
    from quadweir.engine import Engine
    from quadweir.runtime.exchange import BLOB_SCHEMA, SHARD_KEY, shard_keys
    from quadweir.runtime.handover import counting_rows, pack_matches

    count = write_streams(Network(), ["posts"], folder, batches=1, triples=size.triples)
    statements = spark.read.schema(rows.STATEMENT_SCHEMA).parquet(str(folder / "posts"))
    statements.count()
    engine = Engine(spark)
    engine.provide(f"{STREAM}posts", statements, canonical=True)
    registered = engine.query(_TAGGED)
    shards = registered.shards
    creator, hashtag = (
        f"<{name}>"
        for name in (
            "http://rdfs.org/sioc/ns#creator_of",
            "http://www.ins.cwi.nl/sib/vocabulary/hashtag",
        )
    )
    post = F.when(F.col(rows.PREDICATE) == creator, F.col(rows.OBJECT)).otherwise(
        F.col(rows.SUBJECT)
    )
    by_hand = (
        statements.where(
            (F.col(rows.STREAM) == f"{STREAM}posts") & F.col(rows.PREDICATE).isin(creator, hashtag)
        )
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
    # A running query has settings of its own.
    own = spark.newSession()
    matched = own.read.schema(rows.STATEMENT_SCHEMA).parquet(str(folder / "posts"))
    packed = pack_matches(matched, registered.plan, shard_keys(spark, shards, shards))
    ours = packed.repartition(shards, SHARD_KEY)
    steps = {
        f"filter and shuffle of {count:,}": (by_hand, ours),
        f"the same of {count:,}, and all in Python": (
            by_hand.mapInArrow(_forget, BLOB_SCHEMA),
            ours.mapInArrow(_open_blobs, BLOB_SCHEMA),
        ),
    }
    with counting_rows(own):
        timings = take_turns(
            {
                f"{step}, {name}": partial(drain, frame)
                for step, frames in steps.items()
                for name, frame in zip(("by hand", "quadweir"), frames, strict=True)
            },
            rounds=size.rounds,
            warm_up=4,
        )
    for name, timing in timings.items():
        yield Figure(name, count / timing.median, "triples/s")
    for step, least in zip(steps, (0.8, None), strict=True):
        by_hand_times, our_times = (timings[f"{step}, {name}"] for name in ("by hand", "quadweir"))
        yield Figure(
            f"{step}, quadweir / by hand",
            in_turns(by_hand_times, our_times),
            "x",
            at_least=least,
            note=f"by the best turn of each {by_hand_times.best / our_times.best:.2f}",
        )


def _forget(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        pass
    return iter(())


def _open_blobs(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read all matches of all blobs, and forget them."""
    import pyarrow as pa

    from quadweir.runtime.exchange import BLOB

    for batch in batches:
        for blob in batch.column(BLOB).drop_null():
            pa.ipc.open_stream(blob.as_buffer()).read_all()
    return iter(())


def shapes(spark: SparkSession, size: Size, folder: Path) -> Iterator[Figure]:
    """LSBench's queries over generated streams, in large batches."""
    network = Network(users=size.users)
    static = folder / "static"
    network.static(folder=static)
    for name, streams in SHAPES.items():
        own = folder / name
        write_streams(
            network, streams, own, batches=WARM_BATCHES + size.batches, triples=size.triples
        )
        found = measure(spark, name, folder=own, static=[static])
        shutil.rmtree(own)
        yield Figure(
            f"{name} input",
            found.triples_per_second,
            "triples/s",
            at_least=_LEAST_FAST if name in _FAST else _LEAST,
            note=_told(found),
        )


def _told(found: Throughput) -> str:
    return (
        f"{found.answers:,} answers, {found.memory_mib:,} MiB, batch {found.batch_ms:,.0f} ms, "
        f"of which in shards {found.kernel_ms:,.0f} ms"
    )


def static_data(spark: SparkSession, size: Size, folder: Path) -> Iterator[Figure]:
    """The same query over few and over many static persons; of many, fewer are friends."""
    found: dict[int, list[Throughput]] = {}
    counts = {}
    for users in (size.users, size.many_users):
        network, own = Network(users=users), folder / f"static-{users}"
        counts[users] = network.static(folder=own / "static")
        write_streams(
            network,
            SHAPES[_WITH_STATIC],
            own,
            # Twice as many: they differ among themselves by more than what is to be seen.
            batches=WARM_BATCHES + 2 * size.batches,
            triples=size.triples,
        )
    # Java goes on compiling, and the later of two would be the faster: so few come before and after many,
    # and once before all that counts.
    few = folder / f"static-{size.users}"
    measure(spark, _WITH_STATIC, folder=few, static=[few / "static"])
    for users in (size.users, size.many_users, size.users):
        own = folder / f"static-{users}"
        one = measure(spark, _WITH_STATIC, folder=own, static=[own / "static"])
        found.setdefault(users, []).append(one)
        yield Figure(
            f"{_WITH_STATIC} with {users:,} static persons",
            one.triples_per_second,
            "triples/s",
            note=f"{counts[users]:,} static triples; {_told(one)}",
        )
        if users == size.many_users:
            shutil.rmtree(own)
    shutil.rmtree(few)
    fast, slow = (
        sum(each.batch_ms for each in found[users]) / len(found[users])
        for users in (size.users, size.many_users)
    )
    yield Figure(
        f"{size.many_users:,} / {size.users:,} static persons", fast / slow, "x", at_least=0.8
    )


def cores(_spark: SparkSession | None, size: Size, folder: Path) -> Iterator[Figure]:
    """Join-heavy queries on one core and on two, each in processes of its own."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return
    network, own, batches = Network(users=size.users), folder / "cores", WARM_BATCHES + size.batches
    network.static(folder=own / "static")
    for name in _JOIN_HEAVY:
        write_streams(network, SHAPES[name], own / name, batches=batches, triples=size.triples)
        rates = {}
        for count in (1, 2):
            given = (str(count), name, str(own / name), str(own / "static"))
            done = subprocess.run(
                [sys.executable, "-m", "quadweir.bench.continuous", *given],
                capture_output=True,
                text=True,
                check=True,
            )
            rates[count] = json.loads(done.stdout.splitlines()[-1])["triples_per_second"]
            yield Figure(f"{name} on {count} of {len(available)} cores", rates[count], "triples/s")
        shutil.rmtree(own / name)
        yield Figure(f"{name}, 2 cores / 1 core", rates[2] / rates[1], "x", at_least=1.6)


def on_cores(count: int, name: str, folder: Path, static: Path) -> Throughput:
    """Measure a query with a Spark of its own, all of it on so many cores."""
    from quadweir.runtime.session import build

    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))
    spark = build(app_name="quadweir-bench", master=f"local[{count}]", shards=count)
    try:
        return measure(spark, name, folder=folder, static=[static], shards=count)
    finally:
        spark.stop()


_TRIGGERS: Final = {"at once": None, "every 500 ms": timedelta(milliseconds=500)}
_EAGER: Final = """SELECT ?s ?sent ?kind {
  STREAM <urn:bench> [RANGE 10s] { ?s <urn:sent> ?sent }
  STREAM <urn:bench> [RANGE 10s] { ?s <urn:kind> ?kind } }"""


def latency(spark: SparkSession, size: Size, folder: Path) -> Iterator[Figure]:
    """From an element's arrival to its answer in a file, beside a pass-through of the same rows."""
    for trigger, every in _TRIGGERS.items():
        medians = {}
        for name, waits in latencies(spark, folder / trigger, size.seconds, every=every):
            medians[name] = waits[len(waits) // 2]
            within = f"95 % within {waits[len(waits) * 95 // 100]:,.0f} ms"
            yield Figure(
                f"{name}, {trigger}, median latency",
                medians[name],
                "ms",
                note=f"{len(waits):,} elements, {within}",
            )
        yield Figure(
            f"eager query / pass-through, {trigger}, median latency",
            medians["eager query"] / medians["pass-through"],
            "x",
            at_most=2.0,
        )


def latencies(
    spark: SparkSession, folder: Path, seconds: int, *, every: timedelta | None = None
) -> Iterator[tuple[str, list[float]]]:
    """How long each element took, in milliseconds and in order: passed through, then answered.

    Args:
        spark: the session.
        folder: where elements and answers lie.
        seconds: how long elements arrive.
        every: how often a batch is taken; default: as soon as the last one is done.
    """
    for name, start in (("pass-through", _start_through), ("eager query", _start_eager)):
        begin = partial(start, every=every)
        yield name, _watch_latency(spark, begin, folder / name.replace(" ", "-"), seconds)


def _start_through(
    spark: SparkSession, folder: Path, every: timedelta | None
) -> Callable[[], None]:
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lines import LineFormat
    from quadweir.sinks.start import start

    query = start(
        _arriving(spark, folder),
        FileSink(folder / "out", LineFormat.TIMED_LINES),
        checkpoint=folder / "checkpoint",
        every=every,
    )
    return query.stop


def _start_eager(spark: SparkSession, folder: Path, every: timedelta | None) -> Callable[[], None]:
    from quadweir.engine import Engine
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lines import LineFormat

    engine = Engine(spark)
    engine.provide("urn:bench", _arriving(spark, folder), canonical=True)
    registered = engine.query(_EAGER)
    registered.start(
        FileSink(folder / "out", LineFormat.ANSWERS_JSONL),
        checkpoint=folder / "checkpoint",
        every=every,
    )
    return registered.stop


def _arriving(spark: SparkSession, folder: Path) -> DataFrame:
    from quadweir import rows

    (folder / "in").mkdir(parents=True, exist_ok=True)
    return spark.readStream.schema(rows.STATEMENT_SCHEMA).json(str(folder / "in"))


def _watch_latency(
    spark: SparkSession,
    start: Callable[[SparkSession, Path], Callable[[], None]],
    folder: Path,
    seconds: int,
) -> list[float]:
    """Let an element arrive every so often; gives how long each took to its answer, in order."""
    folder.mkdir(parents=True)
    stop = start(spark, folder)
    sent: dict[str, float] = {}
    seen: dict[str, float] = {}
    try:
        number, ends = 0, time.time() + 240
        # The first batches load and compile: elements one after the other, each once the one before
        # has its answer.
        while number < _WARM_ELEMENTS and time.time() < ends:
            _arrive(folder / "in", f"warm{number}", sent)
            number += 1
            while len(seen) < len(sent) and time.time() < ends:
                _look(folder / "out", seen)
                time.sleep(0.01)
        began = time.time()
        while time.time() < began + seconds:
            _arrive(folder / "in", f"e{number}", sent)
            number += 1
            for _ in range(10):
                _look(folder / "out", seen)
                time.sleep(0.01)
        while len(seen) < len(sent) and time.time() < began + seconds + 60:
            _look(folder / "out", seen)
            time.sleep(0.01)
    finally:
        stop()
    waits = [1000 * (at - sent[name]) for name, at in seen.items() if name.startswith("e")]
    return sorted(waits)


def _arrive(folder: Path, name: str, sent: dict[str, float]) -> None:
    now = round(time.time() * 1000)
    common = {"stream": "urn:bench", "event_time": now, "position": len(sent)}
    triples = [("urn:sent", f'"{name}"'), ("urn:kind", '"ping"')]
    lines = [
        json.dumps(
            {**common, "subject": f"<urn:{name}>", "predicate": f"<{predicate}>", "object": end}
        )
        for predicate, end in triples
    ]
    file = folder / f".{name}.json"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sent[name] = time.time()
    file.rename(folder / f"{name}.json")


def _look(folder: Path, seen: dict[str, float]) -> None:
    """Note when answers are first seen in the output's files."""
    if not folder.is_dir():
        return
    now = time.time()
    for entry in os.scandir(folder):
        path = entry.path
        if path in _LOOKED_AT or not entry.name[0].isdigit():
            continue
        _LOOKED_AT.add(path)
        for word in Path(path).read_text(encoding="utf-8").replace('\\"', '"').split('"'):
            if word.startswith(("e", "warm")) and word[-1].isdigit():
                seen.setdefault(word, now)


_LOOKED_AT: Final[set[str]] = set()

SECTIONS: Final[dict[str, Callable[[Any, Size, Path], Iterator[Figure]]]] = {
    "matching": matching,
    "shapes": shapes,
    "latency": latency,
    "static": static_data,
    "cores": cores,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: Size | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections; each starts with the same Spark, but for `cores`, which has its own."""
    from quadweir.runtime.session import build

    size = size or Size()
    found: dict[str, list[Figure]] = {}
    about = machine()
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
        spark = None
        for name in sections:
            if spark is None and name != "cores":
                on_step("starting Spark")
                spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
            if spark is not None and name == "cores":
                spark.stop()
                spark = None
            found[name] = []
            on_step(name)
            for figure in SECTIONS[name](spark, size, Path(folder)):
                found[name].append(figure)
                on_step(f"{name}: {figure.name}")
        if spark is not None:
            spark.stop()
    return {
        "benchmark": "queries",
        "machine": about,
        "input": {name: getattr(size, name) for name in Size.__slots__},
        "sections": {name: [each.as_json() for each in figures] for name, figures in found.items()},
    }


def sized(*, quick: bool, triples: int | None = None, batches: int | None = None) -> Size:
    """The size that was asked for."""
    size = QUICK if quick else Size()
    if triples is not None:
        size = replace(size, triples=triples)
    return replace(size, batches=batches) if batches is not None else size


if __name__ == "__main__":
    measured = on_cores(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    print(json.dumps({name: getattr(measured, name) for name in Throughput.__slots__}))
