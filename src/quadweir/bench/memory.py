"""The peak memory of a process and its descendants."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quadweir.bench.processes import family, is_java, resident

_PAUSE: Final = 0.1


def peak_mib(command: Sequence[str], cwd: Path, *, heap_mib: int | None = None) -> int:
    """Run a command to its end; return the peak memory of all its processes together, in MiB.

    Args:
        command: what to run.
        cwd: in which folder.
        heap_mib: the limit on the heap of each Java process. Java fills its heap before it collects
        garbage, so only a limited heap shows how much memory is needed.

    Raises:
        RuntimeError: the command failed.
    """
    # Only this variable overrides Spark's own options for Java.
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
        message = process.stderr.read() if process.stderr is not None else ""
        raise RuntimeError(f"{command[0]} failed: {message.strip()[-500:]}")
    return round(most / 2**20)


def python_bytes() -> int:
    """The memory of this process and its descendants, without Java, which fills its heap anyway."""
    return sum(resident(each) for each in family(os.getpid()) if not is_java(each))


def resident_mib(root: int | None = None) -> int:
    """The memory of a process (by default this one) and its descendants, in MiB."""
    return round(sum(map(resident, family(root or os.getpid()))) / 2**20)
