"""The answers of a planned query as frames, and what a bounded run read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from pyspark.sql import Observation

from quadweir import rows
from quadweir.runtime.answers import present
from quadweir.runtime.host.bounded import answer_bounded
from quadweir.runtime.host.executors import Executors
from quadweir.runtime.match.counts import bounded_counts
from quadweir.runtime.match.feeds import Opened, open_feeds
from quadweir.runtime.match.rowtimes import event_times
from quadweir.runtime.match.sentences import unmatched_in_static
from quadweir.runtime.match.unmatched import unmatched_in_streams
from quadweir.runtime.planned import PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@final
class AnswerFrames:
    """Makes frames of the answers of a query.

    Args:
        planned: the query.
    """

    def __init__(self, planned: PlannedQuery) -> None:
        self._planned = planned
        self._observed: tuple[Observation, DataFrame] | None = None

    def answers(self, spool: Path | None) -> DataFrame:
        """Return the answers as users see them."""
        raw, _ = self.raw(spool)
        return present(raw, self._planned.plan.query, self._planned.spec.answer_form)

    def raw(self, spool: Path | None, *, run: str = "", tag: str = "") -> tuple[DataFrame, bool]:
        """Return the output of the shards, and whether it goes on.

        Args:
            spool: where TCP and MQTT keep what arrived until it is processed.
            run: identifies the frame among others of the same query.
            tag: makes the names of its metrics differ from those of others in the same run.
        """
        planned, spec = self._planned, self._planned.spec
        opened = self._open(spool)
        if opened is None:
            empty = planned.spark.createDataFrame([], rows.STATEMENT_SCHEMA)
            return answer_bounded(empty, spec, shards=1), False
        if not opened.is_streaming:
            # Without a name: queries over the answers of queries have several observations.
            observation = Observation()
            self._observed = observation, opened.frame
            counted = replace(opened, frame=opened.frame.observe(observation, *bounded_counts()))
            return answer_bounded(counted.statements, spec, shards=planned.shards), False
        timed = replace(spec, timing=opened.timing)
        job = timed.job(opened.counted(tag=tag).statements, shards=planned.shards, tag=tag)
        return Executors().frame(job, run=run), True

    def dead_letters(self) -> DataFrame:
        """Return the unusable records of bounded streams, as rows of `rows.DEAD_LETTER_SCHEMA`."""
        opened = self._open(None)
        if opened is None:
            return self._planned.spark.createDataFrame([], rows.DEAD_LETTER_SCHEMA)
        return opened.dead_letters

    def input_counts(self) -> dict[str, int | None]:
        """Return what `RegisteredQuery.input_counts` does."""
        if self._observed is None:
            return {"statements": 0, "dead_letters": 0, "earliest": None}
        observation, frame = self._observed
        observed: Any = observation
        if observed._jo.getRow().length():
            return dict(observation.get)
        # If nothing matches, Spark drops what it has begun, and what it has observed.
        return frame.agg(*bounded_counts()).collect()[0].asDict()

    def unmatched(self) -> list[str]:
        """Return what `RegisteredQuery.unmatched` does."""
        planned = self._planned
        found = unmatched_in_static(planned.now.prepared.unmatched)
        opened = self._open(None)
        if opened is not None and not opened.is_streaming:
            found += unmatched_in_streams(opened.statements, planned.plan)
        return found

    def _open(self, spool: Path | None) -> Opened | None:
        return open_feeds(event_times(self._planned.plan), self._planned.feeds, spool)
