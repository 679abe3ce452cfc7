"""The control log of a checkpoint: what was registered, and from which batch on it counts.

A network's registry is the sum of its changes. Each change is one line, so a crash leaves all of a
call or nothing of it. A line says which batch had begun when it was written: the change counts from
the next batch on. So a batch that is repeated after a crash sees the same queries as before.

    base.json   the registry at some version, so that the log need not grow for ever
    log         a line for each change since then

A line is JSON after its checksum. A last line that is not complete is dropped: nobody was promised
anything about it yet.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import StateError, UsageError
from quadweir.private import make_folder, replaced

FOLDER: Final = "control"
"""The folder of the control log in a checkpoint."""
_BASE: Final = "base.json"
_LOG: Final = "log"

LogEntry = Mapping[str, Any]


@final
class ControlLog:
    """The control log in a folder, which belongs to one process at a time.

    Args:
        folder: the folder; it is created if it does not exist.
        begun: the last batch that has begun, -1 before the first.

    Attributes:
        base: the registry at the version where the log begins.
        version: the last version that was logged.

    Raises:
        StateError: a file is damaged.
    """

    def __init__(self, folder: Path, begun: int) -> None:
        self._folder = folder
        make_folder(folder)
        self._lock = threading.Lock()
        self._begun = begun
        self._changes: dict[int, LogEntry] = {}
        self._after: dict[int, int] = {}
        self.base: LogEntry = {"version": 0}
        self._read()
        self.version = max(self._changes, default=self.first)
        self._out: FileIO = (folder / _LOG).open("ab", buffering=0)
        (folder / _LOG).chmod(0o600)

    @property
    def first(self) -> int:
        """The version that the base has."""
        return int(self.base["version"])

    def changes(self) -> Iterator[tuple[int, LogEntry]]:
        """Yield the changes since the base, with their versions."""
        yield from self._changes.items()

    def append(self, entry: LogEntry) -> int:
        """Log a change; once this returns, it survives a crash. Return its version.

        Raises:
            UsageError: the log was closed.
            StateError: it cannot be written; then nothing has changed.
        """
        with self._lock:
            if self._out.closed:
                raise UsageError(
                    "the network does not run any more", hint="Start it again with its checkpoint."
                )
            version = self.version + 1
            self._write(_line({"version": version, "after": self._begun, **entry}))
            self._changes[version], self._after[version] = entry, self._begun
            self.version = version
            return version

    def _write(self, line: bytes) -> None:
        """Write a line, or leave nothing of it: the next one must not follow half a line."""
        end = self._out.seek(0, os.SEEK_END)
        left = memoryview(line)
        try:
            while left:
                left = left[self._out.write(left) :]
            os.fsync(self._out.fileno())
        except OSError as error:
            self._out.truncate(end)
            raise StateError(
                f"{self._folder / _LOG} cannot be written: {error.strerror or error}",
                hint="Make room on its disk, and try again.",
            ) from error

    def begin(self, batch: int) -> int:
        """Note that a batch begins, or is repeated; return the version that it runs with."""
        with self._lock:
            self._begun = max(self._begun, batch)
            return self._version_of(batch)

    @property
    def running(self) -> int | None:
        """The version that the last batch runs with, or ran with; None before the first batch."""
        with self._lock:
            return self._version_of(self._begun) if self._begun >= 0 else None

    def version_of(self, batch: int) -> int:
        """Return the version that a batch runs with, or ran with."""
        with self._lock:
            return self._version_of(batch)

    def _version_of(self, batch: int) -> int:
        found = self.first
        for version, after in self._after.items():
            if after >= batch:
                break
            found = version
        return found

    def compact(self, version: int) -> None:
        """Fold all changes up to a version into the base."""
        with self._lock:
            queries = {each[0]: each for each in self.base.get("queries", [])}
            for of, entry in self._changes.items():
                if of <= version:
                    _fold(queries, entry)
            known = {each[2] for each in queries.values()}
            groups = [
                each
                for entry in (self.base, *(e for of, e in self._changes.items() if of <= version))
                for each in entry.get("groups", [])
                if each[0] in known
            ]
            base = {
                **self._numbers(),
                "version": version,
                "queries": [*queries.values()],
                "groups": [*dict(groups).items()],
            }
            _replace(self._folder / _BASE, _line(base))
            self.base = base
            self._changes = {of: each for of, each in self._changes.items() if of > version}
            self._after = {of: each for of, each in self._after.items() if of > version}
            # A crash before this leaves changes in the log that the base has: they are skipped.
            self._out.close()
            _replace(self._folder / _LOG, b"".join(self._lines()))
            self._out = (self._folder / _LOG).open("ab", buffering=0)

    def _numbers(self) -> dict[str, int]:
        """Return the first numbers that no query and no template ever had."""
        found = {}
        for place, name in ((0, "next_number"), (2, "next_template")):
            used = [
                each[place] + 1
                for entry in self._changes.values()
                for each in entry.get("register", [])
            ]
            found[name] = max(used, default=0)
            found[name] = max(found[name], self.base.get(name, 0))
        return found

    def close(self) -> None:
        """Close the file."""
        self._out.close()

    def _lines(self) -> Iterator[bytes]:
        for version, entry in self._changes.items():
            yield _line({"version": version, "after": self._after[version], **entry})

    def _read(self) -> None:
        file = self._folder / _BASE
        if file.is_file():
            found = _parse(file.read_bytes())
            if found is None or "version" not in found:
                raise _damaged(file)
            self.base = found
        log = self._folder / _LOG
        data = log.read_bytes() if log.is_file() else b""
        end = last = 0
        for line in data.splitlines(keepends=True):
            table = _parse(line)
            if table is None:
                if end + len(line) < len(data):
                    raise _damaged(log)
                break
            end += len(line)
            version, after = table.pop("version"), table.pop("after")
            if version != last + 1 and (last or version > self.first + 1):
                raise _damaged(log)
            last = version
            if version > self.first:
                self._changes[version], self._after[version] = table, after
        if end < len(data):
            with log.open("r+b") as file_of_log:
                file_of_log.truncate(end)


def queries_in(checkpoint: Path) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Yield the queries of a checkpoint: names, texts as tables, and whether they are paused.

    Raises:
        StateError: a file is damaged.
    """
    if not (checkpoint / FOLDER).is_dir():
        return
    log = ControlLog(checkpoint / FOLDER, -1)
    log.close()
    queries = {each[0]: each for each in log.base.get("queries", [])}
    for _, entry in log.changes():
        _fold(queries, entry)
    for _, name, _, table, is_paused, _ in queries.values():
        yield name, table, is_paused


