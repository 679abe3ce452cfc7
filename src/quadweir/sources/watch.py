"""The files of a watched folder, in the order in which they were found.

The order is stored once, in a file next to the data (`_quadweir.index`, a name that readers of
folders skip). It gives every file its number in the stream. So positions do not depend on the
reader or on the time, an offset is one number however many files there are, and a file whose name
sorts before those already read is not lost.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, final

from quadweir.errors import SourceError
from quadweir.sources.streamfiles import is_wanted

INDEX_NAME: Final = "_quadweir.index"


@final
@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that was found: its number in the stream, its name, and its size at that time."""

    index: int
    name: str
    size: int


class FolderIndex:
    """The files of a folder in the order they were found; all watchers of the folder share it.

    Args:
        folder: the folder to watch.
        path: where the order is stored; None is `_quadweir.index` in the folder.
    """

    def __init__(self, folder: Path, path: Path | None = None) -> None:
        self.folder = folder
        self.path = path if path is not None else folder / INDEX_NAME
        self._found: list[FoundFile] = []
        self._names: set[str] = set()
        self._read_bytes = 0

    def scan(self) -> int:
        """Look for new files and store their names; return how many files there are in all.

        Raises:
            SourceError: the folder cannot be listed, or the order cannot be stored.
        """
        with self._opened() as file:
            self._catch_up(file)
            new = [name for name in self._listed() if name not in self._names]
            lines = []
            for name in sorted(new):
                try:
                    size = (self.folder / name).stat().st_size
                except OSError:
                    continue  # removed again before anybody read it
                lines.append(json.dumps({"name": name, "size": size}, ensure_ascii=False) + "\n")
            if lines:
                file.seek(self._read_bytes)
                # A line that a crash cut short is overwritten.
                file.truncate()
                file.write("".join(lines).encode())
                file.flush()
                os.fsync(file.fileno())
                file.seek(self._read_bytes)
                self._catch_up(file)
        return len(self._found)

    def between(self, start: int, end: int) -> list[FoundFile]:
        """Return the files from number `start` up to, but not including, `end`."""
        if end > len(self._found):
            with self._opened() as file:
                self._catch_up(file)
        if end > len(self._found):
            raise SourceError(
                f"{self.path} names {len(self._found)} files, and {end} have been read",
                detail="The list of files was deleted or is that of another folder.",
                hint="Put it back, or start again with a new checkpoint.",
            )
        return self._found[start:end]

    def _listed(self) -> list[str]:
        with os.scandir(self.folder) as entries:
            return [
                entry.name for entry in entries if is_wanted(entry.name, "*") and entry.is_file()
            ]

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        try:
            if not self.folder.is_dir():
                raise SourceError(
                    f"no such folder: {self.folder}", hint="Create it, or correct the path."
                )
            with self.path.open("a+b") as append:
                # Two queries may watch one folder; each must see what the other wrote.
                fcntl.flock(append.fileno(), fcntl.LOCK_EX)
                with self.path.open("r+b") as file:
                    yield file
        except OSError as error:
            raise SourceError(
                f"cannot keep the list of files {self.path}: {error.strerror or error}",
                hint="Give the list another place, with the option `index`.",
            ) from error

    def _catch_up(self, file: BinaryIO) -> None:
        file.seek(self._read_bytes)
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                found = FoundFile(len(self._found), str(entry["name"]), int(entry["size"]))
            except (ValueError, KeyError, TypeError):
                raise SourceError(f"{self.path} is not a list of files") from None
            self._found.append(found)
            self._names.add(found.name)
            self._read_bytes += len(line)
