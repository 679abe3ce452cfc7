import json
from datetime import datetime, timedelta
from itertools import islice

import pytest

from quadweir.bench.motorway import START, STEP, Motorway, demand_at, write_recording


def day_of(road: Motorway):
    return list(islice(road.readings(), 1440 * len(road.sensors)))


def test_every_sensor_measures_once_a_minute_in_order_of_time():
    road = Motorway(points=3, lanes=2)
    readings = list(islice(road.readings(), 5 * len(road.sensors)))
    assert [r.sensor for r in readings] == list(road.sensors) * 5
    assert sorted({r.time for r in readings}) == [START + i * STEP for i in range(5)]
    assert [r.time for r in readings] == sorted(r.time for r in readings)


def test_the_peaks_jam_the_road_upstream_of_the_bottleneck_and_the_night_is_free():
    jams = {(r.time.hour, r.sensor) for r in day_of(Motorway()) if r.speed < 60}
    hours = {hour for hour, _ in jams}
    assert {8, 17} <= hours
    assert not hours & {0, 1, 2, 3, 12, 13, 22, 23}
    # The bottleneck is at kilometre 4.5; nothing stands beyond it.
    assert max(float(sensor.split("-")[0]) for _, sensor in jams) == 4.5


def test_values_are_what_a_lane_can_carry():
    for reading in day_of(Motorway()):
        assert 0 <= reading.flow <= 4200
        assert 3 <= reading.speed <= 150


def test_weekends_have_no_peaks():
    saturday = START + timedelta(days=4)
    assert max(demand_at(saturday + i * STEP) for i in range(1440)) < 0.7


def test_another_seed_gives_other_readings():
    first, second = (list(islice(Motorway(seed=s).readings(), 100)) for s in (1, 2))
    assert first != second


@pytest.mark.parametrize("wrong", [{"points": 0}, {"lanes": 4}, {"spacing_m": 0}])
def test_impossible_roads_are_refused(wrong):
    with pytest.raises(ValueError, match="motorway"):
        Motorway(**wrong)


def test_a_recording_holds_whole_minutes_of_both_streams(tmp_path):
    road = Motorway(points=2)
    flows, speeds = (
        [json.loads(line) for line in path.read_text().splitlines()]
        for path in write_recording(tmp_path / "new", 13, road)
    )
    assert len(flows) == len(speeds) == 2 * len(road.sensors)
    assert [f["time"] for f in flows] == [s["time"] for s in speeds]
    assert datetime.fromisoformat(flows[0]["time"]) == START
    assert {type(f["flow"]) for f in flows} == {type(s["speed"]) for s in speeds} == {int}
