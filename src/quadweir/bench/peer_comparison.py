"""Peers answer the same queries over the same input; one run compares and times them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from quadweir.bench import workloads
from quadweir.bench.method import Effort, by_peer, fed, inputs_of, taken_from
from quadweir.bench.mismatch import compare
from quadweir.bench.peers import Peer, Quadweir, Reevaluation, SparkSql
from quadweir.bench.speed import of_users
from quadweir.bench.suite import BenchmarkPiece, Workbench
from quadweir.bench.workloads import Data, Question
from quadweir.errors import UnsupportedError
from quadweir.testing import Answer


def peers(effort: Effort, more: Sequence[Peer] = ()) -> Iterator[BenchmarkPiece]:
    """The pieces of this comparison, one for each query."""

    def work(name: str) -> Callable[[Workbench], Any]:
        def run(bench: Workbench) -> list[dict[str, Any]]:
            others: list[Peer] = [SparkSql(bench.spark), Reevaluation(), *more]
            most = max(peer.times for peer in (Quadweir(bench.spark), *others))
            parameters = of_users(workloads.LARGE.users, effort.peers * most)
            data = workloads.lsbench_data(parameters, workloads.lsbench()[name])
            found = []
            for dialect in ("cqels", "csparql", "rspql"):
                here = [peer for peer in others if peer.dialect == dialect]
                if not here:
                    continue
                question = workloads.lsbench(dialect)[name]
                ours: list[Answer] | None = None
                for peer in (Quadweir(bench.spark), *here):
                    measured, answers = _measured(peer, question, data, effort)
                    ours = answers if ours is None else ours
                    if "cannot" not in measured:
                        measured |= asdict(compare(answers, ours))
                    found.append({"peer": peer.name, "dialect": dialect, **measured})
            return found

        return run

    for name in effort.peered:
        question = workloads.lsbench()[name]
        inputs = inputs_of(question, effort) | {"peers": [peer.name for peer in more]}
        yield BenchmarkPiece("peers", name, inputs, work(name))


def _measured(
    peer: Peer, question: Question, data: Data, effort: Effort
) -> tuple[dict[str, Any], list[Answer]]:
    """Time a peer over a small and a large input; return its figures and its answers over the small
    one.

    The small input shows the fixed cost of a query, from its start to its last answer. The
    difference between both inputs shows the cost of each further triple.
    """

    def seconds(given: Data) -> float:
        began = time.perf_counter()
        with fed(peer, question, given):
            peer.drain()
            return time.perf_counter() - began

    little = taken_from(data, question, effort.peers, effort.density)
    much = taken_from(data, question, effort.peers * peer.times, effort.density)
    try:
        # This run also loads and compiles everything.
        answers = by_peer(peer, question, little)
    except UnsupportedError as error:
        return {"cannot": error.message}, []
    turns = [(seconds(little), seconds(much)) for _ in range(max(1, effort.runs - 1))]
    beyond = _triples(much) - _triples(little)
    # On a machine that stalls, the small input can take longer than the large one. Such a turn says
    # nothing.
    rates = [beyond / (longer - shorter) for shorter, longer in turns if longer > shorter]
    return {
        "triples": _triples(little), "beyond": beyond,
        "seconds": statistics.median_low(shorter for shorter, _ in turns),
        "triples_per_second": statistics.median_low(rates) if rates else None,
        "least": min(rates, default=None), "most": max(rates, default=None),
    }, answers  # fmt: skip


def _triples(given: Data) -> int:
    return sum(table.num_rows for table in given.streams.values())
