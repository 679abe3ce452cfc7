"""Which references of a mapping match in the first records of its files, without Spark."""

from __future__ import annotations

from itertools import islice
from typing import Final

from quadweir.errors import QuadweirError
from quadweir.mapping.files import BROKEN, Folders, open_members, open_text
from quadweir.mapping.formats.filejob import FileJob, FileReading
from quadweir.mapping.model import Mapping, expression_references
from quadweir.mapping.sources import CsvDialect, FormulationKind, LogicalSource, MappedFile

RECORDS: Final = 200
_READINGS: Final = {
    FormulationKind.JSONPATH: FileReading.JSON_VALUES,
    FormulationKind.XPATH: FileReading.XML,
}


def sample_matches(mapping: Mapping, folders: Folders) -> dict[LogicalSource, list[str]]:
    """For each file that can be read, the references (for CSV, the columns) that match something."""
    found: dict[LogicalSource, list[str]] = {}
    for logical, references in _references(mapping).items():
        if not isinstance(logical.source, MappedFile):
            continue
        try:
            matched = _matched(logical, logical.source, sorted(references), folders)
        except (QuadweirError, *BROKEN):
            continue  # The full run will report what is wrong with the file.
        if matched is not None:
            found[logical] = matched
    return found


def _references(mapping: Mapping) -> dict[LogicalSource, set[str]]:
    found: dict[LogicalSource, set[str]] = {}
    for triples_map in mapping.triples_maps:
        found.setdefault(triples_map.source, set()).update(triples_map.references())
        for item in triples_map.ref_object_maps():
            parent = mapping.triples_map(item.parent)
            for condition in item.conditions:
                found.setdefault(parent.source, set()).update(
                    expression_references(condition.parent)
                )
    return found


def _matched(
    logical: LogicalSource, source: MappedFile, references: list[str], folders: Folders
) -> list[str] | None:
    path = folders.resolve(source.path, source.root)
    dialect = source.dialect or CsvDialect()
    if logical.formulation.kind is FormulationKind.CSV:
        from quadweir.mapping.formats.csvfile import header_of

        with open_members(path, source.compression) as members:
            for member in members:
                with open_text(member, source.encoding) as text:
                    return header_of(text, dialect)
        return None
    if logical.formulation.kind not in _READINGS:
        return None
    job = FileJob(
        path=path,
        reading=_READINGS[logical.formulation.kind],
        references=tuple(references),
        compression=source.compression,
        encoding=source.encoding,
        iterator=logical.iterator,
        namespaces=logical.formulation.namespaces,
    )
    rows = job.rows()
    matched: set[str] = set()
    try:
        for row in islice(rows, RECORDS):
            values = row.values or ()
            matched.update(name for name, value in zip(references, values, strict=False) if value)
    finally:
        rows.close()
    return sorted(matched)
