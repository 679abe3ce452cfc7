"""Taxi rides as three streams: pick-ups, drop-offs and what was paid, in the shapes of paper 001.

A taxi has one ride after the other. Pick-ups and drop-offs carry their times inside the element;
payments come a minute after the ride. The same seed gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quadweir.bench.lsbench.draw import Dice
from quadweir.bench.tables import START, of_events
from quadweir.vocab import XSD

if TYPE_CHECKING:
    from quadweir.bench.lsbench.draw import Ints

STREAM: Final = "http://example.org/nyctaxi/"
STREAMS: Final = ("pickup", "dropoff", "fare")
_TAXI: Final = "http://example.org/taxi#"
_INTEGER: Final = f'"^^<{XSD.integer}>'


def make_rides(taxis: int, rides: int, seed: int = 1) -> dict[str, pa.Table]:
    """The streams by their IRIs: `rides` rides of each of the taxis."""
    dice = Dice(seed)
    taxi = np.repeat(np.arange(taxis), rides)
    number = np.tile(np.arange(rides), taxis)
    idle = 60 + dice.exponential(600, "idle", taxi, number).astype(np.int64)
    trip = 120 + dice.exponential(700, "trip", taxi, number).astype(np.int64)
    ends = np.cumsum((idle + trip).reshape(taxis, rides), axis=1).ravel()
    dropped = START // 1000 + ends
    picked = dropped - trip
    fare = 3 + trip // 60 + dice.below(8, "fare", taxi, number)
    ride = taxi * rides + number
    named = _name("r", ride)
    begun = _moment(picked)
    streams = {
        "pickup": (
            picked,
            [
                (named, f"<{_TAXI}taxi>", _name("taxi", taxi)),
                (named, f"<{_TAXI}pickupTime>", begun),
            ],
        ),
        "dropoff": (
            dropped,
            [
                (named, f"<{_TAXI}dropoffTime>", _moment(dropped)),
                (named, f"<{_TAXI}tripTime>", _number(trip)),
            ],
        ),
        "fare": (
            dropped + 60,
            [
                (_name("t", ride), f"<{_TAXI}fare>", _number(fare)),
                (_name("t", ride), f"<{_TAXI}pickupTime>", begun),
            ],
        ),
    }
    return {STREAM + name: _in_order(*given) for name, given in streams.items()}


def _in_order(seconds: Ints, triples: list[tuple[pa.Array, str, pa.Array]]) -> pa.Table:
    order = np.argsort(seconds, kind="stable")
    taken = pa.array(order)
    sorted_triples = [
        (subject.take(taken), predicate, end.take(taken)) for subject, predicate, end in triples
    ]
    return of_events(seconds[order] * 1000, sorted_triples)


def _name(kind: str, numbers: Ints) -> pa.Array:
    text = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(f"<{_TAXI}{kind}", text, ">", "")


def _number(numbers: Ints) -> pa.Array:
    return pc.binary_join_element_wise('"', pa.array(numbers).cast(pa.string()), _INTEGER, "")


def _moment(seconds: Ints) -> pa.Array:
    stamps = pa.array(seconds).cast(pa.timestamp("s")).cast(pa.string())
    return pc.binary_join_element_wise('"', stamps, '"', "")
