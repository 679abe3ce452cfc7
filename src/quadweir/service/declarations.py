"""What was declared over HTTP, in one file that a crash cannot damage.

Queries are not here: the control logs of the networks have them.
"""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, final

from quadweir.errors import StateError
from quadweir.private import make_folder, replaced

_NAME: Final = "declarations.json"


@final
@dataclass(frozen=True, slots=True)
class NetworkRecord:
    """A network that was started.

    Attributes:
        streams: the streams that it reads.
        inputs: a digest of what its state depends on: declarations, static data, schema.
        starts: where it begins to read streams that are pushed.
    """

    streams: list[str]
    inputs: str
    starts: dict[str, int] = field(default_factory=dict)


@final
@dataclass(slots=True)
class Declared:
    """All that the file has.

    Attributes:
        streams: declarations as tables, by IRI.
        mappings: mappings as they were put, by name.
        networks: the networks, by id.
        next_network: the number of the next network.
        homes: where queries belong that moved from one network to another.
        owners: the tokens of queries and streams, for tokens that may not have many.
        webhooks: where answers are sent, by query: URLs, secrets, and what was taken.
        app_queries: the queries that the file of the application had.
        static: the version of static data that was put, and its files: names and graphs.
        schema: the same of the schema.
    """

    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    mappings: dict[str, dict[str, Any]] = field(default_factory=dict)
    networks: dict[str, NetworkRecord] = field(default_factory=dict)
    next_network: int = 1
    homes: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    webhooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    app_queries: list[str] = field(default_factory=list)
    static: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)


@final
class Declarations:
    """The declarations in a folder.

    Args:
        folder: the folder of the service's data.

    Raises:
        StateError: the file is damaged.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self._file = folder / _NAME
        self._lock = threading.RLock()
        self.now = self._read()

    def change(self, make: Callable[[Declared], None]) -> None:
        """Change the declarations; once this returns, the change survives a crash.

        Raises:
            StateError: the file cannot be written; then nothing has changed.
        """
        with self._lock:
            data = asdict(self.now)
            changed = _declared(json.loads(json.dumps(data)))
            make(changed)
            self._write(asdict(changed))
            self.now = changed

    def _write(self, table: dict[str, Any]) -> None:
        data = json.dumps(table, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            with replaced(self._file) as scratch, scratch.open("wb") as out:
                out.write(b"%08x %s\n" % (zlib.crc32(data), data))
                out.flush()
                os.fsync(out.fileno())
            sync_folder(self._file.parent)
        except OSError as error:
            raise StateError(
                f"{self._file} cannot be written: {error.strerror or error}",
                hint="Make room on its disk, and try again.",
            ) from error

    def _read(self) -> Declared:
        if not self._file.is_file():
            return Declared()
        data = self._file.read_bytes()
        try:
            if int(data[:8], 16) == zlib.crc32(data[9:-1]):
                return _declared(json.loads(data[9:-1].decode("utf-8", "surrogatepass")))
        except ValueError:
            pass
        raise StateError(
            f"{self._file} was changed or is damaged",
            hint="Restore it from a backup, or start with another folder of data.",
        )


def _declared(table: dict[str, Any]) -> Declared:
    found = Declared(**table)
    found.networks = {name: NetworkRecord(**each) for name, each in table["networks"].items()}
    return found


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
