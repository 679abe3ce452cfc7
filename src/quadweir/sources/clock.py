"""Clocks: the system's, and those that a test sets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol, final


class Clock(Protocol):
    """Returns the time in milliseconds since 1970, and waits for a time."""

    def now_ms(self) -> int: ...

    def wait_until(self, time_ms: int) -> None: ...


@final
class SystemClock:
    """The time of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def wait_until(self, time_ms: int) -> None:
        time.sleep(max(0, time_ms - self.now_ms()) / 1000)


@final
class ManualClock:
    """A clock that a test sets; waiting sets it too.

    >>> clock = ManualClock(1000)
    >>> clock.wait_until(1500)
    >>> clock.now_ms()
    1500
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def wait_until(self, time_ms: int) -> None:
        self._now_ms = max(self._now_ms, time_ms)

    def advance(self, milliseconds: int) -> None:
        self._now_ms += milliseconds


@final
class FileClock:
    """A clock that reads a file, so that a test can set the time for Spark's processes.

    Args:
        path: a file that holds milliseconds since 1970.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def now_ms(self) -> int:
        return int(self._path.read_text())

    def wait_until(self, time_ms: int) -> None:
        raise NotImplementedError("whoever writes the file decides when time passes")
