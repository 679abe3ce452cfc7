"""Changes between the stages of a query: packed for the shards of the next stage, and read there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from quadweir import rows
from quadweir.kernel.answers import Answers
from quadweir.kernel.arrays import FOREVER, Ints
from quadweir.kernel.events import Changes, Events
from quadweir.kernel.shard import Shard
from quadweir.runtime.shard.facts import QUERY_FACTS
from quadweir.runtime.wire.pack import (
    BEFORE,
    BLOB,
    FIRST_TIME,
    PACKED_AT,
    REPORTED,
    REPORTS,
    SHARD_KEY,
    SPANS,
    THROUGH,
    blob_rows,
    letter_rows,
    to_bytes,
)
from quadweir.runtime.wire.unpack import Late


@final
@dataclass(frozen=True)
class ChangeSender:
    """Packs the changes of a shard for the shards of the next stage.

    Attributes:
        keys: the shuffle keys of the shards of the next stage, in their order.
        column: the place of the variable by which they are sharded; None if there is one shard.
        before: all changes before the step that is packed next, and the last report. They replace
            everything that was sent before.
    """

    keys: tuple[int, ...]
    column: int | None
    before: tuple[Answers, Ints] | None = None

    def letters(self, letters: Sequence[str]) -> pa.RecordBatch:
        """Pass dead letters on to the next stage."""
        return self._with_facts(letter_rows(self.keys, letters))

    def _with_facts(self, blobs: pa.RecordBatch) -> pa.RecordBatch:
        nothing = [pa.nulls(blobs.num_rows, pa.int64()) for _ in QUERY_FACTS]
        return pa.RecordBatch.from_arrays([*blobs.columns, *nothing], names=self.schema.names)

    @property
    def schema(self) -> StructType:
        """A blob for a shard of the next stage, or the facts of this shard."""
        return StructType(
            [
                StructField(SHARD_KEY, IntegerType()),
                StructField(FIRST_TIME, LongType()),
                StructField(BLOB, BinaryType()),
                *(StructField(name, LongType()) for name in QUERY_FACTS),
            ]
        )

    def write(self, shard: Shard, answers: Answers, after: int, salt: str) -> pa.RecordBatch:  # noqa: ARG002 - as for answers
        """Pack the changes of a step that began after an instant."""
        table = _as_table(answers)
        facts = {SPANS: b"{}", REPORTED: b"{}", PACKED_AT: b"0"}
        facts[THROUGH] = str(shard.through).encode()
        reports = shard.reported
        if self.before is not None:
            changes, report = self.before
            table = pa.concat_tables([_as_table(changes), table])
            reports = np.concatenate((report, reports))
            facts[BEFORE] = str(after).encode()
        if shard.tells_reports:
            facts[REPORTS] = reports.tobytes()
        table = table.replace_schema_metadata(facts)
        count = len(self.keys)
        to = None
        if self.column is not None:
            to = _numbered(table.column(str(self.column)).combine_chunks(), count)
        blobs = [
            to_bytes(table if to is None else table.filter(pa.array(to == number)))
            for number in range(count)
        ]
        return self._with_facts(blob_rows(self.keys, after + 1, blobs))

    def facts(self, facts: Mapping[str, int]) -> pa.RecordBatch:
        """Return the row with the facts of a shard."""
        numbers = [pa.array([facts.get(name)], pa.int64()) for name in QUERY_FACTS]
        nothing = [pa.nulls(1, kind) for kind in (pa.int32(), pa.int64(), pa.binary())]
        return pa.RecordBatch.from_arrays([*nothing, *numbers], names=self.schema.names)


def _as_table(changes: Answers) -> pa.Table:
    names = [rows.REPORT, rows.SIGN, *map(str, range(len(changes.values)))]
    return pa.table([pa.array(changes.t), pa.array(changes.sign), *changes.values], names=names)


def _numbered(column: pa.Array, shards: int) -> Ints:
    """Return the shard of each value; it is the same in every process."""
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_numpy(zero_copy_only=False).astype(object)
    found = (pd.util.hash_array(texts, categorize=False) % np.uint64(shards)).astype(np.int64)
    numbers: Ints = found[coded.indices.to_numpy()]
    return numbers


@final
class ChangeReceiver:
    """Turns the blobs of one stage into the events of a shard of the next."""

    def events(
        self,
        blobs: Iterable[bytes],
        *,
        after: int,  # noqa: ARG002 - as for matches
        until: int = FOREVER,  # noqa: ARG002
    ) -> tuple[Events, Late]:
        """Read blobs; nothing in them is late, because the stage before has dropped that."""
        tables, reports, restarts = [], [], []
        for blob in blobs:
            reader = pa.ipc.open_stream(blob)
            reported, before = (reader.schema.metadata.get(name) for name in (REPORTS, BEFORE))
            if reported is not None:
                reports.append(np.frombuffer(reported, dtype=np.int64))
            if before is not None:
                restarts.append(int(before))
            tables.append(reader.read_all().replace_schema_metadata())
        if not tables:
            return Events(), Late()
        table = pa.concat_tables(tables)
        t, sign = (table.column(name).to_numpy() for name in (rows.REPORT, rows.SIGN))
        order = np.argsort(t * 2 + (sign > 0), kind="stable")
        columns = [each.combine_chunks().take(pa.array(order)) for each in table.columns[2:]]
        instants = np.unique(np.concatenate(reports)) if reports else None
        changes = Changes(t[order], sign[order], columns, instants)
        if not restarts:
            return Events(changes=changes), Late()
        changes, later = changes.split(max(restarts))
        return Events(changes=later, before=changes), Late()
