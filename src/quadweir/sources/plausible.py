"""Recorded elements whose times jump implausibly far ahead, compared with their neighbours (S4).

A recording may be from any time, so the clock is no help. But after a real jump, such as a night
without data, the elements that follow have later times too. After an element with a wrong time,
they have the earlier times again. Only elements decide; batches have no influence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quadweir import rows

if TYPE_CHECKING:
    Longs = npt.NDArray[np.int64]

FOLLOWERS: Final = 9
"""How many following elements are compared: up to five wrong ones in a row are found."""


def without_jumps(batches: Iterable[pa.RecordBatch], ahead_ms: int) -> Iterator[pa.RecordBatch]:
    """Return the units; those that jump too far ahead get a reason and lose their time.

    A unit is too far ahead if its time is more than `ahead_ms` later than that of every usable unit
    before it, and than those of at least half of the nine units that follow it. Units without a
    time are skipped.

    Args:
        batches: units in their order, as batches of `replay.UNITS`.
        ahead_ms: how far ahead a unit may be.
    """
    highest: int | None = None
    held: pa.RecordBatch | None = None
    for batch in batches:
        held = batch if held is None else _joined(held, batch)
        timed = np.flatnonzero(held.column("time").is_valid())
        if len(timed) <= FOLLOWERS:
            continue
        end = int(timed[-FOLLOWERS])
        judged, highest = _judged(held, end, ahead_ms, highest)
        yield judged
        held = held.slice(end)
    if held is not None:
        yield _judged(held, held.num_rows, ahead_ms, highest)[0]


def jumps(
    times: Longs, end: int, ahead_ms: int, highest: int | None
) -> tuple[list[int], int | None]:
    """Return which of the first units jump too far ahead.

    Args:
        times: the times of units, in their order.
        end: how many of them to judge; the others are only compared with.
        ahead_ms: how far ahead a unit may be.
        highest: the highest time of earlier usable units; None if there are none.

    Returns:
        The places of the units that jump, and the new highest time of usable units.

    >>> jumps(np.array([5, 99, 6, 7]), 4, 10, None)
    ([1], 7)
    """
    earlier = np.zeros(len(times), dtype=np.int64)
    for step in range(1, min(FOLLOWERS, len(times) - 1) + 1):
        earlier[:-step] += times[step:] < times[:-step] - ahead_ms
    follow = np.minimum(np.arange(len(times))[::-1], FOLLOWERS)
    suspects = np.flatnonzero((2 * earlier[:end] >= follow[:end]) & (follow[:end] > 0))
    found: list[int] = []
    done = 0
    for place in suspects.tolist():
        highest = _highest(highest, times[done:place])
        done = place + 1
        if highest is None or int(times[place]) - highest > ahead_ms:
            found.append(place)
        else:
            highest = max(highest, int(times[place]))
    return found, _highest(highest, times[done:end])


def _highest(known: int | None, times: Longs) -> int | None:
    if not len(times):
        return known
    top = int(times.max())
    return top if known is None else max(known, top)


def _judged(
    units: pa.RecordBatch, end: int, ahead_ms: int, highest: int | None
) -> tuple[pa.RecordBatch, int | None]:
    """Judge the first units; return them, and the new highest time of usable units."""
    column = units.column("time")
    timed = np.flatnonzero(column.is_valid())
    times = column.drop_null().to_numpy()
    found, highest = jumps(times, int(np.searchsorted(timed, end)), ahead_ms, highest)
    units = units.slice(0, end)
    if not found:
        return units, highest
    at, reasons = units.column("time").to_pylist(), units.column("reason").to_pylist()
    for place in timed[found].tolist():
        reasons[place] = (
            f"{rows.AHEAD}it is of {at[place]}, and most elements after it are more than {ahead_ms} ms "
            "earlier; if it is right, declare a longer `ahead`"
        )
        at[place] = None
    for name, values in (("time", at), ("reason", reasons)):
        index = units.schema.get_field_index(name)
        field = units.schema.field(index)
        units = units.set_column(index, field, pa.array(values, field.type))
    return units, highest


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    table = pa.Table.from_batches([one, other]).combine_chunks()
    return table.to_batches()[0] if table.num_rows else one
