"""How much memory a process and all those that it starts hold at most."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quadweir.bench.processes import family, resident

_PAUSE: Final = 0.1


def peak_mib(command: Sequence[str], cwd: Path, *, heap_mib: int | None = None) -> int:
    """Run a command to its end; give the most memory that its processes held together, in MiB.

    Args:
        command: what to run.
        cwd: in which folder.
        heap_mib: how large the heap of each Java may become. Java takes what it is given before
            it looks for what nobody needs any more, so only a heap that is bounded tells the need.

    Raises:
        RuntimeError: the command failed.
    """
    # The one variable that wins over what Spark says to Java.
    bound = {"_JAVA_OPTIONS": f"-Xmx{heap_mib}m"} if heap_mib is not None else {}
    env = {**os.environ, **bound}
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(resident, family(process.pid))))
        time.sleep(_PAUSE)
    if process.returncode:
        told = process.stderr.read() if process.stderr is not None else ""
        raise RuntimeError(f"{command[0]} failed: {told.strip()[-500:]}")
    return round(most / 2**20)


def resident_mib(root: int | None = None) -> int:
    """Give the memory that a process, by default this one, and its descendants hold, in MiB."""
    return round(sum(map(resident, family(root or os.getpid()))) / 2**20)
