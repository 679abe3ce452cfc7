"""One shard of a join of two streams in a window: what arrives goes in, pairs come out.

    join = StreamJoin(Dynamic(), JoinTiming(delay_ms=(1000, 1000)))
    for pairs in join.step(arrivals): ...

For a given order of arrival the pairs do not depend on how the arrivals are cut into steps, on
restarts between them, or on how keys are spread over shards, provided that each shard hears of all
times (`Heard`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from quadweir.errors import StateError
from quadweir.kernel.arrays import Ints, ints
from quadweir.kernel.codec import StateKind, fingerprint, read_frame, write_frame
from quadweir.kernel.dictionary import Dictionary, distinct_of
from quadweir.kernel.oneway import COUNT, FIRST_KEY, part, prefixed
from quadweir.kernel.streamjoin.clock import Heard, JoinClock
from quadweir.kernel.streamjoin.dynamic import DynamicWindows
from quadweir.kernel.streamjoin.keylists import COUNTS
from quadweir.kernel.streamjoin.records import HeldRecords
from quadweir.kernel.streamjoin.timed import TimedWindows
from quadweir.kernel.streamjoin.windows import Dynamic, JoinTiming, JoinWindow

CHILD: Final = 0
PARENT: Final = 1
_MOST_PAIRS: Final = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records of both streams, in order of arrival.

    Attributes:
        key: what is joined on, as text; equal texts are equal keys. Null meets nothing.
        side: `CHILD` or `PARENT`.
        time: event times.
        arrival: times of arrival, not falling; where nothing says them, all the same.
        number: what to call the records in `Pairs`.
        order: places in the order of arrival, increasing; needed only if other shards have records
            in between.
        carried: the columns that come out again with each pair: the child's, then those that only
            the parent has, each null for records of the other side.
    """

    key: pa.Array
    side: Ints
    time: Ints
    arrival: Ints
    number: Ints
    order: Ints | None = None
    carried: pa.Table | None = None


@final
@dataclass(frozen=True, slots=True)
class Met:
    """The records of one side that are in pairs. Each is listed once, in however many pairs it is.

    Attributes:
        place: for each pair, the place of its record in this list.
        number: the numbers of the records.
        time: their event times.
        carried: their columns that go into pairs.
    """

    place: Ints
    number: Ints
    time: Ints
    carried: pa.Table | None = None


@final
@dataclass(frozen=True, slots=True)
class Pairs:
    """Records that met."""

    children: Met
    parents: Met

    def __len__(self) -> int:
        return len(self.children.place)

    @property
    def child(self) -> Ints:
        """The numbers of the children."""
        return self.children.number[self.children.place]

    @property
    def parent(self) -> Ints:
        """The numbers of the parents."""
        return self.parents.number[self.parents.place]

    @property
    def time(self) -> Ints:
        """The time of the later one of each pair."""
        times = (each.time[each.place] for each in (self.children, self.parents))
        return np.maximum(*times)


