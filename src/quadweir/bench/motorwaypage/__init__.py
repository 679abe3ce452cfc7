"""The made-up motorway as an application of the service: recordings, places and queries come in a folder.

A folder goes out that `quadweir serve` can serve. Read `app.toml` first.
"""

from __future__ import annotations

import math
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Final

from quadweir.bench.motorway import Motorway, write_recording

_LAT, _LONG = 52.06, 4.98
_DEGREES_PER_KM: Final = 1 / 111.2
# Now and then a sensor's message is cut.
_CUT_EVERY: Final = 700


def write_application(folder: Path, *, hours: float = 24) -> Path:
    """Write everything that the service needs, and return the file of the application.

    Args:
        folder: where to write; it exists.
        hours: how long the recordings are; they are played again and again.
    """
    road = Motorway()
    records = round(hours * 60) * 2 * len(road.sensors)
    _, speeds = write_recording(folder / "recording", records, road)
    _cut_some(speeds)
    (folder / "places.ttl").write_text(places(road), encoding="utf-8")
    package = files("quadweir.bench")
    for source, name in (
        (package / "motorway.ttl", "motorway.ttl"),
        (package / "queries" / "jams.rq", "jams.rq"),
        (package / "motorwaypage" / "app.toml", "app.toml"),
    ):
        (folder / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return folder / "app.toml"


def _cut_some(path: Path) -> None:
    """Cut the end of some records, which become dead letters."""
    cut = path.with_suffix(".cut")
    with path.open(encoding="utf-8") as given, cut.open("w", encoding="utf-8") as out:
        for number, line in enumerate(given, start=1):
            out.write(line if number % _CUT_EVERY else f"{line[: len(line) // 2]}\n")
    shutil.move(cut, path)


def places(road: Motorway) -> str:
    """Return where the sensors are, as Turtle: the road bends a little to the north-east."""
    lines = [
        "# Where the sensors of the made-up motorway are.",
        "@prefix : <http://example.org/motorway/> .",
        "@prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> .",
    ]
    kilometres = [point * road.spacing_m / 1000 for point in range(road.points)]
    for number, km in enumerate(kilometres):
        lat = _LAT + _DEGREES_PER_KM * (0.45 * km + 0.5 * math.sin(km / 1.7))
        long = _LONG + _DEGREES_PER_KM * 0.95 * km / math.cos(math.radians(_LAT))
        own = f"<http://example.org/motorway/place/{km:.1f}>"
        following = kilometres[number + 1] if number + 1 < len(kilometres) else None
        onward = (
            f" ; :next <http://example.org/motorway/place/{following:.1f}>"
            if following is not None
            else ""
        )
        lines.append(
            f"{own} :kilometre {km:.1f} ; geo:lat {lat:.5f} ; geo:long {long:.5f}{onward} ."
        )
    for sensor in road.sensors:
        at, _, lane = sensor.rpartition("-")
        lines.append(
            f"<http://example.org/motorway/sensor/{sensor}> :at"
            f" <http://example.org/motorway/place/{at}> ; :lane {lane} ."
        )
    return "\n".join(lines) + "\n"