def _fold(queries: dict[int, list[Any]], entry: LogEntry) -> None:
    """Apply a change to queries: number, name, template, text, whether paused, why stopped."""
    for number in entry.get("unregister", []):
        queries.pop(number, None)
    for number, reason in entry.get("stop", []):
        queries[number][5] = reason
    for query in entry.get("register", []):
        queries[query[0]] = [*query, False, None]
    for name, is_paused in (("pause", True), ("resume", False)):
        for number in entry.get(name, []):
            queries[number][4] = is_paused


def _replace(file: Path, data: bytes) -> None:
    """Put a file in the place of another one; whatever happens, one of them is there whole."""
    with replaced(file) as scratch, scratch.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())


def _line(table: LogEntry) -> bytes:
    data = json.dumps(table, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _parse(line: bytes) -> dict[str, Any] | None:
    """Read a line; None if it is not complete."""
    if not line.endswith(b"\n") or line[8:9] != b" ":
        return None
    data = line[9:-1]
    try:
        if int(line[:8], 16) != zlib.crc32(data):
            return None
    except ValueError:
        return None
    found: dict[str, Any] = json.loads(data.decode("utf-8", "surrogatepass"))
    return found


def _damaged(file: Path) -> StateError:
    return StateError(
        f"{file} was changed or is damaged",
        hint="Restore the checkpoint from a backup, or start with a new one.",
    )
