"""A folder whose files are the queries of a network: they come and go as files do."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.commands.application import NamedQuery, QueryOrigin, query_of
from quadweir.commands.faults import known_fault
from quadweir.commands.querytext import read_text
from quadweir.errors import QuadweirError, SourceError, UsageError
from quadweir.spans import Span

if TYPE_CHECKING:
    from quadweir.runtime.network.network import Network

SUFFIX: Final = ".rq"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_POLL: Final = timedelta(seconds=1)


@final
@dataclass(frozen=True, slots=True)
class FolderChange:
    """What is different in a folder of queries since the last look.

    Attributes:
        queries: the queries that are new or have another text.
        gone: the names of those whose files are gone.
        errors: what is wrong with files that are new or changed.
    """

    queries: tuple[NamedQuery, ...] = ()
    gone: tuple[str, ...] = ()
    errors: tuple[QuadweirError, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.queries or self.gone or self.errors)


@final
@dataclass(slots=True)
class _Seen:
    """A file at the last look: its time, size and inode, and a hash of its text."""

    state: tuple[int, int, int]
    digest: bytes


@final
@dataclass(slots=True)
class QueryFolder:
    """The queries of a folder: each file `NAME.rq` is the query NAME.

    Hidden files and files with other endings are ignored.

    Attributes:
        folder: the folder; links in it may not lead out of it.
        streams: the streams that queries may read.
        taken: names that files may not have.
        backfill: whether its queries see what windows hold already when they join.
    """

    folder: Path
    streams: Collection[str]
    taken: Collection[str] = ()
    backfill: bool = False
    _seen: dict[str, _Seen] = field(default_factory=dict)

    def names(self) -> list[str]:
        """The names of the queries whose files were there at the last look, good or not."""
        return list(self._seen)

    def look(self) -> FolderChange:
        """Return what is different since the last look.

        A file with the time and size of the last look is not read again. A file with another time
        and the same text is not different.
        """
        found: list[NamedQuery] = []
        errors: list[QuadweirError] = []
        there: set[str] = set()
        try:
            files = sorted(self._files())
        except OSError as error:
            # Nobody says that the queries are gone: the folder may only be unreachable.
            return FolderChange(
                errors=(UsageError(f"cannot list {self.folder}: {error.strerror or error}"),)
            )
        for file in files:
            there.add(file.stem)
            try:
                query = self._changed(file)
            except QuadweirError as error:
                errors.append(error)
                continue
            if query is not None:
                found.append(query)
        gone = tuple(name for name in self._seen if name not in there)
        for name in gone:
            del self._seen[name]
        return FolderChange(tuple(found), gone, tuple(errors))

    def _files(self) -> Iterator[Path]:
        with os.scandir(self.folder) as entries:
            for entry in entries:
                # A pipe would block the run. A link to nowhere is an error that is reported.
                is_file = entry.is_file() or (entry.is_symlink() and not Path(entry).exists())
                if is_file and entry.name.endswith(SUFFIX) and not entry.name.startswith("."):
                    yield Path(entry.path)

    def _changed(self, file: Path) -> NamedQuery | None:
        """Return the query of a file, or None if it is as before.

        Raises:
            QuadweirError: it is no query, or not one that may be read.
        """
        from quadweir.runtime.network.querytext import QueryText

        seen = self._seen.get(file.stem)
        try:
            stat = file.stat()
        except OSError:
            stat = None  # a link to nowhere, or gone again
        state = (stat.st_mtime_ns, stat.st_size, stat.st_ino) if stat else (0, 0, 0)
        if seen is not None and seen.state == state:
            return None
        digest = seen.digest if seen is not None else b""
        self._seen[file.stem] = _Seen(state, digest)
        self._check_name(file)
        text, source = read_text(str(file))
        new = hashlib.sha256(text.encode()).digest()
        if new == digest:
            return None
        self._seen[file.stem].digest = new
        meant = QueryText(text, backfill=self.backfill)
        return query_of(file.stem, meant, QueryOrigin(source), streams=self.streams)

    def _check_name(self, file: Path) -> None:
        place = Span(1, 1, source=str(file))
        if not _NAME.fullmatch(file.stem):
            raise UsageError(
                f"{file.stem} cannot be the name of a query",
                hint="Use at most 100 letters, digits, dots, dashes and underscores.",
                span=place,
            )
        if file.stem in self.taken:
            raise UsageError(
                f"there is a query {file.stem} in the file of the application already",
                hint="Choose another name for the file.",
                span=place,
            )
        if not file.resolve().is_relative_to(self.folder.resolve()):
            raise UsageError(
                f"{file} is a link that leads out of the folder",
                hint="Copy the query into the folder.",
                span=place,
            )


@final
class FolderWatch:
    """Lets queries of a network come and go as the files of a folder do, until it is closed.

    Args:
        folder: the folder.
        network: the network; it was started, with the queries that the folder has had so far.
        registered: the names of these queries.
        tell: gets a line about each change.
        report: gets what is wrong with files.
    """

    def __init__(
        self,
        folder: QueryFolder,
        network: Network,
        registered: Collection[str],
        *,
        tell: Callable[[str], None],
        report: Callable[[QuadweirError], None],
    ) -> None:
        self._folder = folder
        self._network = network
        self._registered = set(registered)
        self._tell = tell
        self._report = report
        self._left: FolderChange | None = None
        self._reason = ""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="query-folder", daemon=True)

    def start(self) -> None:
        """Begin to look each second, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking; a change that has begun is finished."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._closing.wait(_POLL.total_seconds()):
            self.look()

    def look(self) -> None:
        """Look at the folder and make its changes; if that fails, they are made at the next look."""
        change, self._left = self._left or self._folder.look(), None
        try:
            self.apply(change)
        except (QuadweirError, OSError) as error:
            self._left = replace(change, errors=())
            fault = error if isinstance(error, QuadweirError) else known_fault(error)
            reason = fault.message if fault is not None else str(error)
            if reason != self._reason:
                self._report(fault or SourceError(reason))
            self._reason = reason
        else:
            self._reason = ""

    def apply(self, change: FolderChange) -> None:
        """Register new and changed queries in one call, and let those go that are gone in another."""
        for error in change.errors:
            self._report(error)
        origins = {each.name: each.origin for each in change.queries}
        if origins:
            done = self._network.register_all(
                {each.name: each.text for each in change.queries}, replacing=True
            )
            for name, error in done.refused.items():
                self._report(origins[name].placed(error))
            new = [name for name in done.registered if name not in self._registered]
            self._say("registered", new)
            self._say("replaced", [name for name in done.registered if name in self._registered])
            self._registered.update(new)
        gone = [name for name in change.gone if name in self._registered]
        if gone:
            self._network.unregister(*gone)
            self._say("unregistered", gone)
            self._registered.difference_update(gone)

    def _say(self, what: str, names: list[str]) -> None:
        if names:
            self._tell(f"quadweir: {what} {name_all(names)}")


def name_all(names: Collection[str], most: int = 5) -> str:
    """Names in words, the first few of them.

    >>> name_all(["a", "b", "c"], 2)
    '3 queries: a, b and more'
    """
    shown = ", ".join(sorted(names)[:most]) + (" and more" if len(names) > most else "")
    return f"the query {shown}" if len(names) == 1 else f"{len(names)} queries: {shown}"
