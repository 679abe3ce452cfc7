"""LSBench's method: which queries run, whether their answers are right, and then how fast.

Before anything is measured, all answers are compared with those of the oracle, which evaluates each
query from scratch at every report instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, final

from quadweir.algebra.dataset import Dataset
from quadweir.bench import workloads
from quadweir.bench.live import engine_over
from quadweir.bench.mismatch import compare
from quadweir.bench.peers import Peer, Quadweir
from quadweir.bench.suite import BenchmarkPiece, Workbench
from quadweir.bench.tables import as_elements, as_quads, at_rate, head, write_batches, write_static
from quadweir.bench.workloads import STATIC_GRAPH, Data, Question
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Quad
from quadweir.testing import Answer, Oracle
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.shards import ShardFeed, as_answers, scoped_static


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured.

    Attributes:
        rates: triples a second of event time at which answers are checked.
        checked: triples of each query that are checked.
        steps: events in a batch of the kernel alone.
        batches: batches of the checked run on Spark; 0 leaves that run out.
        runs: how often each query is measured.
        triples: triples in a batch that is measured.
        counted: batches that count.
        density: triples a second of event time where throughput is measured.
        measured: the queries of LSBench and SRBench that are measured.
        peers: triples of a small input of peers.
        peered: the queries that peers answer.
    """

    rates: tuple[float, ...] = (20.0, 100.0, 1000.0)
    checked: int = 1000
    steps: tuple[int, ...] = (1, 10, 100)
    batches: int = 4
    runs: int = 3
    triples: int = 400_000
    counted: int = 2
    density: float = 1000.0
    measured: tuple[str, ...] = tuple(f"Q{number}" for number in range(1, 13))
    peers: int = 20_000
    peered: tuple[str, ...] = ("Q1", "Q3", "Q5")


QUICK: Final = Effort(
    rates=(100.0,), checked=600, steps=(10,), batches=0, runs=1, triples=60_000, counted=1,
    measured=("Q1", "Q4", "Q5", "Q10"), peers=4_000, peered=("Q5",),
)  # fmt: skip


# --- functionality ----------------------------------------------------------------------------


def functionality(effort: Effort) -> Iterator[BenchmarkPiece]:
    """Every query in every dialect, by the kernel alone, against the oracle."""

    def work(question: Question, dialect: str) -> Callable[[Workbench], Any]:
        def run(_bench: Workbench) -> dict[str, Any]:
            # Queries about nearby users need more input before they have answers.
            triples = 600 if question.name == "Q7" else 300
            given = taken_from(_small(), question, triples, 100.0)
            wanted = _oracle(question, given)
            found = _kernel(question, given, 10)
            agreement = compare(found, wanted)
            return {"dialect": dialect, "answers": agreement.size, "mismatch": agreement.worst}

        return run

    for dialect in workloads.DIALECTS:
        for name, question in workloads.lsbench(dialect).items():
            inputs = {"query": question.text, "effort": asdict(effort)["steps"]}
            yield BenchmarkPiece(
                "functionality", f"{name} {dialect}", inputs, work(question, dialect)
            )


@cache
def _small() -> Data:
    return workloads.lsbench_data(workloads.SMALL, *workloads.lsbench().values())


def taken_from(data: Data, question: Question, triples: int, rate: float) -> Data:
    """The first triples that a question reads, at a rate."""
    given = data.of(question)
    return Data(at_rate(head(given.streams, triples), rate), given.static)


def _static(given: Data) -> list[Quad]:
    """Static data, in the default graph and in the one that C-SPARQL's queries name."""
    if given.static is None:
        return []
    quads = as_quads(given.static)
    return quads + [replace(quad, graph=IRI(STATIC_GRAPH)) for quad in quads]


def _oracle(question: Question, given: Data) -> list[Answer]:
    query = parse(question.text, allow=("FROM",))
    return Oracle(query, static=_static(given)).answers(as_elements(given.streams))


