"""Weather stations that observe, in the shapes of SRBench: a stream of observations, static sensors.

Every station observes everything once an hour, each at its own minute. Temperature and wind of a
station change gradually; it rains at times. The same seed gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.lsbench.draw import Dice
from quadweir.bench.tables import START, of_events
from quadweir.vocab import RDF, XSD

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Floats, Ints

OBSERVATIONS: Final = "http://example.org/weather/observations"
_OWL: Final = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
_WEATHER: Final = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
_GEO: Final = "http://www.w3.org/2003/01/geo/wgs84_pos#"
_TYPE: Final = f"<{RDF.type}>"
_HOUR_MS: Final = 3_600_000
_PLACES: Final = 25
_KINDS: Final = (
    ("TemperatureObservation", "_AirTemperature", "celsius"),
    ("WindObservation", "_WindSpeed", "metersPerSecond"),
    ("RainfallObservation", "_PrecipitationAccumulated", "centimeters"),
    ("HumidityObservation", "_RelativeHumidity", "percent"),
)
_RAIN: Final = 2
_DRY: Final = 0.8
"""The share of a station's hours without rain, and so without an observation of rain."""


def make_observations(stations: int, hours: int, seed: int = 1) -> pa.Table:
    """The stream of observations, eight triples each, in the order of time."""
    dice = Dice(seed)
    station, hour, kind = (
        axis.ravel()
        for axis in np.meshgrid(
            np.arange(stations), np.arange(hours), np.arange(len(_KINDS)), indexing="ij"
        )
    )
    wet = (kind != _RAIN) | (dice.unit("rain", station, hour) >= _DRY)
    station, hour, kind = station[wet], hour[wet], kind[wet]
    minute = dice.below(_HOUR_MS - 1000, "minute", station)
    time = START + hour * _HOUR_MS + minute + kind * 200
    order = np.lexsort((kind, station, time))
    station, hour, kind, time = (each[order] for each in (station, hour, kind, time))
    number = (station * hours + hour) * len(_KINDS) + kind
    observation = _name("observation/", number)
    result = _name("result/", number)
    types, properties, units = (
        pa.array([row[at] for row in _KINDS]).take(pa.array(kind)) for at in range(3)
    )
    value = np.round(_values(dice, station, hour, kind) * 10).astype(np.int64)
    triples = [
        (observation, _TYPE, _wrapped(_WEATHER, types)),
        (observation, f"<{_OWL}procedure>", _name("sensor/", station)),
        (observation, f"<{_OWL}observedProperty>", _wrapped(_WEATHER, properties)),
        (observation, f"<{_OWL}result>", result),
        (observation, f"<{_OWL}samplingTime>", _name("instant/", time)),
        (result, _TYPE, f"<{_OWL}MeasureData>"),
        (result, f"<{_OWL}floatValue>", _decimal(value)),
        (result, f"<{_OWL}uom>", _wrapped(_WEATHER, units)),
    ]
    return of_events(time, triples)


def _values(dice: Dice, station: Ints, hour: Ints, kind: Ints) -> Floats:
    own = dice.unit("climate", station)
    day = np.sin(2 * np.pi * (hour % 24) / 24)
    noise = dice.normal(1.0, "noise", station, hour, kind)
    temperature = 10 + 20 * own + 6 * day + 2 * noise
    wind = np.abs(12 + 14 * own + 8 * noise)
    rain = np.abs(8 * noise)
    humidity = np.clip(60 + 20 * noise, 0, 100)
    return np.choose(kind, [temperature, wind, rain, humidity])


def make_stations(stations: int, seed: int = 1) -> pa.Table:
    """The static data: sensors, their positions and the places near them."""
    dice = Dice(seed)
    number = np.arange(stations)
    sensor, location, near = (_name(kind, number) for kind in ("sensor/", "location/", "nearness/"))
    latitude = np.round((25 + 24 * dice.unit("latitude", number)) * 10).astype(np.int64)
    longitude = np.round((70 + 50 * dice.unit("longitude", number)) * 10).astype(np.int64)
    triples = [
        (sensor, _TYPE, f"<{_OWL}System>"),
        (sensor, f"<{_OWL}ID>", pc.binary_join_element_wise('"S', _text(number), '"', "")),
        (sensor, f"<{_OWL}processLocation>", location),
        (location, f"<{_GEO}lat>", _decimal(latitude)),
        (location, f"<{_GEO}long>", _decimal(-longitude)),
        (sensor, f"<{_OWL}hasLocatedNearRel>", near),
        (near, f"<{_OWL}hasLocation>", _name("place/", dice.below(_PLACES, "place", number))),
    ]
    return of_events(number, triples).select(["subject", "predicate", "object"])


def _text(numbers: Ints) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _name(kind: str, numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise(f"<http://example.org/{kind}", _text(numbers), ">", "")


def _wrapped(start: str, names: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(f"<{start}", names, ">", "")


def _decimal(tenths: Ints) -> pa.Array:
    sign = pa.array(np.where(tenths < 0, '"-', '"'))
    whole, rest = np.divmod(np.abs(tenths), 10)
    return pc.binary_join_element_wise(
        sign, _text(whole), ".", _text(rest), f'"^^<{XSD.decimal}>', ""
    )
