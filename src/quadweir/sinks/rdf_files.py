"""Bounded quads as one RDF file of any format."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quadweir import rows
from quadweir.errors import SourceError, UsageError
from quadweir.fileformats import Compression, format_of
from quadweir.paths import PathLike, as_path
from quadweir.private import make_folder
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import to_lines
from quadweir.sinks.rdf_documents import Syntax, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LINES: Final = {Syntax.NTRIPLES: LineFormat.NTRIPLES, Syntax.NQUADS: LineFormat.NQUADS}
_CHUNK: Final = 2**20


def write_rdf(quads: DataFrame, path: PathLike) -> None:
    """Write quads to one file, which appears only when it is complete.

    Spark writes N-Quads in parallel, in the folder of the file. These parts are then concatenated,
    or pyoxigraph converts them to another format, quad by quad. Driver and executors must see the
    same folder.

    Args:
        quads: rows of `rows.QUAD_SCHEMA`, not a stream.
        path: the file; the end of its name says the format, and `.gz` compresses it.

    Raises:
        UsageError: the name says no format, or the format has no graphs and some quads do.
        SourceError: the file cannot be written.
    """
    target = as_path(path)
    syntax = Syntax(format_of(target.name))
    if quads.isStreaming:
        raise UsageError(
            "a stream has no end, so it cannot be one file", hint="Use sinks.files.FileSink."
        )
    if not syntax.has_graphs and not quads.where(f"{rows.GRAPH} is not null").isEmpty():
        raise UsageError(
            f"some quads are in named graphs, which {syntax} cannot hold",
            hint="Write nquads, trig or jsonld.",
        )
    try:
        make_folder(target.parent)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            _write(quads, target, syntax, Path(scratch))
    except OSError as error:
        raise SourceError(
            f"{target} cannot be written",
            detail=str(error),
            hint="Check the folder and its rights.",
        ) from error


def _write(quads: DataFrame, target: Path, syntax: Syntax, scratch: Path) -> None:
    packed = target.name.lower().endswith(".gz")
    lines = to_lines(quads, _LINES.get(syntax, LineFormat.NQUADS))
    # Concatenated gzip files are a gzip file.
    options = {"compression": "gzip"} if packed and syntax.is_lines else {}
    parts = scratch / "parts"
    lines.write.options(**options).text(str(parts.absolute()))
    ready = Compression.NONE if syntax.is_lines else None
    write_file(_chunks(parts), target, syntax, compression=ready)


def _chunks(folder: Path) -> Iterator[bytes]:
    """Yield the parts that Spark wrote, in order; each is deleted once it is read."""
    for part in sorted(folder.glob("part-*")):
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
        part.unlink()
