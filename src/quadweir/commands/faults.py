"""Errors of the machine as messages that the user can act on.

During a run, files disappear, disks fill up and paths break. Python reports that as an `OSError`;
Spark wraps Java's text, without an errno, into its own exception.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from quadweir.commands.deadletters import KAFKA
from quadweir.errors import EnvironmentProblem, QuadweirError, SourceError

_SPACE: Final = "Free some space there, or choose another folder."
_RIGHTS: Final = "Check who owns it and its mode, and that it is not mounted read-only."
_GONE: Final = "It was moved or deleted, perhaps during the run."
_PATH: Final = "Choose a shorter path."
_LOOP: Final = "Name the file itself; the links form a loop."

_BY_NUMBER: Final[dict[int, tuple[str, str]]] = {
    errno.ENOSPC: ("no space left on {}", _SPACE),
    errno.EDQUOT: ("no space left on {}: the quota is used up", _SPACE),
    errno.EACCES: ("no permission for {}", _RIGHTS),
    errno.EPERM: ("no permission for {}", _RIGHTS),
    errno.EROFS: ("{} can only be read", _RIGHTS),
    errno.ENOENT: ("there is no {}", _GONE),
    errno.ENAMETOOLONG: ("the path is too long: {}", _PATH),
    errno.ELOOP: ("{} is a link that leads to itself", _LOOP),
    errno.ENOTDIR: ("{} goes through a file that is no folder", "Check the path."),
    errno.EISDIR: ("{} is a folder", "Name a file."),
    errno.EMFILE: ("too many files are open, at {}", "Raise the limit with `ulimit -n`."),
    errno.EIO: ("the disk failed at {}", "Check the disk."),
}
# Java's texts and the matching error numbers.
_BY_TEXT: Final = (
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?No space left on device"), errno.ENOSPC),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?Disk quota exceeded"), errno.EDQUOT),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?Read-only file system"), errno.EROFS),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?Permission denied"), errno.EACCES),
    (re.compile(r"AccessDeniedException: (/[^\s:()]*)"), errno.EACCES),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?File name too long"), errno.ENAMETOOLONG),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?Too many levels of symbolic links"), errno.ELOOP),
    (re.compile(r"(?:(/[^\s:()]*)[: (]+)?Too many open files"), errno.EMFILE),
    (re.compile(r"NoSuchFileException: (/[^\s:()]*)"), errno.ENOENT),
    (re.compile(r"File (?:file:)?(/\S*) does not exist"), errno.ENOENT),
)
# What Python and Arrow say, in a traceback that Spark quotes.
_QUOTED: Final = re.compile(r"\[Errno (\d+)\][^\n']*(?:'([^'\n]*)')?")
_LONGEST: Final = 200


def known_fault(error: BaseException) -> QuadweirError | None:
    """The error as one of ours, or None if the machine did not cause it.

    >>> known_fault(OSError(errno.ENOSPC, "No space left on device", "/out/a.nt")).message
    'no space left on /out/a.nt'
    """
    for each in _chain(error):
        if isinstance(each, ValueError) and "embedded null" in str(each):
            return SourceError("a path has a NUL character in it", hint="Take it out.")
        if isinstance(each, zipfile.BadZipFile):
            return SourceError(f"not a zip file that can be read: {each}")
    found = _refused(error)
    return None if found is None else _fault(*found)


@contextmanager
def naming_full_disk(checkpoint: Path, output: str | None) -> Iterator[None]:
    """Name the fullest place that a run writes to, if an error of a full disk names none.

    The output counts if it is a folder, not a topic or standard output.

    Raises:
        OSError: the disk is full there.
    """
    try:
        yield
    except Exception as error:
        if _refused(error) != (errno.ENOSPC, None):
            raise
        # Spark writes scratch files there; nothing is opened by name.
        places = [checkpoint, Path(os.environ.get("TMPDIR", tempfile.tempdir or os.curdir))]
        if output is not None and output != "-" and not output.startswith(KAFKA):
            places.append(Path(output))
        fullest = min(places, key=_free)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(fullest)) from error


def _free(place: Path) -> int:
    """Give how many bytes are free at a place, or where it would be made."""
    there = next((each for each in (place, *place.parents) if each.exists()), Path())
    return shutil.disk_usage(there).free


def _refused(error: BaseException) -> tuple[int, str | None] | None:
    """Find the number of what the machine refused, and the file if it is known."""
    for each in _chain(error):
        if isinstance(each, OSError) and each.errno in _BY_NUMBER:
            name = each.filename2 if each.filename is None else each.filename
            if isinstance(name, bytes):
                name = name.decode("utf-8", "replace")
            return each.errno, name if isinstance(name, str) else None
    text = str(error)
    for number, name in reversed(_QUOTED.findall(text)):
        if int(number) in _BY_NUMBER:
            return int(number), name or None
    for pattern, known in _BY_TEXT:
        if found := pattern.search(text):
            return known, found[1]
    return None


def _fault(number: int, name: str | None) -> QuadweirError:
    message, hint = _BY_NUMBER[number]
    if number == errno.ENOENT:
        if name is None:
            return EnvironmentProblem("a file or folder in use is gone", hint=hint)
        name = str(_outermost_missing(Path(name)))
    shown = name if name is None or len(name) <= _LONGEST else f"{name[:_LONGEST]}..."
    return EnvironmentProblem(message.format(shown or "a file or folder in use"), hint=hint)


def _outermost_missing(path: Path) -> Path:
    """Give the folder that has to come back for a path to be there, or the path itself."""
    missing = [each for each in path.parents if not each.exists()]
    return missing[-1] if missing else path


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its chain of causes."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield at
        at = at.__cause__ or at.__context__
