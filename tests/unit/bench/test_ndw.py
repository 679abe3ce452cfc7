"""The publisher sends what paper 000's did, and the model's counts follow from it."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest

from quadweir.bench.ndw import model
from quadweir.bench.ndw.publisher import (
    FLOW,
    LANES,
    START_MS,
    Rhythm,
    Workload,
    load,
    made_up,
    play,
    read_recording,
)
from quadweir.errors import DataError, UsageError

REPO = Path(__file__).resolve().parents[3]


def test_a_second_has_1140_records_in_ten_slots() -> None:
    records = play(Workload(seconds=3))
    assert len(records) == 3 * 1140 == 3 * Workload().a_second
    second = records.sent_ms[records.sent_ms // 1000 == START_MS // 1000 + 1]
    assert sorted(set(second % 1000)) == list(range(0, 1000, 100))
    assert (np.diff(records.sent_ms) >= 0).all()
    assert (records.side == 0).sum() == (records.side == 1).sum()
    assert len(play(Workload(seconds=3, copies=33))) == 33 * len(records)


def test_every_tenth_second_of_the_periodic_rhythm_goes_out_at_once() -> None:
    records = play(Workload(rhythm=Rhythm.PERIODIC, seconds=20, copies=3))
    second = (records.sent_ms - START_MS) // 1000
    burst = second % 10 == 9
    assert np.bincount(second).tolist() == ([1140] * 9 + [3 * 1140]) * 2
    assert (records.sent_ms[burst] % 1000).max() == 169
    assert (records.sent_ms[~burst] % 1000).max() == 900


@pytest.mark.parametrize(("seconds", "full", "tumbling"), [
    (1800, 30_771_450, 23_059_350), (180, 3_069_450, 2_282_850),
])  # fmt: skip
def test_counts_of_the_paper(seconds: int, full: int, tumbling: int) -> None:
    records = play(Workload(seconds=seconds))
    assert model.bounded(records) == full
    # The paper's engine never closed the last window, because no later record came.
    assert model.tumbling(records, last=False) == tumbling
    assert model.tumbling(records) == tumbling + 25_650
    assert abs(model.tumbling(records) / full - 0.749) < 0.005


def test_periodic_counts_of_the_paper() -> None:
    records = play(Workload(rhythm=Rhythm.PERIODIC, seconds=1800))
    # The paper counted 32,319,110; its runs did not begin and end with full seconds.
    assert abs(model.bounded(records) / 32_319_110 - 1) < 0.001
    assert 0.7 < model.tumbling(records) / model.bounded(records) < 0.82


@pytest.mark.parametrize("rhythm", Rhythm)
def test_the_model_counts_what_a_join_by_hand_gives(rhythm: Rhythm) -> None:
    records = play(Workload(rhythm=rhythm, seconds=12, lanes=2, publishers=1, slots=6, copies=2))
    rows = list(zip(records.sent_ms.tolist(), records.side.tolist(), records.keys().tolist(),
                    strict=True))  # fmt: skip
    child = [(t, k) for t, side, k in rows if side == 0]
    parent = [(t, k) for t, side, k in rows if side == 1]
    pairs = [(a, b) for (a, k), (b, m) in itertools.product(child, parent) if k == m]
    assert model.bounded(records) == len(pairs)
    assert model.tumbling(records) == sum(a // 2000 == b // 2000 for a, b in pairs)
    for most in (0, 170, 400, 5000):
        assert model.interval(records, most) == sum(abs(a - b) <= most for a, b in pairs)


def test_bodies_are_those_of_the_paper() -> None:
    records = play(Workload(seconds=2, lanes=40))
    recording = made_up(minutes=3)
    bodies = [json.loads(each) for each in recording.texts(records, np.arange(len(records)))]
    assert [body["number"] for body in bodies] == list(range(len(records)))
    for number, body in enumerate(bodies):
        assert ("flow" in body, "period" in body) == (records.side[number] == 1,) * 2
        assert body["sent"] == records.sent_ms[number]
        assert int(body["timestamp"][-2:]) == records.stamp[number] % 60
    lanes = {(b["internalId"], b["lat"], b["long"]) for b in bodies}
    assert len(lanes) == 40


def test_made_up_readings_are_the_same_each_time() -> None:
    one, other = made_up(minutes=5), made_up(minutes=5)
    assert one.places == other.places and len(set(one.places)) == LANES
    assert (one.readings[0] == other.readings[0]).all()
    assert one.readings[1].max() > 200 > one.readings[0].max()


def test_the_real_recording() -> None:
    folder = Path(os.environ.get("QUADWEIR_DATA", REPO.parent / "shared" / "data"))
    if not (folder / "ndw").is_dir():
        pytest.skip(f"no recording at {folder}; set QUADWEIR_DATA")
    recording = load(folder)
    assert [each.shape for each in recording.readings] == [(1800, LANES)] * 2
    assert len(set(recording.places)) == LANES
    first = recording.places.index(("lane1", 51.41268, 5.42929, 1))
    assert (recording.readings[0][0, first], recording.readings[1][0, first]) == (92, 360)


def test_a_wrong_recording_is_an_error(tmp_path: Path) -> None:
    assert load(tmp_path).origin == "made up"
    with pytest.raises(DataError, match="cannot be read"):
        read_recording(tmp_path)
    for number in range(1, 61):
        (tmp_path / f"time{number}").mkdir()
        (tmp_path / f"time{number}" / "part.txt").write_text("")
    text = '{"lat": 1, "long": 2, "flow": 3, "timestamp": "t", "num_lanes": 1}'
    (tmp_path / "time7" / "part.txt").write_text(f"a/lane1= {text}\n")
    with pytest.raises(DataError, match="1 readings of 1 lanes in 1 minutes"):
        read_recording(tmp_path)
    (tmp_path / "time7" / "part.txt").write_text("a/lane1= {}\n")
    with pytest.raises(DataError, match="not a reading"):
        read_recording(tmp_path)


def test_workloads_of_nothing_are_refused() -> None:
    for name in ("seconds", "copies", "lanes", "publishers", "slots"):
        with pytest.raises(UsageError, match=name):
            Workload(**{name: 0})
    with pytest.raises(UsageError, match="millisecond"):
        Workload(slots=2000)
    assert FLOW.name == "ndwflow"
