"""One process at a time has a checkpoint.

Two runs over one checkpoint would write each other's state. The first has a lock of the kernel's, which
goes with the process however that ends, so nothing has to be removed after a crash.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import Final, Self, final

from quadweir.errors import StateError
from quadweir.private import check_writable, make_folder

NAME: Final = "quadweir.lock"
_LOCK: Final = threading.Lock()
_HELD: Final[dict[Path, tuple[int, int]]] = {}
"""The checkpoints of this process: the file of the lock, and how many claims there are."""


@final
class Claim:
    """A checkpoint that other processes cannot have before this is released.

    Within a process there may be several claims of one checkpoint: a query is stopped and started again,
    and that it does not run twice Spark sees to.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Claim(Path(folder, "checkpoint")) as claim:
    ...     claim.is_held
    True

    Args:
        checkpoint: the folder; it is made if it is not there.

    Raises:
        StateError: another process has it, or it cannot be written.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._place = checkpoint.absolute()
        self.is_held = False
        try:
            make_folder(checkpoint)
            self._place = checkpoint.resolve()
            check_writable(checkpoint)
            with _LOCK:
                self._take()
        except OSError as error:
            raise StateError(
                f"the checkpoint folder {checkpoint} cannot be used: {error.strerror or error}",
                hint="Name a folder that you may write to, with --checkpoint.",
            ) from error

    def release(self) -> None:
        """Let others have it; a second time changes nothing."""
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

    def _take(self) -> None:
        file, count = _HELD.get(self._place, (-1, 0))
        if not count:
            file = _locked(self._place)
        _HELD[self._place] = file, count + 1
        self.is_held = True


def _locked(checkpoint: Path) -> int:
    file = os.open(checkpoint / NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(file, 100).decode(errors="replace").strip()
        os.close(file)
        who = f"process {holder}" if holder.isdecimal() else "another process"
        raise StateError(
            f"{who} runs with the checkpoint {checkpoint}",
            hint="Stop it first, or name another folder with --checkpoint.",
        ) from None
    except BaseException:
        os.close(file)
        raise
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    return file
