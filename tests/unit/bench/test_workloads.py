"""Weather and taxis: distributions, references, and that every query has answers."""

from __future__ import annotations

import numpy as np
import pytest

from quadweir.bench.tables import as_elements, as_quads
from quadweir.bench.weather import OBSERVATIONS
from quadweir.bench.workloads import (
    CQELS_2016,
    DIALECTS,
    Question,
    lsbench,
    srbench,
    srbench_data,
    taxi,
    taxi_data,
)
from quadweir.testing import Oracle

OWL = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"


def test_stations_observe_hourly_and_rain_falls_in_a_fifth_of_the_hours() -> None:
    given = srbench_data(100, 48)
    table = given.streams[OBSERVATIONS]
    assert np.all(np.diff(table.column("time").to_numpy()) >= 0)
    assert np.all(np.diff(table.column("event").to_numpy()) >= 0)
    ends = table.column("object").to_pylist()
    rain = sum(end.endswith("#RainfallObservation>") for end in ends)
    heat = sum(end.endswith("#TemperatureObservation>") for end in ends)
    assert heat == 4800
    assert rain / 4800 == pytest.approx(0.2, abs=0.02)
    assert table.num_rows == 8 * (3 * 4800 + rain)
    assert table.equals(srbench_data(100, 48).streams[OBSERVATIONS])


def test_observations_refer_to_stations_that_are_known() -> None:
    given = srbench_data(20, 3)
    sensors = set(given.static.column("subject").to_pylist())
    rows = given.streams[OBSERVATIONS].to_pylist()
    seen = {row["object"] for row in rows if row["predicate"] == f"<{OWL}procedure>"}
    assert len(seen) == 20 and seen <= sensors
    results = {row["object"] for row in rows if row["predicate"] == f"<{OWL}result>"}
    valued = {row["subject"] for row in rows if row["predicate"] == f"<{OWL}floatValue>"}
    assert results == valued


@pytest.mark.parametrize("name", list(srbench()))
def test_each_weather_query_has_answers(name: str) -> None:
    question = srbench()[name]
    given = srbench_data(24, 2)
    oracle = Oracle(question.text, static=as_quads(given.static))
    assert oracle.answers(as_elements(given.streams))


def test_a_taxi_has_one_ride_after_the_other() -> None:
    streams = taxi_data(5, 20).streams
    by_name = {iri.rsplit("/", 1)[1]: table for iri, table in streams.items()}
    times = {}
    for name in ("pickup", "dropoff"):
        rows = by_name[name].to_pylist()
        times[name] = {row["subject"]: row["time"] for row in rows}
        assert [row["time"] for row in rows] == sorted(row["time"] for row in rows)
    taxis: dict[str, list[str]] = {}
    for row in by_name["pickup"].to_pylist():
        if row["predicate"].endswith("#taxi>"):
            taxis.setdefault(row["object"], []).append(row["subject"])
    assert len(taxis) == 5
    for rides in taxis.values():
        assert len(rides) == 20
        ends = [0]
        for ride in rides:
            assert ends[-1] < times["pickup"][ride] < times["dropoff"][ride]
            ends.append(times["dropoff"][ride])


def test_the_taxi_query_has_answers() -> None:
    assert Oracle(taxi().text).answers(as_elements(taxi_data(4, 5).streams))


def test_what_is_to_be_reached_follows_from_what_was_published() -> None:
    for dialect in DIALECTS:
        asked = lsbench(dialect)
        assert len(asked) == 12
        assert all(isinstance(each, Question) and each.streams for each in asked.values())
    asked = lsbench()
    assert asked["Q1"].at_least == 3 * 118_924
    assert asked["Q7"].at_least is None
    assert srbench()["Q5"].at_least == srbench()["Q5"].published[CQELS_2016] == 13_966
