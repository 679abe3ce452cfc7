"""Records on their way from a reader to Spark, as Arrow batches.

Every batch has the columns `place`, `reason` and `record` (the last two NULL for a record that can
be used) and then those of the reader, all strings or lists of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

PLACE: Final = "place"
REASON: Final = "reason"
RECORD: Final = "record"
LETTER: Final = (PLACE, REASON, RECORD)
TEXT_LIMIT: Final = 10_000

ROWS: Final = 8192
CHARACTERS: Final = 4 * 2**20
MAX_RECORD_CHARACTERS: Final = 64 * 2**20
"""A longer record is put aside: it would have to be held in memory several times over."""


class RecordRow(NamedTuple):
    """One record: where it stood; why it is unusable and its text; its values; its weight."""

    place: str
    values: tuple[Any, ...] | None = None
    reason: str | None = None
    record: str | None = None
    weight: int = 64


def bad_row(place: str, reason: str, record: str = "") -> RecordRow:
    """A record that cannot be used."""
    text = record[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8")
    return RecordRow(place, None, reason, text)


def to_batches(rows: Iterable[RecordRow], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Gather rows into batches that are neither long nor heavy."""
    width = len(schema) - len(LETTER)
    empty = (None,) * width
    held: list[RecordRow] = []
    weight = 0
    for row in rows:
        held.append(row)
        weight += row.weight
        if len(held) >= ROWS or weight >= CHARACTERS:
            yield _pack(held, schema, empty)
            held, weight = [], 0
    if held:
        yield _pack(held, schema, empty)


def _pack(rows: list[RecordRow], schema: pa.Schema, empty: tuple[None, ...]) -> pa.RecordBatch:
    places, values, reasons, records, _ = zip(*rows, strict=True)
    columns = zip(*[one if one is not None else empty for one in values], strict=True)
    data = [places, reasons, records, *columns]
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(data, schema, strict=True)],
        schema=schema,
    )


def schema_of(names: Iterable[str], kind: pa.DataType) -> pa.Schema:
    """The schema of batches whose reader gives columns of one type."""
    return pa.schema(
        [(name, pa.string()) for name in LETTER] + [(name, kind) for name in names],
    )