def _kernel(question: Question, given: Data, step: int) -> list[Answer]:
    """The answers of one shard that takes `step` events at a time."""
    query = parse(question.text, allow=("FROM",))
    static = Dataset.of(scoped_static(_static(given)))
    shard = Shard.of(optimize(query).query, static=static, streams=question.streams)
    feed, found = ShardFeed(shard), []
    elements = as_elements(given.streams)
    for start in range(0, len(elements), step):
        found += as_answers(feed.push(elements[start : start + step]), query)
    return found + as_answers(feed.finish(), query)


# --- correctness ------------------------------------------------------------------------------


def correctness(effort: Effort) -> Iterator[BenchmarkPiece]:
    """Every query at several rates and batch sizes against the oracle."""
    for name, question in workloads.lsbench().items():
        yield BenchmarkPiece(
            "correctness",
            f"LSBench {name}",
            inputs_of(question, effort),
            _check(question, effort, _small),
        )
    for name, question in workloads.srbench().items():
        yield BenchmarkPiece(
            "correctness",
            f"SRBench {name}",
            inputs_of(question, effort),
            _check(question, effort, lambda: workloads.srbench_data(25, 3), own_times=True),
        )
    question = workloads.taxi()
    yield BenchmarkPiece(
        "correctness",
        "taxi",
        inputs_of(question, effort),
        _check(question, effort, lambda: workloads.taxi_data(8, 6), own_times=True, live=False),
    )


def inputs_of(question: Question, effort: Effort) -> dict[str, Any]:
    """The inputs that the result of a question depends on."""
    return {"query": question.text, "effort": asdict(effort)}


def _check(
    question: Question,
    effort: Effort,
    make: Callable[[], Data],
    *,
    own_times: bool = False,
    live: bool = True,
) -> Callable[[Workbench], Any]:
    def at(rate: float | None, given: Data, bench: Workbench) -> list[dict[str, Any]]:
        # A workload with its own times is small, and its answers need all of it.
        if rate is not None:
            given = taken_from(given, question, effort.checked, rate)
        wanted = _oracle(question, given)
        ways = {
            f"kernel, {step} at a time": _kernel(question, given, step) for step in effort.steps
        }
        ways["Spark, all at once"] = by_peer(Quadweir(bench.spark), question, given)
        if live and effort.batches:
            ways[f"Spark, {effort.batches} batches"] = _by_batches(
                bench, question, given, effort.batches
            )
        triples = sum(table.num_rows for table in given.streams.values())
        return [
            {"rate": rate, "way": way, "triples": triples, **asdict(compare(answers, wanted))}
            for way, answers in ways.items()
        ]

    def run(bench: Workbench) -> list[dict[str, Any]]:
        rates = (None,) if own_times else effort.rates
        given = make().of(question)
        _ = bench.spark  # one session for all threads, started before them
        # No time is measured here, and small runs mostly wait, so the rates run in parallel.
        with ThreadPoolExecutor(len(rates)) as pool:
            found = pool.map(lambda rate: at(rate, given, bench), rates)
            return [row for rows in found for row in rows]

    return run


def by_peer(peer: Peer, question: Question, given: Data) -> list[Answer]:
    """The answers of a peer that gets all input at once."""
    with fed(peer, question, given):
        return peer.collect()


@contextmanager
def fed(peer: Peer, question: Question, given: Data) -> Iterator[None]:
    """A peer that has a question and has received all input at once."""
    try:
        peer.start(question, given.static)
        peer.feed(given.streams)
        yield
    finally:
        peer.stop()


def _by_batches(bench: Workbench, question: Question, given: Data, batches: int) -> list[Answer]:
    """The answers on the live path, batch by batch."""
    from quadweir.sinks.start import Call

    rows: list[Any] = []
    with TemporaryDirectory(prefix="quadweir-bench-") as folder:
        path = Path(folder)
        streams = write_batches(given.streams, path / "in", batches=batches, ended=True)
        static = [] if given.static is None else [write_static(given.static, path / "static.nt")]
        registered = engine_over(bench.spark, streams).query(question.text, static=static)
        registered.start(
            Call(lambda frame, _: rows.extend(frame.collect())),
            checkpoint=path / "checkpoint",
            available_now=True,
        )
        registered.awaitTermination()
    return answers_from_rows(rows)
