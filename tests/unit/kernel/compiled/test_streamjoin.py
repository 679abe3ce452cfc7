"""The compiled functions of stream joins against lists of records."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiled_twins import compares, ints
from quadweir.kernel.arrays import ALWAYS
from quadweir.kernel.streamjoin import clock, dynamic, keylists, records, timed
from quadweir.kernel.streamjoin.policies import (
    CarryPolicy,
    CountPolicy,
    PaperPolicy,
    ReleasedPolicy,
    Subwindow,
)

EXTRA = 3  # the cells of a key before those of its lists


def list_of(key: np.ndarray, side: int, chain: np.ndarray) -> list[int]:
    """The slots of a list, newest first."""
    found, slot = [], int(key[keylists.HEADS + side]) - 1
    while slot >= 0:
        found.append(slot)
        slot = int(chain[slot])
    assert key[keylists.COUNTS + side] == len(found)
    return found


@compares("streamjoin.keylists.put", "streamjoin.keylists.emptied", "streamjoin.keylists.keep")
@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), max_size=20))
def test_lists_of_records(put: list[tuple[int, bool]]) -> None:
    key, chain = ints([0] * keylists.LISTS), ints([-9] * len(put))
    model: list[list[int]] = [[], []]
    for slot, (side, _) in enumerate(put):
        keylists.put(key, side, slot, chain)
        model[side].insert(0, slot)
        assert [list_of(key, each, chain) for each in range(2)] == model
    for side in range(2):
        newest = keylists.emptied(key, side)
        assert newest == (model[side][0] if model[side] else -1)
        assert list_of(key, side, chain) == []
        kept = [slot for slot in model[side] if put[slot][1]]
        newer = -1
        for slot in kept:
            keylists.keep(key, side, slot, newer, chain)
            newer = slot
        if kept:
            chain[newer] = -1
        assert list_of(key, side, chain) == kept


@compares(
    "streamjoin.records.number_slots", "streamjoin.records.move_slots",
    "streamjoin.records.number_distinct",
)  # fmt: skip
@given(st.lists(st.booleans(), max_size=20), st.data())
def test_slots_move_together(alive: list[bool], data: st.DataObject) -> None:
    count = len(alive)
    living = [slot for slot in range(count) if alive[slot]]
    # What is alive points at what is alive and older.
    chain = [
        data.draw(st.sampled_from([-1, *(each for each in living if each < slot)]))
        for slot in range(count)
    ]
    moved, arrays = (
        ints([-1] * count),
        [ints(range(count)), ints(chain), ints(range(100, 100 + count))],
    )
    assert records.number_slots(ints(alive), moved) == len(living)
    place = {slot: at for at, slot in enumerate(living)}
    assert moved.tolist() == [place.get(slot, -1) for slot in range(count)]
    records.move_slots(ints(alive), moved, *arrays)
    times, links, numbers = (each[: len(living)].tolist() for each in arrays)
    assert times == living
    assert numbers == [100 + slot for slot in living]
    assert links == [place.get(chain[slot], -1) for slot in living]
    asked = data.draw(st.lists(st.integers(0, count - 1))) if count else []
    seen, chosen, at = ints([0] * count), ints([0] * count), ints([0] * len(asked))
    distinct = records.number_distinct(ints(asked), seen, chosen, at)
    expected = list(dict.fromkeys(asked))
    assert chosen[:distinct].tolist() == expected
    assert at.tolist() == [expected.index(slot) for slot in asked]
    assert not seen.any()


# --- the clock --------------------------------------------------------------------------------------


class Clock:
    """The watermark of two streams, in plain Python."""

    def __init__(self, lags: tuple[int, int], idle: int | None) -> None:
        self.lags, self.idle = lags, idle
        self.highest: list[int | None] = [None, None]
        self.arrived: list[int | None] = [None, None]
        self.first: int | None = None
        self.watermark: int | None = None

    def advance(self, now: int) -> None:
        known = []
        for side in range(2):
            arrived = self.arrived[side]
            last = self.first if arrived is None else arrived
            if self.idle is not None and now - (ALWAYS if last is None else last) > self.idle:
                continue
            highest = self.highest[side]
            if highest is None:
                return
            known.append(highest - self.lags[side])
        if known and (self.watermark is None or min(known) > self.watermark):
            self.watermark = min(known)

    def hear(self, side: int, time: int, arrival: int) -> None:
        self.first = arrival if self.first is None else self.first
        self.advance(arrival)
        highest, arrived = self.highest[side], self.arrived[side]
        self.highest[side] = time if highest is None else max(highest, time)
        self.arrived[side] = arrival if arrived is None else max(arrived, arrival)
        self.advance(arrival)

    def cells(self) -> list[int]:
        known = (*self.highest, *self.arrived, self.first, self.watermark)
        return [ALWAYS if each is None else each for each in known]


times = st.integers(0, 30)


@compares("streamjoin.clock._advance", "streamjoin.clock._hear", "streamjoin.clock._follow")
@given(
    st.lists(st.tuples(st.integers(0, 1), times, times), max_size=20),
    st.lists(st.tuples(st.integers(0, 25), times), max_size=10),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(0, 8)),
)
def test_watermarks(
    heard: list[tuple[int, int, int]],
    rows: list[tuple[int, int]],
    lags: tuple[int, int],
    idle: int | None,
) -> None:
    code = -1 if idle is None else idle
    model, cells = Clock(lags, idle), ints([ALWAYS] * 6)
    for side, time, arrival in heard:
        clock._hear(cells, ints(lags), code, side, time, arrival)
        model.hear(side, time, arrival)
        assert cells.tolist() == model.cells()
        clock._advance(cells, ints(lags), code, arrival + 4)
        model.advance(arrival + 4)
        assert cells.tolist() == model.cells()
    # Records find the watermark that what came before them made.
    rows = sorted(rows)
    model, cells = Clock(lags, idle), ints([ALWAYS] * 6)
    table = ints([[n, *each] for n, each in enumerate(heard)]).reshape(-1, 4).T.copy()
    found = ints([0] * len(rows))
    order, arrivals = (ints([row[n] for row in rows]) for n in range(2))
    clock._follow(cells, ints(lags), code, table, order, arrivals, found)
    done = 0
    for at, (place, arrival) in enumerate(rows):
        while done < len(heard) and done < place:
            model.hear(*heard[done])
            done += 1
        model.first = arrival if model.first is None else model.first
        model.advance(arrival)
        assert found[at] == (ALWAYS if model.watermark is None else model.watermark)
    for each in heard[done:]:
        model.hear(*each)
    assert cells.tolist() == model.cells()


# --- windows that times alone decide ------------------------------------------------------------------

arrivals = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), times), max_size=20)


def run(meet: Any, rows: np.ndarray, pairs_room: int) -> list[tuple[int, int]]:
    """Let all records meet, with room for so many pairs at a time."""
    found: list[tuple[int, int]] = []
    start = 0
    while start < rows.shape[1]:
        pairs, made = np.zeros((2, pairs_room), dtype=np.int64), ints([0, 0])
        before, start = start, meet(start, pairs, made)
        assert start > before
        found += [(int(child), int(parent)) for child, parent in pairs[:, : made[0]].T]
    return found


@compares("streamjoin.timed._meet", "streamjoin.timed._leave")
@given(arrivals, st.integers(1, 5), st.integers(0, 5), st.integers(0, 40), st.integers(20, 40))
def test_records_near_in_time_meet(
    came: list[tuple[int, int, int]], step: int, more: int, watermark: int, room: int
) -> None:
    reach = step + more
    count = len(came)
    cells = np.zeros((3, EXTRA + keylists.LISTS), dtype=np.int64)
    held, chain = ints([each[2] for each in came]), ints([-1] * count)
    rows = ints([(key, side, 0) for key, side, _ in came]).reshape(-1, 3).T.copy()
    found = run(
        lambda start, pairs, made: timed._meet(
            cells, EXTRA, rows, held, chain, 0, start, step, reach, pairs, made
        ),
        rows,
        room,
    )
    expected = [
        (a, b)
        for a, (key_a, side_a, time_a) in enumerate(came)
        for b, (key_b, side_b, time_b) in enumerate(came)
        if (key_a, side_a, side_b) == (key_b, 0, 1)
        and max(time_a, time_b) < min(time_a, time_b) // step * step + reach
    ]
    assert sorted(found) == expected
    alive = ints([0] * count)
    timed._leave(cells, EXTRA, ints([0, 1, 2]), held, chain, step, reach, watermark, alive)
    stays = [time // step * step + reach - 1 > watermark for _, _, time in came]
    assert alive.tolist() == stays
    for key in range(3):
        for side in range(2):
            slots = [n for n in range(count) if came[n][:2] == (key, side) and stays[n]]
            assert list_of(cells[key, EXTRA:], side, chain) == slots[::-1]


# --- dynamic windows ----------------------------------------------------------------------------------

POLICIES: tuple[PaperPolicy, ...] = (
    PaperPolicy(size_ms=8, limit=2, min_size_ms=2, max_size_ms=20, least_limit=1),
    CarryPolicy(size_ms=8, limit=2, min_size_ms=2, max_size_ms=20, least_limit=1),
    ReleasedPolicy(size_ms=8, limit=2, min_size_ms=2, max_size_ms=20, least_limit=1),
    CountPolicy(size_ms=8, limit=3, min_size_ms=2, max_size_ms=20, least_limit=1),
)


class Window:
    """The window of one key, in plain Python, with the policy's own `adapt`."""

    def __init__(self, policy: PaperPolicy, forget: int) -> None:
        self.policy, self.forget = policy, forget
        self.state = "fresh"
        self.lists: list[list[int]] = [[], []]
        self.size, self.limits, self.end = 0, (0, 0), 0
        self.first = self.last = self.evictions = 0

    def settle(self, times: list[int], watermark: int) -> None:
        counts = len(self.lists[0]), len(self.lists[1])
        full = self.policy.counts_records and sum(counts) >= self.limits[0]
        if self.state == "open" and (watermark >= self.end or full):
            self.evictions += 1
            after = self.policy.adapt(
                Subwindow(self.size, self.limits, counts, self.last - self.first)
            )
            self.size, self.limits = after.size_ms, after.limits
            self.clear(times, after.carry_ms)
        if self.state == "carried" and watermark >= self.end:
            self.clear(times, 0)
        if self.state == "closed" and watermark >= self.end + self.forget:
            self.state = "fresh"

    def clear(self, times: list[int], carry: int) -> None:
        self.lists = [
            [slot for slot in each if carry and times[slot] > self.end - carry]
            for each in self.lists
        ]
        stays = [times[slot] for each in self.lists for slot in each]
        self.state = "carried" if stays else "closed"
        if stays:
            self.end = max(stays) + carry

    def meet(self, times: list[int], slot: int, side: int, watermark: int) -> list[int]:
        if self.state != "fresh":
            self.settle(times, watermark)
        if self.state == "fresh":
            self.size, self.limits = self.policy.size_ms, (self.policy.limit,) * 2
        if self.state != "open":
            longest = self.policy.max_size_ms
            self.end = times[slot] + (longest if self.policy.counts_records else self.size)
            self.first = self.last = times[slot]
            self.state = "open"
        self.first, self.last = min(self.first, times[slot]), max(self.last, times[slot])
        found = list(self.lists[1 - side])
        self.lists[side].insert(0, slot)
        return found

    def check(self, key: np.ndarray, chain: np.ndarray) -> None:
        assert [list_of(key, side, chain) for side in range(2)] == self.lists
        states = {"fresh": 0, "open": 1, "carried": 2, "closed": 3}
        assert key[dynamic._STATE] == states[self.state]
        if self.state != "fresh":
            assert key[dynamic.SIZE] == self.size
            assert tuple(key[dynamic.LIMITS : dynamic.LIMITS + 2].tolist()) == self.limits
            assert key[dynamic._END] == self.end
        assert key[dynamic.EVICTIONS] == self.evictions


