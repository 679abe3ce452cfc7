"""Processes beside the driver that hold shards: started, asked, and used again.

A process takes a second or two to load the kernel, so that those that a query no longer needs wait for
the next one. They end with this process, however it ends: their socket closes.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import InternalError, QuadweirError
from quadweir.private import umask
from quadweir.runtime.spark.session import KEEP_MEMORY

_PROGRAM: Final = "from quadweir.runtime.host.worker import main; main()"
_CORES: Final = os.cpu_count() or 1
_MOST_IDLE: Final = 2 * _CORES
# Each takes some 90 MB before it holds anything.
_MANY: Final = 8 * _CORES
_IDLE: Final[list[ShardProcess]] = []
_USED: Final[weakref.WeakSet[ShardProcess]] = weakref.WeakSet()
_LOCK: Final = threading.Lock()


class ProcessEndedError(Exception):
    """A process is no longer there."""


@final
class ShardProcess:
    """A process that holds shards; one thread at a time asks it."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        # What this process can import, that one has to: Spark may lie where only we were told to look.
        home = str(Path(__file__).parents[3])
        path = os.pathsep.join(dict.fromkeys(filter(None, (home, *sys.path))))
        kept = KEEP_MEMORY if sys.platform == "linux" else {}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # What is written to standard output are answers, and nothing else.
                stdout=sys.__stderr__ if _has_file(sys.__stderr__) else subprocess.DEVNULL,
                env={**kept, **os.environ, "PYTHONPATH": path},
                umask=umask(),
                # Ctrl-C is the driver's to hear.
                start_new_session=True,
            )
        self._connection = ours

    @property
    def number(self) -> int:
        """What the system calls the process."""
        return self._process.pid

    def ask(self, name: str, *given: object) -> None:
        """Send a request; `answer` has to be called for each.

        Raises:
            ProcessEndedError: nobody is there.
        """
        try:
            self._connection.send((name, *given))
        except OSError as error:
            raise ProcessEndedError(self._how()) from error

    def answer(self) -> Any:
        """Wait for what the process has to say to the last request.

        Raises:
            ProcessEndedError: it has ended.
            QuadweirError: it could not do what it was asked.
        """
        try:
            is_good, result = self._connection.recv()
        except (EOFError, OSError) as error:
            raise ProcessEndedError(self._how()) from error
        if is_good:
            return result
        if isinstance(result, QuadweirError):
            raise result
        raise InternalError("a process that holds shards failed", detail=str(result))

    def end(self) -> None:
        """Have it end, at once if it is in the middle of something."""
        with contextlib.suppress(OSError):
            self._connection.close()
        self.kill()
        self._process.wait()

    def kill(self) -> None:
        """End it at once; whoever waits for its answer is told."""
        self._process.kill()

    @property
    def is_there(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def _how(self) -> str:
        code = self._process.poll()
        return "" if code is None else f"it ended with {code}"


def take(count: int) -> list[ShardProcess]:
    """Give so many processes, of those that wait or new ones."""
    found: list[ShardProcess] = []
    with _LOCK:
        while _IDLE and len(found) < count:
            process = _IDLE.pop()
            if process.is_there:
                found.append(process)
            else:
                process.end()
    found += [ShardProcess() for _ in range(count - len(found))]
    _USED.update(found)
    return found


def are_many() -> bool:
    """Whether so many processes are in use that another query had better do without."""
    return len([each for each in list(_USED) if each.is_there]) >= _MANY


def give_back(processes: Sequence[ShardProcess]) -> None:
    """Let processes wait for others that need them; they let go of what they hold."""
    for process in processes:
        _USED.discard(process)
        try:
            process.ask("close")
            process.answer()
        except Exception:  # whatever it is, nobody must get this one
            process.end()
            continue
        with _LOCK:
            is_wanted = len(_IDLE) < _MOST_IDLE
            if is_wanted:
                _IDLE.append(process)
        if not is_wanted:
            process.end()


def _has_file(stream: Any) -> bool:
    """Whether something that is written to is a file of the system's."""
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False


@atexit.register
def end_idle() -> None:
    """End all processes that wait."""
    while _IDLE:
        _IDLE.pop().end()
