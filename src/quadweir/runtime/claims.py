"""A lock on a checkpoint, so that only one process at a time uses it.

Two runs over one checkpoint would overwrite each other's state. The operating system holds the lock
and releases it when the process ends, so nothing has to be removed after a crash.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Final, Self, final

from quadweir.errors import StateError, UsageError
from quadweir.paths import is_elsewhere
from quadweir.private import check_writable, make_folder

NAME: Final = "quadweir.lock"
_LOCK: Final = threading.Lock()
_HELD: Final[dict[Path, tuple[int, int]]] = {}
"""The checkpoints that this process has locked: the lock file, and the number of claims."""


@final
class Claim:
    """A checkpoint that no other process can use until this claim is released.

    One process may claim a checkpoint several times, because a query can be stopped and started
    again. Spark itself refuses to run a query twice.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Claim(Path(folder, "checkpoint")) as claim:
    ...     claim.is_held
    True

    Args:
        checkpoint: the folder; it is created if it does not exist.
        option: the option of the command line that names it, for hints.

    Raises:
        StateError: another process uses the checkpoint, or the folder cannot be written.
        UsageError: it is on another file system.
    """

    def __init__(self, checkpoint: Path, option: str = "--checkpoint") -> None:
        if is_elsewhere(checkpoint):
            raise UsageError(
                f"the checkpoint {checkpoint} is not on this machine",
                detail="A query locks its checkpoint, and writes parts of it without Spark.",
                hint="Name a folder on a disk that all machines share, such as a mounted NFS export.",
            )
        self._place = checkpoint.absolute()
        self.is_held = False
        try:
            make_folder(checkpoint)
            self._place = checkpoint.resolve()
            check_writable(checkpoint)
            with _LOCK:
                self._take(option)
        except OSError as error:
            raise StateError(
                f"the checkpoint folder {checkpoint} cannot be used: {error.strerror or error}",
                hint=f"Name a folder that you may write to, with {option}.",
            ) from error

    def release(self) -> None:
        """Let other processes use the checkpoint; a second call does nothing."""
        with _LOCK:
            if not self.is_held:
                return
            self.is_held = False
            file, count = _HELD.pop(self._place)
            if count > 1:
                _HELD[self._place] = file, count - 1
            else:
                os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def _take(self, option: str) -> None:
        file, count = _HELD.get(self._place, (-1, 0))
        if not count:
            file = _locked(self._place, option)
        _HELD[self._place] = file, count + 1
        self.is_held = True


def _locked(checkpoint: Path, option: str) -> int:
    file = os.open(checkpoint / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 100).decode(errors="replace").strip()
        os.close(file)
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise StateError(
            f"{who} runs with the checkpoint {checkpoint}",
            hint=f"Stop that process first, or name another folder with {option}.",
        ) from None
    except BaseException:
        os.close(file)
        raise
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file
