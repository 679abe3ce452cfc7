"""The facts of shards in worker processes, added to Spark's own reports of batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from quadweir.runtime.host.messages import ShardReport
from quadweir.runtime.shard.base import StageSpec
from quadweir.runtime.shard.facts import STATE_FACTS, folded

# Spark remembers a hundred batches.
_REMEMBERED: Final = 256


@final
class BatchReports:
    """The facts of the last batches.

    Args:
        stages: the stages of each job.
        metrics: the names of their facts in Spark's progress.
    """

    def __init__(
        self, stages: Sequence[Sequence[StageSpec]], metrics: Sequence[Sequence[str]]
    ) -> None:
        self._named = [
            [*zip(names, own, strict=True)] for names, own in zip(metrics, stages, strict=True)
        ]
        self._noted: dict[int, dict[str, dict[str, Any]]] = {}

    def note(
        self,
        batch: int,
        reports: Sequence[Sequence[Sequence[ShardReport]]],
        kept: Sequence[Sequence[Sequence[Mapping[str, int]]]],
    ) -> list[Mapping[str, Any]]:
        """Note a batch; return the facts of the last stage of each job.

        Args:
            batch: its number.
            reports: those of the shards, by job and stage.
            kept: the facts of the journals, from each worker, by job and stage.
        """
        self._noted[batch] = {
            name: folded(spec.facts, (each.facts for each in reports[job][stage]))
            | folded(STATE_FACTS, (each[job][stage] for each in kept))
            for job, named in enumerate(self._named)
            for stage, (name, spec) in enumerate(named)
        }
        self._noted.pop(batch - _REMEMBERED, None)
        return [self._noted[batch][named[-1][0]] for named in self._named]

    def report(self, progress: Any) -> Any:
        """Return Spark's report of a batch with the facts of its shards."""
        if progress is None:
            return None
        return BatchReport(progress, self._noted.get(progress.batchId, {}))


@final
class BatchReport:
    """Spark's report of a batch, with the facts of shards among the observed metrics."""

    def __init__(self, progress: Any, facts: Mapping[str, Mapping[str, Any]]) -> None:
        self._progress = progress
        self._facts = facts

    @property
    def observedMetrics(self) -> dict[str, Any]:  # noqa: N802 - as Spark's report has it
        """What was observed."""
        return {**self._progress.observedMetrics, **self._facts}

    @property
    def json(self) -> str:
        """The report as JSON, as Spark's report has it."""
        found = json.loads(self._progress.json)
        known = found.get("observedMetrics", {})
        return json.dumps({**found, "observedMetrics": {**known, **self._facts}})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)
