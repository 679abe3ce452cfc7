"""How much all requests together may hold and do, so that a few of them cannot stop the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar, final

from anyio import CapacityLimiter, to_thread

from quadweir.service.problems import PressureError

Found = TypeVar("Found")
_AT_ONCE: Final = 4
_MOST_WAITING: Final = 60


@final
class HeldBytes:
    """How many bytes one request holds of what all of them may hold together."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.size = 0

    def add(self, size: int) -> None:
        """Hold more.

        Raises:
            PressureError: that would be too much.
        """
        self._budget.take(size)
        self.size += size


@final
class ByteBudget:
    """How many bytes all requests may hold together; in the event loop only.

    Args:
        most: how many.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.held = 0

    @contextmanager
    def hold(self) -> Iterator[HeldBytes]:
        """Hold bytes until the block ends."""
        found = HeldBytes(self)
        try:
            yield found
        finally:
            self.held -= found.size

    def take(self, size: int) -> None:
        """Count bytes.

        Raises:
            PressureError: there would be too many.
        """
        if self.held + size > self._most:
            raise PressureError(
                f"requests hold {self.held:,} bytes, and may hold {self._most:,}", retry_after_s=1
            )
        self.held += size


@final
class SlowWork:
    """Work that may take seconds: checks, previews, explanations. A few at once, others wait.

    Requests that only read or push have threads of their own, and never wait for it.
    """

    def __init__(self) -> None:
        self._limiter: CapacityLimiter | None = None
        self._count = 0

    async def run(self, work: Callable[[], Found]) -> Found:
        """Do work in a thread when it is its turn.

        Raises:
            PressureError: too much of it waits already.
        """
        if self._count >= _AT_ONCE + _MOST_WAITING:
            raise PressureError(f"{self._count} slow requests wait already", retry_after_s=5)
        # It belongs to the event loop, which is not there when the service is made.
        self._limiter = self._limiter or CapacityLimiter(_AT_ONCE)
        self._count += 1
        try:
            return await to_thread.run_sync(work, limiter=self._limiter)
        finally:
            self._count -= 1
