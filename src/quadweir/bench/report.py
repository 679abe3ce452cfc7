"""The report of the whole benchmark: correctness first, then speed, each with published figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, final

from quadweir.bench import method, scaling, workloads
from quadweir.bench.charts import BarChart, Bars, Box, BoxChart, LineChart, Series, ecdf
from quadweir.bench.measure import machine
from quadweir.bench.page import (
    Cell,
    Figure,
    Note,
    PagePart,
    PageTable,
    Published,
    ReportPage,
    Section,
    TargetResult,
)
from quadweir.bench.peer_comparison import peers
from quadweir.bench.peers import Peer
from quadweir.bench.speed import latency, performance
from quadweir.bench.suite import FAILED, BenchmarkPiece, Workbench, run
from quadweir.bench.workloads import C_SPARQL, CQELS_2012, CQELS_2016, JTALIS

SECTIONS: Final = (
    "functionality", "correctness", "performance", "latency", "static data", "queries",
    "window size", "cores", "peers",
)  # fmt: skip
PieceResults = Mapping[str, Sequence[Mapping[str, Any]]]
"""The results of pieces by section."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    effort: method.Effort
    span: scaling.Range
    seconds: int

    @staticmethod
    def of(*, quick: bool) -> Plan:
        """The default plan, or a quick one that takes minutes."""
        if quick:
            return Plan(method.QUICK, scaling.QUICK, 2)
        return Plan(method.Effort(), scaling.Range(), 10)


def all_pieces(
    plan: Plan, sections: Sequence[str] = SECTIONS, *, more: Sequence[Peer] = ()
) -> list[BenchmarkPiece]:
    """All pieces to measure, in order."""

    def made() -> Iterator[BenchmarkPiece]:
        yield from method.functionality(plan.effort)
        yield from method.correctness(plan.effort)
        yield from performance(plan.effort)
        yield from latency(plan.seconds)
        yield from peers(plan.effort, more)
        yield from scaling.scaling(plan.effort, plan.span)

    return [piece for piece in made() if piece.section in sections]


def measure(
    plan: Plan,
    folder: Path,
    sections: Sequence[str] = SECTIONS,
    *,
    more: Sequence[Peer] = (),
    on_piece: Callable[[BenchmarkPiece, bool], None] = lambda _piece, _known: None,
) -> dict[str, Any]:
    """Measure the pieces that have no result yet; return the whole result.

    Args:
        plan: how much to measure.
        folder: where results are kept, piece by piece.
        sections: only these.
        more: further peers, added to those that come with Quadweir.
        on_piece: called before each piece; its second argument says whether the result is known
        already.
    """
    bench = Workbench(folder / "data")
    about = machine()
    try:
        pieces = all_pieces(plan, sections, more=more)
        found = run(pieces, folder / "pieces", bench, on_piece=on_piece)
    finally:
        bench.without_spark()
    return {
        "benchmark": "report",
        "machine": about,
        "input": {"effort": asdict(plan.effort), "span": asdict(plan.span)},
        "sections": found,
    }


def wrong(result: Mapping[str, Any]) -> list[str]:
    """The names of the pieces that failed or whose answers differ from the oracle's."""
    found: PieceResults = result["sections"]
    names = [name for name, _ in _of(found, FAILED)]
    names += [name for name, each in _of(found, "functionality") if each["mismatch"] > 0]
    for name, rows in _of(found, "correctness"):
        if any(_worst(row) > 0 or row["size"] != row["other_size"] for row in rows):
            names.append(name)
    return names


def make_report(result: Mapping[str, Any], commands: Sequence[Sequence[str]] = ()) -> ReportPage:
    """Put a result into words, tables and charts."""
    found: PieceResults = result["sections"]
    makers: dict[str, Callable[[PieceResults], list[PagePart]]] = {
        "What failed": _failed,
        "Which queries run": _functionality,
        "Are the answers right": _correctness,
        "Throughput": _throughput,
        "Where the time goes": _time_split,
        "Memory": _memory,
        "Latency": _latency,
        "More static data": _static_data,
        "More queries": _queries,
        "Longer windows": _windows,
        "More cores": _cores,
        "Compared with other engines": _peers,
    }
    sections = [
        Section(title=title, parts=parts)
        for title, make in makers.items()
        if (parts := make(found))
    ]
    return ReportPage(
        title="Quadweir: LSBench and related benchmarks",
        summary=_summary(found),
        sections=sections,
        facts={**result["machine"], "input": _described(result["input"]["effort"])},
        commands=commands,
    )


