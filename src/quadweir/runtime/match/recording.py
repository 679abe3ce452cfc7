"""A recording of what a running query reads, so that its answers can be checked."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

import pyarrow as pa
import pyarrow.parquet as pq

from quadweir import rows


@final
@dataclass(frozen=True)
class Recorder:
    """Passes rows on and writes the statements to a folder; a repeated task writes them again."""

    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            good = batch.select(rows.STATEMENT_SCHEMA.names)
            if rows.REASON in batch.schema.names:
                good = good.filter(batch.column(rows.REASON).is_null())
            if good.num_rows:
                name = uuid.uuid4().hex
                scratch = Path(self.folder) / f".{name}"
                pq.write_table(pa.Table.from_batches([good]), scratch)
                scratch.rename(Path(self.folder) / f"{name}.parquet")
            yield batch
