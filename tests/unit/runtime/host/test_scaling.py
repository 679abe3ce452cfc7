"""When a run asks for more executors, and for fewer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quadweir.errors import UsageError
from quadweir.runtime.host.scaling import COOL_DOWN, LEAST, MOST, Load, Scaler, ScalingPolicy, scale

POLICY = ScalingPolicy(least=2, most=4, patience=3, cool_down_ms=10_000)


def decisions(loads: list[tuple[int | None, int | None, float]], executors: int) -> list[int]:
    """The numbers of executors after each batch, a second apart; they come as they are asked for."""
    scaler, found = Scaler(POLICY), []
    for number, (lag, backlog, busy) in enumerate(loads):
        wanted = scaler.decide(Load(number, lag, backlog, busy), executors, 1000 * number)
        executors = executors if wanted is None else wanted
        found.append(executors)
    return found


def test_a_lag_that_grows_for_some_batches_asks_for_one_more() -> None:
    loads = [(100 * n, None, 1.0) for n in range(6)]
    assert decisions(loads, 2) == [2, 2, 2, 3, 3, 3]


def test_a_backlog_that_grows_does_the_same() -> None:
    loads: list[Any] = [(50, 10 * n, 1.0) for n in range(6)]
    assert decisions(loads, 2) == [2, 2, 2, 3, 3, 3]


def test_nothing_changes_while_shards_still_move() -> None:
    loads = [(100 * n, None, 1.0) for n in range(16)]
    assert decisions(loads, 2) == [2] * 3 + [3] * 10 + [4] * 3


def test_there_are_never_more_than_the_most_nor_fewer_than_the_least() -> None:
    growing = [(100 * n, None, 1.0) for n in range(40)]
    assert decisions(growing, 4) == [4] * 40
    idle: list[Any] = [(50, 0, 0.1)] * 40
    assert decisions(idle, 2) == [2] * 40


def test_idle_batches_release_one_after_the_other() -> None:
    idle: list[Any] = [(50, 0, 0.1)] * 16
    assert decisions(idle, 4) == [4] * 3 + [3] * 10 + [2] * 3


@pytest.mark.parametrize(
    "loads",
    [
        [(100, None, 1.0)] * 8,  # behind, but no further behind
        [(100 * (n % 3), None, 1.0) for n in range(8)],
        [(100 * n, None, 0.6) for n in range(8)],  # batches wait for a trigger
        [(None, None, 1.0)] * 8,  # nothing is known
        [(100, None, 0.6)] * 8,
    ],
)
def test_anything_else_changes_nothing(loads: list[tuple[int | None, int | None, float]]) -> None:
    assert decisions(loads, 3) == [3] * 8


def test_a_batch_that_is_seen_twice_counts_once() -> None:
    scaler = Scaler(POLICY)
    for number in range(4):
        for _ in range(9):
            found = scaler.decide(Load(number // 2, 100 * number, None, 1.0), 2, 0)
            assert found is None


class Settings(dict[str, str]):
    def __call__(self, name: str) -> str | None:
        return self.get(name)


def test_a_session_asks_for_it_with_settings() -> None:
    assert ScalingPolicy.of(Settings()) is None
    found = ScalingPolicy.of(Settings({LEAST: "2", MOST: "6", COOL_DOWN: "30"}))
    assert found == ScalingPolicy(2, 6, 5, 30_000)
    for wrong in (
        {MOST: "many"},
        {LEAST: "3", MOST: "2"},
        {MOST: "0"},
        {MOST: "3", COOL_DOWN: "-1"},
    ):
        with pytest.raises(UsageError) as raised:
            ScalingPolicy.of(Settings(wrong))
        assert raised.value.hint


class Counted:
    """Executors of a cluster manager, which may refuse."""

    def __init__(self, count: int, *, takes: bool = True) -> None:
        self.asked: list[int] = []
        self._count, self._takes = count, takes

    def count(self) -> int:
        return self._count

    def set(self, count: int) -> bool:
        self.asked.append(count)
        self._count = count if self._takes else self._count
        return self._takes


class Running:
    """A run that falls behind by a second in each batch."""

    def __init__(self, batches: int) -> None:
        self._left = batches
        self._reports: list[Any] = []

    @property
    def isActive(self) -> bool:
        self._left -= 1
        return self._left >= 0

    @property
    def recentProgress(self) -> list[Any]:
        number = len(self._reports)
        self._reports.append(
            SimpleNamespace(
                runId="r", batchId=number, batchDuration=1000, numInputRows=1, stateOperators=[],
                timestamp=f"2026-01-01T00:00:{number:02d}.000Z", durationMs={"addBatch": 1},
                sources=[SimpleNamespace(metrics={"numFilesOutstanding": str(number)})],
                observedMetrics={},
            )
        )  # fmt: skip
        return self._reports


@pytest.mark.parametrize(("takes", "asked"), [(True, [3]), (False, [3])])
def test_a_run_is_scaled_until_it_ends(takes: bool, asked: list[int]) -> None:
    counted, running = Counted(2, takes=takes), Running(9)
    scale(running, POLICY, counted, now_ms=lambda: 0, pause=lambda _: None)  # type: ignore[arg-type]
    assert counted.asked == asked
    # A cluster manager that does not take requests is asked once.
    assert running.isActive != takes