def _failed(found: PieceResults) -> list[PagePart]:
    failed = _of(found, FAILED)
    if not failed:
        return []
    rows: list[list[Cell]] = [[name, why] for name, why in failed]
    return [PageTable(title="Could not be measured", heading=["what", "why"], rows=rows)]


def _described(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in given.items())


def _of(found: PieceResults, section: str) -> list[tuple[str, Any]]:
    return [(piece["name"], piece["result"]) for piece in found.get(section, ())]


def _summary(found: PieceResults) -> str:
    words = []
    if failed := _of(found, FAILED):
        words.append(f"Could not be measured: {len(failed)}.")
    checked = [row for _, rows in _of(found, "correctness") for row in rows]
    if checked:
        worst = max(_worst(row) for row in checked)
        answers = sum(row["size"] for row in checked)
        words.append(
            f"{len(checked):,} runs with {answers:,} answers were compared with an oracle that "
            f"evaluates every query from scratch; the largest mismatch is {worst:.2f} %."
        )
    reached = missed = 0
    for name, _, result, question in _speeds(found):
        del name
        if question.at_least is not None:
            if result["triples_per_second"] >= question.at_least:
                reached += 1
            else:
                missed += 1
    if reached + missed:
        words.append(
            f"Throughput reaches its target in {reached} of {reached + missed} queries. Published "
            "figures are from their authors' machines; they serve as orientation only."
        )
    return " ".join(words)


def _worst(row: Mapping[str, Any]) -> float:
    names = ("eager", "eager_back", "periodic", "periodic_back")
    return float(max(row[name] for name in names))


# --- which, and whether right -----------------------------------------------------------------


def _functionality(found: PieceResults) -> list[PagePart]:
    pieces = _of(found, "functionality")
    if not pieces:
        return []
    answered: dict[str, dict[str, Any]] = {}
    for name, result in pieces:
        answered.setdefault(name.split()[0], {})[result["dialect"]] = result
    rows: list[list[Cell]] = []
    for name, asked in workloads.lsbench().items():
        cells: list[Cell] = [name, asked.asks]
        for dialect in workloads.DIALECTS:
            result = answered.get(name, {}).get(dialect)
            if result is None:
                cells.append(None)
            else:
                is_right = result["answers"] > 0 and result["mismatch"] == 0
                cells.append(TargetResult(f"{result['answers']:,} answers", is_right))
        cells += [Published(fails.get(name, "runs")) for fails in workloads.RUNS_ELSEWHERE.values()]
        rows.append(cells)
    heading = ["query", "asks", "RSP-QL", "C-SPARQL", "CQELS-QL", *workloads.RUNS_ELSEWHERE]
    note = (
        "The twelve queries of LSBench in each dialect, over some hundred triples at 100 a second, by "
        "the kernel alone. Reached means that there are answers, and that all equal the oracle's."
    )
    return [PageTable(title="LSBench in three dialects", heading=heading, rows=rows, note=note)]


# Table 2 of paper 002: mismatch between engines at 100 elements a second, the larger of both ways.
_ELSEWHERE: Final = {
    "Q1": (1.47, 0.00, 1.47),
    "Q2": (1.47, 0.00, 1.47),
    "Q3": (0.00, 0.00, 0.00),
    "Q4": (1.69, 87.93, 78.91),
    "Q10": (14.96, 87.66, 44.67),
}


