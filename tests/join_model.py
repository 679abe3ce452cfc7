"""Stream joins in plain Python: one record at a time, lists and dictionaries, nothing compiled."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from quadweir.kernel.streamjoin.policies import Subwindow
from quadweir.kernel.streamjoin.windows import (
    Dynamic,
    Interval,
    JoinTiming,
    JoinWindow,
    Sliding,
    Tumbling,
)


@dataclass(frozen=True)
class Record:
    """A record as it arrives."""

    number: int
    side: int
    key: str | None
    time: int
    arrival: int = 0


@dataclass
class _Window:
    """The dynamic window of one key."""

    size: int
    limits: tuple[int, int]
    end: int = 0
    lists: tuple[list[Record], list[Record]] = field(default_factory=lambda: ([], []))
    state: str = "closed"
    first: int = 0
    last: int = 0


class Model:
    """Joins records in order of arrival."""

    def __init__(self, window: JoinWindow, timing: JoinTiming) -> None:
        self.window = window
        self.timing = timing
        self.late_ones: list[int] = []
        self.pairs: list[tuple[int, int, int]] = []
        self.watermark: int | None = None
        self._highest: dict[int, int] = {}
        self._arrived: dict[int, int] = {}
        self._began: int | None = None
        self._all: dict[str, list[Record]] = defaultdict(list)
        self._keys: dict[str, _Window] = {}

    @property
    def late(self) -> int:
        return len(self.late_ones)

    def run(self, records: list[Record]) -> list[tuple[int, int, int]]:
        for record in records:
            self.take(record)
        return sorted(self.pairs)

    def take(self, record: Record) -> None:
        if self._began is None:
            self._began = record.arrival
        self._advance(record.arrival)
        if self.watermark is not None and record.time <= self.watermark:
            self.late_ones.append(record.number)
        elif record.key is not None:
            if isinstance(self.window, Dynamic):
                self._dynamic(record, self.window)
            else:
                self._timed(record)
        self._highest[record.side] = max(record.time, self._highest.get(record.side, record.time))
        self._arrived[record.side] = record.arrival
        self._advance(record.arrival)

    def _advance(self, now: int) -> None:
        known = []
        for side in (0, 1):
            idle = self.timing.idle_ms
            if idle is not None and now - self._arrived.get(side, self._began or 0) > idle:
                continue
            if side not in self._highest:
                return
            known.append(self._highest[side] - max(self.timing.delay_ms[side], 1))
        if known:
            self.watermark = max(min(known), self.watermark if self.watermark else min(known))

    def _emit(self, one: Record, other: Record) -> None:
        child, parent = (one, other) if one.side == 0 else (other, one)
        self.pairs.append((child.number, parent.number, max(one.time, other.time)))

    def _timed(self, record: Record) -> None:
        assert record.key is not None
        for other in self._all[record.key]:
            if other.side != record.side and self._meets(record.time, other.time):
                self._emit(record, other)
        self._all[record.key].append(record)

    def _meets(self, one: int, other: int) -> bool:
        match self.window:
            case Tumbling(size_ms=size):
                return one // size == other // size
            case Sliding(size_ms=size, slide_ms=slide):
                starts = range(
                    (min(one, other) - size) // slide * slide, max(one, other) + 1, slide
                )
                return any(s <= one < s + size and s <= other < s + size for s in starts)
            case Interval(distance_ms=distance):
                return abs(one - other) <= distance
            case _:
                raise AssertionError(self.window)

    def _dynamic(self, record: Record, window: Dynamic) -> None:
        assert record.key is not None
        policy = window.policy
        by_count = getattr(policy, "counts_records", False)
        known = self._keys.get(record.key)
        if known is not None:
            now = self.watermark if self.watermark is not None else -(10**18)
            is_full = by_count and sum(map(len, known.lists)) >= known.limits[0]
            if known.state == "open" and (now >= known.end or is_full):
                self._evict(known, window)
            if known.state == "carried" and now >= known.end:
                known.state, known.lists = "closed", ([], [])
            if known.state == "closed" and now >= known.end + policy.max_size_ms:
                known = None
        if known is None:
            known = self._keys[record.key] = _Window(policy.size_ms, (policy.limit, policy.limit))
        if known.state != "open":
            known.state = "open"
            known.end = record.time + (policy.max_size_ms if by_count else known.size)
            known.first = known.last = record.time
        known.first, known.last = min(known.first, record.time), max(known.last, record.time)
        for other in known.lists[1 - record.side]:
            self._emit(record, other)
        known.lists[record.side].append(record)

    def _evict(self, known: _Window, window: Dynamic) -> None:
        counts = (len(known.lists[0]), len(known.lists[1]))
        found = window.policy.adapt(
            Subwindow(known.size, known.limits, counts, known.last - known.first)
        )
        carry = min(found.carry_ms, window.policy.max_size_ms)
        kept = [[r for r in each if r.time > known.end - carry] for each in known.lists]
        known.size = min(found.size_ms, window.policy.max_size_ms)
        known.limits = found.limits
        known.lists = (kept[0], kept[1]) if carry else ([], [])
        known.state = "closed"
        left = known.lists[0] + known.lists[1]
        if left:
            known.state = "carried"
            known.end = max(record.time for record in left) + carry
