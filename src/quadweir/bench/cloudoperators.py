"""The operators that paper 004 measures alone, each as one network through Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import FILES, WARM_BATCHES, Throughput, measure_network

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.bench.cloudsize import CloudSize

_BASE: Final = "urn:bench:"
_START: Final = 1_700_000_000_000
_KEYS: Final = 10_000_000
_PAPER: Final = {
    "patterns": "paper: over 100,000 inputs/s on 8 nodes for 10,000 patterns",
    "join": "paper: windows of 100,000, selectivity 1 %, linear to 32 nodes",
    "aggregation": "paper: over 100,000 inputs/s on 8 nodes",
    "static": "paper: 10 million mappings in HBase, linear to 32 nodes",
}


def _rows(stream: str, first: int, subjects: pa.Array, predicate: str, ends: pa.Array) -> pa.Table:
    count = len(subjects)
    number = np.arange(first, first + count)
    return pa.table(
        {
            "stream": pa.repeat(pa.scalar(f"{_BASE}{stream}"), count),
            "event_time": _START + number,
            "position": number,
            "subject": subjects,
            "predicate": pa.repeat(pa.scalar(f"<{_BASE}{predicate}>"), count),
            "object": ends,
            "graph": pa.nulls(count, pa.string()),
        }
    )


def _iris(kind: str, numbers: np.ndarray) -> pa.Array:
    texts = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(f"<{_BASE}{kind}/", texts, ">", "")


def _integers(numbers: np.ndarray) -> pa.Array:
    kind = '"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return pc.binary_join_element_wise('"', pa.array(numbers).cast(pa.string()), kind, "")


def _write(folder: Path, stream: str, batch: int, table: pa.Table) -> None:
    (folder / stream).mkdir(parents=True, exist_ok=True)
    size = -(-table.num_rows // FILES)
    for part in range(FILES):
        file = folder / stream / f"{batch:05}-{part}.parquet"
        pq.write_table(table.slice(part * size, size), file, compression="snappy")
        at = _START // 1000 + batch * FILES + part
        os.utime(file, (at, at))


def _streams(names: tuple[str, ...], folder: Path) -> dict[str, Path]:
    return {f"{_BASE}{name}": folder / name for name in names}


def _described(found: Throughput) -> str:
    return (
        f"{found.answers:,} answers, batch {found.batch_ms:,.0f} ms, in shards "
        f"{found.kernel_ms:,.0f} ms, {found.memory_mib:,} MiB"
    )


def operators(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Many patterns, a five-way join, an aggregation, and a join with static data."""
    yield from _patterns(spark, size, folder / "patterns")
    yield from _five_way(spark, size, folder / "join")
    yield from _aggregation(spark, size, folder / "aggregation")
    yield from _static(spark, size, folder / "static")