def _correctness(found: PieceResults) -> list[PagePart]:
    pieces = _of(found, "correctness")
    if not pieces:
        return []
    total: list[list[Cell]] = []
    detail: list[list[Cell]] = []
    for name, rows in pieces:
        worst = max(_worst(row) for row in rows)
        published = _ELSEWHERE.get(name.removeprefix("LSBench "), (None,) * 3)
        others: list[Cell] = [None if value is None else Published(value) for value in published]
        is_right = worst == 0 and all(row["size"] == row["other_size"] > 0 for row in rows)
        answers = sum(row["size"] for row in rows)
        total.append([name, len(rows), answers, TargetResult(f"{worst:.2f} %", is_right), *others])
        for rate in dict.fromkeys(row["rate"] for row in rows):
            here = [row for row in rows if row["rate"] == rate]
            detail.append(
                [
                    name,
                    "its own times" if rate is None else f"{rate:,.0f} triples/s",
                    here[0]["triples"],
                    here[0]["other_size"],
                    " ".join(dict.fromkeys(f"{row['size']:,}" for row in here)),
                    *(
                        f"{max(row[way] for row in here):.2f}"
                        for way in ("eager", "eager_back", "periodic", "periodic_back")
                    ),
                ]
            )
    ways = list(dict.fromkeys(row["way"] for _, rows in pieces for row in rows))
    between = f"(CQELS, {C_SPARQL}) (CQELS, {JTALIS}) ({C_SPARQL}, {JTALIS})".split(") ")
    return [
        Note(
            "Mismatch is the part of one output that the other does not have, as LSBench's paper "
            "defines it: E1's output is cut into blocks, and each block keeps only the answers that "
            "E2's output still contains from the earliest match of the block before on. Eager "
            "blocks are single answers, periodic ones all answers of a report. Answers are equal "
            "if report instant, sign and solution are."
        ),
        PageTable(
            title="Mismatch between Quadweir and the oracle, the largest of all runs",
            heading=["query", "runs", "answers", "mismatch",
                     *(f"{pair.rstrip(')')})" for pair in between)],
            rows=total,
            note="Each run is one of: " + "; ".join(ways) + ". Published: mismatch in per cent "
            "between other engines at 100 elements a second, the larger of both ways.",
        ),
        PageTable(
            title="Output sizes, and mismatch in per cent both ways: "
            "Quadweir against the oracle, and back",
            heading=["query", "rate", "triples", "oracle", "Quadweir", "eager", "eager, back",
                     "periodic", "periodic, back"],
            rows=detail,
        ),
    ]  # fmt: skip


# --- speed ------------------------------------------------------------------------------------


def _speeds(
    found: PieceResults,
) -> Iterator[tuple[str, str, Mapping[str, Any], workloads.Question]]:
    """The measurements by query: workload, name, result, and the query."""
    asked = {"LSBench": workloads.lsbench(), "SRBench": workloads.srbench()}
    for name, result in _of(found, "performance"):
        workload, _, query = name.partition(" ")
        question = asked[workload][query] if workload in asked else workloads.taxi()
        yield workload, query or workload, result, question


def _throughput(found: PieceResults) -> list[PagePart]:
    parts: list[PagePart] = []
    for workload, others in (
        ("LSBench", (CQELS_2016, CQELS_2012, JTALIS, C_SPARQL)),
        ("SRBench", (CQELS_2016,)),
        ("taxi", ()),
    ):
        here = [each for each in _speeds(found) if each[0] == workload]
        if not here:
            continue
        rows: list[list[Cell]] = []
        for _, name, result, question in here:
            rate = result["triples_per_second"]
            target = question.at_least
            rows.append(
                [
                    name,
                    question.asks,
                    rate if target is None else TargetResult(rate, rate >= target),
                    result["least"],
                    result["most"],
                    target,
                    *(
                        Published(question.published[who]) if who in question.published else None
                        for who in others
                    ),
                    result["answers"],
                ]
            )
        heading = ["query", "asks", "triples/s", "least", "most", "target", *others, "answers"]
        if others:
            parts.append(
                Figure(chart=_speed_chart(workload, here, others), caption=_SPEED[workload])
            )
        parts.append(
            PageTable(title=f"{workload}: input triples a second", heading=heading, rows=rows)
        )
    return parts


_SPEED: Final = {
    "LSBench": "Comparable maximum execution throughput: input triples over the time of all batches "
    "after the first two, on the live path, two cores; the median of runs, with the least and most.",
    "SRBench": "The five queries that paper 001 measured, over generated observations.",
}


