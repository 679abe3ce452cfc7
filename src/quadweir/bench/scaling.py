"""How throughput changes with static data, with the number of queries, with windows and with cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.algebra.dataset import Dataset
from quadweir.algebra.patterns import TriplePattern
from quadweir.algebra.query import ContinuousQuery
from quadweir.algebra.traverse import rewrite, walk
from quadweir.bench import workloads
from quadweir.bench.kernel import one_core
from quadweir.bench.lsbench.network import make_network
from quadweir.bench.lsbench.parameters import STREAM_IRI
from quadweir.bench.lsbench.tables import static_table
from quadweir.bench.method import Effort, inputs_of
from quadweir.bench.speed import lsbench_input, measured, of_users, runs_of, summary
from quadweir.bench.suite import BenchmarkPiece, Workbench
from quadweir.bench.tables import as_quads, at_rate, head
from quadweir.bench.templateshards import template_shards
from quadweir.kernel.events import Events, MatchColumns
from quadweir.kernel.shard import Shard
from quadweir.optimize import optimize
from quadweir.syntax.read import parse
from quadweir.terms import IRI, Variable

if TYPE_CHECKING:
    from quadweir.algebra.node import Node


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range of each scaling measurement.

    Attributes:
        asked: the queries measured over growing static data.
        users: numbers of users in the static data.
        queries: numbers of instances of one template.
        apart: the most instances that are also answered one by one.
        elements: triples of posts that the instances get.
        windows: window lengths in seconds.
        cores: numbers of cores.
    """

    asked: tuple[str, ...] = ("Q5",)
    users: tuple[int, ...] = (1000, 3000, 10_000)
    queries: tuple[int, ...] = (1, 10, 100, 1000, 10_000)
    apart: int = 100
    elements: int = 400_000
    windows: tuple[int, ...] = (15, 60, 240)
    cores: tuple[int, ...] = (1, 2)


QUICK: Final = Range(
    asked=("Q5",),
    users=(100, 300),
    queries=(1, 100),
    apart=1,
    elements=30_000,
    windows=(15, 60),
    cores=(),
)


def scaling(effort: Effort, span: Range) -> Iterator[BenchmarkPiece]:
    """All scaling measurements."""
    yield from static_data(effort, span)
    yield from many_queries(span)
    yield from window_sizes(effort, span)
    yield from some_cores(effort, span)


def static_data(effort: Effort, span: Range) -> Iterator[BenchmarkPiece]:
    """The same queries over the streams and the static data of more and more users."""
    for name in span.asked:
        question = workloads.lsbench()[name]
        for users in span.users:

            def given(bench: Workbench, question: Any, effort: Effort, users: int = users) -> Any:
                return lsbench_input(bench, question, effort, users)

            work = measured(question, effort, given)
            inputs = inputs_of(question, effort) | {"users": users}
            yield BenchmarkPiece("static data", f"{name}, {users} users", inputs, work)


def window_sizes(effort: Effort, span: Range) -> Iterator[BenchmarkPiece]:
    """Queries with windows of growing length."""
    for name in ("Q4", "Q10"):
        for seconds in span.windows:
            question = workloads.lsbench()[name]
            question = replace(question, text=question.text.replace("15s", f"{seconds}s"))
            inputs = inputs_of(question, effort) | {"window": seconds}
            work = measured(question, effort, lsbench_input)
            yield BenchmarkPiece("window size", f"{name}, {seconds} s", inputs, work)


# --- cores ------------------------------------------------------------------------------------


def some_cores(effort: Effort, span: Range) -> Iterator[BenchmarkPiece]:
    """A join-heavy query on few cores; each run has its own processes, pinned to those cores."""
    question = workloads.lsbench()["Q4"]
    for cores in span.cores:
        inputs = inputs_of(question, effort) | {"cores": cores}
        work = _on_cores(question.name, effort, cores)
        yield BenchmarkPiece("cores", f"{question.name}, {cores}", inputs, work)


def _on_cores(name: str, effort: Effort, cores: int) -> Callable[[Workbench], Any]:
    def run(bench: Workbench) -> Any:
        question = workloads.lsbench()[name]
        lsbench_input(bench, question, effort)
        bench.without_spark()
        given = {"name": name, "folder": str(bench.folder), "effort": asdict(effort)}
        done = subprocess.run(
            [sys.executable, "-m", "quadweir.bench.scaling", str(cores), json.dumps(given)],
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])

    return run


