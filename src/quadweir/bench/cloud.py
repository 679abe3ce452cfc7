"""Many queries in one network: paper 004's experiments, through Spark, on one machine.

A query's constants and window lengths are random. Before anything is measured, some queries of each
network are run alone over a small input, and their answers must be the same (P4).
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quadweir.bench.cloudoperators import operators
from quadweir.bench.cloudqueries import LENGTHS, asking_of_users, drawn, of_lengths
from quadweir.bench.cloudsize import CloudSize
from quadweir.bench.cloudsoak import soak
from quadweir.bench.continuous import SHAPES
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import (
    WARM_BATCHES,
    Throughput,
    engine_over,
    measure_network,
)
from quadweir.bench.measure import machine
from quadweir.bench.memory import python_bytes
from quadweir.bench.socialstream import STREAM, SocialNetworkSize, write_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECKED: Final = 6
"""How many queries of a network are also run alone."""
_GRAPH: Final = "urn:lsbench:static"
_ALL: Final = ("posts", "post-likes", "photos", "photo-likes")


# --- measuring ------------------------------------------------------------------------------------


def _measured(
    spark: SparkSession,
    queries: Mapping[str, str],
    streams: Sequence[str],
    folder: Path,
    static: Sequence[Path | str],
) -> Throughput:
    paths = {f"{STREAM}{each}": folder / each for each in streams}
    return measure_network(spark, queries, paths, static=static)


def check_against_alone(
    spark: SparkSession,
    queries: Mapping[str, str],
    streams: Sequence[str],
    folder: Path,
    static: Sequence[Path | str],
    seed: int,
) -> int:
    """Compare answers of some queries with those that they give alone; return how many there were.

    Raises:
        AssertionError: they differ.
    """
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    paths = {f"{STREAM}{each}": folder / each for each in streams}
    some = random.Random(seed).sample(sorted(queries), min(_CHECKED, len(queries)))
    chosen = list(dict.fromkeys([*list(queries)[:_CHECKED], *some]))
    count = 0
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as place:
        out = Path(place)
        network = engine_over(spark, paths).network(static=static)
        found = network.register_all(
            queries,
            send_to={n: FileSink(out / "shared" / n, LineFormat.ANSWERS_JSONL) for n in chosen},
        )
        assert not found.refused, found.refused
        network.start(checkpoint=out / "network", available_now=True)
        network.awaitTermination()
        for name in chosen:
            alone = engine_over(spark, paths).query(queries[name], static=static)
            sink = FileSink(out / "alone" / name, LineFormat.ANSWERS_JSONL)
            alone.start(sink, checkpoint=out / f"check-{name}", available_now=True)
            alone.awaitTermination()
            lines = [_lines(out / kind / name) for kind in ("shared", "alone")]
            assert lines[0] == lines[1], f"{name} answers otherwise in a network"
            count += len(lines[0])
    return count


def _lines(folder: Path) -> list[str]:
    return sorted(line for file in folder.glob("0*") for line in file.read_text().splitlines())


def _described(found: Throughput) -> str:
    per_second = found.answers / max(1e-9, found.batch_ms / 1000 * len(found.rates))
    return (
        f"{found.answers:,} answers, {per_second:,.0f} answers/s, batch {found.batch_ms:,.0f} ms, "
        f"in shards {found.kernel_ms:,.0f} ms, {found.memory_mib:,} MiB"
    )


# --- sections -------------------------------------------------------------------------------------


def constants(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Q1 with many constants, next to Q1 with one."""
    users = max(size.users, *size.constants)
    network, own = SocialNetworkSize(users=users), folder / "constants"
    streams = SHAPES["q01"]
    few_users = SocialNetworkSize(users=20)
    write_streams(few_users, streams, own / "check", batches=3, triples=4_000)
    write_streams(network, streams, own, batches=WARM_BATCHES + size.batches, triples=size.triples)
    rates: dict[int, float] = {}
    for count in size.constants:
        queries = asking_of_users(count, users, size.seed)
        compared = check_against_alone(spark, queries, streams, own / "check", (), size.seed)
        found = _measured(spark, queries, streams, own, ())
        rates[count] = found.triples_per_second
        yield Measurement(
            f"Q1 with {count:,} constants",
            found.triples_per_second,
            "triples/s",
            at_least=500_000 if count == 10_000 else None,
            note=f"{_described(found)}; {compared:,} answers compared with those alone",
        )
        if count > 1:
            share = {10_000: 0.5, 100_000: 0.25}.get(count)
            yield Measurement(
                f"Q1 with {count:,} constants / one query",
                rates[count] / rates[size.constants[0]],
                "x",
                at_least=share,
            )
    shutil.rmtree(own)


