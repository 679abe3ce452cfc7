"""The shop that entailment is measured with, and the page of the measurement; no Spark."""

from __future__ import annotations

from dataclasses import asdict, replace

import pyarrow.compute as pc
import pytest

from quadweir.bench import sparkwave
from quadweir.bench.bsbm import INSTANCES, LARGE, OFFER_TRIPLES, SMALL, Shop, pattern
from quadweir.bench.live import Throughput
from quadweir.bench.page import render
from quadweir.bench.sparkwave import ENTAILED, IN_PLACE, IN_STREAM, Point, generate
from quadweir.bench.sparkwave_report import report
from quadweir.entailment.needs import needs_of
from quadweir.entailment.table import Table
from quadweir.sources.schemafiles import read_schema
from quadweir.sources.streamfiles import read_elements
from quadweir.syntax import parse
from quadweir.testing import Oracle, Reasoner, same_answers


@pytest.mark.parametrize(("branching", "classes"), [(SMALL, 329), (LARGE, 22_527)])
def test_trees_are_as_large_as_the_paper_says(tmp_path, branching, classes):
    shop = Shop(branching)
    shop.schema(tmp_path / "types.ttl")
    schema, warnings = read_schema([tmp_path / "types.ttl"])
    assert warnings == []
    assert len(schema.classes) == classes
    for level in range(len(branching) + 1):
        query = parse(pattern(1, shop.target(level), 1), dialect="cqels")
        assert len(Table.of(schema, needs_of(query)).classes) == shop.below(level)


def test_the_same_seed_gives_the_same_offers_and_another_gives_others():
    shop = Shop()
    offers = shop.offers(100, 50)
    assert offers.num_rows == 50 * OFFER_TRIPLES
    assert offers.equals(Shop().offers(100, 50))
    assert not offers.equals(Shop(seed=7).offers(100, 50))
    closed = shop.offers(100, 50, closed=True)
    assert closed.num_rows == 50 * (OFFER_TRIPLES + len(SMALL))
    # The same triples, and those of the types above.
    both = {
        tuple(row.values()) for row in offers.select(["subject", "predicate", "object"]).to_pylist()
    }
    more = {
        tuple(row.values()) for row in closed.select(["subject", "predicate", "object"]).to_pylist()
    }
    assert both < more
    # In place of a product's own type the one above it, of a given level.
    stated = shop.offers(100, 50, level=1)
    assert stated.num_rows == offers.num_rows
    named = set(stated["object"].to_pylist()) - set(offers["object"].to_pylist())
    assert named <= {f"<{INSTANCES}ProductType{number}>" for number in range(2, 10)}
    assert set(zip(stated["subject"].to_pylist(), stated["object"].to_pylist(), strict=True)) <= {
        (subject, end) for subject, _, end in more
    }
    assert pc.all(pc.less_equal(offers["event_time"][:-1], offers["event_time"][1:])).as_py()


def test_what_is_generated_answers_the_same_with_schema_and_closed(tmp_path):
    files = generate(tmp_path, offers=150)
    schema, _ = read_schema([files[0]])
    stream = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/offers"
    feed = list(read_elements(files[2], stream=stream))
    assert len(feed) == 150 * OFFER_TRIPLES
    text = files[3].read_text(encoding="utf-8")
    reasoner = Reasoner(schema)
    closed = [
        type(each)(each.stream, each.event_time, each.position, tuple(reasoner(each.quads, False)))
        for each in feed
    ]
    found = Oracle(text, entail=reasoner).answers(feed)
    assert found
    assert same_answers(found, Oracle(text).answers(closed))


def test_static_data_has_as_many_triples_as_asked_for(tmp_path):
    file = tmp_path / "static.nt"
    assert Shop().static(file, triples=1_000, producers=False) == 1_000
    assert len(file.read_text(encoding="utf-8").splitlines()) == 1_000
    assert Shop().static(file) == 10_400


