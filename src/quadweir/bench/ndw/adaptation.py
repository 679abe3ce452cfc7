"""How the windows of keys change during a play, observed in the kernel step by step."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quadweir.bench.ndw.publisher import Ints, SendSchedule
from quadweir.kernel.streamjoin.clock import JoinTiming
from quadweir.kernel.streamjoin.join import Arrivals, StreamJoin
from quadweir.kernel.streamjoin.windows import JoinWindow

STEP_MS: Final = 100
_MOST_KEYS: Final = 100_000


@final
@dataclass(slots=True)
class Course:
    """The course of a join.

    Attributes:
        seconds: of the stream, one for each step.
        sizes_ms: for each step the least, the median and the greatest size of live keys' windows.
        limits: the same for the limits of their lists.
        held: for each step, the number of records held.
        keys: for each step, the number of live keys.
        pairs: the number of all pairs.
        evictions: how often a window ended.
        keys_met: how many keys had some pair.
        keys_sent: how many had records on both sides.
    """

    seconds: list[float] = field(default_factory=list)
    sizes_ms: list[tuple[float, float, float]] = field(default_factory=list)
    limits: list[tuple[float, float, float]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    pairs: int = 0
    evictions: int = 0
    keys_met: int = 0
    keys_sent: int = 0

    def as_json(self) -> dict[str, Any]:
        sizes = [size for each in self.sizes_ms for size in (each[0], each[2])]
        limits = [limit for each in self.limits for limit in (each[0], each[2])]
        return {
            "pairs": self.pairs,
            "evictions": self.evictions,
            "most_held": max(self.held),
            "most_keys": max(self.keys),
            "keys_sent": self.keys_sent,
            "keys_met": self.keys_met,
            "least_size_ms": min(sizes, default=None),
            "greatest_size_ms": max(sizes, default=None),
            "least_limit": min(limits, default=None),
            "greatest_limit": max(limits, default=None),
        }


def follow(window: JoinWindow, records: SendSchedule, *, with_time: bool = True) -> Course:
    """Join a play step by step, and record the state of the windows after each step."""
    numbers, texts = _keys(records, with_time=with_time)
    join = StreamJoin(window, JoinTiming())
    course = Course(keys_sent=_sent_on_both(numbers, records.side))
    met = np.zeros(int(numbers.max()) + 1, dtype=bool)
    first = int(records.sent_ms[0])
    piece = (records.sent_ms - first) // STEP_MS
    edges = np.searchsorted(piece, np.arange(int(piece[-1]) + 2)).tolist()
    for start, end in itertools.pairwise(edges):
        part = slice(start, end)
        sent = records.sent_ms[part]
        arrivals = Arrivals(
            texts.take(pa.array(numbers[part])),
            records.side[part],
            sent,
            sent,
            np.arange(start, end),
        )
        for pairs in join.step(arrivals):
            course.pairs += len(pairs)
            met[numbers[pairs.child]] = True
        _note(course, join, (int(piece[start]) + 1) * STEP_MS / 1000 if end > start else None)
    course.evictions = join.facts()["evictions"]
    course.keys_met = int(met.sum())
    return course


def _note(course: Course, join: StreamJoin, second: float | None) -> None:
    if second is None:
        return
    facts, windows = join.facts(), join.windows(_MOST_KEYS)
    course.seconds.append(second)
    course.held.append(facts["held"])
    course.keys.append(facts["keys"])
    if windows.num_rows and windows["size_ms"].null_count == 0:
        course.sizes_ms.append(_spread(windows["size_ms"].to_numpy()))
        both = np.concatenate(
            [windows[name].to_numpy() for name in ("child_limit", "parent_limit")]
        )
        course.limits.append(_spread(both))


def _spread(values: npt.NDArray[Any]) -> tuple[float, float, float]:
    return float(values.min()), float(np.median(values)), float(values.max())


def _keys(records: SendSchedule, *, with_time: bool) -> tuple[Ints, pa.Array]:
    """The numbers of the keys, and their texts."""
    found, numbers = np.unique(records.keys(with_time=with_time), return_inverse=True)
    return numbers.astype(np.int64), pa.array([f"key {each}" for each in found.tolist()])


def _sent_on_both(numbers: Ints, side: Ints) -> int:
    return len(np.intersect1d(numbers[side == 0], numbers[side == 1]))