@compares(
    "streamjoin.dynamic._meet", "streamjoin.dynamic._settle", "streamjoin.dynamic._settle_all"
)
@given(arrivals, st.sampled_from(POLICIES), st.integers(0, 9), st.integers(0, 9))
def test_dynamic_windows(
    came: list[tuple[int, int, int]], policy: PaperPolicy, forget: int, later: int
) -> None:
    count = len(came)
    held = [time + 2 * n for n, (_, _, time) in enumerate(came)]
    watermarks = [max(held[: n + 1]) - 10 for n in range(count)]
    cells = np.zeros((3, EXTRA + keylists.LISTS + dynamic._CELLS), dtype=np.int64)
    chain = ints([-1] * count)
    rows = ints([(key, side, mark) for (key, side, _), mark in zip(came, watermarks, strict=True)])
    rows = rows.reshape(-1, 3).T.copy()
    numbers = dynamic._as_numbers(policy)
    found = run(
        lambda start, pairs, made: dynamic._meet(
            cells, EXTRA, rows, ints(held), chain, 0, start, numbers, forget, pairs, made
        ),
        rows,
        20,
    )
    windows = [Window(policy, forget) for _ in range(3)]
    expected = []
    for slot, (key, side, _) in enumerate(came):
        for other in windows[key].meet(held, slot, side, watermarks[slot]):
            expected.append((slot, other) if side == 0 else (other, slot))
    assert found == expected
    for key, window in enumerate(windows):
        window.check(cells[key, EXTRA:], chain)
    watermark = max(watermarks, default=0) + later
    keys = ints([key for key in range(3) if windows[key].state != "fresh"])
    first = keys[:1]
    for key in first:  # alone
        assert not dynamic._settle(
            cells[key, EXTRA:], ints(held), chain, numbers, forget, watermark
        )
        windows[key].settle(held, watermark)
        windows[key].check(cells[key, EXTRA:], chain)
    done = dynamic._settle_all(
        cells, EXTRA, keys, ints(held), chain, numbers, forget, watermark, len(first)
    )
    assert done == len(keys)
    for key in keys[1:]:
        windows[key].settle(held, watermark)
    for key, window in enumerate(windows):
        window.check(cells[key, EXTRA:], chain)


