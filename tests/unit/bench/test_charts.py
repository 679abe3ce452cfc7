"""Charts hold what they were given, escaped, at the right places."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest

from quadweir.bench.axes import Scale, fit, labels
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

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</title><script>alert(1)</script> & "quoted" \x00'


def drawn(chart: LineChart | BarChart | BoxChart) -> ET.Element:
    return ET.fromstring(standalone(chart))


def texts(root: ET.Element) -> list[str]:
    return ["".join(each.itertext()) for each in root.iter(f"{SVG}text")]


def lines(series: list[Series], **options: object) -> LineChart:
    return LineChart(title="t", x="time (s)", y="rate", series=series, **options)  # type: ignore[arg-type]


def test_a_line_rises_as_its_points_do() -> None:
    root = drawn(lines([Series(name="a", points=[(0, 0), (5, 50), (10, 100)])]))
    (line,) = root.iter(f"{SVG}polyline")
    places = [tuple(map(float, each.split(","))) for each in line.attrib["points"].split()]
    (x0, y0), (x1, y1), (x2, y2) = places
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y0 > y2


def test_a_band_lies_around_its_line() -> None:
    chart = lines([Series(name="a", points=[(0, 5), (1, 6)], low=[4, 5], high=[6, 7])])
    band = next(each for each in drawn(chart).iter(f"{SVG}polygon") if each.attrib["class"] == "b0")
    assert len(band.attrib["points"].split()) == 4
    with pytest.raises(ValueError, match="2 points, 1 of spread"):
        Series(name="a", points=[(0, 5), (1, 6)], low=[4], high=[6])


def test_many_points_are_thinned_but_no_spike_is_lost() -> None:
    points = [(float(n), 1.0) for n in range(100_000)]
    points[54_321] = (54_321.0, 900.0)
    flat = drawn(lines([Series(name="a", points=[(x, 1.0) for x, _ in points])], log_y=True))
    spiky = drawn(lines([Series(name="a", points=points)], log_y=True))
    for root, several in ((flat, 1), (spiky, 2)):
        (line,) = root.iter(f"{SVG}polyline")
        heights = {each.split(",")[1] for each in line.attrib["points"].split()}
        assert len(line.attrib["points"].split()) <= 1200
        assert len(heights) == several


def test_series_differ_without_colours() -> None:
    names = [f"series {n}" for n in range(6)]
    root = drawn(lines([Series(name=n, points=[(0, 1), (1, 2)]) for n in names]))
    dashes = [each.attrib.get("stroke-dasharray") for each in root.iter(f"{SVG}polyline")]
    assert len(set(dashes)) == 6
    assert set(names) <= set(texts(root))


def test_logarithmic_axes_leave_out_what_has_no_place() -> None:
    points = [(0.0, 5.0), (1.0, 0.0), (10.0, 10.0), (100.0, 1000.0), (50.0, math.nan)]
    root = drawn(lines([Series(name="a", points=points)], log_x=True, log_y=True))
    (line,) = root.iter(f"{SVG}polyline")
    assert len(line.attrib["points"].split()) == 2


def test_bars_are_as_high_as_their_values_and_say_them() -> None:
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
    root = drawn(chart)
    bars = [each for each in root.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    heights = [float(each.attrib["height"]) for each in bars]
    assert len(bars) == 3
    assert heights[2] == pytest.approx(2 * heights[0], rel=0.01)
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)
    assert "periodic, ours: 200" in [each.find(f"{SVG}title").text for each in bars]  # type: ignore[union-attr]
    assert {"theirs (published)", "wanted", "constant"} <= set(texts(root))
    assert chart.table()[1] == [["constant", 100, 50], ["periodic", 200, None]]
    with pytest.raises(ValueError, match="1 values, 2 groups"):
        BarChart(title="", y="", groups=["a", "b"], series=[Bars(name="x", values=[1])])


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


@pytest.mark.parametrize("values", [[0, 1], [3, 97], [-5, 5], [1e-9, 2e-9], [1, 1e12], [7, 7]])
@pytest.mark.parametrize("is_log", [False, True])
def test_every_value_is_between_the_ends_of_its_scale(values: list[float], is_log: bool) -> None:
    scale = fit(values, 0, 100, is_log=is_log, zero=not is_log)
    for value in values:
        if value > 0 or not is_log:
            assert scale.low <= value * (1 + 1e-9) and value <= scale.high * (1 + 1e-9)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 12
    assert len(set(labels(ticks))) == len(ticks)
    assert all(re.fullmatch(r"-?[\d.,e-]+(e\+\d+)?( [kMG])?", each) for each in labels(ticks))


def test_a_scale_keeps_to_its_stretch() -> None:
    scale = Scale(0, 10, 200, 100)
    assert (scale.at(-5), scale.at(0), scale.at(20)) == (200, 200, 100)


def test_distributions_reach_one() -> None:
    series = ecdf("a", range(10_000))
    assert len(series.points) == 200
    assert series.points[-1] == (9999.0, 1.0)