def _speed_chart(
    workload: str,
    here: Sequence[tuple[str, str, Mapping[str, Any], workloads.Question]],
    others: Sequence[str],
) -> BarChart:
    ours = Bars(
        name="Quadweir",
        values=[result["triples_per_second"] for _, _, result, _ in here],
        low=[result["least"] for _, _, result, _ in here],
        high=[result["most"] for _, _, result, _ in here],
    )
    theirs = [
        Bars(name=who, values=[each[3].published.get(who) for each in here], published=True)
        for who in others
    ]
    return BarChart(
        title=f"{workload}: throughput by query",
        y="input triples/s",
        groups=[name for _, name, _, _ in here],
        series=[ours, *theirs],
        log_y=True,
        description="Our bars with spread, next to hollow bars of published figures.",
    )


def _time_split(found: PieceResults) -> list[PagePart]:
    here = [each for each in _speeds(found) if "split_ms" in each[2]]
    if not here:
        return []
    phases = list(dict.fromkeys(phase for each in here for phase in each[2]["split_ms"]))
    rows: list[list[Cell]] = [
        [
            f"{workload} {name}",
            result["batch_ms"],
            result["kernel_ms"],
            *(result["split_ms"].get(phase) for phase in phases),
        ]
        for workload, name, result, _ in here
    ]
    chart = BarChart(
        title="LSBench: time of a batch, and the part of it in shards",
        y="ms",
        groups=[name for workload, name, _, _ in here if workload == "LSBench"],
        series=[
            Bars(
                name=words,
                values=[each[2][key] for each in here if each[0] == "LSBench"],
            )
            for key, words in (("batch_ms", "whole batch"), ("kernel_ms", "in shards"))
        ],
    )
    return [
        Figure(
            chart=chart, caption="The median run. Shards work in parallel, and the slowest counts."
        ),
        PageTable(
            title="Milliseconds of a batch, by Spark's phases",
            heading=["query", "batch", "in shards", *phases],
            rows=rows,
            note="addBatch is reading, matching, the shuffle, the shards and the sink; shards are "
            "part of it.",
        ),
    ]  # fmt: skip


def _memory(found: PieceResults) -> list[PagePart]:
    here = [each for each in _speeds(found) if each[0] == "LSBench"]
    if not here:
        return []
    chart = BarChart(
        title="LSBench: memory by query",
        y="MiB",
        groups=[name for _, name, _, _ in here],
        series=[
            Bars(name="Quadweir", values=[result["memory_mib"] for _, _, result, _ in here]),
            Bars(name=CQELS_2016, values=[each[3].memory for each in here], published=True),
        ],
    )
    caption = (
        "The most that all processes held together while the query ran: Spark's JVM, whose heap "
        "grows to its limit, the driver and the Python workers of all queries before it. "
        "Published: CQELS in one JVM."
    )
    return [Figure(chart=chart, caption=caption)]


def _latency(found: PieceResults) -> list[PagePart]:
    pieces = _of(found, "latency")
    if not pieces or not all(waits for _, result in pieces for waits in result.values()):
        return []
    result = pieces[0][1]
    return [
        Figure(
            chart=LineChart(
                title="Latency: the share of elements answered within a time",
                x="ms from an element's arrival in a folder to its answer in a file",
                y="share",
                series=[ecdf(name, waits) for name, waits in result.items()],
            ),
            caption="One batch after the other; pass-through is Spark without a query.",
        ),
        Figure(
            chart=BoxChart(
                title="Latency: quartiles, least and 99th percentile",
                y="ms",
                boxes=[Box.of(name, waits) for name, waits in result.items()],
            )
        ),
    ]


# --- scaling ----------------------------------------------------------------------------------


def _lines(pieces: Sequence[tuple[str, Any]]) -> dict[str, list[tuple[float, Mapping[str, Any]]]]:
    """Results of pieces named `Q5, 1000 users`, by the query, in the order of the number."""
    found: dict[str, list[tuple[float, Mapping[str, Any]]]] = {}
    for name, result in pieces:
        query, _, rest = name.rpartition(", ")
        found.setdefault(query, []).append((float(rest.split()[0]), result))
    return {query: sorted(points, key=lambda point: point[0]) for query, points in found.items()}


def _curve(title: str, x: str, pieces: Sequence[tuple[str, Any]], caption: str) -> list[PagePart]:
    if not pieces:
        return []
    series = []
    for query, points in _lines(pieces).items():
        series.append(
            Series(
                name=query,
                points=[(at, result["triples_per_second"]) for at, result in points],
                low=[result["least"] for _, result in points],
                high=[result["most"] for _, result in points],
            )
        )
    chart = LineChart(title=title, x=x, y="input triples/s", series=series, log_x=x != "cores")
    return [Figure(chart=chart, caption=caption)]