key_cells = st.tuples(
    st.integers(0, 6), st.integers(0, 6), st.integers(1, 30), st.integers(1, 9),
    st.integers(1, 9), st.integers(0, 30), st.integers(0, 30),
)  # fmt: skip


@compares("streamjoin.dynamic._is_due", "streamjoin.dynamic._adapt")
@given(key_cells, st.sampled_from(POLICIES), times)
def test_when_and_how_windows_adapt(
    drawn: tuple[int, ...], policy: PaperPolicy, watermark: int
) -> None:
    child, parent, size, one, other, first, more = drawn
    limits = (one, one) if policy.counts_records else (one, other)
    key = ints([0] * (keylists.LISTS + dynamic._CELLS))
    key[[keylists.COUNTS, keylists.COUNTS + 1]] = child, parent
    key[[dynamic.SIZE, dynamic.LIMITS, dynamic.LIMITS + 1]] = size, *limits
    key[[dynamic._END, dynamic._FIRST, dynamic._LAST]] = 15, first, first + more
    numbers = dynamic._as_numbers(policy)
    is_full = policy.counts_records and child + parent >= one
    assert dynamic._is_due(key, numbers, watermark) == (watermark >= 15 or is_full)
    after = policy.adapt(Subwindow(size, limits, (child, parent), more))
    assert dynamic._adapt(key, numbers) == after.carry_ms
    assert key[dynamic.SIZE] == after.size_ms
    assert tuple(key[dynamic.LIMITS : dynamic.LIMITS + 2].tolist()) == after.limits


