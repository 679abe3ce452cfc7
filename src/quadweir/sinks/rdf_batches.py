"""RDF documents of a stream: one document for each micro-batch, exactly once.

A document has an end and a stream has none, so every batch has its own document, named after the
batch. A batch that is repeated after a crash writes the same rows under the same name. A file
appears only when it is complete.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from quadweir.errors import SourceError
from quadweir.fileformats import Compression
from quadweir.private import check_writable, make_folder, replaced
from quadweir.sinks.base import Sink, SinkNeeds
from quadweir.sinks.lineformat import LineFormat
from quadweir.sinks.lines import to_lines
from quadweir.sinks.rdf_documents import Syntax, write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Batch

_CHUNK: Final = 2**20


@final
@dataclass(frozen=True, slots=True)
class DocumentSink(Sink):
    """Writes documents `NAME-BATCH.ENDING` in the folder of `NAME.ENDING`.

    Guarantee: exactly once.

    >>> DocumentSink(Path("out/dump.nt.gz"), Syntax.NTRIPLES).path_of(7)
    PosixPath('out/dump-00000007.nt.gz')

    Attributes:
        path: the path that documents are named after; driver and executors share its disk.
        syntax: the RDF syntax.
        encoding: the character encoding.
        compression: the compression.
        overwrite: whether documents may replace files that are older than the query.
    """

    path: Path
    syntax: Syntax
    encoding: str = "UTF-8"
    compression: Compression = Compression.NONE
    overwrite: bool = False

    def path_of(self, batch: int) -> Path:
        """Return the path of the document of a batch."""
        name, dot, ending = self.path.name.partition(".")
        return self.path.with_name(f"{name}-{batch:08d}{dot}{ending}")

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=True)

    def prepare(self) -> None:
        try:
            make_folder(self.path.parent)
            check_writable(self.path.parent)
        except OSError as error:
            raise SourceError(
                f"cannot write to {self.path.parent}",
                detail=str(error),
                hint="Choose another folder.",
            ) from error

    def write(self, frame: DataFrame, batch: Batch) -> None:
        self.claim(batch.query)
        form = LineFormat.NTRIPLES if self.syntax is Syntax.NTRIPLES else LineFormat.NQUADS
        folder = self.path.parent.absolute()
        with tempfile.TemporaryDirectory(prefix=f".{self.path.name}-", dir=folder) as scratch:
            lines = Path(scratch, "lines")
            to_lines(frame, form).write.text(str(lines))
            parts = [part for part in sorted(lines.glob("part-*")) if part.stat().st_size]
            if parts:
                write_file(
                    _chunks(parts),
                    self.path_of(batch.number),
                    self.syntax,
                    encoding=self.encoding,
                    compression=self.compression,
                )

    def claim(self, query: str) -> None:
        """Note which query the documents belong to, before the first one is written.

        Raises:
            SourceError: they belong to another query, or would replace other files.
        """
        log = self.path.with_name(f".{self.path.name}.quadweir-sink.json")
        if log.is_file():
            if json.loads(log.read_text(encoding="utf-8"))["query"] == query:
                return
            raise SourceError(
                f"{self.path} names the output of another query",
                detail="Batches are numbered from 0 for each new checkpoint, so they would be "
                "mixed up.",
                hint="Remove that output, or start with its checkpoint.",
            )
        for there in [] if self.overwrite else self._like_documents():
            raise SourceError(
                f"{there} is older than the query, and a document could replace it",
                hint="Move it away, choose another name, or allow it with --overwrite.",
            )
        with replaced(log) as scratch:
            scratch.write_text(json.dumps({"query": query}), encoding="utf-8")

    def _like_documents(self) -> Iterator[Path]:
        name, dot, ending = self.path.name.partition(".")
        return self.path.parent.glob(f"{escape(name)}-{'[0-9]' * 8}{dot}{escape(ending)}")


def _chunks(parts: list[Path]) -> Iterator[bytes]:
    for part in parts:
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk
