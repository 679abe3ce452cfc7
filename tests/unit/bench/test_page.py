"""A report is one page that a real browser draws completely, without any request."""

from __future__ import annotations

import importlib
import json
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import Browser
from quadweir.bench.charts import BarChart, Bars, Box, BoxChart, LineChart, Mark, Series, ecdf
from quadweir.bench.page import (
    Figure,
    Note,
    PageTable,
    Published,
    ReportPage,
    Section,
    TargetResult,
    render,
    write,
)
from quadweir.errors import EnvironmentProblem

NASTY = "</style><script>document.title = 'broken'</script><img src=http://localhost/x>"


def report(title: str = "All about windows") -> ReportPage:
    times = [(float(n), 40 + 30 * ((n * 7919) % 13) / 13) for n in range(900)]
    windows = ["tumbling 2 s", "sliding", "dynamic as published", "boundary-safe", "interval"]
    line = LineChart(
        title="Latency over time",
        x="stream time (s)",
        y="latency (ms)",
        series=[Series(name="dynamic", points=times)]
        + [Series(name=f"variant {n}", points=[(x, y + 50 * n) for x, y in times]) for n in (1, 2)],
        log_y=True,
        marks=[Mark(name="one micro-batch", value=100)],
    )
    spread = LineChart(
        title="Throughput by number of copies, with spread",
        x="copies of each record",
        y="records/s",
        series=[
            Series(
                name="ours",
                points=[(1, 1e5), (10, 1.4e5), (100, 1.3e5)],
                low=[9e4, 1.2e5, 1.1e5],
                high=[1.1e5, 1.5e5, 1.4e5],
            ),
            Series(name="theirs", points=[(1, 17_200), (100, 12_750)], published=True),
        ],
        log_x=True,
    )
    bars = BarChart(
        title="Completeness of every kind of window, next to what the paper reports for its own engine",
        y="intersection over union",
        groups=windows * 2,
        series=[
            Bars(name="ours", values=[0.75, 0.9, 1.0, 1.0, 1.0] * 2),
            Bars(name="paper", values=[0.749, None, 1.0, None, None] * 2, published=True),
        ],
    )
    boxes = BoxChart(
        title="Latency",
        y="ms",
        boxes=[
            Box.of("tumbling", range(1000, 3000)),
            Box(name="tumbling in the paper", low=1081, median=1915, high=2624, published=True),
        ],
    )
    shares = LineChart(
        title="Distribution", x="ms", y="share", series=[ecdf("a", range(99)), ecdf("b", range(50))]
    )
    table = PageTable(
        title="What was wanted",
        heading=["window", "completeness", "paper", "verdict"],
        rows=[
            ["tumbling 2 s", 0.7521, Published(0.749), TargetResult("within 0.005", True)],
            [NASTY, 1, None, TargetResult(0.5, False)],
        ],
        note="Counted in pairs.",
    )
    return ReportPage(
        title=title,
        summary="Windows were measured.",
        sections=[
            Section(title="Completeness", parts=[Note(NASTY), table, Figure(chart=bars)]),
            Section(
                title="Latency",
                parts=[
                    Figure(chart=line, caption="Every point is one second."),
                    Figure(chart=boxes),
                    Figure(chart=shares),
                    Figure(chart=spread),
                ],
            ),
        ],
        facts={"cores": 2, "memory_gib": 23.5, "commit": NASTY},
        commands=[["quadweir", "bench", "ndw", "--seconds", "180", "--folder", "a b"]],
    )


class _Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag not in {"meta", "link", "img"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_text_stays_text() -> None:
    parser = _Balanced()
    parser.feed(render(report(NASTY)))
    assert not parser.open
    assert not parser.seen & {"script", "img"}


def test_the_page_says_what_is_published_reached_and_missed(tmp_path: Path) -> None:
    page, data = write(report(), {"a": 1}, tmp_path / "out", "windows")
    text = page.read_text()
    assert json.loads(data.read_text()) == {"a": 1}
    for wanted in ("0.749 (published)", "within 0.005, reached", "0.5, missed", "'a b'"):
        assert wanted.replace("'", "&#39;") in text
    with pytest.raises(ValueError, match="not JSON compliant"):
        write(report(), {"a": float("nan")}, tmp_path, "no")


def test_a_browser_draws_it(browser: Browser, tmp_path: Path) -> None:
    page, _ = write(report(), {}, tmp_path, "windows")
    for width, dark in ((1200, False), (1200, True), (390, False)):
        seen = browser.look(page, width=width, dark=dark)
        seen.check("Completeness", NASTY, "0.749 (published)", "quadweir bench ndw --seconds 180")
        assert seen.title == "All about windows"
        assert [each["title"] for each in seen.charts][1] == "Latency over time"
        assert len(seen.charts) == 5
        assert (seen.ground == "rgb(255, 255, 255)") is not dark


def test_the_look_finds_faults(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    text = render(report())
    policy = text.index("<meta http-equiv"), text.index("<title>")
    open_text = text[: policy[0]] + text[policy[1] :]
    faults = {
        "console": open_text.replace("</main>", "<script>console.error('x')</script></main>"),
        "asked for": open_text.replace("</main>", "<img src='nowhere.png'></main>"),
        "wider": text.replace("</main>", "<div style='width:3000px'>x</div></main>"),
        "over": text.replace(">boundary-safe<", ">boundary-safe and all the rest<"),
        "cut off": text.replace("(s)", "(s), and much more than can be there" * 4),
    }
    for fault, broken in faults.items():
        page.write_text(broken)
        with pytest.raises(AssertionError, match=fault):
            browser.look(page).check()


def test_without_its_packages_a_report_says_so_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "quadweir.bench.page")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(EnvironmentProblem) as caught:
        importlib.import_module("quadweir.bench.page")
    assert "quadweir[bench]" in str(caught.value.hint)
