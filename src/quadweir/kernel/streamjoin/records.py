"""The records that a stream join holds: numbers for compiled code, and columns for what they carry.

A record has a slot. Its time and the slot of the record before it in the same list lie in arrays;
what is to come out with it, in Arrow columns of the same numbering. Records are only ever appended;
when more slots are dead than alive, the living ones move together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.codec import read_columns, write_columns


@njit(cache=True)  # type: ignore[untyped-decorator]
def number_slots(alive: Ints, moved: Ints) -> int:
    """Number the living slots in their order; returns how many there are."""
    count = 0
    for slot in range(len(alive)):
        if alive[slot]:
            moved[slot] = count
            count += 1
    return count


@njit(cache=True)  # type: ignore[untyped-decorator]
def move_slots(alive: Ints, moved: Ints, times: Ints, chain: Ints, numbers: Ints) -> None:
    """Move living slots to their new places; all they point at is alive."""
    for slot in range(len(alive)):
        if alive[slot]:
            to = moved[slot]
            times[to] = times[slot]
            numbers[to] = numbers[slot]
            chain[to] = moved[chain[slot]] if chain[slot] >= 0 else -1


@njit(cache=True)  # type: ignore[untyped-decorator]
def number_distinct(slots: Ints, seen: Ints, chosen: Ints, place: Ints) -> int:
    """Number slots as they are first met; `seen` is 0 for each before and after."""
    count = 0
    for row in range(len(slots)):
        slot = slots[row]
        if not seen[slot]:
            chosen[count] = slot
            count += 1
            seen[slot] = count
        place[row] = seen[slot] - 1
    for each in range(count):
        seen[chosen[each]] = 0
    return count


@final
class HeldRecords:
    """Records by slot.

    Attributes:
        times: event times.
        chain: the slot of the record before in the same list, -1 for none.
        numbers: what the caller calls the records.
        size: how many slots are in use, dead ones included.
    """

    def __init__(self) -> None:
        self.size = 0
        self.times, self.chain, self.numbers = ints(0), ints(0), ints(0)
        self._seen = ints(0)
        self._columns: pa.Table | None = None

    def append(self, times: Ints, numbers: Ints, carried: pa.Table | None) -> int:
        """Add records and give the slot of the first; their chains are for the caller to set."""
        first, self.size = self.size, self.size + len(times)
        if self.size > len(self.times):
            room = max(2 * len(self.times), self.size, 1024)
            for name in ("times", "chain", "numbers"):
                wider = ints(room)
                wider[:first] = getattr(self, name)[:first]
                setattr(self, name, wider)
        self.times[first : self.size] = times
        self.numbers[first : self.size] = numbers
        if carried is not None:
            known = self._columns
            self._columns = carried if known is None else pa.concat_tables([known, carried])
        return first

    def distinct(self, slots: Ints) -> tuple[Ints, Ints]:
        """Return each slot once, and where among them each of those given is."""
        if len(self._seen) < self.size:
            self._seen = ints(len(self.times))
        chosen, place = ints(len(slots)), ints(len(slots))
        count = number_distinct(slots, self._seen, chosen, place)
        return chosen[:count], place

    def take(self, slots: Ints, names: Sequence[str] | None = None) -> pa.Table | None:
        """Return what records carry, in some columns or in all."""
        if self._columns is None:
            return None
        if any(column.num_chunks > 1 for column in self._columns.columns):
            # Taking from many pieces costs more than making them one.
            self._columns = self._columns.combine_chunks()
        found = self._columns if names is None else self._columns.select(names)
        return found.take(pa.array(slots))

    def compact(self, alive: Ints) -> Ints:
        """Leave out dead slots; returns where each living one went."""
        moved = ints(self.size)
        count = number_slots(alive, moved)
        move_slots(alive, moved, self.times, self.chain, self.numbers)
        if self._columns is not None:
            self._columns = self.take(np.flatnonzero(alive))
        self.size = count
        if len(self.times) > 4 * max(count, 1024):
            self.times, self.chain, self.numbers = (
                np.concatenate([each[:count], ints(count)])
                for each in (self.times, self.chain, self.numbers)
            )
        return moved

    def nbytes(self) -> int:
        """How many bytes records take."""
        return 24 * len(self.times) + (self._columns.nbytes if self._columns is not None else 0)

    def arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {
            name: getattr(self, name)[: self.size].copy() for name in ("times", "chain", "numbers")
        }
        if self._columns is not None:
            found["columns"] = write_columns(list(self._columns.columns))
        return found

    def restore(self, arrays: Mapping[str, NDArray[Any]], names: tuple[str, ...]) -> None:
        self.times, self.chain, self.numbers = (
            np.array(arrays[name], dtype=np.int64) for name in ("times", "chain", "numbers")
        )
        self.size = len(self.times)
        self._columns = None
        if "columns" in arrays:
            self._columns = pa.table(read_columns(arrays["columns"]), names=list(names))
