"""LSBench's queries on the live path, from timed lines to a file of answers, in large batches."""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import pyarrow as pa

from quadweir.bench import workloads
from quadweir.bench.kernel_pipeline import Measurement
from quadweir.bench.linespeed import statements_of
from quadweir.bench.live import FILES, WARM_BATCHES, Throughput, throughput_of, watched
from quadweir.bench.lsbench.network import make_network
from quadweir.bench.lsbench.tables import static_table
from quadweir.bench.speed import of_users
from quadweir.bench.tables import at_rate, batch_cuts, head, write_static, write_table
from quadweir.bench.workloads import Question
from quadweir.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.engine import Engine

LEAST: Final[dict[str, float]] = {
    **dict.fromkeys(("Q1", "Q2", "Q3"), 700_000.0),
    **dict.fromkeys(("Q4", "Q5", "Q6", "Q8", "Q10"), 400_000.0),
    **dict.fromkeys(("Q9", "Q11"), 200_000.0),
    "Q12": 150_000.0,
    "Q7": 50_000.0,
}
"""Triples a second that each query is to reach."""
_DENSITY: Final = 1000.0
"""Triples a second of event time."""
_CHECKED: Final = 3_000


def ask_queries(
    spark: SparkSession, folder: Path, names: Sequence[str], *, triples: int, batches: int
) -> Iterator[Measurement]:
    """Ask queries by their names, each after the answers of a small input were checked.

    Args:
        spark: the session.
        folder: where streams and answers may lie.
        names: the queries, of `LEAST`.
        triples: triples in a batch; a query that looks at much again gets less.
        batches: batches that count, after two that do not.
    """
    asked = workloads.lsbench()
    for name in names:
        question, own = asked[name], folder / name
        checked = _check(spark, question, own / "small")
        given = _large(question, triples, batches, own / "large")
        found, answers = _answer(spark, question, given, own / "measured")
        shutil.rmtree(own)
        yield Measurement(
            f"{name}, {question.asks}",
            found.triples_per_second,
            "triples/s",
            at_least=LEAST[name],
            note=f"{found.answers:,} answers, batch {found.batch_ms:,.0f} ms, of which in shards "
            f"{found.kernel_ms:,.0f} ms; {checked:,} answers checked, {answers:,} written",
        )


@final
@dataclass(frozen=True, slots=True)
class _Input:
    """Streams as folders of timed lines, `FILES` files for a batch, and static data."""

    streams: Mapping[str, Path]
    static: Path


def _large(question: Question, triples: int, batches: int, folder: Path) -> _Input:
    batches += WARM_BATCHES
    triples = round(batches * triples * question.share)
    network = make_network(of_users(workloads.LARGE.users, triples))
    tables = workloads.lsbench_streams(network, question)
    tables = at_rate(head(tables, triples), _DENSITY)
    return _Input(
        write_text(tables, folder, batches), write_static(static_table(network), folder / "s.nt")
    )


def write_text(tables: Mapping[str, pa.Table], folder: Path, batches: int) -> dict[str, Path]:
    """Write streams as timed lines, cut by time into batches."""
    cuts = batch_cuts(tables, batches)
    found = {}
    for number, (iri, table) in enumerate(tables.items()):
        found[iri] = folder / f"stream-{number}"
        found[iri].mkdir(parents=True)
        for batch, (start, end) in enumerate(itertools.pairwise(cuts[iri])):
            piece = -(-(end - start) // FILES)
            for part in range(FILES):
                first = min(start + part * piece, end)
                rows = table.slice(first, min(piece, end - first))
                write_table(rows, found[iri] / f"{batch:05}-{part}.stream")
    return found


def _engine(spark: SparkSession, given: _Input, folder: Path | None) -> Engine:
    """An engine that knows the streams; with a folder for their indexes they are watched."""
    from quadweir.engine import Engine

    engine = Engine(spark)
    for iri, path in given.streams.items():
        index = folder / f"{path.name}.index" if folder is not None else None
        frame = statements_of(spark, path, iri=iri, index=index, files=FILES)
        engine.provide(iri, frame, canonical=True)
    return engine


def _answer(
    spark: SparkSession, question: Question, given: _Input, folder: Path
) -> tuple[Throughput, int]:
    """Answer a question on the live path; gives how fast that went and how many lines it wrote."""
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    folder.mkdir()
    registered = _engine(spark, given, folder).query(question.text, static=[given.static])
    with watched() as memory:
        registered.start(
            FileSink(folder / "out", LineFormat.ANSWERS_JSONL),
            checkpoint=folder / "checkpoint",
            available_now=True,
        )
        registered.awaitTermination()
    return throughput_of(registered, memory[0]), sum(1 for _ in _written(folder / "out"))


def _written(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("[!._]*")):
        yield from file.read_text(encoding="utf-8").splitlines()


def _check(spark: SparkSession, question: Question, folder: Path) -> int:
    """Compare the answers of a small input with those of a bounded run; gives how many there are.

    Raises:
        InternalError: they differ.
    """
    from quadweir.sinks.files import FileSink
    from quadweir.sinks.lineformat import LineFormat

    data = workloads.lsbench_data(workloads.SMALL, question)
    tables = at_rate(head(data.streams, _CHECKED), _DENSITY / 10)
    given = _Input(write_text(tables, folder, WARM_BATCHES + 2), folder / "s.nt")
    assert data.static is not None
    write_static(data.static, given.static)
    # One element long after the others, so that on the live path too everything else is reported.
    last = max(table.column("time").to_numpy()[-1] for table in tables.values()) + 10**9
    for path in given.streams.values():
        (path / "99999.stream").write_text(f"{last} <urn:a> <urn:b> <urn:c> .\n")
    _answer(spark, question, given, folder / "live")
    bounded = _engine(spark, given, None).query(question.text, static=[given.static])
    sink = FileSink(folder / "bounded", LineFormat.ANSWERS_JSONL)
    expected = [row[0] for row in sink.lines(bounded.spelled_answers()).collect()]
    found = [list(_written(folder / "live" / "out")), expected]
    live, whole = (Counter(each for each in some if json.loads(each)["t"] < last) for some in found)
    if live != whole:
        raise InternalError(
            f"{question.name} gives {live.total()} answers on the live path, {whole.total()} bounded"
        )
    return live.total()
