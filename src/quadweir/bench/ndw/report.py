"""The evaluation as a page: the paper's tables and figures, with our results next to the paper's.

Figures marked as published are from paper 000, which measured RMLStreamer on Apache Flink.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from quadweir.bench.charts import BarChart, Bars, Box, BoxChart, LineChart, Mark, Series
from quadweir.bench.ndw.bench import PUBLISHED_IOU, THROUGHPUT
from quadweir.bench.ndw.publisher import Rhythm
from quadweir.bench.ndw.runs import PASS_THROUGH, SPARK_JOIN
from quadweir.bench.ndw.windows import PAPER, SAFE, TUMBLING
from quadweir.bench.page import (
    Figure,
    Note,
    PagePart,
    PageTable,
    Published,
    ReportPage,
    Section,
    TargetResult,
)

_LATENCY: Final[dict[Rhythm, dict[str, tuple[float, float | None, float]]]] = {
    Rhythm.CONSTANT: {TUMBLING: (1081.0, 1915.0, 2624.0), PAPER: (39.0, 57.0, 120.0)},
    Rhythm.PERIODIC: {TUMBLING: (891.0, None, 3904.0), PAPER: (8.0, None, 1669.0)},
}
_RATE: Final = {TUMBLING: 12_750, PAPER: 17_200}
_PUBLISHED_COUNTS: Final = {
    (Rhythm.CONSTANT, TUMBLING): (23_059_350, 30_771_450),
    (Rhythm.CONSTANT, PAPER): (30_771_450, 30_771_450),
    (Rhythm.PERIODIC, TUMBLING): (24_412_150, 31_287_300),
    (Rhythm.PERIODIC, PAPER): (31_753_420, 32_319_110),
}


def build(
    result: dict[str, Any], command: Sequence[str] = ("quadweir", "bench", "ndw")
) -> ReportPage:
    """Make the page of a result."""
    found, given = result["found"], result["input"]
    makers = {
        "completeness": _completeness,
        "live": _live,
        "throughput": _throughput,
        "adaptation": _adaptation,
    }
    figures = [each for group in result["sections"].values() for each in group]
    judged = [each for each in figures if "met" in each]
    missed = [each for each in judged if not each["met"]]
    recording = (
        "the recording of the Dutch road authority"
        if given["recording"] == "NDW"
        else "a made-up recording, since the real one was not there"
    )
    summary = (
        f"Flow and speed of 19 motorway lanes, joined by lane, place and second in windows of every "
        f"kind, as in the evaluation of dynamic windows for RMLStreamer. The input is {recording}. "
        f"Of {len(judged)} targets, {len(judged) - len(missed)} were reached"
        + (f" and {len(missed)} missed." if missed else ".")
    )
    return ReportPage(
        title="Joins of road sensor streams in windows",
        summary=summary,
        sections=[
            _targets(result["sections"]),
            *(
                Section(title=title, parts=list(makers[name](found[name])))
                for name, title in (
                    ("completeness", "Completeness"),
                    ("live", "Latency, throughput, processor and memory in a live run"),
                    ("throughput", "Throughput at saturation"),
                    ("adaptation", "How windows adapt"),
                )
                if name in found
            ),
        ],
        facts={**result["machine"], **given},
        commands=[command],
    )


def _targets(sections: dict[str, list[dict[str, Any]]]) -> Section:
    rows: list[list[Any]] = []
    for group, figures in sections.items():
        for each in figures:
            if "met" not in each:
                continue
            sign, value = ("≥", each["at_least"]) if "at_least" in each else ("≤", each["at_most"])
            shown = TargetResult(each["value"], each["met"])
            rows.append(
                [group, each["name"], shown, f"{sign} {value:,.10g} {each['unit']}".strip()]
            )
    heading = ["section", "what", "measured", "wanted"]
    return Section(
        title="Targets",
        parts=[PageTable(title="Each figure with a target", heading=heading, rows=rows)],
    )


# -- completeness --------------------------------------------------------------------------------


def _completeness(found: dict[str, Any]) -> Iterator[PagePart]:
    yield Note(
        "Completeness is intersection over union of the results in a window and those of the "
        "bounded join over the same records, each result being a pair of records. With rounded "
        "timestamps in the key, every even second's readings lie on both sides of a 2 s tumbling "
        "window's edge, which is why that window loses a quarter."
    )
    for rhythm, outcome in found.items():
        rows: list[list[Any]] = []
        for window, each in outcome["windows"].items():
            published = PUBLISHED_IOU[Rhythm(rhythm)].get(window)
            shown = None if published is None else Published(published)
            row = [each[key] for key in ("generated", "expected", "common", "doubled")]
            rows.append([window, *row, f"{each['iou']:.4f}", shown])
        yield PageTable(
            title=f"{rhythm.capitalize()} rhythm",
            heading=["window", "generated", "expected", "common", "doubled", "IOU", "paper's IOU"],
            rows=rows,
            note=f"The plain model counts {outcome['model']['bounded']:,} pairs for the bounded join "
            f"and {outcome['model'][TUMBLING]:,} for the tumbling window.",
        )
    rows = [
        [rhythm, window, *map(Published, counts), Published(round(counts[0] / counts[1], 3))]
        for (rhythm, window), counts in _PUBLISHED_COUNTS.items()
    ]
    yield PageTable(
        title="The paper's own counts, over 1,800 s",
        heading=["rhythm", "window", "generated", "expected", "IOU"],
        rows=rows,
        note="Its tumbling count lacks the last window, which nothing closed: with it the model "
        "gives 23,085,000, without it the paper's 23,059,350.",
    )
    windows = list(next(iter(found.values()))["windows"])
    series = [
        Bars(
            name=f"{rhythm}",
            values=[outcome["windows"][window]["iou"] for window in windows],
        )
        for rhythm, outcome in found.items()
    ]
    series += [
        Bars(
            name=f"{rhythm}, paper",
            values=[PUBLISHED_IOU[Rhythm(rhythm)].get(window) for window in windows],
            published=True,
        )
        for rhythm in found
    ]
    chart = BarChart(
        title="Completeness by window",
        y="intersection over union",
        groups=windows,
        series=series,
        description="Tumbling windows lose results; dynamic, sliding and interval ones do not.",
    )
    yield Figure(chart=chart, caption="The paper's tables 8.1 and 8.2 as bars.")


# -- live ----------------------------------------------------------------------------------------


def _live(found: dict[str, Any]) -> Iterator[PagePart]:
    yield Note(
        "A result's latency runs from the sending of its later record until the batch that holds "
        "the result is done. The pass-through makes one triple of each record, without a join, with "
        "the same trigger. The paper's engine handles records one by one and gives a tumbling "
        "window's results when the window closes; ours works in micro-batches and gives every "
        "result in the batch in which its later record comes."
    )
    for rhythm, runs in found.items():
        yield from _live_rhythm(Rhythm(rhythm), runs)


def _live_rhythm(rhythm: Rhythm, runs: dict[str, Any]) -> Iterator[PagePart]:
    keys = {
        "least_ms": "least ms",
        "median_ms": "median ms",
        "p99_ms": "p99 ms",
        "most_ms": "most ms",
        "results_per_second": "results/s",
        "cores": "cores",
        "java_mib": "JVM MiB",
        "python_mib": "Python MiB",
        "most_held": "records held",
        "batch_ms": "batch ms",
    }
    rows: list[list[Any]] = [[name, *(each[key] for key in keys)] for name, each in runs.items()]
    for window, (low, median, high) in _LATENCY[rhythm].items():
        outcome = [
            Published(low),
            None if median is None else Published(median),
            None,
            Published(high),
        ]
        rate = Published(_RATE[window]) if rhythm is Rhythm.CONSTANT else None
        rows.append([f"{window}, in the paper", *outcome, rate, None, None, None, None, None])
    title = rhythm.capitalize()
    yield PageTable(title=f"{title} rhythm", heading=["query", *keys.values()], rows=rows)
    marks = [Mark(name="paper: dynamic, median 57 ms (published)", value=57)]
    marks.append(Mark(name="paper: tumbling, median 1915 ms (published)", value=1915))
    yield Figure(
        chart=LineChart(
            title=f"{title} rhythm: latency over time, median of each second",
            x="seconds since measuring began",
            y="latency (ms)",
            series=[
                Series(
                    name=name,
                    points=[(second, median) for second, _, median, _, _ in each["over_time"]],
                    low=[low for _, low, _, _, _ in each["over_time"]],
                    high=[high for _, _, _, high, _ in each["over_time"]],
                )
                for name, each in runs.items()
            ],
            log_y=True,
            marks=marks if rhythm is Rhythm.CONSTANT else (),
            description="Medians of each second, with bands from the least to the 99th percentile.",
        ),
        caption="Bands reach from the least to the 99th percentile.",
    )
    yield Figure(
        chart=BoxChart(
            title=f"{title} rhythm: distribution of latency",
            y="latency (ms)",
            boxes=[_box(name, each["shares_ms"]) for name, each in runs.items()]
            + [
                Box(name=window, low=low, median=median, high=high, published=True)
                for window, (low, median, high) in _LATENCY[rhythm].items()
                if median is not None
            ],
            log_y=True,
        ),
        caption="Boxes are quartiles; whiskers reach from the least to the 99th percentile, those "
        "of the paper from the least to the greatest.",
    )
    yield Figure(
        chart=LineChart(
            title=f"{title} rhythm: share of results that took at most so long",
            x="latency (ms)",
            y="share of results",
            series=[
                Series(
                    name=name,
                    points=[(max(ms, 1.0), n / 100) for n, ms in enumerate(each["shares_ms"])],
                )
                for name, each in runs.items()
            ],
            log_x=True,
        )
    )
    joins = {name: each for name, each in runs.items() if name != PASS_THROUGH}
    yield from _resources(rhythm, runs, joins)


def _resources(rhythm: Rhythm, runs: dict[str, Any], joins: dict[str, Any]) -> Iterator[PagePart]:
    title = rhythm.capitalize()
    paper = rhythm is Rhythm.CONSTANT
    rates = [
        Series(name=name, points=[(each[0], each[4]) for each in outcome["over_time"]])
        for name, outcome in joins.items()
    ]
    marks = [Mark(name=f"paper: {k}, {v:,}/s (published)", value=v) for k, v in _RATE.items()]
    yield Figure(
        chart=LineChart(
            title=f"{title} rhythm: results by the second their later record was sent in",
            x="seconds since measuring began",
            y="results/s",
            series=rates,
            marks=marks if paper else (),
        )
    )
    yield Figure(
        chart=LineChart(
            title=f"{title} rhythm: processor",
            x="seconds since measuring began",
            y="cores in use, of all processes",
            series=[
                Series(name=name, points=[(a, b) for a, b in outcome["used_cores"]])
                for name, outcome in runs.items()
            ],
        ),
        caption="The paper's dynamic window used about 7 % more than its tumbling one (published)."
        if paper
        else "",
    )
    if TUMBLING in joins and SAFE in joins:
        yield Figure(
            chart=LineChart(
                title=f"{title} rhythm: memory of the dynamic window's run less the tumbling one's",
                x="seconds since measuring began",
                y="difference (MiB)",
                series=[
                    Series(name=name, points=_difference(joins[SAFE], joins[TUMBLING], place))
                    for place, name in ((1, "JVM"), (2, "Python"))
                ],
            ),
            caption="Resident memory of whole processes, which earlier runs of the same session "
            "have shaped as well; the records held, below, are what windows themselves take.",
        )
    yield Figure(
        chart=LineChart(
            title=f"{title} rhythm: records held by windows",
            x="seconds since measuring began",
            y="records",
            series=[
                Series(name=name, points=[(a, b) for a, b in outcome["held"] if a >= 0])
                for name, outcome in joins.items()
            ],
        )
    )
    sizes = [
        Series(name=name, points=[(a, b) for a, b in outcome["windows"] if a >= 0])
        for name, outcome in joins.items()
        if outcome["windows"]
    ]
    if sizes:
        yield Figure(
            chart=LineChart(
                title=f"{title} rhythm: window sizes, median of the fullest",
                x="seconds since measuring began",
                y="size (ms)",
                series=sizes,
            )
        )


def _difference(
    one: dict[str, Any], other: dict[str, Any], place: int
) -> list[tuple[float, float]]:
    count = min(len(one["memory"]), len(other["memory"]))
    return [
        (one["memory"][n][0], one["memory"][n][place] - other["memory"][n][place])
        for n in range(count)
    ]


def _box(name: str, shares: Sequence[float]) -> Box:
    return Box(
        name=name,
        low=shares[0],
        lower=shares[25],
        median=shares[50],
        upper=shares[75],
        high=shares[99],
    )


# -- throughput and adaptation -------------------------------------------------------------------


def _throughput(found: dict[str, Any]) -> Iterator[PagePart]:
    keys = {
        "records_per_second": "input records/s",
        "results_per_second": "results/s",
        "results": "results",
        "expected_results": "expected",
        "cores": "cores",
        "batch_records": "records in a batch",
    }
    for scene, outcome in found.items():
        yield PageTable(
            title=f"All records available from the start: {scene}",
            heading=["join", *keys.values()],
            rows=[[name, *(each[key] for key in keys)] for name, each in outcome.items()],
            note="Batches of Spark's own join are smaller, since batches of the same size would take too long. "
            "The hand-written parser makes one result of each record and joins nothing.",
        )
    names = list(next(iter(found.values())))
    yield Figure(
        chart=BarChart(
            title="Input records a second",
            y="records/s",
            groups=names,
            series=[
                Bars(name=scene, values=[outcome[name]["records_per_second"] for name in names])
                for scene, outcome in found.items()
            ],
            marks=[Mark(name="wanted", value=THROUGHPUT)],
            log_y=True,
        ),
        caption=f"{SPARK_JOIN} is the stream-stream join with a bound of 2 s on the distance.",
    )


def _adaptation(found: dict[str, Any]) -> Iterator[PagePart]:
    yield Note(
        "With the timestamp in the key a key lives for one second, and at V = 1 no window is ever "
        "full. So V is raised, or the timestamp left out of the key. Lines are medians over all "
        "live keys, bands reach from the least to the greatest."
    )
    for scene, windows in found.items():
        keys = ("pairs", "evictions", "most_held", "most_keys", "keys_sent", "keys_met")
        yield PageTable(
            title=scene,
            heading=["window", *(key.replace("_", " ") for key in keys)],
            rows=[[name, *(each[key] for key in keys)] for name, each in windows.items()],
        )
        for key, title, unit in (
            ("sizes_ms", "window sizes", "size (ms)"),
            ("limits", "limits of the lists", "records"),
        ):
            series = [
                Series(
                    name=name,
                    points=list(
                        zip(
                            each["course"]["seconds"],
                            (m for _, m, _ in each["course"][key]),
                            strict=True,
                        )
                    ),
                    low=[low for low, _, _ in each["course"][key]],
                    high=[high for _, _, high in each["course"][key]],
                )
                for name, each in windows.items()
                if key in each["course"]
            ]
            yield Figure(
                chart=LineChart(
                    title=f"{scene}: {title}", x="stream time (s)", y=unit, series=series
                )
            )
        yield Figure(
            chart=LineChart(
                title=f"{scene}: records held",
                x="stream time (s)",
                y="records",
                series=[
                    Series(
                        name=name,
                        points=list(
                            zip(each["course"]["seconds"], each["course"]["held"], strict=True)
                        ),
                    )
                    for name, each in windows.items()
                ],
            )
        )