def _static_data(found: PieceResults) -> list[PagePart]:
    return _curve(
        "Throughput by the size of the static data",
        "users, of about 92 static triples each",
        _of(found, "static data"),
        "Static data of more and more users; the streams keep their number of triples. In paper 002 "
        "CQELS stays almost level from 10,000 to a million static triples, and the others fall.",
    )


def _windows(found: PieceResults) -> list[PagePart]:
    return _curve(
        "Throughput by the length of the windows",
        "seconds",
        _of(found, "window size"),
        "The streams have 1,000 triples a second of event time.",
    )


def _cores(found: PieceResults) -> list[PagePart]:
    return _curve(
        "Throughput by cores",
        "cores",
        _of(found, "cores"),
        "Each run has its own processes, pinned to those cores, and as many shards as cores.",
    )


def _queries(found: PieceResults) -> list[PagePart]:
    pieces = _of(found, "queries")
    if not pieces:
        return []
    series = []
    rows: list[list[Cell]] = []
    for query, points in _lines(pieces).items():
        series.append(
            Series(
                name=f"{query}, in one group",
                points=[(at, result["triples_per_second"]) for at, result in points],
            )
        )
        apart = [(at, result["apart"]) for at, result in points if "apart" in result]
        if len(apart) > 1:
            series.append(Series(name=f"{query}, one by one", points=apart))
        for at, result in points:
            rows.append(
                [query, int(at), result["triples_per_second"], result.get("apart"),
                 result["answers"], result["shards"], result["seconds_to_make"]]
            )  # fmt: skip
    chart = LineChart(
        title="Throughput by the number of queries of one template",
        x="queries",
        y="input triples/s",
        series=series,
        log_x=True,
        log_y=True,
    )
    return [
        Figure(
            chart=chart,
            caption="Kernel groups on one core, by CPU time, matching included. In paper 002 "
            "all engines fall linearly with the number of queries; in paper 004 ten times the "
            "queries halve the throughput.",
        ),
        PageTable(
            title="Queries that differ in one constant",
            heading=["template", "queries", "triples/s", "one by one", "answers", "shards",
                     "seconds to make"],
            rows=rows,
            note="A query that stands alone is matched with its constant before it reaches the "
            "kernel; in a group the kernel finds the queries that a triple concerns.",
        ),
    ]  # fmt: skip


def _peers(found: PieceResults) -> list[PagePart]:
    pieces = _of(found, "peers")
    if not pieces:
        return []
    names = list(dict.fromkeys((row["peer"], row["dialect"]) for _, rows in pieces for row in rows))
    rates: dict[tuple[str, str], list[float | None]] = {name: [] for name in names}
    rows: list[list[Cell]] = []
    for query, results in pieces:
        by_name = {(row["peer"], row["dialect"]): row for row in results}
        for name in names:
            row = by_name.get(name)
            rates[name].append(row.get("triples_per_second") if row else None)
            if row is None or "cannot" in row:
                rows.append([query, *name, row and row["cannot"], None, None, None, None, None])
                continue
            rows.append(
                [query, *name, round(row["seconds"], 2), row["triples_per_second"], row["least"],
                 row["most"], row["size"], f"{_worst(row):.2f} %"]
            )  # fmt: skip
    chart = BarChart(
        title="The same input, answered by others",
        y="input triples/s",
        groups=[query for query, _ in pieces],
        series=[
            Bars(name=f"{peer}, {dialect}", values=rates[peer, dialect]) for peer, dialect in names
        ],
        log_y=True,
    )
    return [
        Figure(
            chart=chart,
            caption="Input triples a second beyond a small input: the additional triples over the additional "
            "time. The table has the fixed cost of a query in seconds: from its start to its last "
            "answer over the small input.",
        ),
        PageTable(
            title="Throughput, output size, and mismatch against Quadweir in the same dialect",
            heading=["query", "peer", "dialect", "seconds at first", "triples/s beyond", "least",
                     "most", "answers", "mismatch"],
            rows=rows,
        ),
    ]  # fmt: skip
