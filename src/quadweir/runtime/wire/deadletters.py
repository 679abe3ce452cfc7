"""Dead letters of a running query: what could not be read, and what came too late.

They leave the way answers do, through the shards, so that the input is read once and a batch that is
repeated tells them once. On that way a letter is a line of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F

from quadweir import rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LETTER: Final = "letter"
"""The column that holds one, in rows that are nothing else."""

# No Arrow stream begins like this.
_MARK: Final = b"letters\n"


def letter() -> Column:
    """Spell a row that has a reason as a letter; NULL for others."""
    parts = F.struct(*rows.DEAD_LETTER_SCHEMA.names)
    return F.when(F.col(rows.REASON).isNotNull(), F.to_json(parts))


def dead_letters(raw: DataFrame) -> DataFrame:
    """Take letters out of the rows that shards give: rows of `rows.DEAD_LETTER_SCHEMA`."""
    found = F.from_json(LETTER, rows.DEAD_LETTER_SCHEMA).alias("found")
    return raw.where(F.col(LETTER).isNotNull()).select(found).select("found.*")


def taken_out(batch: pa.RecordBatch) -> tuple[list[str], pa.RecordBatch]:
    """Take letters out of a batch of rows, if it can have some."""
    if LETTER not in batch.schema.names:
        return [], batch
    found = batch.column(LETTER)
    rest = batch.drop_columns([LETTER])
    if found.null_count == len(found):
        return [], rest
    return found.drop_null().to_pylist(), rest.filter(found.is_null())


def packed(letters: Sequence[str]) -> bytes:
    """Pack letters as a blob."""
    return _MARK + "\n".join(letters).encode()


def sorted_out(blobs: Iterable[bytes]) -> tuple[list[str], list[bytes]]:
    """Tell letters from what else was packed.

    >>> sorted_out([b"abc", packed(["{}", "{}"])])
    (['{}', '{}'], [b'abc'])
    """
    letters: list[str] = []
    others = []
    for blob in blobs:
        if blob.startswith(_MARK):
            letters += blob[len(_MARK) :].decode().split("\n")
        else:
            others.append(blob)
    return letters, others


def late_reason(time: int, watermark: int) -> str:
    """Say why something of one instant came too late."""
    return f"late: it is of {time}, and time had come to {watermark} already"


def of_late(
    stream: str, time: int, position: int, terms: Iterable[str | None], watermark: int
) -> str:
    """Say of a statement that it came too late (S4).

    Args:
        stream: the stream that it is of.
        time: its event time.
        position: where it stood in the stream.
        terms: its terms, None for those that nobody asked for.
        watermark: how far time had come.
    """
    shown = " ".join("?" if term is None else term for term in terms)
    return json.dumps(
        {
            rows.SOURCE: stream,
            rows.PLACE: f"position {position}",
            rows.REASON: late_reason(time, watermark),
            rows.RECORD: shown[: rows.DEAD_LETTER_TEXT],
        },
        ensure_ascii=False,
    )
