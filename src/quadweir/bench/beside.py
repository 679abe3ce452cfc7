"""Queries answered by peers over the same input, compared and timed in the same run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from quadweir.bench import workloads
from quadweir.bench.method import Effort, by_peer, inputs_of, taken_from
from quadweir.bench.mismatch import compare
from quadweir.bench.peers import Peer, Quadweir, Reevaluation, SparkSql
from quadweir.bench.suite import Piece, Workbench
from quadweir.bench.workloads import Data, Question
from quadweir.errors import UnsupportedError
from quadweir.testing import Answer


def peers(effort: Effort, more: Sequence[Peer] = ()) -> Iterator[Piece]:
    """Queries answered by others over the same input, compared and timed in the same run."""

    def work(name: str) -> Callable[[Workbench], Any]:
        def run(bench: Workbench) -> list[dict[str, Any]]:
            data = workloads.lsbench_data(
                replace(workloads.LARGE, days=7), workloads.lsbench()[name]
            )
            ours: dict[str, list[Answer]] = {}
            found = []
            others: list[Peer] = [SparkSql(bench.spark), Reevaluation(), *more]
            for dialect in ("cqels", "csparql", "rspql"):
                here = [peer for peer in others if peer.dialect == dialect]
                if not here:
                    continue
                question = workloads.lsbench(dialect)[name]
                given = taken_from(data, question, effort.peers, effort.density)
                for peer in (Quadweir(bench.spark), *here):
                    found.append(_beside(peer, dialect, question, given, ours, effort))
            return found

        return run

    for name in effort.peered:
        question = workloads.lsbench()[name]
        inputs = inputs_of(question, effort) | {"peers": [peer.name for peer in more]}
        yield Piece("peers", name, inputs, work(name))


def _beside(
    peer: Peer,
    dialect: str,
    question: Question,
    given: Data,
    ours: dict[str, list[Answer]],
    effort: Effort,
) -> dict[str, Any]:
    """Time a peer, and compare its answers with ours in the same dialect."""
    triples = sum(table.num_rows for table in given.streams.values())
    told: dict[str, Any] = {"peer": peer.name, "dialect": dialect, "triples": triples}
    rates = []
    answers: list[Answer] = []
    # The first turn loads what is needed; an engine that evaluates anew has nothing to load.
    turns = 1 if isinstance(peer, Reevaluation) else effort.runs + 1
    for turn in range(turns):
        began = time.perf_counter()
        try:
            answers = by_peer(peer, question, given)
        except UnsupportedError as error:
            return {**told, "cannot": error.message}
        if turn or turns == 1:
            rates.append(triples / (time.perf_counter() - began))
    if isinstance(peer, Quadweir):
        ours[dialect] = answers
    agreement = compare(answers, ours[dialect])
    return {
        **told, "triples_per_second": statistics.median_low(rates), "least": min(rates),
        "most": max(rates), **asdict(agreement),
    }  # fmt: skip
