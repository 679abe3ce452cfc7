"""The page of `quadweir bench sparkwave`: the paper's Figures 7, 8 and 9, and schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quadweir.bench.charts import BarChart, Bars, LineChart, Mark, Series
from quadweir.bench.page import Figure, Note, PagePart, PageTable, ReportPage, Section, TargetResult
from quadweir.bench.sparkwave import ENTAILED, IN_PLACE, WAYS

_TARGET: Final = Mark(name="target", value=200_000)


def report(result: Mapping[str, Any]) -> ReportPage:
    """The page of a result."""
    sections = [_targets(result)]
    made = {"windows": _windows, "patterns": _patterns, "schemas": _schemas, "static": _static}
    for name, make in made.items():
        points = [each for each in result["points"] if each["section"] == name]
        if points:
            sections.append(make(points))
    figures = [each for some in result["sections"].values() for each in some if "met" in each]
    reached = sum(bool(each["met"]) for each in figures)
    return ReportPage(
        title="Entailment inside matching",
        summary=(
            "Offers of a shop stream past queries that ask for products of a type; a schema says "
            "which types are below it. Each query is measured with the schema, and without one "
            "over streams that have the consequences in them already. "
            f"{reached} of {len(figures)} targets reached."
        ),
        sections=sections,
        facts=result["machine"],
        commands=result["commands"],
    )


def _targets(result: Mapping[str, Any]) -> Section:
    rows = [
        [
            # A comparison belongs to the row above it.
            re.sub("^ +", "\u2003\u2026 ", each["name"]),
            TargetResult(each["value"], each["met"]),
            each["unit"],
            each["at_least"],
            each.get("note", ""),
        ]
        for some in result["sections"].values()
        for each in some
        if "met" in each
    ]
    heading = ["measured", "value", "unit", "at least", "note"]
    return Section(title="Targets", parts=[PageTable(title="", heading=heading, rows=rows)])


def _windows(points: Sequence[Mapping[str, Any]]) -> Section:
    def lines(key: str) -> list[Series]:
        return [
            Series(name=way, points=[(each["seconds"], each[key][way]) for each in points])
            for way in WAYS
        ]

    throughput = LineChart(
        title="Throughput for pattern 1 (Figure 7)",
        x="window, seconds",
        y="triples/s",
        series=lines("rates"),
        marks=[_TARGET],
    )
    by_offers = LineChart(
        title="The same by offers, which have eleven triples, or fourteen with consequences",
        x="window, seconds",
        y="offers/s",
        series=lines("offers"),
    )
    memory = LineChart(
        title="Memory for pattern 1 (Figure 8)",
        x="window, seconds",
        y="MiB, all processes",
        series=lines("memory_mib"),
    )
    note = Note(
        "Paper 003 reports for windows of 5 s 3.1 times the throughput of C-SPARQL and 10.6 times "
        "that of CQELS, and that reasoning costs 15 to 20 %. Its charts give no figures to redraw. "
        "Memory is that of Spark, its Java and all Python processes together."
    )
    charts = (throughput, by_offers, memory)
    return Section(title="Windows", parts=[*(Figure(chart=each) for each in charts), note])


def _bars(title: str, x: str, groups: list[str], points: Sequence[Mapping[str, Any]]) -> Figure:
    series = [
        Bars(name=way, values=[each["rates"][way] for each in points])
        for way in WAYS
        if all(way in each["rates"] for each in points)
    ]
    return Figure(
        chart=BarChart(
            title=title, x=x, y="triples/s", groups=groups, series=series, marks=[_TARGET]
        )
    )


def _patterns(points: Sequence[Mapping[str, Any]]) -> Section:
    groups = [f"pattern {each['pattern']}, {each['seconds']} s" for each in points]
    title = "Throughput for patterns 2 and 3 over the shortest and the longest window"
    chart = _bars(title, "pattern and window", groups, points)
    return Section(title="Patterns", parts=[chart])


def _schemas(points: Sequence[Mapping[str, Any]]) -> Section:
    groups = [f"{each['below']:,} of {each['classes']:,}" for each in points]
    title = "Throughput for pattern 1 by the class asked for"
    chart = _bars(title, "classes below it, of all", groups, points)
    note = (
        "The higher a class stands, the more products are of it: with the root of the tree every "
        "offer is an answer, for both sizes of schema alike."
    )
    return Section(title="Schemas", parts=[chart, Note(note)])


def _static(points: Sequence[Mapping[str, Any]]) -> Section:
    parts: list[PagePart] = []
    series = [
        Series(
            name=f"pattern {number}, {way}",
            points=[
                (max(each["static"], 1), each["rates"][way])
                for each in points
                if each["pattern"] == number
            ],
        )
        for number in sorted({each["pattern"] for each in points})
        for way in (ENTAILED, IN_PLACE)
    ]
    parts.append(
        Figure(
            chart=LineChart(
                title="Throughput for patterns 2 and 3, windows of 1 s (Figure 9)",
                x="static triples",
                y="triples/s",
                series=series,
                log_x=True,
                marks=[_TARGET],
            )
        )
    )
    return Section(title="Static data", parts=parts)
