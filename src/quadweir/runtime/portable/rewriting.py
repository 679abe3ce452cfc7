"""A new checkpoint next to an old one, which takes its place once it is complete and on disk."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quadweir.errors import UsageError
from quadweir.runtime.claims import NAME as CLAIM

SHARDS: Final = "shards"
"""The folder of the journals of local worker processes in a checkpoint."""
STATE: Final = "state"
"""The folder of Spark's state stores in a checkpoint."""
_EXCHANGE: Final = 2
_HERE: Final = -100


def rewrite(folder: Path, into: Path | None, finish: Callable[[Path], None]) -> Path | None:
    """Write a checkpoint again, with other state.

    Args:
        folder: the checkpoint.
        into: a folder that does not exist yet; None to replace the checkpoint.
        finish: writes what is different into a copy without state.

    Returns:
        Where the old one is now, if it was replaced.
    """
    place = folder if into is None else into
    scratch = Path(tempfile.mkdtemp(prefix=f".{place.name}-new-", dir=place.absolute().parent))
    try:
        shutil.copytree(folder, scratch, ignore=_ignored(folder), dirs_exist_ok=True, symlinks=True)
        finish(scratch)
        sync(scratch)
        return _put(scratch, place, replaces=into is None)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_place(folder: Path, into: Path | None) -> None:
    """Refuse a place for a new checkpoint that is there already, or inside of the old one.

    Raises:
        UsageError: it is.
    """
    if into is None:
        return
    if into.exists():
        raise UsageError(f"{into} exists already", hint="Name a folder that does not exist yet.")
    if folder.resolve() in into.absolute().parents:
        raise UsageError(f"{into} is inside of {folder}", hint="Name a folder outside of it.")


def _ignored(folder: Path) -> Callable[[str, list[str]], set[str]]:
    """Return what is not copied: state, and files that belong to a run."""

    def ignored(inside: str, names: list[str]) -> set[str]:
        if Path(inside) != folder:
            return set()
        return {each for each in names if each in (SHARDS, STATE, CLAIM) or each.startswith(".")}

    return ignored


def sync(folder: Path) -> None:
    """Write everything in a folder to the disk."""
    for place, _, names in os.walk(folder):
        for name in (*names, "."):
            file = os.open(Path(place, name), os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _put(new: Path, place: Path, *, replaces: bool) -> Path | None:
    """Rename a complete checkpoint to its place; return where the one before is now."""
    old: Path | None = None
    if not replaces:
        new.rename(place)
    else:
        old = _free(place)
        if _exchanged(new, place):
            new.rename(old)
        else:
            place.rename(old)
            new.rename(place)
    parent = os.open(place.absolute().parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)
    return old


def _free(place: Path) -> Path:
    """Return a name for the checkpoint that is replaced."""
    found, number = place.with_name(f"{place.name}.before"), 1
    while found.exists():
        number += 1
        found = place.with_name(f"{place.name}.before-{number}")
    return found


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return whether the system can do that."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    names = (os.fsencode(each.absolute()) for each in (one, other))
    return bool(call(_HERE, next(names), _HERE, next(names), _EXCHANGE) == 0)
