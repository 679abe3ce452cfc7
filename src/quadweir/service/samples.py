"""The records that a stream brought last, or would bring first: samples for a mapping."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir.errors import QuadweirError
from quadweir.sources.declare import FileSource, FolderSource, Format, PushSource, ReplaySource
from quadweir.sources.pushlog import PushLogReader, frames_of, records_of
from quadweir.sources.streamfiles import list_files

if TYPE_CHECKING:
    from quadweir.sources.declare import StreamDeclaration

MOST_RECORDS: Final = 10
_MOST_BYTES: Final = 200_000


def sample_records(declared: StreamDeclaration, log: Path | None) -> list[str]:
    """Return some records of a stream, each as its mapping gets it.

    There are none of RDF, and none of a broker, which would have to be asked.

    Args:
        declared: the stream.
        log: where the service keeps what is pushed into it.
    """
    if declared.format.is_rdf:
        return []
    match declared.source:
        case PushSource():
            return _pushed(log) if log is not None else []
        case FileSource(path=path):
            return _in_files(declared.format, path, "*")
        case FolderSource(path=path, pattern=pattern) | ReplaySource(path=path, pattern=pattern):
            return _in_files(declared.format, path, pattern)
        case _:
            return []


def _pushed(log: Path) -> list[str]:
    reader = PushLogReader(log)
    segments = [begin for begin, _ in reader.segments()]
    last: list[str] = []
    # The last segment may have just begun.
    for piece in reader.read(segments[-2:][0], reader.end()) if segments else ():
        for frame in frames_of(piece):
            for batch in records_of(frame):
                last = [*last, *batch.column("value").to_pylist()[-MOST_RECORDS:]][-MOST_RECORDS:]
    return last


def _in_files(form: Format, path: Path, pattern: str) -> list[str]:
    try:
        files = list_files(path, pattern)
        with files[0].open("rb") as file:
            data = file.read(_MOST_BYTES)
    except (OSError, IndexError, QuadweirError):
        return []
    text = data.decode("utf-8", "replace")
    if form is Format.XML:
        return [text] if len(data) < _MOST_BYTES else []
    # The last line may be cut.
    whole = text if len(data) < _MOST_BYTES else text[: text.rfind("\n") + 1]
    lines = [each for each in whole.splitlines() if each.strip()]
    if form is Format.CSV:
        return [f"{lines[0]}\n{each}" for each in islice(lines, 1, MOST_RECORDS + 1)]
    return lines[:MOST_RECORDS]
