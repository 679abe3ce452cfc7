"""From text files to statements, and from text files to answers in a file: what a user waits for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.linespeed import compare_lines
from quadweir.bench.mappedquestions import ask_mapped
from quadweir.bench.measure import machine
from quadweir.bench.textqueries import LEAST, ask_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@final
@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured.

    Attributes:
        users: users of the network whose lines are read.
        days: how long they are watched.
        rounds: how often forms take turns, after two turns that do not count.
        triples: triples in a batch of a query.
        records: records of each stream that is mapped.
        batches: batches of a query that count.
        queries: the queries that are asked.
    """

    users: int = 1000
    days: int = 12
    rounds: int = 5
    triples: int = 400_000
    records: int = 500_000
    batches: int = 2
    queries: tuple[str, ...] = tuple(LEAST)


QUICK: Final = Size(
    users=200, days=2, rounds=2, triples=40_000, records=20_000, batches=1, queries=("Q1", "Q5")
)


def lines(spark: SparkSession, size: Size, folder: Path) -> Iterator[Measurement]:
    """Lines to statements in every form, next to a plain scan of the same lines."""
    return compare_lines(spark, folder, users=size.users, days=size.days, rounds=size.rounds)


def queries(spark: SparkSession, size: Size, folder: Path) -> Iterator[Measurement]:
    """LSBench's queries from timed lines to answers in a file, on the live path."""
    return ask_queries(spark, folder, size.queries, triples=size.triples, batches=size.batches)


def mapping(spark: SparkSession, size: Size, folder: Path) -> Iterator[Measurement]:
    """JSON records over a mapping to answers, next to Spark SQL by hand."""
    return ask_mapped(spark, folder, records=size.records, rounds=size.rounds)


SECTIONS: Final[dict[str, Callable[[Any, Size, Path], Iterator[Measurement]]]] = {
    "lines": lines,
    "queries": queries,
    "mapping": mapping,
}


def run(
    sections: Sequence[str] = tuple(SECTIONS),
    *,
    size: Size | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure sections, all with one Spark."""
    from quadweir.runtime.spark.session import build

    size = size or Size()
    about = machine()
    on_step("starting Spark")
    spark = build(app_name="quadweir-bench", master="local[2]", shards=2)
    found: dict[str, list[Measurement]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="quadweir-bench-") as folder:
            for name in sections:
                on_step(name)
                found[name] = []
                own = Path(folder) / name
                own.mkdir()
                for figure in SECTIONS[name](spark, size, own):
                    found[name].append(figure)
                    on_step(f"{name}: {figure.name}")
    finally:
        spark.stop()
    return {
        "benchmark": "endtoend",
        "machine": about,
        "input": {name: getattr(size, name) for name in Size.__slots__},
        "sections": {name: [each.as_json() for each in figures] for name, figures in found.items()},
    }


def sized(
    *,
    quick: bool,
    days: int | None = None,
    triples: int | None = None,
    names: Sequence[str] = (),
) -> Size:
    """The size that was asked for."""
    size = QUICK if quick else Size()
    if days is not None:
        size = replace(size, days=days)
    if triples is not None:
        size = replace(size, triples=triples)
    return replace(size, queries=tuple(names)) if names else size
