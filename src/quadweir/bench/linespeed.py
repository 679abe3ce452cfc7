"""Text files to statements in every form, turn by turn, next to a plain scan of the same lines."""

from __future__ import annotations

import gzip
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.live import drain
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.bench.lsbench.write import generate
from quadweir.bench.measure import ContenderTimes, in_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEAST_LINES: Final = 1_000_000
LEAST_OF_SCAN: Final = 0.5
_STREAM: Final = "urn:bench"
_TIMED: Final = re.compile(rb"(?m)^([0-9]+) (.*) \.$")
_IN_RECORD: Final = 100
_WARM_TURNS: Final = 2


def compare_lines(
    spark: SparkSession, folder: Path, *, users: int, days: int, rounds: int
) -> Iterator[Measurement]:
    """Read a network in every form.

    Args:
        spark: the session.
        folder: where its lines may lie.
        users: how many users the network has.
        days: how long they are watched.
        rounds: how often forms take turns, after two turns that do not count.
    """
    given = write_forms(folder / "lines", users=users, days=days)
    count = given.count
    contenders: dict[str, Callable[[], float]] = {
        "plain scan": lambda: _seconds(spark.read.text(str(given.timed))),
        "N-Triples": lambda: _seconds(_quads(spark, given.triples)),
        "timed lines": lambda: _seconds(statements_of(spark, given.timed)),
        "timed lines, live": partial(_live_seconds, spark, given.timed, folder / "live"),
        "timed lines, elements of quads": lambda: _seconds(statements_of(spark, given.quads)),
        "timed lines, gzip": lambda: _seconds(statements_of(spark, given.packed)),
        f"records of {_IN_RECORD} timed lines": lambda: _seconds(_records(spark, given.records)),
    }
    timings = {name: ContenderTimes() for name in contenders}
    for turn in range(_WARM_TURNS + rounds):
        for name, measure in contenders.items():
            taken = measure()
            if turn >= _WARM_TURNS:
                timings[name].seconds.append(taken)
    wanted = ("timed lines", "timed lines, live")
    for name, timing in timings.items():
        least = LEAST_LINES if name in wanted else None
        yield Measurement(name, count / timing.best, "lines/s", at_least=least)
    scan, triples = timings["plain scan"], timings["N-Triples"]
    for name in wanted:
        ratio = in_turns(scan, timings[name])
        yield Measurement(f"{name} / plain scan", ratio, "x", at_least=LEAST_OF_SCAN)
        yield Measurement(
            f"{name} / N-Triples", in_turns(triples, timings[name]), "x", at_least=1.0
        )


@final
@dataclass(frozen=True, slots=True)
class Forms:
    """The same lines in several folders."""

    count: int
    timed: Path
    triples: Path
    quads: Path
    packed: Path
    records: Path


def write_forms(folder: Path, *, users: int, days: int) -> Forms:
    """Write the streams of a network, without its static data, in every form."""
    network = folder / "network"
    folder.mkdir()
    counted = generate(Parameters(users=users, days=days, seed=5), network)
    count = sum(counted["triples"].values()) - counted["triples"]["static"]
    found = Forms(count, *(folder / name for name in ("timed", "nt", "quads", "gzip", "records")))
    for each in (found.timed, found.triples, found.quads, found.packed, found.records):
        each.mkdir()
    for file in sorted(network.glob("*/*.stream")):
        name = f"{file.parent.name}-{file.stem}"
        data = file.read_bytes()
        (found.timed / f"{name}.stream").write_bytes(data)
        (found.triples / f"{name}.nt").write_bytes(_TIMED.sub(rb"\2 .", data))
        # All lines of an instant are one element.
        quads = _TIMED.sub(rb"\1 \2 <urn:element:\1> .", data)
        (found.quads / f"{name}.stream").write_bytes(quads)
        (found.packed / f"{name}.stream.gz").write_bytes(gzip.compress(data, 1))
        _write_records(data.decode(), found.records / f"{name}.parquet")
    shutil.rmtree(network)
    return found


def _write_records(text: str, path: Path) -> None:
    """Write lines as records, as Spark's Kafka connector would give them."""
    all_lines = text.splitlines()
    values = ["\n".join(each) for each in _pieces(all_lines, _IN_RECORD)]
    numbers = range(len(values))
    table = pa.table(
        {
            "source": pa.array(["topic"] * len(values), pa.string()),
            "place": pa.array([f"0:{number}" for number in numbers], pa.string()),
            "arrival": pa.array([0] * len(values), pa.int64()),
            "value": pa.array(values, pa.string()),
            "position": pa.array(numbers, pa.int64()),
        }
    )
    pq.write_table(table, path, compression="none")


def _pieces(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _seconds(frame: DataFrame) -> float:
    began = time.perf_counter()
    drain(frame)
    return time.perf_counter() - began


def _quads(spark: SparkSession, folder: Path) -> DataFrame:
    from pyspark.sql import functions as F

    from quadweir.rows import select_quads
    from quadweir.sources.ntriples import parse_lines

    return select_quads(parse_lines(spark.read.text(str(folder)), F.col("value")))


def statements_of(
    spark: SparkSession,
    folder: Path,
    *,
    iri: str = _STREAM,
    index: Path | None = None,
    files: int | None = None,
) -> DataFrame:
    """The statements of a folder; with an index of its files it is watched."""
    from quadweir.rowfilters import good_statements
    from quadweir.sources.declare import FolderSource, Format, StreamDeclaration
    from quadweir.sources.filesource import open_statements

    source = FolderSource(path=folder, watch=index is not None)
    declared = StreamDeclaration(iri=iri, source=source, format=Format.TIMED_LINES)
    return good_statements(open_statements(spark, declared, index=index, max_files_per_batch=files))


def _records(spark: SparkSession, folder: Path) -> DataFrame:
    from quadweir.rowfilters import good_statements
    from quadweir.sources.declare import Format, MemorySource, StreamDeclaration
    from quadweir.sources.records import parse_records

    declared = StreamDeclaration(iri=_STREAM, source=MemorySource(), format=Format.TIMED_LINES)
    return good_statements(parse_records(spark.read.parquet(str(folder)), declared))


def _live_seconds(spark: SparkSession, folder: Path, own: Path) -> float:
    """How long the one batch takes in which a watched folder is read to its end."""
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    query = (
        statements_of(spark, folder, index=own / "index")
        .writeStream.format("noop")
        .option("checkpointLocation", str(own / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(each.batchDuration for each in query.recentProgress if each.numInputRows) / 1000
