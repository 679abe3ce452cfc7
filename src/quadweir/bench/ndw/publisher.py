"""The records of paper 000's publishers and their times: flow and speed of a Dutch motorway's
lanes.

A minute of the recording is played as one second: 3 publishers send the readings of all lanes, two
of each lane, in each of 10 slots of a second. A record's body carries the time of sending rounded
to the nearest second, by which flow and speed are joined; its event time is the time of sending.
So the readings of a second of join time are sent around that second, half of them before it.

Everything depends on the workload alone, so every play of it is the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

from quadweir.bench.motorway import Motorway
from quadweir.errors import DataError, UsageError

Ints = npt.NDArray[np.int64]

START_MS: Final = 1_617_300_000_000
"""When a play begins: an even second, so that a tumbling window begins with it."""
PUBLISHERS: Final = 3
SLOTS: Final = 10
BURST_EVERY: Final = 10
BURST_MS: Final = 170
LANES: Final = 19
MINUTES: Final = 1_800
"""How long the recording is."""


class PublishedStream(NamedTuple):
    """One of the two streams."""

    name: str
    reading: str


SPEED: Final = PublishedStream("ndwspeed", "speed")
FLOW: Final = PublishedStream("ndwflow", "flow")
SIDES: Final = (SPEED, FLOW)
"""Child and parent, as in the paper's mapping."""


