"""Files and folders that only their owner can read.

Streams, state and answers may hold data that other users of the machine must not see, and a file
that others can write may make us run their code. So files get mode 0600 and folders 0700, whether
this process, Spark's Java or a worker process writes them. `QUADWEIR_UMASK=022` lets others read.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quadweir.errors import UsageError
from quadweir.paths import is_address

VARIABLE: Final = "QUADWEIR_UMASK"
_OWNER_ONLY: Final = 0o077
_ALL: Final = 0o777


def umask() -> int:
    """The umask for new files and folders.

    Raises:
        UsageError: the environment variable is not a umask.
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
    """While open, this process and the processes that it starts create private files."""
    former = os.umask(umask())
    try:
        yield
    finally:
        os.umask(former)


def make_folder(path: Path) -> None:
    """Make a private folder and its parents, unless it exists.

    An address such as `s3a://bucket/a` or `file:///a` is refused: as a path, it would be a folder named
    `s3a:` in the current one.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     make_folder(Path(place, "a", "b"))
    ...     oct(Path(place, "a").stat().st_mode)
    '0o40700'

    Raises:
        UsageError: it is an address.
    """
    if is_address(path):
        raise UsageError(
            f"{path} is an address, and not a folder of this machine",
            hint="Write a path; mount other file systems.",
        )
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_ALL & ~umask(), exist_ok=True)
    if not missing:
        path.mkdir(exist_ok=True)  # raises the right error if it is not a folder


def check_writable(folder: Path) -> None:
    """Check, before any work is done, that files can be created in a folder.

    Raises:
        OSError: they cannot.
    """
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_file(path: Path, data: bytes) -> None:
    """Write a complete file; a new file is private."""
    with open(path, "wb", opener=_opened) as file:
        file.write(data)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """The path of a private file that replaces `path` once it is complete.

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
