"""The metrics of a running query: Spark's reports of its batches, added up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, final

from quadweir.runtime.match.feeds import INPUT_METRICS
from quadweir.runtime.shard.spec import ANSWER_METRICS, STAGE_METRICS
from quadweir.runtime.spark.progress import is_batch

# As in the kernel: beyond these, nothing is known yet, or everything.
_EDGE: Final = 2**59
_RATE_SECONDS: Final = 10.0
# What Spark's sources call it: records of the partition that is furthest behind, and files.
_BACKLOGS: Final = frozenset({"maxOffsetsBehindLatest", "numFilesOutstanding"})


@final
class QueryMeter:
    """Adds up Spark's reports of batches, each once.

    Args:
        clock: seconds that only grow; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: tuple[str, int] = ("", -1)
        self._history: list[tuple[float, int, int]] = []
        self._found: dict[str, Any] = {
            "batches": 0, "statements": 0, "dead_letters": 0, "ahead": 0, "answers": 0, "late": 0,
            "through": None, "held": None, "state_rows": None, "state_bytes": None,
            "batch_ms": None, "kernel_ms": None, "state_ms": None, "spark_ms": None,
            "backlog": None, "busy": None,
        }  # fmt: skip
        self._lock = threading.Lock()
        # When the last batch began, and how long it took, in milliseconds.
        self._last: tuple[float, int] | None = None

    def add(self, reports: Iterable[Any]) -> None:
        """Add reports, in their order; reports that were added before change nothing."""
        with self._lock:
            for report in reports:
                run, batch = str(report.runId), int(report.batchId)
                if not is_batch(report) or (run == self._seen[0] and batch <= self._seen[1]):
                    continue
                self._seen = (run, batch)
                self._add(report)
            known = self._found["statements"], self._found["answers"]
            if not self._history or self._history[-1][1:] != known:
                self._history.append((self._clock(), *known))

    def _add(self, report: Any) -> None:
        found, observed = self._found, report.observedMetrics
        found["batches"] += 1
        read = observed.get(INPUT_METRICS)
        if read is None:
            found["statements"] += report.numInputRows
        else:
            for key in ("statements", "dead_letters", "ahead"):
                found[key] += read[key] or 0
        last = observed.get(ANSWER_METRICS)
        before = [each for name, each in observed.items() if name.startswith(STAGE_METRICS)]
        stages = before if last is None else [*before, last]
        found["late"] += sum(each["late"] or 0 for each in stages)
        if last is not None:
            found["answers"] += last["answers"] or 0
        if last is not None and last["through"] is not None:
            through = last["through"]
            found["through"] = through if abs(through) < _EDGE else None
            found["held"] = sum(each["held"] or 0 for each in stages)
            found["kernel_ms"] = sum(each["kernel_ms"] or 0 for each in stages)
        found["batch_ms"] = report.batchDuration
        found["backlog"] = backlog_of(report)
        at = datetime.fromisoformat(str(report.timestamp)).timestamp() * 1000
        if self._last is not None:
            # The share of the time from the beginning of the last batch to that of this one.
            earlier, took = self._last
            found["busy"] = took / max(at - earlier, took, 1.0)
        self._last = at, int(report.batchDuration)
        operators = report.stateOperators
        if last is not None and "state_ms" in last:
            # Local workers keep their state themselves.
            for key in ("state_rows", "state_bytes", "state_ms"):
                found[key] = sum(each[key] for each in stages)
        elif operators:
            found["state_rows"] = sum(each.numRowsTotal for each in operators)
            found["state_bytes"] = sum(each.memoryUsedBytes for each in operators)
            # Spark adds the times of tasks that run at the same time.
            found["state_ms"] = sum(
                round(each.commitTimeMs / max(1, each.numShufflePartitions)) for each in operators
            )
        known = (found["kernel_ms"] or 0) + (found["state_ms"] or 0)
        found["spark_ms"] = max(0, found["batch_ms"] - known)

    def metrics(self) -> dict[str, Any]:
        """Return totals, rates, and the times of the last batch."""
        with self._lock:
            found = dict(self._found)
            found["input_rate"], found["answer_rate"] = self._rates()
        through = found["through"]
        found["lag_ms"] = None if through is None else round(time.time() * 1000) - through
        return found

    def _rates(self) -> tuple[float, float]:
        now = self._clock()
        while len(self._history) > 2 and self._history[1][0] < now - _RATE_SECONDS:
            del self._history[0]
        if len(self._history) < 2:
            return 0.0, 0.0
        began, *first = self._history[0]
        seconds = max(now - began, 1e-3)
        last = self._history[-1][1:]
        return (last[0] - first[0]) / seconds, (last[1] - first[1]) / seconds


def backlog_of(report: Any) -> int | None:
    """Return how much waits in the sources of a batch; None if none of them says it.

    It counts the records of the partition of a topic that is furthest behind, and the files of a folder.
    """
    found = [
        int(value)
        for source in report.sources
        for name, value in (source.metrics or {}).items()
        if name in _BACKLOGS
    ]
    return sum(found) if found else None
