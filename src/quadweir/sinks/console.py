"""The first lines of each batch, printed for people to watch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TextIO, final

from quadweir.sinks.base import SinkNeeds, TextSink
from quadweir.sinks.lineformat import LineFormat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.base import Batch


# With this many rows, `DataFrame.take` computes every partition.
_ALL_ROWS: Final = 2**31 - 2


@final
@dataclass(frozen=True, slots=True)
class ConsoleSink(TextSink):
    """Prints lines as plain text.

    Guarantee: none; a batch that is repeated after a crash is printed again.

    Attributes:
        form: how a row becomes a line.
        most_rows: how many rows of a batch are printed.
        out: where they are printed; default: standard output.
    """

    form: LineFormat = LineFormat.NQUADS
    most_rows: int = 20
    out: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def needs(self) -> SinkNeeds:
        return SinkNeeds(reads_all=self.most_rows >= _ALL_ROWS)

    def write_lines(self, lines: DataFrame, batch: Batch) -> None:
        self.write_text([row[0] for row in lines.take(self.most_rows + 1)], batch)

    def write_text(self, lines: Sequence[str], batch: Batch) -> None:
        for line in lines[: self.most_rows]:
            print(line, file=self.out)
        if len(lines) > self.most_rows:
            print(f"# batch {batch.number}: more than {self.most_rows} rows", file=self.out)
        self.out.flush()
