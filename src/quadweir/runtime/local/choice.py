"""Whether the streams of a query can be read in this process, and whether they are small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from quadweir.errors import SourceError
from quadweir.sources.declare import FileSource, FolderSource, StreamDeclaration
from quadweir.sources.staticfiles import StaticFile, list_static
from quadweir.sources.streamfiles import list_files

LOCAL_BYTES: Final = 8 << 20
"""Up to this many bytes of input, this process is faster than starting Spark."""
# Compressed files are much larger than they look.
_UNPACKED: Final = 10


def why_not_local(streams: Mapping[str, StreamDeclaration | None]) -> str | None:
    """Say why some of these streams cannot be read in this process; None if all can.

    Args:
        streams: the streams that a query reads; None for those that a mapping makes.
    """
    for iri, declared in streams.items():
        if declared is None:
            return f"<{iri}> is made by a mapping"
        if not declared.has_end:
            return f"<{iri}> has no end"
        if not declared.format.is_stream_file:
            return f"<{iri}> is written as {declared.format}, which only Spark reads"
    return None


def input_bytes(streams: Iterable[StreamDeclaration | None], static: Iterable[StaticFile]) -> int:
    """Return how many bytes the files of streams and static data have; compressed ones count tenfold.

    A file that does not exist counts nothing: reading it says what is wrong.
    """
    files: list[Path] = []
    try:
        for each in streams:
            match each.source if each is not None else None:
                case FileSource(path=path):
                    files += list_files(path)
                case FolderSource(path=path, pattern=pattern):
                    files += list_files(path, pattern)
        for one in static:
            files += list_static(one.path)
    except SourceError:
        return 0
    return sum(map(_bytes_of, files))


def _bytes_of(file: Path) -> int:
    try:
        size = file.stat().st_size
    except OSError:
        return 0
    return size * _UNPACKED if file.suffix == ".gz" else size
