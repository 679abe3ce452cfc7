"""The page of the evaluation shows our measurements next to those of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import Browser
from quadweir.bench.ndw import bench, report, runs
from quadweir.bench.ndw.adaptation import follow
from quadweir.bench.ndw.publisher import Rhythm, Workload, play
from quadweir.bench.ndw.windows import PAPER, SAFE, TUMBLING, WINDOWS, kernel_window
from quadweir.bench.page import write
from quadweir.bench.processes import Sample


def completeness(lost: float) -> dict[str, Any]:
    wanted = np.arange(1000)
    found = {
        window: runs.Completeness.of(wanted[: int(1000 * lost)] if window == TUMBLING else wanted,
                                     wanted).as_json()
        for window in WINDOWS
    }  # fmt: skip
    return {"windows": found, "model": {"bounded": 1000, TUMBLING: int(1000 * lost)}}


def live_run(scale: float) -> dict[str, Any]:
    sent = np.arange(0, 5000, 10)
    went = runs.Live(
        sent_ms=sent,
        latency_ms=scale * (100 + sent % 700),
        samples=[Sample(n / 2, 900 + 5 * n, 300 + n, 1.3 * n) for n in range(11)],
        begun=0.0,
        cores=2.6,
        held=[(n, 100 * n) for n in range(5)],
        windows=[(n, 2000.0) for n in range(5)] if scale > 1 else [],
        behind_ms=3.0,
        batch_ms=[210.0, 250.0],
    )
    return bench._live(went, 5)


def result() -> dict[str, Any]:
    records = play(Workload(seconds=8))
    courses = {
        name: follow(kernel_window(name), records, with_time=False) for name in (PAPER, SAFE)
    }
    found: dict[str, Any] = {
        "completeness": {
            Rhythm.CONSTANT: completeness(0.75),
            Rhythm.PERIODIC: completeness(0.8),
        },
        "adaptation": {
            "V = 1, no timestamp in the key": {
                name: {**course.as_json(), "course": bench._course(course)}
                for name, course in courses.items()
            }
        },
        "live": {
            rhythm: {runs.PASS_THROUGH: live_run(1), TUMBLING: live_run(1.1),
                     PAPER: live_run(1.2), SAFE: live_run(1.3)}
            for rhythm in Rhythm
        },
        "throughput": {
            scene: {
                name: {"records_per_second": rate, "results_per_second": rate, "results": 9,
                       "expected_results": 9, "cores": 1.9, "batch_records": 1000}
                for name, rate in (
                    (SAFE, 120_000), (runs.PARSING, 200_000), (runs.SPARK_JOIN, 2_400)
                )
            }
            for scene in bench.SATURATING
        },
    }  # fmt: skip
    figures = {
        "completeness": list(bench._completeness_figures(found["completeness"])),
        "latency": list(bench._latency_figures(found["live"], 1000)),
        "throughput": [
            each
            for scene, made in found["throughput"].items()
            for each in bench._throughput_figures(scene, made)
        ],
    }
    return {
        "benchmark": "ndw",
        "machine": {"cores": 2, "commit": "abc"},
        "input": {"recording": "NDW", "seconds": 180},
        "found": found,
        "sections": {name: [each.as_json() for each in made] for name, made in figures.items()},
    }


def test_the_page_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    made = result()
    page, data = write(report.build(made), made, tmp_path, "ndw")
    seen = browser.look(page)
    seen.check(
        "0.749 (published)",
        "30,771,450 (published)",
        "1,915 (published)",
        "V = 1, no timestamp in the key",
        runs.SPARK_JOIN,
        "quadweir bench ndw",
        "Of 21 targets, 21 were reached.",
    )
    titles = [each["title"] for each in seen.charts]
    assert len(titles) == len(set(titles)) == 21
    browser.look(page, width=500, dark=True).check()
    assert data.stat().st_size > 1000


def test_missed_targets_are_reported() -> None:
    made = result()
    made["found"]["completeness"][Rhythm.PERIODIC] = completeness(1.0)
    figures = list(bench._completeness_figures(made["found"]["completeness"]))
    missed = [each.name for each in figures if each.met is False]
    assert missed == ["periodic: tumbling, how far below boundary-safe"]
    made["sections"]["completeness"] = [each.as_json() for each in figures]
    assert "and 1 missed." in report.build(made).summary


def test_windows_adapt_and_lose_no_key() -> None:
    workload = Workload(seconds=6, copies=4, lanes=3)
    for with_time, window in ((True, SAFE), (False, PAPER), (False, SAFE)):
        course = follow(kernel_window(window), play(workload), with_time=with_time)
        assert course.keys_met == course.keys_sent > 0
        figures = bench._adaptation_figures("x", [course.as_json()], workload)
        assert all(each.met for each in figures)
        assert len(course.seconds) == len(course.held) == len(course.sizes_ms) == 60


@pytest.mark.parametrize(("found", "iou", "doubled"), [
    ([1, 2, 3, 4], 1.0, 0), ([1, 2], 0.5, 0), ([1, 2, 9, 8], 1 / 3, 0), ([], 0.0, 0),
    ([1, 1, 1, 2, 3, 4], 1.0, 2),
])  # fmt: skip
def test_completeness_is_intersection_over_union(
    found: list[int], iou: float, doubled: int
) -> None:
    made = runs.Completeness.of(np.array(found, dtype=np.int64), np.array([1, 2, 3, 4]))
    assert made.iou == pytest.approx(iou)
    assert made.doubled == doubled
