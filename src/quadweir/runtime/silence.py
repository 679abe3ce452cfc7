"""Notices that a live query sees many elements on all sides and answers nothing.

Most often two streams spell a key differently, or a window is too short. Every element is valid then,
so there are no dead letters. The watch looks at some batches, and at fewer and fewer of them, until
there is an answer. If none comes, one warning shows what the sides have.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from quadweir.algebra.windows import PastScope, TimeScope
from quadweir.kernel.arrays import ALWAYS
from quadweir.runtime.match.bits import MatchBits, word_of
from quadweir.runtime.match.matched import widened
from quadweir.runtime.match.rowform import VALUES, stream_numbers
from quadweir.runtime.match.sentences import asked_patterns
from quadweir.runtime.shard.base import BatchPlan, JobControl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from quadweir.plan.query import QueryPlan
    from quadweir.runtime.match.sentences import AskedPattern
    from quadweir.terms import Variable

MANY: Final = 1_000
"""How many matches of each pattern make silence suspicious."""
_MOST_ROWS: Final = 20_000
_SAMPLES: Final = 3
_FIRST_LOOK: Final = 2


def warn(text: str) -> None:
    """Print a warning on standard error."""
    print(f"quadweir: warning: {text}", file=sys.stderr, flush=True)


@final
@dataclass(slots=True)
class _Side:
    """What was seen of one pattern."""

    asked: AskedPattern
    column: str | None
    count: int = 0
    samples: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        pattern = self.asked.pattern
        shown = ", ".join(self.samples)
        values = f", such as {shown}" if shown else ""
        text = f"{pattern.subject} {pattern.predicate} {pattern.object}"
        return f"{text} over <{self.asked.stream}>: {self.count:,} matches{values}"


@final
class SilenceWatch(JobControl):
    """Looks at some batches of a query until it answers; warns once if it should have.

    Args:
        plan: the plan of the query.
        shards: the number of shards of its first stage.
        say: takes the warning.

    Attributes:
        said: the warning, once there is one.
    """

    def __init__(
        self, plan: QueryPlan, shards: int, say: Callable[[str], None] | None = None
    ) -> None:
        self._say = say or warn
        self._bits = MatchBits.of(
            plan.matching.wanted, streams=len(stream_numbers(plan.matching)), shards=shards
        )
        self._key = _common_variable(plan)
        self._sides = [
            _Side(each, _column_of(plan, each, self._key)) for each in asked_patterns(plan)
        ]
        self._length_ms = max((_length(each.scope) for each in plan.query.windows), default=0)
        self._is_eager = plan.eager
        self._began: int | None = None
        self._batches = 0
        self._next_look = _FIRST_LOOK
        self._is_done = not self._sides
        self.said: str | None = None

    def begin(self, batch: int) -> BatchPlan:  # noqa: ARG002 - batches are counted as they end
        if self._is_done or self._batches < self._next_look:
            return BatchPlan()
        self._next_look *= 2
        return BatchPlan(match=self._look)

    def end(self, batch: int, facts: Mapping[str, Any]) -> None:  # noqa: ARG002 - as above
        if self._is_done:
            return
        self._batches += 1
        if facts.get("answers"):
            self._is_done = True
            return
        through = facts.get("through")
        if through is not None and abs(through) < abs(ALWAYS):
            self._began = through if self._began is None else self._began
        if not self._had_time(through) or any(each.count < MANY for each in self._sides):
            return
        self._is_done = True
        self.said = self._text()
        self._say(self.said)

    def _had_time(self, through: int | None) -> bool:
        """Whether a window could have been full and reported by now."""
        if self._is_eager:
            return True
        return (
            through is not None
            and self._began is not None
            and through - self._began > 2 * self._length_ms
        )

    def _look(self, frame: DataFrame) -> DataFrame:
        for batch in frame.limit(_MOST_ROWS).toArrow().combine_chunks().to_batches():
            self.see(widened(batch, self._bits))
        return frame

    def see(self, rows: pa.RecordBatch) -> None:
        """Count the matches of each pattern, and keep some values of the key."""
        for side in self._sides:
            passed = np.zeros(len(rows), dtype=bool)
            for test in side.asked.tests:
                name, bit = word_of(test)
                passed |= (rows.column(name).to_numpy() >> bit & 1).astype(bool)
            side.count += int(passed.sum())
            if side.column in rows.schema.names and len(side.samples) < _SAMPLES:
                found = rows.column(side.column).filter(pa.array(passed)).drop_null().unique()
                new = [each for each in found.to_pylist() if each not in side.samples]
                side.samples += new[: _SAMPLES - len(side.samples)]

    def _text(self) -> str:
        join = f"nothing joins on {self._key}" if self._key and len(self._sides) > 1 else None
        reasons = " or ".join([*([join] if join else []), "nothing passes FILTER and HAVING"])
        sides = "".join(f"\n  {side}" for side in self._sides)
        return (
            f"no answers after {self._batches} batches, though every pattern has matches: "
            f"{reasons}.{sides}"
        )


def _common_variable(plan: QueryPlan) -> Variable | None:
    """Return the variable that most patterns have: the key, if there is one."""
    if plan.first.key is not None:
        return plan.first.key
    counts = Counter(
        variable for match in plan.matches for variable in dict.fromkeys(match.variables)
    )
    return counts.most_common(1)[0][0] if counts else None


def _column_of(plan: QueryPlan, asked: AskedPattern, variable: Variable | None) -> str | None:
    """Return the column that has a variable's value in the rows that match a pattern."""
    for test in asked.tests:
        for leaf, parts in plan.wanted[test].leaves:
            variables: Sequence[Variable] = plan.matches[leaf].variables
            for each, part in zip(variables, parts, strict=False):
                if each == variable and isinstance(part, int) and plan.wanted[test].way is None:
                    return VALUES[part]
    return None


def _length(scope: object) -> int:
    match scope:
        case TimeScope(range_ms=length):
            return length
        case PastScope(from_ms=length):
            return length
        case _:
            return 0
