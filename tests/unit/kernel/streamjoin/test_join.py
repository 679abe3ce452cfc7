"""Joins of streams in windows: how they adapt, what they hold, and what bad input does to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

from quadweir.errors import PlanError, StateError
from quadweir.kernel.streamjoin.join import Arrivals, StreamJoin
from quadweir.kernel.streamjoin.policies import (
    CarryPolicy,
    CountPolicy,
    Next,
    PaperPolicy,
    Policy,
    ReleasedPolicy,
    Subwindow,
    configured,
    named,
    register_policy,
)
from quadweir.kernel.streamjoin.windows import (
    Dynamic,
    Interval,
    JoinTiming,
    JoinWindow,
    Sliding,
    Tumbling,
)


def arrivals(
    time: list[int] | np.ndarray,
    side: list[int] | np.ndarray,
    key: list[str | None] | None = None,
    *,
    first: int = 0,
) -> Arrivals:
    count = len(time)
    times = np.asarray(time, dtype=np.int64)
    texts = pa.array(["k"] * count if key is None else key, pa.string())
    return Arrivals(texts, np.asarray(side, dtype=np.int64), times, times, first + np.arange(count))


def pairs(join: StreamJoin, *given: Arrivals) -> set[tuple[int, int]]:
    found = [
        pair
        for each in given
        for some in join.step(each)
        for pair in zip(some.child.tolist(), some.parent.tolist(), strict=True)
    ]
    assert len(set(found)) == len(found)
    return set(found)


# --- policies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "counts", "size", "limits"),
    [
        (PaperPolicy(), (900, 600), 1_000, (1_400, 1_100)),
        (PaperPolicy(), (500, 500), 2_000, (1_000, 1_000)),
        (PaperPolicy(), (0, 100), 4_000, (500, 600)),
        (ReleasedPolicy(), (900, 500), 2_000, (1_000, 1_000)),
        (ReleasedPolicy(), (100, 100), 2_200, (600, 600)),
        (ReleasedPolicy(), (900, 700), 1_000, (1_400, 1_200)),
    ],
)
def test_policies_follow_the_published_rules(
    policy: PaperPolicy, counts: tuple[int, int], size: int, limits: tuple[int, int]
) -> None:
    found = policy.adapt(Subwindow(2_000, (1_000, 1_000), counts, 1_900))
    assert (found.size_ms, found.limits) == (size, limits)
    assert CarryPolicy().adapt(Subwindow(2_000, (9, 9), (0, 0), 0)).carry_ms == 2_000


def test_sizes_and_limits_stay_within_their_bounds() -> None:
    policy = PaperPolicy()
    window = Subwindow(2_000, (1_000, 1_000), (0, 0), 0)
    for _ in range(30):
        found = policy.adapt(window)
        window = Subwindow(found.size_ms, found.limits, (0, 0), 0)
    assert (window.size_ms, window.limits) == (5_000, (10, 10))
    for _ in range(30):
        found = policy.adapt(Subwindow(window.size_ms, (1, 1), (99, 99), 0))
        window = Subwindow(found.size_ms, found.limits, (0, 0), 0)
    assert window.size_ms == 50


def test_a_policy_of_ones_own() -> None:
    @dataclass(frozen=True)
    class Steady:
        size_ms: int = 100
        limit: int = 5
        max_size_ms: int = 100

        def adapt(self, window: Subwindow) -> Next:
            return Next(window.size_ms, window.limits)

    register_policy("steady-test", Steady)
    assert isinstance(named("steady-test"), Steady)
    join = StreamJoin(Dynamic(named("steady-test")))
    assert pairs(join, arrivals([0, 90, 105, 110, 111, 130], [0, 1, 0, 1, 0, 1])) >= {(0, 1)}
    with pytest.raises(PlanError, match="one of ours"):
        register_policy("carry", Steady)
    with pytest.raises(PlanError, match="no window policy"):
        named("unheard of")
    with pytest.raises(PlanError, match="no parameter"):
        configured(Steady(), lower=1)


@pytest.mark.parametrize(
    "given",
    [
        {"min_size_ms": 0},
        {"size_ms": 6_000},
        {"lower": 2},
        {"grow": 0.5},
        {"least_limit": 0},
        {"limit": 10**7},
    ],
)
def test_policies_that_cannot_be(given: dict[str, float]) -> None:
    with pytest.raises(PlanError):
        configured(PaperPolicy(), **given)


@pytest.mark.parametrize(
    "window",
    [lambda: Tumbling(0), lambda: Sliding(10, 11), lambda: Sliding(5, 0), lambda: Interval(-1)],
)
def test_windows_that_cannot_be(window: object) -> None:
    with pytest.raises(PlanError):
        window()  # type: ignore[operator]


# --- windows ----------------------------------------------------------------------------------


def test_size_and_limits_outlive_an_eviction() -> None:
    policy = PaperPolicy(size_ms=100, min_size_ms=10, max_size_ms=1_000, limit=4, least_limit=2)
    join = StreamJoin(Dynamic(policy))
    # Eight records in 100 ms, twice the limits: the next window is half as long.
    burst = list(range(0, 80, 10))
    pairs(join, arrivals([*burst, 101, 102, 103], [0, 1] * 5 + [0]))
    (reported,) = join.windows().to_pylist()
    assert (reported["size_ms"], reported["child_limit"], reported["evictions"]) == (50, 7, 1)
    assert (reported["child_records"], reported["parent_records"]) == (1, 0)


def test_carrying_over_loses_no_pair_at_the_end_of_a_window() -> None:
    # Two records 20 ms apart, on both sides of the end at 100.
    given = arrivals([0, 0, 95, 102, 103, 115], [0, 1, 0, 0, 1, 1])
    policies: list[Policy] = [PaperPolicy(size_ms=100), CarryPolicy(size_ms=100)]
    lost, kept = (pairs(StreamJoin(Dynamic(policy)), given) for policy in policies)
    assert (2, 5) not in lost
    assert (2, 5) in kept


def test_a_window_by_count_ends_after_so_many_records() -> None:
    policy = CountPolicy(limit=4, least_limit=2)
    join = StreamJoin(Dynamic(policy))
    found = pairs(join, arrivals([1, 2, 3, 4, 5, 6], [0, 1, 0, 1, 0, 1]))
    # The fifth finds the window full.
    assert found == {(0, 1), (2, 1), (0, 3), (2, 3), (4, 5)}
    (reported,) = join.windows().to_pylist()
    assert reported["child_limit"] == 8


@pytest.mark.parametrize("window", [Tumbling(), Dynamic(), Interval()])
def test_a_missing_key_meets_nothing_and_types_are_told_apart(window: JoinWindow) -> None:
    join = StreamJoin(window)
    keys = [None, None, '"1"', "=1", '"1"']
    assert pairs(join, arrivals([1, 1, 1, 1, 1], [0, 1, 0, 1, 1], keys)) == {(2, 4)}
    assert join.facts()["without_key"] == 2


# --- hard input -------------------------------------------------------------------------------

MANY = 1_000_000


@pytest.mark.parametrize("window", [Tumbling(), Dynamic()])
def test_a_key_with_a_million_records_in_one_window(window: JoinWindow) -> None:
    join = StreamJoin(window, JoinTiming((500, 500)))
    side = np.zeros(MANY, dtype=np.int64)
    side[[10, MANY // 2, MANY - 1]] = 1
    times = np.arange(MANY, dtype=np.int64) // 1_000
    made, largest = 0, 0
    for start in range(0, MANY, 100_000):
        part = slice(start, start + 100_000)
        for some in join.step(arrivals(times[part], side[part])):
            made += len(some)
            largest = max(largest, len(some))
    assert made == 3 * (MANY - 3)
    assert largest <= 1 << 20
    assert join.held() == MANY
    assert join.facts()["bytes"] < 100 * MANY
    # Once time has gone on, nothing of it is left.
    pairs(join, arrivals([60_000, 60_000, 120_000, 120_000], [0, 1, 0, 1], ["x"] * 4))
    assert join.held() <= 4
    assert join.facts()["keys"] == 1
    assert join.facts()["bytes"] < MANY


@pytest.mark.parametrize("window", [Tumbling(1_000), Dynamic(), Interval(1_000)])
def test_a_stream_that_stops_does_not_fill_the_memory(window: JoinWindow) -> None:
    join = StreamJoin(window, JoinTiming((0, 0), idle_ms=10_000))
    pairs(join, arrivals([0, 0, 100, 100], [0, 1, 0, 1]))
    highest = 0
    for second in range(1, 100):
        start = second * 1_000
        pairs(join, arrivals(list(range(start, start + 1_000, 10)), [0] * 100, first=start))
        highest = max(highest, join.held())
    assert highest < 2_000
    assert join.held() < 1_000
    # When it comes back, it is joined again.
    assert len(pairs(join, arrivals([99_995, 99_996], [1, 1], first=10**6))) > 50


@pytest.mark.parametrize("window", [Tumbling(1_000), Dynamic(), Interval(1_000)])
def test_a_clock_that_jumps_back_an_hour(window: JoinWindow) -> None:
    hour = 3_600_000
    join = StreamJoin(window, JoinTiming((100, 100)))
    before = arrivals([hour, hour, hour + 10, hour + 10], [0, 1, 0, 1])
    assert len(pairs(join, before)) == 4
    held = join.held()
    back = arrivals([10, 10, 20, 30, 40, 50], [0, 1, 0, 1, 0, 1])
    assert pairs(join, back) == set()
    assert (join.late, join.held()) == (6, held)
    # When the clock is right again, so is the join.
    assert len(pairs(join, arrivals([hour + 20, hour + 20], [0, 1], first=10))) == 5


def test_idle_keys_disappear() -> None:
    join = StreamJoin(Dynamic())
    for second in range(60):
        keys = [f"{second}-{n}" for n in range(50) for _ in (0, 1)]
        pairs(join, arrivals([second * 1_000 + n // 2 for n in range(100)], [0, 1] * 50, keys))
    facts = join.facts()
    assert facts["keys"] < 600
    assert facts["pairs"] == 3_000
    assert facts["evictions"] > 2_000


# --- state ------------------------------------------------------------------------------------


def test_state_is_taken_up_only_by_the_same_join() -> None:
    join = StreamJoin(Tumbling(10))
    pairs(join, arrivals([1, 2], [0, 1]))
    data = join.snapshot()
    for other in (StreamJoin(Tumbling(20)), StreamJoin(Tumbling(10), JoinTiming((5, 5)))):
        with pytest.raises(StateError, match="another query"):
            other.restore(data)
    with pytest.raises(StateError, match="damaged"):
        StreamJoin(Tumbling(10)).restore(data[:-1])