class Rhythm(StrEnum):
    """The distribution of records over time."""

    CONSTANT = "constant"
    PERIODIC = "periodic"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The parameters of a play.

    Attributes:
        rhythm: constant, or with every tenth second's records at once, within 170 ms.
        seconds: how long.
        copies: how often each record is sent, the V of the paper; in the periodic rhythm this holds
            for the bursts alone.
        lanes: how many lanes there are; more than 19 repeat the recording at places of their own.
        publishers: how many send the same readings.
        slots: in how many slots of a second each of them sends.
    """

    rhythm: Rhythm = Rhythm.CONSTANT
    seconds: int = 180
    copies: int = 1
    lanes: int = LANES
    publishers: int = PUBLISHERS
    slots: int = SLOTS

    def __post_init__(self) -> None:
        for name in ("seconds", "copies", "lanes", "publishers", "slots"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} of a workload: {getattr(self, name)}, not 1 or more")
        if self.slots > 1000:
            raise UsageError("a slot is at least a millisecond", hint="Use at most 1000 slots.")

    @property
    def a_second(self) -> int:
        """How many records are sent in a second without a burst."""
        copies = self.copies if self.rhythm is Rhythm.CONSTANT else 1
        return 2 * self.lanes * self.slots * self.publishers * copies


@final
@dataclass(frozen=True, slots=True)
class SendSchedule:
    """The records of a workload in order of sending, as columns.

    Attributes:
        sent_ms: when each is sent, which is its event time.
        side: 0 for speed, 1 for flow.
        lane: which lane.
        minute: which minute of the recording.
    """

    sent_ms: Ints
    side: Ints
    lane: Ints
    minute: Ints

    def __len__(self) -> int:
        return len(self.sent_ms)

    @property
    def stamp(self) -> Ints:
        """The time of sending to the nearest second, in seconds."""
        return (self.sent_ms + 500) // 1000

    def keys(self, *, with_time: bool = True) -> Ints:
        """Number the join keys: by lane and stamp, or by lane alone."""
        if not with_time:
            return self.lane
        return self.lane + (self.stamp - START_MS // 1000) * (int(self.lane.max()) + 1)


def play(workload: Workload, start_ms: int = START_MS) -> SendSchedule:
    """The records of a workload.

    >>> records = play(Workload(seconds=2))
    >>> len(records), int(records.stamp[-1] - records.stamp[0])
    (2280, 2)
    """
    periodic = workload.rhythm is Rhythm.PERIODIC
    parts = [_second(workload, workload.copies if not periodic else 1, burst=False)]
    parts.append(_second(workload, workload.copies, burst=True) if periodic else parts[0])
    bursts = (np.arange(workload.seconds) % BURST_EVERY == BURST_EVERY - 1) & periodic
    seconds = [parts[int(burst)] for burst in bursts]
    number = np.repeat(np.arange(workload.seconds), [each.shape[1] for each in seconds])
    offset, lane, side = np.concatenate(seconds, axis=1)
    return SendSchedule(start_ms + 1000 * number + offset, side, lane, number % MINUTES)


def _second(workload: Workload, copies: int, *, burst: bool) -> Ints:
    """The records of a second as columns of (milliseconds, lane, side)."""
    shape = (workload.slots, workload.publishers, copies, workload.lanes, 2)
    slot, _, _, lane, side = (each.ravel() for each in np.indices(shape))
    count = len(slot)
    sent = np.arange(count) * BURST_MS // count if burst else slot * 1000 // workload.slots
    return np.stack([sent, lane, side]).astype(np.int64)


# -- what records hold ---------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class LaneReadings:
    """Readings by minute and lane: the content of a record without its time.

    Attributes:
        origin: where it comes from.
        places: lane, latitude and longitude, and how many lanes there are, for each lane.
        readings: for each side, minutes by lanes.
    """

    origin: str
    places: tuple[tuple[str, float, float, int], ...]
    readings: tuple[Ints, Ints]

    def texts(self, records: SendSchedule, chosen: npt.NDArray[np.intp]) -> Iterator[str]:
        """The bodies of some records, as JSON.

        A body has the fields of the paper, the record's number in the play, and its sending time.
        """
        begins = self._beginnings(int(records.lane.max()) + 1)
        minutes = len(self.readings[0])
        columns = (
            chosen.tolist(),
            records.side[chosen].tolist(),
            records.lane[chosen].tolist(),
            (records.minute[chosen] % minutes).tolist(),
            records.sent_ms[chosen].tolist(),
        )
        values = [each.tolist() for each in self.readings]
        stamps: dict[int, str] = {}
        for number, side, lane, minute, sent in zip(*columns, strict=True):
            second = (sent + 500) // 1000
            if (stamp := stamps.get(second)) is None:
                at = datetime.fromtimestamp(second, UTC)
                stamp = stamps[second] = at.strftime("%Y-%m-%d %H:%M:%S")
            yield (
                f"{begins[side][lane]}{values[side][minute][lane % len(self.places)]}"
                f',"timestamp":"{stamp}","number":{number},"sent":{sent}}}'
            )

    def _beginnings(self, lanes: int) -> tuple[list[str], list[str]]:
        found: tuple[list[str], list[str]] = ([], [])
        for lane in range(lanes):
            name, lat, long, count = self.places[lane % len(self.places)]
            # Repeated lanes are moved by a degree of longitude, far away.
            place = {"internalId": name, "lat": lat, "long": long + lane // len(self.places)}
            for side, one in enumerate(SIDES):
                extra: dict[str, Any] = {"period": 60} if one is FLOW else {}
                body = place | extra | {"accuracy": 100, "num_lanes": count}
                text = json.dumps(body, separators=(",", ":"))
                found[side].append(f'{text[:-1]},"{one.reading}":')
        return found


def data_folder() -> Path:
    """Where recordings are searched: `QUADWEIR_DATA`, else next to the working folder."""
    return Path(os.environ.get("QUADWEIR_DATA", Path.cwd().parent / "shared" / "data"))


def load(folder: Path | None = None) -> LaneReadings:
    """Read the real recording if it exists; otherwise generate one of the same size.

    Raises:
        DataError: the recording has not the shape that it should have.
    """
    found = (folder or data_folder()) / "ndw"
    return read_recording(found) if found.is_dir() else made_up()


def read_recording(folder: Path) -> LaneReadings:
    """Read the recording of the Open Stream Processing Benchmark.

    Raises:
        DataError: it has not the shape that it should have.
    """
    lanes: dict[str, int] = {}
    places: list[tuple[str, float, float, int]] = []
    found: dict[tuple[int, int, str], int] = {}
    times: dict[str, int] = {}
    for number in range(1, MINUTES // 30 + 1):
        path = folder / f"time{number}" / "part.txt"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        for line in lines:
            name, _, text = line.partition("=")
            try:
                body = json.loads(text)
                where = (name.rpartition("/")[2], body["lat"], body["long"], body["num_lanes"])
                side = FLOW if "flow" in body else SPEED
                value, time = int(body[side.reading]), str(body["timestamp"])
            except (ValueError, KeyError, TypeError):
                raise DataError(f"{path} holds a line that is not a reading: {line[:80]}") from None
            if name not in lanes:
                lanes[name] = len(places)
                places.append(where)
            minute = times.setdefault(time, len(times))
            found[minute, lanes[name], side.reading] = value
    readings = np.zeros((2, len(times), len(places)), dtype=np.int64)
    if len(found) != readings.size:
        raise DataError(
            f"{folder} holds {len(found)} readings of {len(places)} lanes in {len(times)} minutes",
            hint="Each lane has one of flow and one of speed in each minute.",
        )
    sides = {one.reading: side for side, one in enumerate(SIDES)}
    for (minute, lane, reading), value in found.items():
        readings[sides[reading], minute, lane] = value
    return LaneReadings(str(folder), tuple(places), (readings[0], readings[1]))


def made_up(minutes: int = MINUTES) -> LaneReadings:
    """Generate readings with the motorway of the demo."""
    road = Motorway(points=7, lanes=3)
    names = road.sensors[:LANES]
    places = tuple(
        (f"lane{name[-1]}", round(51.4 + float(name[:-2]) / 100, 5), 5.42929, 3) for name in names
    )
    readings = np.zeros((2, minutes, LANES), dtype=np.int64)
    found: Callable[[], Any] = road.readings().__next__
    for minute in range(minutes):
        for lane in range(len(road.sensors)):
            one = found()
            if lane < LANES:
                readings[:, minute, lane] = one.speed, one.flow
    return LaneReadings("made up", places, (readings[0], readings[1]))
