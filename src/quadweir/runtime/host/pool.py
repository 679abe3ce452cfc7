"""The pool of worker processes: started, asked, and reused.

A process takes a second or two to load the kernel, so a process that a query no longer needs waits
for the next one. Workers end with this process, however it ends: their socket closes.
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
from quadweir.runtime.host.messages import Close, Done, Reply, Request
from quadweir.runtime.spark.session import KEEP_MEMORY

_PROGRAM: Final = "from quadweir.runtime.host.worker import main; main()"
_CORES: Final = os.cpu_count() or 1
_MOST_IDLE: Final = 2 * _CORES
# Each takes some 90 MB before it holds anything.
_MANY: Final = 8 * _CORES
_IDLE: Final[list[WorkerProcess]] = []
_USED: Final[weakref.WeakSet[WorkerProcess]] = weakref.WeakSet()
_LOCK: Final = threading.Lock()


class ProcessEndedError(Exception):
    """A worker process has ended."""


@final
class WorkerProcess:
    """A worker process; one thread at a time asks it."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        # The worker must be able to import what this process can: Spark may be on our path only.
        home = str(Path(__file__).parents[3])
        path = os.pathsep.join(dict.fromkeys(filter(None, (home, *sys.path))))
        kept = KEEP_MEMORY if sys.platform == "linux" else {}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                # Standard output is for answers only.
                stdout=sys.__stderr__ if _has_file(sys.__stderr__) else subprocess.DEVNULL,
                env={**kept, **os.environ, "PYTHONPATH": path},
                umask=umask(),
                # Ctrl-C is for the driver.
                start_new_session=True,
            )
        self._connection = ours

    @property
    def number(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, request: Request) -> None:
        """Send a request; call `answer` for each.

        Raises:
            ProcessEndedError: the process has ended.
        """
        try:
            self._connection.send(request)
        except OSError as error:
            raise ProcessEndedError(self._how()) from error

    def answer(self) -> Any:
        """Wait for the result of the last request.

        Raises:
            ProcessEndedError: the process has ended.
            QuadweirError: the request failed.
        """
        try:
            reply: Reply = self._connection.recv()
        except (EOFError, OSError) as error:
            raise ProcessEndedError(self._how()) from error
        if isinstance(reply, Done):
            return reply.result
        if isinstance(reply.error, QuadweirError):
            raise reply.error
        raise InternalError("a worker process failed", detail=reply.error)

    def end(self) -> None:
        """End it, even in the middle of a request."""
        with contextlib.suppress(OSError):
            self._connection.close()
        self.kill()
        self._process.wait()

    def kill(self) -> None:
        """End it at once; a thread that waits for its answer gets `ProcessEndedError`."""
        self._process.kill()

    @property
    def is_there(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def _how(self) -> str:
        code = self._process.poll()
        return "" if code is None else f"it ended with {code}"


def take(count: int) -> list[WorkerProcess]:
    """Return so many processes: idle ones first, then new ones."""
    found: list[WorkerProcess] = []
    with _LOCK:
        while _IDLE and len(found) < count:
            process = _IDLE.pop()
            if process.is_there:
                found.append(process)
            else:
                process.end()
    found += [WorkerProcess() for _ in range(count - len(found))]
    _USED.update(found)
    return found


def are_many() -> bool:
    """Return whether so many processes are in use that another query should use executors."""
    return len([each for each in list(_USED) if each.is_there]) >= _MANY


def give_back(processes: Sequence[WorkerProcess]) -> None:
    """Let processes forget their shards and wait for another run."""
    for process in processes:
        _USED.discard(process)
        try:
            process.ask(Close())
            process.answer()
        except Exception:  # whatever the reason, nobody must get this process
            process.end()
            continue
        with _LOCK:
            is_wanted = len(_IDLE) < _MOST_IDLE
            if is_wanted:
                _IDLE.append(process)
        if not is_wanted:
            process.end()


def _has_file(stream: Any) -> bool:
    """Return whether a stream is a file of the operating system."""
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False


@atexit.register
def end_idle() -> None:
    """End all idle processes."""
    while _IDLE:
        _IDLE.pop().end()
