"""The first lines of each batch, for people who watch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO, final

from quadweir.sinks.lines import LineFormat, to_lines

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.sinks.start import Batch


@final
@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Prints lines, plain.

    Guarantee: none; a batch that is repeated after a crash is printed again.

    Attributes:
        form: how a row becomes a line.
        most_rows: how many rows of a batch are printed.
        out: where to; default: standard output.
    """

    form: LineFormat = LineFormat.NQUADS
    most_rows: int = 20
    out: TextIO = field(default_factory=lambda: sys.stdout)

    def prepare(self) -> None:
        """There is nothing to check."""

    def write(self, frame: DataFrame, batch: Batch) -> None:
        found = [row[0] for row in to_lines(frame, self.form).take(self.most_rows + 1)]
        for line in found[: self.most_rows]:
            print(line, file=self.out)
        if len(found) > self.most_rows:
            print(f"# batch {batch.number}: more than {self.most_rows} rows", file=self.out)
        self.out.flush()
