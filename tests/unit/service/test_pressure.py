"""What all requests together may hold and do."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quadweir.service import pressure
from quadweir.service.pressure import ByteBudget, SlowWork
from quadweir.service.problems import PressureError


def test_bodies_together_have_a_limit() -> None:
    budget = ByteBudget(100)
    with budget.hold() as one, budget.hold() as other:
        one.add(60)
        with pytest.raises(PressureError) as caught:
            other.add(50)
        assert caught.value.retry_after_s >= 1
        other.add(40)
        assert budget.held == 100
    assert budget.held == 0
    with pytest.raises(PressureError), budget.hold() as one:
        one.add(60)
        one.add(60)
    assert budget.held == 0


def test_slow_work_waits_for_its_turn_and_is_refused_when_much_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pressure, "_AT_ONCE", 2)
    monkeypatch.setattr(pressure, "_MOST_WAITING", 3)
    go = threading.Event()
    begun = threading.Semaphore(0)

    def work() -> str:
        begun.release()
        go.wait(30)
        return "done"

    async def run() -> list[str]:
        slow = SlowWork()
        tasks = [asyncio.ensure_future(slow.run(work)) for _ in range(5)]
        await asyncio.to_thread(begun.acquire)
        await asyncio.to_thread(begun.acquire)
        assert not begun.acquire(blocking=False)
        with pytest.raises(PressureError):
            await slow.run(work)
        go.set()
        found = await asyncio.gather(*tasks)
        assert await slow.run(work) == "done"
        return found

    assert asyncio.run(run()) == ["done"] * 5