def _patterns(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """Triple patterns that differ in a constant, in the subject or in the object."""
    random = np.random.default_rng(size.seed)
    most = max(size.constants)
    for batch in range(WARM_BATCHES + size.batches):
        subjects = _iris("s", random.integers(0, 2 * most, size.triples))
        ends = _iris("o", random.integers(0, 2 * most, size.triples))
        _write(folder, "s", batch, _rows("s", batch * size.triples, subjects, "p", ends))
    for count in (each for each in size.constants if each >= 100):
        queries = {}
        for number in range(count):
            pattern = (
                f"<{_BASE}s/{number}> <{_BASE}p> ?x"
                if number % 2
                else f"?x <{_BASE}p> <{_BASE}o/{number}>"
            )
            queries[f"p{number}"] = f"SELECT ?x WHERE {{ STREAM <{_BASE}s> [NOW] {{ {pattern} }} }}"
        found = measure_network(spark, queries, _streams(("s",), folder))
        yield Measurement(
            f"matching {count:,} triple patterns",
            found.triples_per_second,
            "triples/s",
            note=f"{_described(found)}; {_PAPER['patterns']}",
        )
    shutil.rmtree(folder)


def _five_way(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """A join of five count windows; one of a hundred mappings finds a partner in a window."""
    window = min(100_000, size.triples)
    names = tuple(f"j{number}" for number in range(5))
    count = size.few
    random = np.random.default_rng(size.seed)
    for batch in range(WARM_BATCHES + size.batches):
        for number, name in enumerate(names):
            # The first batch fills the windows.
            length = window if batch == 0 else count
            first = 0 if batch == 0 else window + (batch - 1) * count
            keys = _iris("k", random.integers(0, 100 * window, length))
            values = _iris(f"v{number}", np.arange(first, first + length))
            _write(folder, name, batch, _rows(name, first, keys, "p", values))
    blocks = " ".join(
        f"STREAM <{_BASE}{name}> [TRIPLES {window}] {{ ?k <{_BASE}p> ?v{number} }}"
        for number, name in enumerate(names)
    )
    query = f"SELECT ?k ?v0 ?v1 ?v2 ?v3 ?v4 WHERE {{ {blocks} }}"
    found = measure_network(spark, {"join": query}, _streams(names, folder))
    yield Measurement(
        f"5-way join of count windows of {window:,}, selectivity 1 %",
        found.triples_per_second,
        "triples/s",
        note=f"{_described(found)}; {_PAPER['join']}",
    )
    shutil.rmtree(folder)


def _aggregation(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """An average for each of a thousand groups, over a window of a million mappings."""
    window = size.triples
    random = np.random.default_rng(size.seed)
    for batch in range(WARM_BATCHES + size.batches):
        groups = _iris("g", random.integers(0, 1_000, size.triples))
        values = _integers(random.integers(0, 1_000, size.triples))
        _write(folder, "s", batch, _rows("s", batch * size.triples, groups, "p", values))
    query = (
        f"SELECT ?g (AVG(?v) AS ?mean) WHERE {{ STREAM <{_BASE}s> [RANGE {window}ms STEP 1s] "
        f"{{ ?g <{_BASE}p> ?v }} }} GROUP BY ?g"
    )
    found = measure_network(spark, {"mean": query}, _streams(("s",), folder))
    yield Measurement(
        f"aggregation over a window of {window:,} mappings, each second",
        found.triples_per_second,
        "triples/s",
        note=f"{_described(found)}; {_PAPER['aggregation']}",
    )
    shutil.rmtree(folder)


def _static(spark: SparkSession, size: CloudSize, folder: Path) -> Iterator[Measurement]:
    """A window joined with ten million static mappings."""
    count = min(_KEYS, 10 * size.triples)
    file = folder / "static" / "mappings.nt"
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as out:
        step = 500_000
        for first in range(0, count, step):
            numbers = np.arange(first, min(first + step, count))
            lines = pc.binary_join_element_wise(
                _iris("k", numbers), f"<{_BASE}in>", _iris("c", numbers % 1_000), ".", " "
            )
            out.write("\n".join(lines.to_pylist()) + "\n")
    random = np.random.default_rng(size.seed)
    for batch in range(WARM_BATCHES + size.batches):
        keys = _iris("k", random.integers(0, 10 * count, size.triples))
        values = _iris("v", np.arange(size.triples))
        _write(folder, "s", batch, _rows("s", batch * size.triples, keys, "p", values))
    query = (
        f"SELECT ?k ?v ?c WHERE {{ STREAM <{_BASE}s> [RANGE 1s] {{ ?k <{_BASE}p> ?v }} "
        f"?k <{_BASE}in> ?c }}"
    )
    found = measure_network(spark, {"join": query}, _streams(("s",), folder), static=[file])
    yield Measurement(
        f"a window joined with {count:,} static mappings",
        found.triples_per_second,
        "triples/s",
        note=f"{_described(found)}; {_PAPER['static']}",
    )
    shutil.rmtree(folder)
