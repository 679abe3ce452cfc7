"""Charts show their data, escaped, at the right places, in every viewer."""

from __future__ import annotations

import math
import re
import sys
import xml.etree.ElementTree as ET

import pytest
from matplotlib.axes import Axes

from quadweir.bench import plot
from quadweir.bench.charts import (
    BarChart,
    Bars,
    Box,
    BoxChart,
    LineChart,
    Mark,
    Series,
    ecdf,
    standalone,
)
from quadweir.errors import EnvironmentProblem

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</title><script>alert(1)</script> & "quoted" $x^2$ \x00'


def drawn(chart: LineChart | BarChart | BoxChart) -> ET.Element:
    return ET.fromstring(standalone(chart))


def texts(root: ET.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def lines(series: list[Series], **options: object) -> LineChart:
    return LineChart(title="t", x="time (s)", y="rate", series=series, **options)  # type: ignore[arg-type]


def axes_of(chart: LineChart, monkeypatch: pytest.MonkeyPatch) -> Axes:
    """The axes that a chart draws on."""
    found = []
    write = plot.svg
    monkeypatch.setattr(
        plot, "svg", lambda figure, *words: found.append(figure) or write(figure, *words)
    )
    chart.svg()
    return found[0].axes[0]


def test_a_line_has_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [(0, 0), (5, 50), (10, 100)]
    axes = axes_of(lines([Series(name="a", points=points)]), monkeypatch)
    assert axes.lines[0].get_xydata().tolist() == [list(each) for each in points]
    assert axes.get_ylim()[0] == 0


def test_a_band_has_as_many_points_as_its_line() -> None:
    drawn(lines([Series(name="a", points=[(0, 5), (1, 6)], low=[4, 5], high=[6, 7])]))
    with pytest.raises(ValueError, match="2 points, 1 of spread"):
        Series(name="a", points=[(0, 5), (1, 6)], low=[4], high=[6])


def test_many_points_are_thinned_but_no_spike_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [(float(n), 1.0) for n in range(100_000)]
    points[54_321] = (54_321.0, 900.0)
    axes = axes_of(lines([Series(name="a", points=points)], log_y=True), monkeypatch)
    heights = axes.lines[0].get_ydata()
    assert len(heights) <= 1200
    assert set(heights) == {1.0, 900.0}


def test_series_differ_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"series {n}" for n in range(8)]
    chart = lines([Series(name=n, points=[(0, 1), (1, 2)]) for n in names])
    axes = axes_of(chart, monkeypatch)
    assert len({each.get_marker() for each in axes.lines}) == 8
    assert set(names) <= set(texts(drawn(chart)))


def test_logarithmic_axes_leave_out_what_has_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [(0.0, 5.0), (1.0, 0.0), (10.0, 10.0), (100.0, 1000.0), (50.0, math.nan)]
    chart = lines([Series(name="a", points=points)], log_x=True, log_y=True)
    axes = axes_of(chart, monkeypatch)
    assert axes.lines[0].get_xydata().tolist() == [[10, 10], [100, 1000]]


def test_bars_are_as_high_as_their_values() -> None:
    chart = BarChart(
        title="Throughput",
        y="records/s",
        groups=["constant", "periodic"],
        series=[
            Bars(name="ours", values=[100, 200], low=[90, 180], high=[110, 220]),
            Bars(name="theirs", values=[50, None], published=True),
        ],
        marks=[Mark(name="wanted", value=150)],
    )
    axes = plot.bars(chart).axes[0]
    assert [each.get_height() for each in axes.patches] == [100, 200, 50]
    assert [each.get_hatch() for each in axes.patches[:2]] == ["", ""]
    assert {"theirs (published)", "wanted", "constant"} <= set(texts(drawn(chart)))
    assert chart.table()[1] == [["constant", 100, 50], ["periodic", 200, None]]
    with pytest.raises(ValueError, match="1 values, 2 groups"):
        BarChart(title="", y="", groups=["a", "b"], series=[Bars(name="x", values=[1])])


def test_a_viewer_without_style_sheets_shows_every_bar() -> None:
    """Some viewers do not support classes or variables, so each shape must have its own colours."""
    values = [Bars(name=f"series {n}", values=[n + 1]) for n in range(8)]
    text = standalone(BarChart(title="t", y="y", groups=["a"], series=values))
    assert "var(" not in text
    coloured = set(re.findall(r"stroke: (#[0-9a-f]{6})", text))
    assert len(coloured) >= 8
    for path in ET.fromstring(text).iter(f"{SVG}path"):
        assert "class" not in path.attrib
    solid = [each for each in ET.fromstring(text).iter(f"{SVG}path") if "style" in each.attrib]
    assert any("fill: #0072b2" in each.attrib["style"] for each in solid)


def test_two_charts_share_no_name_inside_a_page() -> None:
    both = [
        BarChart(title=title, y="y", groups=["a"], series=[Bars(name="x", values=[1])] * 2)
        for title in ("one", "two")
    ]
    first, second = (set(re.findall(r' id="([^"]*)"', chart.svg())) for chart in both)
    assert first and not first & second
    assert both[0].svg() == both[0].svg()


def test_boxes_show_quartiles() -> None:
    chart = BoxChart(
        title="Latency",
        y="ms",
        boxes=[
            Box.of("ours", range(1, 1001)),
            Box(name="theirs", low=39, median=57, high=120, published=True),
        ],
        log_y=True,
    )
    root = drawn(chart)
    assert "theirs (published)" in " ".join(texts(root))
    assert chart.table()[1][1] == ["theirs (published)", 39, None, 57, None, 120]
    with pytest.raises(ValueError, match="no values"):
        Box.of("x", [])


def test_nothing_given_becomes_markup() -> None:
    nasty = [
        lines([Series(name=NASTY, points=[(0, 1), (1, 2)])], description=NASTY),
        BarChart(title=NASTY, y=NASTY, groups=[NASTY], series=[Bars(name=NASTY, values=[1])]),
        BoxChart(title=NASTY, y=NASTY, boxes=[Box(name=NASTY, low=1, median=2, high=3)]),
    ]
    for chart in nasty:
        root = drawn(chart)
        assert not list(root.iter(f"{SVG}script"))
        assert any("<script>" in each for each in texts(root)) or isinstance(chart, BoxChart)


def test_charts_of_nothing_are_charts() -> None:
    drawn(lines([]))
    drawn(lines([Series(name="a", points=[(3, 3)])]))
    drawn(lines([Series(name="a", points=[(0, 0), (1, 0)])], log_y=True))
    drawn(BarChart(title="", y="", groups=[], series=[]))
    drawn(BarChart(title="", y="", groups=["a"], series=[Bars(name="x", values=[-3])]))
    drawn(BoxChart(title="", y="", boxes=[]))


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "quadweir.bench.plot")
    monkeypatch.delattr("quadweir.bench.plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EnvironmentProblem) as caught:
        lines([]).svg()
    assert "quadweir[bench]" in str(caught.value.hint)


def test_distributions_reach_one() -> None:
    series = ecdf("a", range(10_000))
    assert len(series.points) == 200
    assert series.points[-1] == (9999.0, 1.0)
