"""Dead letters of a running query: records that cannot be read, and late statements.

They leave the way answers do, through the shards. So the input is read once, and a repeated batch
reports them once. On that way, a dead letter is a line of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from quadweir import rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LETTER: Final = "letter"
"""The column that holds one; such a row has nothing else."""

# No Arrow stream begins like this.
_MARK: Final = b"letters\n"


def letter() -> Column:
    """Write a row that has a reason as a dead letter; NULL for other rows."""
    from pyspark.sql import functions as F

    parts = F.struct(*rows.DEAD_LETTER_SCHEMA.names)
    return F.when(F.col(rows.REASON).isNotNull(), F.to_json(parts))


def dead_letters(raw: DataFrame) -> DataFrame:
    """Return the dead letters among the output of shards: rows of `rows.DEAD_LETTER_SCHEMA`."""
    from pyspark.sql import functions as F

    found = F.from_json(LETTER, rows.DEAD_LETTER_SCHEMA).alias("found")
    return raw.where(F.col(LETTER).isNotNull()).select(found).select("found.*")


def split_rows(batch: pa.RecordBatch) -> tuple[list[str], pa.RecordBatch]:
    """Split rows into dead letters and the rest."""
    if LETTER not in batch.schema.names:
        return [], batch
    found = batch.column(LETTER)
    rest = batch.drop_columns([LETTER])
    if found.null_count == len(found):
        return [], rest
    return found.drop_null().to_pylist(), rest.filter(found.is_null())


def letter_blob(letters: Sequence[str]) -> bytes:
    """Pack dead letters as a blob."""
    return _MARK + "\n".join(letters).encode()


def split_blobs(blobs: Iterable[bytes]) -> tuple[list[str], list[bytes]]:
    """Split blobs into dead letters and the rest.

    >>> split_blobs([b"abc", letter_blob(["{}", "{}"])])
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
    """Return the reason of a dead letter about a late record."""
    return f"late: its time is {time}, and the watermark was {watermark} already"


def late_letter(
    stream: str, time: int, position: int, terms: Iterable[str | None], watermark: int
) -> str:
    """Return the dead letter of a late statement (S4).

    Args:
        stream: its stream.
        time: its event time.
        position: its position in the stream.
        terms: its terms; None for terms that no pattern needs.
        watermark: the watermark when it arrived.
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