@compares("streamjoin.dynamic._clear", "streamjoin.dynamic._mark")
@given(arrivals, st.integers(0, 30), times)
def test_windows_are_cleared(came: list[tuple[int, int, int]], carry: int, end: int) -> None:
    held, chain = ints([each[2] for each in came]), ints([-1] * len(came))
    cells = np.zeros((1, EXTRA + keylists.LISTS + dynamic._CELLS), dtype=np.int64)
    key = cells[0, EXTRA:]
    window = Window(POLICIES[0], 0)
    for slot, (_, side, _) in enumerate(came):
        keylists.put(key, side, slot, chain)
        window.lists[side].insert(0, slot)
    alive = ints([0] * len(came))
    dynamic._mark(cells, EXTRA, ints([0]), chain, alive)
    assert alive.all()
    key[dynamic._END] = window.end = end
    dynamic._clear(key, held, chain, carry)
    window.clear(held.tolist(), carry)
    assert [list_of(key, side, chain) for side in range(2)] == window.lists
    assert key[dynamic._STATE] == (2 if window.state == "carried" else 3)
    assert key[dynamic._END] == window.end
    alive = ints([0] * len(came))
    dynamic._mark(cells, EXTRA, ints([0]), chain, alive)
    assert set(np.flatnonzero(alive).tolist()) == {*window.lists[0], *window.lists[1]}
