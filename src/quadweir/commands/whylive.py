"""`quadweir query --live --why`: with each answer what it rests on, as streams go on.

What the query reads is written down beside it (`runtime.recording`) and kept as long as a window may
hold it. Each batch of answers is explained from that before it goes to its sink.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from quadweir import rows
from quadweir.errors import UsageError
from quadweir.private import make_folder
from quadweir.sinks.base import Sink
from quadweir.testing.frames import answers_from_rows
from quadweir.testing.recorded import RecordedElements

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from quadweir.commands.why import Reasons
    from quadweir.sinks.base import Batch

_FOLDER: Final = "why"


def record_folder(checkpoint: Path, *, why: bool) -> Path | None:
    """Say where in a checkpoint the query's input is written, if answers are to be explained.

    Raises:
        UsageError: the checkpoint is that of a run that did not write down what it read.
    """
    folder = checkpoint / _FOLDER
    if not why:
        # What is read from now on is missing from it.
        shutil.rmtree(folder, ignore_errors=True)
        return None
    if (checkpoint / "offsets").exists() and not folder.exists():
        raise UsageError(
            f"the last run of {checkpoint} was without --why",
            detail="What its windows hold was not written down, so that answers which rest on it "
            "could not be explained.",
            hint="Leave --why out, or start with another checkpoint.",
        )
    make_folder(folder)
    return folder


@final
@dataclass(frozen=True)
class WhySink(Sink):
    """Hands batches to a sink, with a column that says what each answer rests on.

    Attributes:
        sink: where they go.
        reasons: explains answers.
        recorded: what the query has read.
        reach_ms: how far before a report the elements lie that it looks at.
        through: gives the instant until which all was known after the batch before.
    """

    sink: Sink
    reasons: Reasons
    recorded: RecordedElements
    reach_ms: int
    through: Callable[[], int | None]

    def prepare(self) -> None:
        self.sink.prepare()

    def write(self, frame: DataFrame, batch: Batch) -> None:
        from pyspark.sql.types import StringType, StructField, StructType

        through = self.through()
        found = frame.collect()
        self.recorded.take(through)
        told = [(*row, why) for row, why in zip(found, self._explained(found), strict=True)]
        kind = StructType([*frame.schema.fields, StructField(rows.WHY, StringType(), False)])
        self.sink.write(frame.sparkSession.createDataFrame(told, kind), batch)
        if through is not None:
            self.recorded.forget(through - self.reach_ms)

    def _explained(self, found: Sequence[Any]) -> list[str]:
        if not found:
            return []
        self.reasons.see(self.recorded.elements().values())
        answers = answers_from_rows(found)
        told = [""] * len(answers)
        # By their instants, so that each report's windows are looked at once.
        for place in sorted(range(len(answers)), key=lambda each: answers[each].t):
            told[place] = json.dumps(self.reasons.of(answers[place]), ensure_ascii=False)
        return told