def point(section: str, number: int, classes: int, below: int, static: int, rate: float) -> Point:
    rates = {ENTAILED: rate, IN_PLACE: 250_000.0, IN_STREAM: 250_000.0}
    memory = dict.fromkeys(rates, 1)
    return Point(section, number, 5, classes, below, static, 9, rates, rates, memory)


def ran(commit: str, *points: Point) -> dict[str, object]:
    return {
        "points": [asdict(each) for each in points],
        "machine": {"commit": commit, "cores": 2},
        "commands": [["quadweir", "bench", "sparkwave", commit]],
    }


def test_the_page_shows_figures_of_several_runs_with_their_targets():
    first = ran(
        "a",
        point("windows", 1, 329, 40, 0, 1.0),
        point("schemas", 1, 329, 328, 0, 240_000.0),
        point("schemas", 1, 329, 0, 0, 245_000.0),
    )
    second = ran(
        "b",
        point("windows", 1, 329, 40, 0, 240_000.0),
        point("patterns", 3, 329, 40, 10_400, 240_000.0),
        point("static", 2, 329, 40, 200, 240_000.0),
        point("flatness", 1, 329, 328, 0, 240_000.0),
        point("flatness", 1, 22_527, 22_526, 0, 200_000.0),
        point("flatness", 2, 329, 40, 200, 240_000.0),
        point("flatness", 2, 329, 40, 1_000_000, 239_000.0),
    )
    result = sparkwave.merged([first, second])
    verdicts = {
        each["name"].strip(): each["met"]
        for all_of in result["sections"].values()
        for each in all_of
    }
    # The windows of the second run count, and not those of the first.
    assert min(each["rates"][ENTAILED] for each in result["points"]) > 1.0
    assert verdicts[f"compared with {IN_PLACE}"] is True
    assert verdicts[f"all 2 compared with {IN_PLACE}, geometric mean"] is True
    assert verdicts["22,527 / 329 classes"] is False
    assert verdicts["pattern 2, 1,000,000 / 200 static"] is True
    assert len(result["points"]) == 9
    assert result["machine"] == {"commit": "a, b", "cores": 2}
    page = render(report(result))
    for words in ("Figure 7", "Figure 8", "Figure 9", "pattern 3, 5 s", "missed", "sparkwave a"):
        assert words in page


def test_each_section_measures_all_ways_over_streams_that_are_there(tmp_path, monkeypatch):
    asked = []

    def measured(_spark, text, streams, *, static, schema):
        (folder,) = streams.values()
        assert len(list(folder.glob("*.parquet"))) == 2 * 3
        assert all(each.exists() for each in (*static, *schema))
        assert "GB" in text if static else "GB" not in text
        asked.append((bool(schema), len(static)))
        return Throughput(100.0, 7, 1.0, 1.0, 1, {}, (100.0, 300.0, 9.0 * len(asked)))

    monkeypatch.setattr(sparkwave, "measure_query", measured)
    runs = sparkwave.Measured(None, tmp_path, replace(sparkwave.QUICK, offers=1_000))
    points = [
        point
        for name, cases in sparkwave.SECTIONS.items()
        for point in runs.points(name, cases(sparkwave.QUICK))
    ]
    assert [each.section for each in points].count("schemas") == 4 + 6
    assert {each.below for each in points} >= {0, 40, 1_608, 22_526}
    assert {each.static for each in points} == {0, 200, 10_400, 20_000}
    ways = [
        with_schema for point in points for with_schema in (way is ENTAILED for way in point.rates)
    ]
    assert [with_schema for with_schema, _ in asked] == ways
    assert {(each.pattern, each.seconds) for each in points if each.section != "static"} == {
        (number, seconds) for number in (1, 2, 3) for seconds in (1, 5)
    }
    flat = [each for each in points if each.section == "flatness"]
    assert [(each.classes, each.static) for each in flat][:2] == [(329, 0), (22_527, 0)]
