"""Files and folders that only their owner can read.

Streams, state and answers may hold what other users of the machine must not see, and a file that others
can write may make us run what they want. So files get mode 0600 and folders 0700, whoever writes them:
this process, Spark's Java, or worker processes. `QUADWEIR_UMASK=022` lets others read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quadweir.errors import UsageError

VARIABLE: Final = "QUADWEIR_UMASK"
_OWNER_ONLY: Final = 0o077
_ALL: Final = 0o777


def umask() -> int:
    """Give the rights that new files and folders lack.

    Raises:
        UsageError: the environment sets something that is no umask.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return _OWNER_ONLY
    try:
        found = int(text, 8)
    except ValueError:
        found = -1
    if not 0 <= found <= _OWNER_ONLY:
        raise UsageError(
            f"{VARIABLE}={text} is not a umask",
            hint="Write three octal digits from 000 to 077, such as 022, or leave it unset.",
        )
    return found


@contextmanager
def private_files() -> Iterator[None]:
    """Have this process, and processes that it starts meanwhile, make private files."""
    former = os.umask(umask())
    try:
        yield
    finally:
        os.umask(former)


def make_folder(path: Path) -> None:
    """Make a private folder, and its parents, unless it is there already.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     make_folder(Path(place, "a", "b"))
    ...     oct(Path(place, "a").stat().st_mode)
    '0o40700'
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_ALL & ~umask(), exist_ok=True)
    if not missing:
        path.mkdir(exist_ok=True)  # says what is wrong if it is no folder


def check_writable(folder: Path) -> None:
    """Make sure, before any work is done, that files can be made in a folder.

    Raises:
        OSError: they cannot.
    """
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole; if it is new, it is private."""
    with open(path, "wb", opener=_opened) as file:
        file.write(data)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give the path of a private file that takes the place of `path` once it is complete.

    Its name cannot be guessed: in a folder that others can write to, nobody can put a file there first.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    scratch = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), 0o666 & ~umask())
        yield scratch
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags, 0o666 & ~umask())
