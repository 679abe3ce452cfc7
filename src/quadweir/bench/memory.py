"""How much memory a process and all those that it starts hold at most."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PAUSE: Final = 0.1


def peak_mib(command: Sequence[str], cwd: Path) -> int:
    """Run a command to its end; give the most memory that its processes held together, in MiB.

    Raises:
        RuntimeError: the command failed.
    """
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    most = 0
    while process.poll() is None:
        most = max(most, sum(map(_resident, _family(process.pid))))
        time.sleep(_PAUSE)
    if process.returncode:
        told = process.stderr.read() if process.stderr is not None else ""
        raise RuntimeError(f"{command[0]} failed: {told.strip()[-500:]}")
    return round(most / 2**20)


def resident_mib(root: int | None = None) -> int:
    """Give the memory that a process, by default this one, and its descendants hold, in MiB."""
    return round(sum(map(_resident, _family(root or os.getpid()))) / 2**20)


def _family(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for one in found:
        found.extend(children.get(one, ()))
    return found


def _parent(entry: Path) -> int | None:
    try:
        # The name in parentheses may hold anything, parentheses too.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _resident(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