def windows(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Q4, Q5 and Q10 with many window lengths."""
    network, own = SocialNetworkSize(users=size.users), folder / "windows"
    static = own / "static"
    network.static(folder=static)
    for name in LENGTHS:
        streams = SHAPES[name]
        write_streams(network, streams, own / name / "check", batches=3, triples=2_000)
        write_streams(
            network,
            streams,
            own / name,
            batches=WARM_BATCHES + size.batches,
            triples=size.few,
        )
        before: Throughput | None = None
        for count in size.windows:
            queries = of_lengths(name, count, size.seed)
            compared = check_against_alone(
                spark, queries, streams, own / name / "check", [static], size.seed
            )
            found = _measured(spark, queries, streams, own / name, [static])
            label = f"{name.upper().replace('Q0', 'Q')} with {count:,} window lengths"
            yield Measurement(
                label,
                found.triples_per_second,
                "triples/s",
                note=f"{_described(found)}; {compared:,} answers compared with those alone",
            )
            if before is not None:
                cost = found.batch_ms / before.batch_ms
                more = found.answers / max(1, before.answers)
                # Beyond a factor of two, cost may grow with the answers that are delivered.
                yield Measurement(
                    f"{label}: time of ten times fewer, times", cost, "x", at_most=max(2.0, more)
                )
            before = found
        shutil.rmtree(own / name)
    shutil.rmtree(own)


def mixed(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Queries of all LSBench templates in three dialects, with random constants and windows."""
    network, own = SocialNetworkSize(users=size.users), folder / "mixed"
    static = own / "static"
    network.static(folder=static)
    write_streams(network, _ALL, own / "check", batches=3, triples=2_000)
    write_streams(network, _ALL, own, batches=WARM_BATCHES + size.batches, triples=size.few)
    queries = drawn(size.mixed, size.users, size.seed)
    # C-SPARQL reads static data from a graph of this name.
    given: list[Path | str] = [static]
    given += [f"{_GRAPH}={file}" for file in sorted(static.iterdir())]
    compared = check_against_alone(spark, queries, _ALL, own / "check", given, size.seed)
    found = _measured(spark, queries, _ALL, own, given)
    yield Measurement(
        f"{len(queries):,} queries of 11 templates in three dialects",
        found.triples_per_second,
        "triples/s",
        note=f"{_described(found)}; {compared:,} answers compared with those alone",
    )
    shutil.rmtree(own)


def registering(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """How long it takes to register queries, until a new one answers, and their memory."""
    from quadweir.sinks.start import Call

    network_size, own = SocialNetworkSize(users=2 * size.registered), folder / "registering"
    streams = SHAPES["q01"]
    write_streams(network_size, streams, own / "later", batches=40, triples=4_000)
    waiting = sorted((own / "later" / "posts").glob("*.parquet"))
    (own / "posts").mkdir(parents=True)

    def arrive() -> None:
        for _ in range(2):
            file = waiting.pop(0)
            file.rename(own / "posts" / file.name)

    arrive()
    engine = engine_over(spark, {f"{STREAM}posts": own / "posts"})
    network = engine.network()
    all_queries = asking_of_users(2 * size.registered, 2 * size.registered, size.seed)
    names = list(all_queries)
    network.register(names[0], all_queries[names[0]])
    network.start(Call(lambda _frame, _batch: None), checkpoint=own / "checkpoint")
    network.processAllAvailable()
    before = python_bytes()
    began, busy = time.perf_counter(), time.process_time()
    found = network.register_all({name: all_queries[name] for name in names[1 : size.registered]})
    took, busy = time.perf_counter() - began, time.process_time() - busy
    assert not found.refused, found.refused
    yield Measurement(
        f"registering {size.registered:,} queries in one call",
        took,
        "s",
        at_most=20,
        note=f"{busy:.1f} s of processor time in the driver",
    )
    arrive()
    network.processAllAvailable()
    arrive()
    network.processAllAvailable()
    after = python_bytes()
    yield Measurement(
        "memory for each query",
        max(0, after - before) / 1024 / size.registered,
        "KiB",
        at_most=10,
        note="of the driver and the workers, without Java",
    )
    waits = []
    for name in names[size.registered : size.registered + 10]:
        began = time.perf_counter()
        network.register(name, all_queries[name])
        waits.append(1000 * (time.perf_counter() - began))
        arrive()
        network.processAllAvailable()
    yield Measurement(
        "one more query is registered", sorted(waits)[len(waits) // 2], "ms", at_most=300
    )
    durations = [each.batchDuration for each in network.recentProgress if each.numInputRows][-8:]
    yield Measurement(
        "one more query: registered, and the next batch done",
        sorted(waits)[len(waits) // 2] + sorted(durations)[len(durations) // 2],
        "ms",
        at_most=300,
    )
    began = time.perf_counter()
    network.unregister(*names[1 : size.registered])
    arrive()
    network.processAllAvailable()
    yield Measurement(
        f"unregistering {size.registered - 1:,} queries", time.perf_counter() - began, "s"
    )
    network.stop()
    shutil.rmtree(own)


SECTIONS: Final[dict[str, Callable[[Any, CloudSize, Path], Iterator[Measurement]]]] = {
    "constants": constants,
    "windows": windows,
    "mixed": mixed,
    "registering": registering,
    "operators": operators,
    "soak": soak,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: CloudSize | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections in one Spark session."""
    from quadweir.runtime.spark.session import build

    size = size or CloudSize()
    found: dict[str, list[Measurement]] = {}
    with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
        on_step("starting Spark")
        spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
        try:
            for name in sections:
                found[name] = []
                on_step(name)
                for figure in SECTIONS[name](spark, size, Path(folder)):
                    found[name].append(figure)
                    on_step(f"{name}: {figure.name}")
        finally:
            spark.stop()
    return {
        "benchmark": "cloud",
        "machine": machine(),
        "input": {name: getattr(size, name) for name in CloudSize.__slots__},
        "sections": {name: [each.as_json() for each in figures] for name, figures in found.items()},
    }