def measure_on(cores: int, name: str, folder: Path, effort: Effort) -> dict[str, Any]:
    """Measure a query in this process, pinned to `cores` cores."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    bench = Workbench(folder, cores=cores)
    question = workloads.lsbench()[name]
    made = lsbench_input(bench, question, effort)
    try:
        runs = runs_of(bench, question, made, effort.runs, shards=cores)
    finally:
        bench.without_spark()
    return summary(runs)


# --- many queries -----------------------------------------------------------------------------

_ONE_USER: Final = f"""
PREFIX user: <http://www.ins.cwi.nl/sib/user/>
SELECT ?predicate ?object WHERE {{
  STREAM <{STREAM_IRI}posts> [RANGE 1s] {{ user:u984 ?predicate ?object }}
}}"""
_USER: Final = "http://www.ins.cwi.nl/sib/user/u{}"
_PERSON: Final = "http://www.ins.cwi.nl/sib/person/p{}"
_ASKED: Final = 984


def many_queries(span: Range) -> Iterator[BenchmarkPiece]:
    """Instances of one template that differ in a constant, in one shard of the kernel, on one core."""
    templates = {
        "Q1, of one user": _ONE_USER,
        "Q3": workloads.lsbench()["Q3"].text,
    }
    for name, text in templates.items():
        for count in span.queries:
            inputs = {"query": text, "count": count, "span": asdict(span)}
            yield BenchmarkPiece("queries", f"{name}, {count}", inputs, _grouped(text, count, span))


def _grouped(text: str, count: int, span: Range) -> Callable[[Workbench], Any]:
    def run(bench: Workbench) -> dict[str, Any]:
        bench.without_spark()
        # Enough users for every instance to ask for a different one.
        parameters = of_users(max(workloads.LARGE.users, count), span.elements)
        network = make_network(parameters)
        question = workloads.lsbench()["Q3"]
        streams = workloads.lsbench_streams(network, question)
        (table,) = at_rate(head(streams, span.elements), 1000.0).values()
        queries = instances(text, count)
        static = _asked_of(static_table(network), queries[0])
        began = time.perf_counter()
        shared = template_shards(queries, static=static, streams=question.streams)
        found: dict[str, Any] = {
            "count": count,
            "seconds_to_make": time.perf_counter() - began,
            "shards": len(shared),
        }
        with one_core():
            rate, answers = feed_posts(shared, table)
            found |= {"triples_per_second": rate, "answers": answers}
            if count <= span.apart:
                shards = [
                    Shard.of(query, static=static, streams=question.streams, records=False)
                    for query in queries
                ]
                rate, again = feed_posts(shards, table)
                assert again == answers, "shared and separate queries answer alike (P4)"
                found["apart"] = rate
        return found

    return run


def _asked_of(static: pa.Table, query: ContinuousQuery) -> Dataset:
    """The static data with predicates that a query names."""
    named = {str(each.predicate) for each in walk(query) if isinstance(each, TriplePattern)}
    asked = pc.is_in(static.column("predicate"), pa.array(sorted(named)))
    return Dataset.of(as_quads(static.filter(asked)))


def instances(text: str, count: int) -> list[ContinuousQuery]:
    """Instances of a query about user or person 984, each about another user or person."""
    query = optimize(parse(text, dialect="cqels")).query

    def about(number: int) -> ContinuousQuery:
        others = {IRI(name.format(_ASKED)): IRI(name.format(number)) for name in (_USER, _PERSON)}

        def other(node: Node) -> Node:
            if not isinstance(node, TriplePattern):
                return node
            return replace(
                node,
                subject=others.get(node.subject, node.subject),  # type: ignore[arg-type]
                object=others.get(node.object, node.object),  # type: ignore[arg-type]
            )

        return rewrite(query, other)

    return [about(number) for number in range(count)]


def feed_posts(shards: Sequence[Shard], table: pa.Table) -> tuple[float, int]:
    """Match a stream and feed it to shards; return triples a second of CPU time, and answers.

    The first half of the stream is not measured.
    """
    pieces = 8
    spent, answers, counted = 0.0, 0, 0
    size = -(-table.num_rows // pieces)
    for piece in range(pieces):
        part = table.slice(piece * size, size).combine_chunks()
        times = part.column("time").to_numpy()
        began = time.process_time()
        for shard in shards:
            events = _matched(shard, part)
            answers += len(shard.step(events, int(times[-1]) - 1))
        if piece >= pieces // 2:
            spent += time.process_time() - began
            counted += part.num_rows
    return counted / spent, answers


def _matched(shard: Shard, table: pa.Table) -> Events:
    """The matches of each leaf in a part of a stream."""
    times, events = table.column("time").to_numpy(), table.column("event").to_numpy()
    found = {}
    for place, plan in enumerate(shard.leaves):
        pattern = plan.pattern
        assert pattern is not None
        terms = zip(
            ("subject", "predicate", "object"),
            (pattern.subject, pattern.predicate, pattern.object),
            strict=True,
        )
        keep: Any = None
        bound: dict[Variable, str] = {}
        for column, term in terms:
            if isinstance(term, Variable):
                bound[term] = column
            else:
                equal = pc.equal(table.column(column), str(term))
                keep = equal if keep is None else pc.and_(keep, equal)
        kept = np.arange(len(times)) if keep is None else np.flatnonzero(keep.to_numpy())
        columns = [
            table.column(bound[variable]).combine_chunks().take(pa.array(kept)).dictionary_encode()
            for variable in plan.variables
        ]
        found[place] = MatchColumns(times[kept], events[kept], columns)
    return Events(found, {}, {0: (int(times[0]), int(times[-1]))})


if __name__ == "__main__":
    asked = json.loads(sys.argv[2])
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in asked["effort"].items()
    }
    found = measure_on(int(sys.argv[1]), asked["name"], Path(asked["folder"]), Effort(**chosen))
    print(json.dumps(found))
