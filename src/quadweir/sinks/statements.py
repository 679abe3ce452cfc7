"""Records in, statements to one sink and dead letters to another, in one pass.

The source is read once: the batch of raw records is kept, parsed once, and the two kinds of rows
are taken from what was parsed (semantics P5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from quadweir import rows
from quadweir.sources.raw import unusable, usable
from quadweir.sources.records import dead_letters, good_statements, parse_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.start import Batch, Sink
    from quadweir.sources.declare import StreamDeclaration


@final
@dataclass(frozen=True, slots=True)
class StatementsSink:
    """Takes record rows, also those with a reason why they cannot be used (`raw.RAW_SCHEMA`).

    Attributes:
        declaration: the stream that the records belong to.
        good: where its statements go.
        dead: where the dead letters go; give it `LineFormat.JSONL`.
    """

    declaration: StreamDeclaration
    good: Sink
    dead: Sink

    def prepare(self) -> None:
        self.good.prepare()
        self.dead.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        records = frame.persist()
        tells = rows.REASON in records.columns
        parsed = parse_records(usable(records) if tells else records, self.declaration).persist()
        try:
            self.good.write(good_statements(parsed), batch)
            dead = dead_letters(parsed)
            self.dead.write(dead.unionByName(unusable(records)) if tells else dead, batch)
        finally:
            parsed.unpersist()
            records.unpersist()
