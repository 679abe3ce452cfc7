"""`quadweir query --live --why`: each live answer with its explanation.

The query's input is recorded (`runtime.recording`) and kept as long as a window may hold it. Each
batch of answers is explained from this recording before it goes to its sink.
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

    from quadweir.sinks.base import Batch
    from quadweir.testing.why import Reasons

_FOLDER: Final = "why"


def record_folder(checkpoint: Path, *, why: bool) -> Path | None:
    """The folder of a checkpoint that holds the recorded input, if answers are explained.

    Raises:
        UsageError: the run of the checkpoint did not record its input.
    """
    folder = checkpoint / _FOLDER
    if not why:
        # This run records nothing, so an old recording would have a gap.
        shutil.rmtree(folder, ignore_errors=True)
        return None
    if (checkpoint / "offsets").exists() and not folder.exists():
        raise UsageError(
            f"the last run of {checkpoint} was without --why",
            detail="It did not record the content of its windows, so answers that rest on it "
            "could not be explained.",
            hint="Leave --why out, or start with another checkpoint.",
        )
    make_folder(folder)
    return folder


@final
@dataclass(frozen=True)
class WhySink(Sink):
    """Passes batches to a sink, with a column that explains each answer.

    Attributes:
        sink: the sink of the batches.
        reasons: explains answers.
        recorded: the recorded input of the query.
        reach_ms: the greatest age of an element that a report uses.
        through: returns the watermark after the batch before.
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
        with_reasons = [(*row, why) for row, why in zip(found, self._explained(found), strict=True)]
        kind = StructType([*frame.schema.fields, StructField(rows.WHY, StringType(), False)])
        self.sink.write(frame.sparkSession.createDataFrame(with_reasons, kind), batch)
        if through is not None:
            self.recorded.forget(through - self.reach_ms)

    def _explained(self, found: Sequence[Any]) -> list[str]:
        if not found:
            return []
        self.reasons.see(self.recorded.elements().values())
        answers = answers_from_rows(found)
        texts = [""] * len(answers)
        # Sorted by instant, so that the windows of each report are evaluated once.
        for place in sorted(range(len(answers)), key=lambda each: answers[each].t):
            texts[place] = json.dumps(self.reasons.of(answers[place]), ensure_ascii=False)
        return texts
