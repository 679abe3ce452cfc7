"""The memory and CPU time of a process and its descendants, from the operating system."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self, final

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MIB: Final = 2**20


def family(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for one in found:
        found.extend(children.get(one, ()))
    return found


def resident(pid: int) -> int:
    """The bytes of memory that a process holds; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used, with that of its children that have ended."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    try:
        # The name in parentheses may hold anything, parentheses too.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def is_java(pid: int) -> bool:
    """Whether a process is a Java."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    except OSError:
        return False


@final
@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: the time, the memory of Java and of Python processes, and the CPU time so far."""

    at: float
    java_mib: float
    python_mib: float
    processor_s: float


@final
@dataclass(slots=True)
class Watch:
    """Samples this process and its descendants at intervals while the `with` block runs.

    >>> with Watch(every_s=0.01) as watch:
    ...     _ = sum(range(10_000))
    >>> watch.samples[-1].python_mib > 1
    True
    """

    every_s: float = 0.5
    samples: list[Sample] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._look()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._look()

    @property
    def cores(self) -> float:
        """How many cores were busy on average."""
        first, last = self.samples[0], self.samples[-1]
        return max(0.0, last.processor_s - first.processor_s) / max(last.at - first.at, 1e-9)

    def _go_on(self) -> None:
        while not self._over.wait(self.every_s):
            self._look()

    def _look(self) -> None:
        java = python = used = 0.0
        for pid in family(os.getpid()):
            used += processor_seconds(pid)
            if is_java(pid):
                java += resident(pid) / _MIB
            else:
                python += resident(pid) / _MIB
        self.samples.append(Sample(time.monotonic(), java, python, used))
