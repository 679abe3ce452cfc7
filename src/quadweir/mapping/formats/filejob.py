"""The job of reading one file in Python, for the driver or a worker."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import IO, final

import pyarrow as pa

from quadweir.fileformats import Compression
from quadweir.mapping.files import BROKEN, open_members, open_text
from quadweir.mapping.formats.batches import RecordRow, bad_row, schema_of, to_batches
from quadweir.mapping.sources import CsvDialect

TEXT_TYPE = pa.string()
TEXTS_TYPE = pa.list_(pa.string())
TYPED_TYPE = pa.list_(pa.struct([("text", pa.string()), ("kind", pa.string())]))


class FileReading(Enum):
    """The kind of file, and the content of a row."""

    CSV = auto()
    JSON_TEXTS = auto()
    JSON_VALUES = auto()
    XML = auto()
    SPARQL = auto()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FileJob:
    """Read `references` (or, for JSON_TEXTS, the texts) of every record of a file."""

    path: Path
    reading: FileReading
    references: tuple[str, ...]
    compression: Compression = Compression.NONE
    encoding: str = "UTF-8"
    iterator: str | None = None
    dialect: CsvDialect = field(default_factory=CsvDialect)
    namespaces: tuple[tuple[str, str], ...] = ()
    empty_is_missing: bool = False

    def columns(self) -> tuple[str, ...]:
        """The names of the columns that hold the values."""
        if self.reading is FileReading.JSON_TEXTS:
            return ("value",)
        return tuple(f"v{number}" for number in range(len(self.references)))

    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        kinds = {
            FileReading.CSV: TEXT_TYPE,
            FileReading.JSON_TEXTS: TEXT_TYPE,
            FileReading.JSON_VALUES: TYPED_TYPE,
            FileReading.XML: TEXTS_TYPE,
            FileReading.SPARQL: TYPED_TYPE,
        }
        return schema_of(self.columns(), kinds[self.reading])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the file."""
        return to_batches(self.rows(), self.schema())

    def rows(self) -> Generator[RecordRow, None, None]:
        """Read the file; broken parts become rows with a reason."""
        number = 0
        try:
            with open_members(self.path, self.compression) as members:
                for member in members:
                    for row in self._rows(member):
                        number += 1
                        yield row
        except FileNotFoundError:
            raise
        except BROKEN as error:
            yield bad_row(f"after record {number}", f"the rest of the file cannot be read: {error}")

    def _rows(self, stream: IO[bytes]) -> Iterator[RecordRow]:
        match self.reading:
            case FileReading.CSV:
                from quadweir.mapping.formats.csvfile import read_rows

                with open_text(stream, self.encoding) as text:
                    yield from read_rows(
                        text,
                        self.dialect,
                        self.references,
                        empty_is_missing=self.empty_is_missing,
                    )
            case FileReading.JSON_TEXTS:
                from quadweir.mapping.formats.jsonfile import read_texts

                with open_text(stream, self.encoding) as text:
                    yield from read_texts(text, self.iterator)
            case FileReading.JSON_VALUES:
                from quadweir.mapping.formats.jsonfile import read_values

                with open_text(stream, self.encoding) as text:
                    yield from read_values(text, self.iterator, self.references)
            case FileReading.XML:
                from quadweir.mapping.formats.xmlfile import XmlPlan, read_elements

                plan = XmlPlan(self.iterator or "/*", self.references, self.namespaces)
                # The document declares its own encoding, unless the mapping gives another.
                encoding = None if self.encoding.upper() == "UTF-8" else self.encoding
                yield from read_elements(stream, plan, encoding)
            case FileReading.SPARQL:
                from quadweir.mapping.formats.rdffile import read_solutions

                yield from read_solutions(
                    stream, self.path.name, self.iterator or "", self.references
                )