@final
class StreamJoin:
    """Joins the records of one shard.

    Args:
        window: which records may meet.
        timing: how late they may be.
        carried: the names of the columns that records carry and a child brings into a pair.
        parent_carried: those that a parent brings; the same if not given.

    Attributes:
        late: how many records came too late and were left out.
        late_rows: which of the last step's arrivals these were.
        late_watermarks: what watermark each of these found.
        without_key: how many had none.
        pairs: how many pairs were made.
        fingerprint: a digest of what its state depends on.
    """

    def __init__(
        self,
        window: JoinWindow,
        timing: JoinTiming | None = None,
        carried: tuple[str, ...] = (),
        parent_carried: tuple[str, ...] | None = None,
    ) -> None:
        timing = timing if timing is not None else JoinTiming()
        self.late = 0
        self.late_rows, self.late_watermarks = ints(0), ints(0)
        self.without_key = 0
        self.pairs = 0
        self._clock = JoinClock(timing)
        self._terms = Dictionary()
        self._held = HeldRecords()
        self._child = carried
        self._parent = carried if parent_carried is None else parent_carried
        self._windows: DynamicWindows | TimedWindows
        if isinstance(window, Dynamic):
            self._windows = DynamicWindows(window.policy, window.forget_ms)
        else:
            self._windows = TimedWindows(window)
        self.fingerprint = fingerprint(
            "stream join", repr(window), repr(timing), *self._child, "|", *self._parent
        )

    @property
    def watermark(self) -> int:
        """The instant until which all is known; `ALWAYS` before anything is."""
        return self._clock.watermark

    def step(
        self, arrivals: Arrivals, heard: Heard | None = None, *, most: int = _MOST_PAIRS
    ) -> Iterator[Pairs]:
        """Take records in and return the pairs that they make; the caller reads all of them.

        Args:
            arrivals: what came.
            heard: how time went on in all shards; what `arrivals` say of it if not given.
            most: how many pairs are given at once, unless a single record makes more.
        """
        order = arrivals.order if arrivals.order is not None else np.arange(len(arrivals.time))
        if heard is None:
            heard = Heard(order, arrivals.side, arrivals.time, arrivals.arrival)
        watermarks = self._clock.follow(heard, order, arrivals.arrival)
        is_late = arrivals.time <= watermarks
        self.late_rows = np.flatnonzero(is_late)
        self.late_watermarks = watermarks[self.late_rows]
        self.late += len(self.late_rows)
        lacks = arrivals.key.is_null().to_numpy(zero_copy_only=False) & ~is_late
        self.without_key += int(np.count_nonzero(lacks))
        wanted = np.flatnonzero(~(is_late | lacks))
        if len(wanted):
            yield from self._meet(arrivals, wanted, watermarks, most)
        self._forget(self._windows.leave(self._held, self._clock.watermark))

    def _meet(
        self, arrivals: Arrivals, wanted: Ints, watermarks: Ints, most: int
    ) -> Iterator[Pairs]:
        every = len(wanted) == len(watermarks)
        texts = arrivals.key if every else arrivals.key.take(pa.array(wanted))
        rows = np.empty((3, len(wanted)), dtype=np.int64)
        rows[0] = self._entries(texts)
        rows[1] = arrivals.side[wanted]
        rows[2] = watermarks[wanted]
        carried = arrivals.carried
        if carried is not None and not every:
            carried = carried.take(pa.array(wanted))
        first = self._held.append(arrivals.time[wanted], arrivals.number[wanted], carried)
        # As compiled code sees it: how many pairs there are, and whether Python is asked.
        room, done, made = most, 0, ints(2)
        pairs = np.empty((2, room), dtype=np.int64)
        while done < rows.shape[1]:
            made[0] = 0
            done = self._windows.meet(rows, self._held, first, done, pairs, made)
            if made[0]:
                self.pairs += int(made[0])
                yield self._pairs(pairs[:, : made[0]])
            elif done < rows.shape[1]:
                pairs = np.empty((2, self._windows.most(rows, done)), dtype=np.int64)

    def _entries(self, texts: pa.Array) -> Ints:
        """Return the entry of each key; those of new keys are held by the dictionary."""
        # Each key once: the index makes room for as many as it is given.
        places, numbers = distinct_of(self._terms.encode(texts))
        entries, became = self._windows.keys.transitions(
            numbers.reshape(-1, 1), np.ones(len(numbers), dtype=np.int64)
        )
        self._terms.hold(numbers[became > 0])
        # The counter only says whether there is such a key.
        self._windows.keys.cells[entries, COUNT] = 1
        return entries[places]

    def _pairs(self, slots: NDArray[np.int64]) -> Pairs:
        child, parent = slots
        return Pairs(self._met(child, self._child), self._met(parent, self._parent))

    def _met(self, slots: Ints, names: tuple[str, ...]) -> Met:
        held = self._held
        chosen, place = held.distinct(slots)
        return Met(place, held.numbers[chosen], held.times[chosen], held.take(chosen, names))

    def _forget(self, keys: Ints) -> None:
        if len(keys):
            self._terms.drop(self._windows.keys.cells[keys, FIRST_KEY])
            self._windows.forget(keys)
        self._terms.settle()

    # --- what it holds ---

    def held(self) -> int:
        """How many records it holds that may still meet others."""
        return self._windows.held(self._held)

    def facts(self) -> dict[str, int]:
        """How it fares: totals since it began, and what it holds now."""
        windows = self._windows
        return {
            "late": self.late,
            "without_key": self.without_key,
            "pairs": self.pairs,
            "held": self.held(),
            "keys": len(windows.keys.live()),
            "evictions": windows.evicted(),
            "bytes": self._held.nbytes() + self._terms.size + windows.keys.cells.nbytes,
        }

    def windows(self, most: int = 20) -> pa.Table:
        """Return the keys that hold most: size, limits, records and evictions of their windows.

        Windows that do not adapt have neither size nor limits.
        """
        keys = self._windows.keys
        cells = keys.cells[keys.live()]
        counts = cells[:, keys.first_extra + COUNTS :][:, :2]
        chosen = np.argsort(-counts.sum(axis=1), kind="stable")[:most]
        cells, counts = cells[chosen], counts[chosen]
        own = cells[:, keys.first_extra :]
        adapting = self._windows.adapting

        def column(name: str) -> pa.Array:
            if name not in adapting:
                return pa.nulls(len(own), pa.int64())
            return pa.array(own[:, adapting[name]])

        return pa.table(
            {
                "key": self._terms.decode(np.ascontiguousarray(cells[:, FIRST_KEY])),
                "size_ms": column("size_ms"),
                "child_limit": column("child_limit"),
                "parent_limit": column("parent_limit"),
                "child_records": pa.array(counts[:, 0]),
                "parent_records": pa.array(counts[:, 1]),
                "evictions": column("evictions"),
            }
        )

    # --- state ---

    def snapshot(self) -> bytes:
        """Write all that it holds; only between steps."""
        self._forget(self._windows.tidy(self._held, self._clock.watermark))
        totals = [self.late, self.without_key, self.pairs, self._windows.evictions]
        arrays: dict[str, NDArray[Any]] = {
            "clock": self._clock.cells,
            "totals": np.array(totals, dtype=np.int64),
            **prefixed("keys", self._windows.keys.arrays()),
            **{f"terms.{name}": each for name, each in self._terms.arrays().items()},
            **{f"held.{name}": each for name, each in self._held.arrays().items()},
        }
        return write_frame(StateKind.SNAPSHOT, self.fingerprint, arrays)

    def restore(self, data: bytes) -> None:
        """Take back what `snapshot` wrote.

        Raises:
            StateError: it is damaged, or of another join.
        """
        arrays = read_frame(StateKind.SNAPSHOT, self.fingerprint, data)
        try:
            self._clock.cells = arrays["clock"]
            self.late, self.without_key, self.pairs, evictions = map(int, arrays["totals"])
            self._windows.evictions = evictions
            self._windows.keys.restore(part("keys", arrays))
            self._terms.restore(part("terms", arrays))
            names = tuple(dict.fromkeys((*self._child, *self._parent)))
            self._held.restore(part("held", arrays), names)
        except (KeyError, ValueError) as error:
            raise StateError("a snapshot that lacks parts", detail=str(error)) from error
