"""Continuous queries on Spark: throughput and latency, compared with plain Spark.

Throughput is measured on the live path with large batches. All input is there from the start, and
Spark takes one batch after the other. The first batches do not count, because workers start and
functions are loaded in them. Both sides of a ratio are measured in one run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import WARM_BATCHES, Throughput, measure_query
from quadweir.bench.matching import compare_matching
from quadweir.bench.measure import machine
from quadweir.bench.socialstream import STREAM, SocialNetworkSize, write_streams
from quadweir.bench.waits import compare_waits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
"""The first sends half of its matches to every shard; the second has one key throughout."""
_WITH_STATIC: Final = "q05"


@final
@dataclass(frozen=True, slots=True)
class QueriesSize:
    """How much is measured.

    Attributes:
        batches: batches that count.
        triples: triples in a batch.
        users: persons in the static data.
        many_users: persons where static data is large.
        rounds: how often each contender runs.
        seconds: how long latency is watched.
    """

    batches: int = 4
    triples: int = 1_000_000
    users: int = 1_000
    many_users: int = 1_000_000
    rounds: int = 24
    seconds: int = 20


QUICK: Final = QueriesSize(batches=2, triples=100_000, many_users=20_000, rounds=2, seconds=5)


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
    """The throughput of an LSBench query over the streams of a folder."""
    streams = {f"{STREAM}{each}": folder / each for each in SHAPES[name]}
    return measure_query(spark, query_text(name), streams, static=static, shards=shards)


# --- sections -----------------------------------------------------------------------------------


def matching(spark: SparkSession, size: QueriesSize, folder: Path) -> Iterator[Measurement]:
    """Matching patterns and handing rows to shards, compared with a hand-written filter and
    shuffle.
    """
    # Large batches hide the fixed cost of a batch. `latency` measures that cost.
    for times in (1, size.batches):
        yield from compare_matching(
            spark, folder / str(times), triples=times * size.triples, rounds=size.rounds
        )


def latency(spark: SparkSession, size: QueriesSize, folder: Path) -> Iterator[Measurement]:
    """From an element's arrival to its answer in a file, compared with a pass-through of the same
    rows.
    """
    return compare_waits(spark, folder, size.seconds)


def shapes(spark: SparkSession, size: QueriesSize, folder: Path) -> Iterator[Measurement]:
    """LSBench's queries over generated streams, in large batches."""
    network = SocialNetworkSize(users=size.users)
    static = folder / "static"
    network.static(folder=static)
    for name, streams in SHAPES.items():
        own = folder / name
        write_streams(
            network, streams, own, batches=WARM_BATCHES + size.batches, triples=size.triples
        )
        found = measure(spark, name, folder=own, static=[static])
        shutil.rmtree(own)
        yield Measurement(
            f"{name} input",
            found.triples_per_second,
            "triples/s",
            at_least=_LEAST_FAST if name in _FAST else _LEAST,
            note=_described(found),
        )


def _described(found: Throughput) -> str:
    return (
        f"{found.answers:,} answers, {found.memory_mib:,} MiB, batch {found.batch_ms:,.0f} ms, "
        f"in shards {found.kernel_ms:,.0f} ms"
    )


def static_data(spark: SparkSession, size: QueriesSize, folder: Path) -> Iterator[Measurement]:
    """The same query over few and over many static persons; with many, a smaller share are
    friends.
    """
    found: dict[int, list[Throughput]] = {}
    counts = {}
    for users in (size.users, size.many_users):
        network, own = SocialNetworkSize(users=users), folder / f"static-{users}"
        counts[users] = network.static(folder=own / "static")
        write_streams(
            network,
            SHAPES[_WITH_STATIC],
            own,
            # Twice as many rounds: runs differ from each other by more than the effect we look for.
            batches=WARM_BATCHES + 2 * size.batches,
            triples=size.triples,
        )
    # Java keeps compiling, which favours the later run. So the small data runs before and after the
    # large data, and once more before anything counts.
    few = folder / f"static-{size.users}"
    measure(spark, _WITH_STATIC, folder=few, static=[few / "static"])
    for users in (size.users, size.many_users, size.users):
        own = folder / f"static-{users}"
        one = measure(spark, _WITH_STATIC, folder=own, static=[own / "static"])
        found.setdefault(users, []).append(one)
        yield Measurement(
            f"{_WITH_STATIC} with {users:,} static persons",
            one.triples_per_second,
            "triples/s",
            note=f"{counts[users]:,} static triples; {_described(one)}",
        )
        if users == size.many_users:
            shutil.rmtree(own)
    shutil.rmtree(few)
    fast, slow = (
        sum(each.batch_ms for each in found[users]) / len(found[users])
        for users in (size.users, size.many_users)
    )
    yield Measurement(
        f"{size.many_users:,} / {size.users:,} static persons", fast / slow, "x", at_least=0.8
    )


def cores(_spark: SparkSession | None, size: QueriesSize, folder: Path) -> Iterator[Measurement]:
    """Join-heavy queries on one core and on two, each in its own processes."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return
    network, own, batches = (
        SocialNetworkSize(users=size.users),
        folder / "cores",
        WARM_BATCHES + size.batches,
    )
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
            yield Measurement(
                f"{name} on {count} of {len(available)} cores", rates[count], "triples/s"
            )
        shutil.rmtree(own / name)
        yield Measurement(f"{name}, 2 cores / 1 core", rates[2] / rates[1], "x", at_least=1.6)


def on_cores(count: int, name: str, folder: Path, static: Path) -> Throughput:
    """Measure a query in a new Spark session that may use only `cores` cores."""
    from quadweir.runtime.spark.session import build

    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))
    spark = build(app_name="quadweir-bench", master=f"local[{count}]", shards=count)
    try:
        return measure(spark, name, folder=folder, static=[static], shards=count)
    finally:
        spark.stop()


SECTIONS: Final[dict[str, Callable[[Any, QueriesSize, Path], Iterator[Measurement]]]] = {
    "matching": matching,
    "shapes": shapes,
    "latency": latency,
    "static": static_data,
    "cores": cores,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: QueriesSize | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections. All share one Spark session, except `cores`, which starts its own."""
    from quadweir.runtime.spark.session import build

    size = size or QueriesSize()
    found: dict[str, list[Measurement]] = {}
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
        "input": {name: getattr(size, name) for name in QueriesSize.__slots__},
        "sections": {name: [each.as_json() for each in figures] for name, figures in found.items()},
    }


def sized(*, quick: bool, triples: int | None = None, batches: int | None = None) -> QueriesSize:
    """The size that was asked for."""
    size = QUICK if quick else QueriesSize()
    if triples is not None:
        size = replace(size, triples=triples)
    return replace(size, batches=batches) if batches is not None else size


if __name__ == "__main__":
    measured = on_cores(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    print(json.dumps({name: getattr(measured, name) for name in Throughput.__slots__}))
