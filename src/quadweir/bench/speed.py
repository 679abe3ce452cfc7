"""How fast queries are: comparable maximum execution throughput, time split, memory.

Input is pushed as fast as the query takes it. The result is input triples over time, for queries
whose answers are right (`method.py`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from quadweir.bench import workloads
from quadweir.bench.live import WARM_BATCHES, Throughput, drain, measure_query, watched
from quadweir.bench.lsbench.network import make_network
from quadweir.bench.lsbench.parameters import Parameters
from quadweir.bench.lsbench.tables import static_table
from quadweir.bench.method import Effort, inputs_of
from quadweir.bench.peers import Quadweir
from quadweir.bench.suite import BenchmarkPiece, Workbench
from quadweir.bench.tables import at_rate, head, write_batches, write_static
from quadweir.bench.waits import ANSWERED, PASSED, waits_of
from quadweir.bench.workloads import Question


def performance(effort: Effort) -> Iterator[BenchmarkPiece]:
    """Comparable maximum execution throughput: input over time, at full speed."""
    for workload, questions, given in (
        ("LSBench", workloads.lsbench(), lsbench_input),
        ("SRBench", workloads.srbench(), srbench_input),
    ):
        for name, question in questions.items():
            if name in effort.measured:
                work = measured(question, effort, given)
                yield BenchmarkPiece(
                    "performance", f"{workload} {name}", inputs_of(question, effort), work
                )
    question = workloads.taxi()
    yield BenchmarkPiece(
        "performance", "taxi", inputs_of(question, effort), _measured_whole(question, effort)
    )


_TRIPLES_OF_LARGE: Final = 1_000_000
"""The least number of triples that the large network has for any of the queries."""


@final
@dataclass(frozen=True, slots=True)
class Input:
    """Streams as files, batch by batch, and static data."""

    streams: Mapping[str, Path]
    static: Sequence[Path]


def measured(
    question: Question,
    effort: Effort,
    given: Callable[[Workbench, Question, Effort], Input],
) -> Callable[[Workbench], Any]:
    """A function that measures a question; it generates the input on demand."""

    def run(bench: Workbench) -> dict[str, Any]:
        made = given(bench, question, effort)
        return summary(runs_of(bench, question, made, effort.runs))

    return run


def runs_of(
    bench: Workbench, question: Question, made: Input, count: int, shards: int | None = None
) -> list[Throughput]:
    """Measure a question `runs` times.

    Java compiles the code of a query's plan while it runs, so the first run tends to be the
    slowest.
    """
    return [
        measure_query(bench.spark, question.text, made.streams, static=made.static, shards=shards)
        for _ in range(count)
    ]


def summary(runs: Sequence[Throughput]) -> dict[str, Any]:
    """The median of runs with minimum and maximum; the other figures are those of the median
    run.
    """
    ordered = sorted(runs, key=lambda run: run.triples_per_second)
    middle = ordered[(len(ordered) - 1) // 2]
    rates = [run.triples_per_second for run in ordered]
    return {
        "triples_per_second": statistics.median_low(rates),
        "least": rates[0],
        "most": rates[-1],
        "runs": len(runs),
        "answers": middle.answers,
        "batch_ms": middle.batch_ms,
        "kernel_ms": middle.kernel_ms,
        "split_ms": dict(middle.split_ms),
        "memory_mib": max(run.memory_mib for run in runs),
    }


def lsbench_input(
    bench: Workbench,
    question: Question,
    effort: Effort,
    users: int | None = None,
) -> Input:
    """The streams of a question from the large network; questions with the same streams share
    them.
    """
    batches = WARM_BATCHES + effort.counted
    streams = sorted(question.streams)
    triples = round(batches * effort.triples * question.share)
    parameters = of_users(users if users is not None else workloads.LARGE.users, triples)
    inputs = {
        "parameters": parameters.as_json(), "streams": streams, "batches": batches,
        "triples": triples, "density": effort.density,
    }  # fmt: skip
    static = _network_static(bench, parameters)
    with bench.made("lsbench", inputs) as (folder, is_new):
        if is_new:
            tables = workloads.lsbench_streams(make_network(parameters), question)
            tables = {iri: tables[iri] for iri in streams}
            tables = at_rate(head(tables, triples), effort.density)
            write_batches(tables, folder, batches=batches)
        found = {iri: folder / f"stream-{number}" for number, iri in enumerate(streams)}
    return Input(found, [static])


def of_users(users: int, triples: int) -> Parameters:
    """The large network with another number of users, and with enough days for the given number of
    triples.
    """
    large = workloads.LARGE
    days = large.days * large.users * triples / (users * _TRIPLES_OF_LARGE)
    return replace(large, users=users, days=min(large.days, max(1, math.ceil(days))))


def _network_static(bench: Workbench, parameters: Parameters) -> Path:
    with bench.made("static", parameters.as_json()) as (folder, is_new):
        if is_new:
            network = make_network(parameters)
            write_static(static_table(network), folder / "static.nt")
        return folder / "static.nt"


def srbench_input(bench: Workbench, _question: Question, effort: Effort) -> Input:
    """Observations of 400 stations, as many hours as are asked for."""
    batches = WARM_BATCHES + effort.counted
    stations = 400
    # Three observations of eight triples in an hour, and rain.
    hours = max(3, batches * effort.triples // (stations * 26))
    inputs = {"stations": stations, "hours": hours, "batches": batches}
    with bench.made("srbench", inputs) as (folder, is_new):
        if is_new:
            data = workloads.srbench_data(stations, hours)
            write_batches(data.streams, folder, batches=batches)
            assert data.static is not None
            write_static(data.static, folder / "static.nt")
        streams = dict.fromkeys(_question.streams, folder / "stream-0")
        return Input(streams, [folder / "static.nt"])


def _measured_whole(question: Question, effort: Effort) -> Callable[[Workbench], Any]:
    """A question over complete streams; event times are inside the elements."""

    def run(bench: Workbench) -> dict[str, Any]:
        taxis = max(10, round(effort.triples * question.share) // (6 * 40))
        given = workloads.taxi_data(taxis, 40)
        triples = sum(table.num_rows for table in given.streams.values())
        peer = Quadweir(bench.spark)
        rates, answers = [], 0
        try:
            peer.start(question, None)
            peer.feed(given.streams)
            with watched() as memory:
                for turn in range(effort.runs + 1):
                    began = time.perf_counter()
                    drain(peer.answers())
                    if turn:
                        rates.append(triples / (time.perf_counter() - began))
            answers = peer.answers().count()
        finally:
            peer.stop()
        return {
            "triples_per_second": statistics.median_low(rates), "least": min(rates),
            "most": max(rates), "runs": len(rates), "answers": answers, "memory_mib": memory[0],
        }  # fmt: skip

    return run


def latency(seconds: int) -> Iterator[BenchmarkPiece]:
    """From an element's arrival in a folder to its answer in a file, on the live path."""

    def run(bench: Workbench) -> dict[str, list[float]]:
        with TemporaryDirectory(prefix="quadweir-bench-") as folder:
            found = {
                name: waits_of(name, bench.spark, Path(folder), seconds)
                for name in (PASSED, ANSWERED)
            }
        return {name: [round(each, 2) for each in waits] for name, waits in found.items()}

    yield BenchmarkPiece("latency", "arrival to answer", {"seconds": seconds}, run)
