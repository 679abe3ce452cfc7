"""What shards beside the driver tell of each batch, added to Spark's own reports of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

from quadweir.runtime.host.executors import FIRST_METRICS, METRICS
from quadweir.runtime.host.worker import Told

# Spark remembers a hundred batches.
_REMEMBERED: Final = 256
_SUMMED: Final = ("late", "held", "replayed")
_HIGHEST: Final = ("kernel_ms",)
_STATE_SUMMED: Final = ("state_rows", "state_bytes")
_STATE_HIGHEST: Final = ("state_ms",)


@final
class BatchReports:
    """What was told of the last batches."""

    def __init__(self) -> None:
        self._told: dict[int, dict[str, dict[str, int | None]]] = {}

    def note(
        self,
        batch: int,
        told: Sequence[Sequence[Told]],
        kept: Sequence[Sequence[Mapping[str, int]]],
    ) -> None:
        """Note a batch.

        Args:
            batch: its number.
            told: what each shard of each stage told.
            kept: what each process told of the state of each stage.
        """
        names = (FIRST_METRICS, METRICS)[-len(told) :]
        found = {
            name: _summed([each.facts for each in stage], _SUMMED, _HIGHEST)
            | _summed([each[place] for each in kept], _STATE_SUMMED, _STATE_HIGHEST)
            for place, (name, stage) in enumerate(zip(names, told, strict=True))
        }
        for name, stage in zip(names, told, strict=True):
            found[name]["through"] = min(each.facts["through"] for each in stage)
        found[METRICS]["answers"] = sum(each.answers for each in told[-1])
        self._told[batch] = found
        self._told.pop(batch - _REMEMBERED, None)

    def report(self, progress: Any) -> Any:
        """Give Spark's report of a batch with what the shards told of it."""
        if progress is None:
            return None
        return BatchReport(progress, self._told.get(progress.batchId, {}))


def _summed(
    told: Sequence[Mapping[str, int]], summed: Iterable[str], highest: Iterable[str]
) -> dict[str, int | None]:
    found: dict[str, int | None] = {name: sum(each[name] for each in told) for name in summed}
    return found | {name: max(each[name] for each in told) for name in highest}


@final
class BatchReport:
    """Spark's report of a batch, and what shards told of it among what was observed."""

    def __init__(self, progress: Any, told: Mapping[str, Mapping[str, int | None]]) -> None:
        self._progress = progress
        self._told = told

    @property
    def observedMetrics(self) -> dict[str, Any]:  # noqa: N802 - as Spark's report has it
        """What was observed."""
        return {**self._progress.observedMetrics, **self._told}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._progress, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)
