"""Times and rates, the same way in every benchmark.

The machine may be noisy, so only ratios within one run count. Contenders take turns: every one runs
once, then every one again. A ratio compares the best times of two contenders, or their times in one
turn (`in_turns`).
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from quadweir._version import __version__


@final
@dataclass(slots=True)
class ContenderTimes:
    """The times of one contender, in seconds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The time with the least noise in it."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The time in the middle."""
        ordered = sorted(self.seconds)
        return ordered[len(ordered) // 2]


def take_turns(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 1,
    on_step: Callable[[str], None] = lambda _: None,
) -> dict[str, ContenderTimes]:
    """Run every contender in turn, `warm_up` rounds unmeasured and `rounds` measured.

    >>> sorted(take_turns({"a": list, "b": dict}, rounds=2))
    ['a', 'b']
    """
    timings = {name: ContenderTimes() for name in contenders}
    for turn in range(warm_up + rounds):
        for name, run in contenders.items():
            on_step(name)
            start = time.perf_counter()
            run()
            elapsed = time.perf_counter() - start
            if turn >= warm_up:
                timings[name].seconds.append(elapsed)
    return timings


def in_turns(one: ContenderTimes, other: ContenderTimes) -> float:
    """The ratio of two contenders' times in the median turn.

    Two runs that follow each other see a machine that is about as busy. So the ratio of a turn is
    more exact than the ratio of the best times, which may lie far apart.

    >>> in_turns(ContenderTimes([2.0, 6.0, 9.0]), ContenderTimes([1.0, 2.0, 10.0]))
    2.0
    """
    return ContenderTimes([a / b for a, b in zip(one.seconds, other.seconds, strict=True)]).median


def machine() -> dict[str, Any]:
    """The facts that a result must name: the commit, the versions, the machine."""
    import pyspark

    return {
        "quadweir": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "pyspark": pyspark.__version__,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
    }


def commit() -> str | None:
    """The current commit; None outside a repository."""
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip() or None
