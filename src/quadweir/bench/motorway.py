"""A made-up motorway whose sensors measure flow and speed, lane by lane, minute by minute.

The numbers are drawn, not recorded: demand follows a working day with two peaks; where the road
narrows it lets fewer cars pass than arrive at the peaks, so a queue grows upstream and dissolves
later; in the queue cars stop and go. The same seed gives the same readings, so a run can be
compared with another.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple, final

# A Tuesday, half an hour before the first peak begins to build.
START: Final = datetime(2026, 3, 3, 5, 30, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)

_LANE_CAPACITY: Final = 2100.0  # vehicles an hour, about what a real lane carries
_FREE_SPEED: Final = (94.0, 112.0, 124.0)  # km/h, from the slow lane to the fast one
_SHARE: Final = (0.8, 1.1, 1.1)  # how a lane's demand compares with the average
_JAM_SPEED: Final = 28.0
_METRES_PER_QUEUED_VEHICLE: Final = 12.0
# What passes the bottleneck, as a share of capacity. It falls once a queue stands (the "capacity
# drop" of traffic engineering), which is why queues outlast the peaks that cause them.
_BOTTLENECK: Final = 0.93
_BOTTLENECK_QUEUED: Final = 0.86


class Reading(NamedTuple):
    """What one sensor measured in one minute."""

    time: datetime
    sensor: str
    flow: int
    speed: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Motorway:
    """A stretch of road with measuring points, each with one sensor a lane.

    >>> road = Motorway(points=2)
    >>> road.sensors
    ('0.0-1', '0.0-2', '0.0-3', '0.5-1', '0.5-2', '0.5-3')
    >>> next(road.readings()) == next(Motorway(points=2).readings())
    True
    """

    points: int = 12
    lanes: int = 3
    spacing_m: int = 500
    seed: int = 7

    def __post_init__(self) -> None:
        if self.points < 1 or not 1 <= self.lanes <= len(_SHARE) or self.spacing_m < 1:
            raise ValueError("a motorway has at least one point, one to three lanes, some length")

    @property
    def sensors(self) -> tuple[str, ...]:
        """The names of the sensors: kilometre and lane, lane 1 being the slow one."""
        return tuple(
            self._name(point, lane) for point in range(self.points) for lane in range(self.lanes)
        )

    def readings(self, start: datetime = START) -> Iterator[Reading]:
        """The readings, without end, in order of time."""
        chance = random.Random(self.seed)
        time = start
        queued = 0.0
        while True:
            demand = demand_at(time)
            passing = _BOTTLENECK_QUEUED if queued > 0 else _BOTTLENECK
            # Per minute and over all lanes; demand and passing are shares of capacity.
            growth = (demand - passing) * _LANE_CAPACITY * self.lanes / 60
            queued = max(0.0, queued + growth)
            yield from self._measure(time, demand, queued, chance)
            time += STEP

    def _measure(
        self, time: datetime, demand: float, queued: float, chance: random.Random
    ) -> Iterator[Reading]:
        bottleneck = (self.points * 3) // 4
        queue_m = queued / self.lanes * _METRES_PER_QUEUED_VEHICLE
        minute = time.timestamp() / 60
        for point in range(self.points):
            behind_m = (bottleneck - point) * self.spacing_m
            jammed = 0 <= behind_m < queue_m
            downstream = point > bottleneck and queued > 0
            load = _BOTTLENECK_QUEUED if jammed or downstream else min(demand, 1.0)
            for lane in range(self.lanes):
                share = _SHARE[lane]
                if jammed:
                    # Waves of stop and go run upstream, about a kilometre every four minutes.
                    wave = math.sin(2 * math.pi * (minute / 8 + behind_m / 2000))
                    speed = _JAM_SPEED * (1 + 0.6 * wave) + chance.gauss(0, 4)
                    flow = _LANE_CAPACITY * load * (0.9 + 0.1 * wave)
                else:
                    speed = _FREE_SPEED[lane] * (1 - 0.22 * load**3) + chance.gauss(0, 3)
                    flow = _LANE_CAPACITY * load * share
                # Cars arrive by chance: the count of a minute scatters like its square root.
                a_minute = flow / 60
                counted = max(0.0, chance.gauss(a_minute, math.sqrt(a_minute)))
                yield Reading(
                    time, self._name(point, lane), round(counted) * 60, max(3, round(speed))
                )

    def _name(self, point: int, lane: int) -> str:
        return f"{point * self.spacing_m / 1000:.1f}-{lane + 1}"


def demand_at(time: datetime) -> float:
    """The demand, as a share of the road's capacity.

    >>> night, peak = START.replace(hour=3), START.replace(hour=7, minute=50)
    >>> demand_at(night) < 0.15 < 0.9 < demand_at(peak)
    True
    """
    hour = time.hour + time.minute / 60

    def hump(at: float, width: float) -> float:
        return math.exp(-(((hour - at) / width) ** 2))

    if time.weekday() >= 5:
        return 0.06 + 0.55 * hump(14.0, 4.5)
    return 0.06 + 0.97 * hump(7.9, 1.2) + 0.4 * hump(12.6, 3.0) + 0.92 * hump(17.2, 1.5)


def write_recording(
    folder: Path, records: int, motorway: Motorway | None = None
) -> tuple[Path, Path]:
    """Write at least `records` records as JSON Lines, half of flow and half of speed.

    Returns:
        The file of flows and the file of speeds. Whole minutes only, so both end together.
    """
    road = motorway or Motorway()
    minutes = max(1, math.ceil(records / (2 * len(road.sensors))))
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "flow.jsonl", folder / "speed.jsonl"
    with ExitStack() as stack:
        flows, speeds = (stack.enter_context(path.open("w", encoding="utf-8")) for path in paths)
        remaining = minutes * len(road.sensors)
        for reading in road.readings():
            if remaining == 0:
                break
            remaining -= 1
            time = reading.time.strftime("%Y-%m-%dT%H:%M:%SZ")
            common = {"sensor": reading.sensor, "time": time}
            flows.write(json.dumps(common | {"flow": reading.flow}) + "\n")
            speeds.write(json.dumps(common | {"speed": reading.speed}) + "\n")
    return paths
