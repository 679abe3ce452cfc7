"""On which executors the shards of a run are, how often they moved, and how long a loss was felt.

Spark keeps a record of its last jobs and of all executors, which this module reads: nothing is added
to a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, final

from py4j.protocol import Py4JError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DRIVER: Final = "driver"
_MOST_TASKS: Final = 10_000
# In the names of Spark's operator and of what it computes.
_STATE: Final = ("TransformWithState", "StateStoreRDD")


@final
@dataclass(frozen=True, slots=True)
class ExecutorNote:
    """What Spark says about an executor.

    Attributes:
        name: its id.
        added_ms: when it came.
        removed_ms: when it was lost or released; None while it is there.
    """

    name: str
    added_ms: int
    removed_ms: int | None = None


@final
@dataclass(frozen=True, slots=True)
class BatchPlaces:
    """Where the shards of one batch were.

    Attributes:
        job: the number of Spark's job.
        ended_ms: when it ended.
        executors: the executor of each shard.
    """

    job: int
    ended_ms: int
    executors: Mapping[int, str]


@final
@dataclass
class Placement:
    """Where the shards of a run are, from what Spark said about its batches.

    Attributes:
        executors: the executor of each shard in the last batch.
        present: the executors that are there.
        moves: how often a shard was on another executor than in the batch before.
        lost: how many executors with shards were lost.
        recovery_ms: how long after the last such loss the first batch without it was done; None if there
            was none.
    """

    executors: dict[int, str] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    moves: int = 0
    lost: int = 0
    recovery_ms: int | None = None
    job: int = -1
    _felt: dict[str, int] = field(default_factory=dict)
    _known: set[str] = field(default_factory=set)

    def note(self, executors: Iterable[ExecutorNote], batches: Iterable[BatchPlaces]) -> None:
        """Take what Spark says now; batches that were taken before change nothing."""
        known = list(executors)
        self.present = tuple(each.name for each in known if each.removed_ms is None)
        for batch in sorted(batches, key=lambda each: each.job):
            if batch.job <= self.job:
                continue
            self.job = batch.job
            gone = {each.name: each.removed_ms for each in known if each.removed_ms is not None}
            held = {*self.executors.values()}
            for name, removed in gone.items():
                if name in held and name not in self._known and removed <= batch.ended_ms:
                    self._known.add(name)
                    self.lost += 1
                    self.recovery_ms = batch.ended_ms - removed
            self.moves += sum(
                self.executors.get(shard, name) != name for shard, name in batch.executors.items()
            )
            self.executors = dict(batch.executors)

    def metrics(self) -> dict[str, Any]:
        """Return it for `RegisteredQuery.metrics`."""
        counts = Counter(self.executors.values())
        return {
            "executors": len(self.present),
            "executor_shards": {each: counts.get(each, 0) for each in self.present},
            "shard_moves": self.moves,
            "executors_lost": self.lost,
            "recovery_ms": self.recovery_ms,
        }


@final
class PlacementWatch:
    """Reads Spark's record of a run; call `look` at least every ten batches for an exact count of moves.

    Args:
        spark: the session.
        run: the id that Spark gives the run.

    Attributes:
        run: that id.
        placement: what was seen so far.
    """

    def __init__(self, spark: SparkSession, run: str) -> None:
        self._spark = spark
        self.run = run
        self.placement = Placement()

    def look(self) -> Placement:
        """Return where the shards are now."""
        context: Any = self._spark.sparkContext
        store = context._jsc.sc().statusStore()
        # Spark forgets old jobs and stages, even while they are read.
        with suppress(Py4JError):
            self.placement.note(_executors(store), list(self._batches(context, store)))
        return self.placement

    def _batches(self, context: Any, store: Any) -> Iterator[BatchPlaces]:
        tracker = context.statusTracker()
        for job in sorted(tracker.getJobIdsForGroup(self.run)):
            if job <= self.placement.job:
                continue
            data = store.job(job)
            if data.completionTime().isEmpty() or str(data.status()) != "SUCCEEDED":
                continue
            found = _places(store, [int(each) for each in _listed(data.stageIds())])
            if found:
                yield BatchPlaces(job, int(data.completionTime().get().getTime()), found)


def _executors(store: Any) -> list[ExecutorNote]:
    found = []
    for each in _listed(store.executorList(False)):
        removed = each.removeTime()
        if each.id() != _DRIVER:
            gone = None if removed.isEmpty() else int(removed.get().getTime())
            found.append(ExecutorNote(str(each.id()), int(each.addTime().getTime()), gone))
    return found


def _places(store: Any, stages: list[int]) -> dict[int, str]:
    """Return the executor of each shard in the last stage of a job that had shards."""
    for stage in sorted(stages, reverse=True):
        data = store.lastStageAttempt(stage)
        if not _has_state(store.operationGraphForStage(stage)):
            continue
        tasks = store.taskList(stage, data.attemptId(), _MOST_TASKS)
        return {
            int(each.index()): str(each.executorId())
            for each in _listed(tasks)
            if str(each.status()) == "SUCCESS"
        }
    return {}


def _has_state(graph: Any) -> bool:
    """Return whether a stage uses a state store."""

    def below(cluster: Any) -> Iterator[str]:
        yield str(cluster.name())
        yield from (str(each.name()) for each in _listed(cluster.childNodes()))
        for each in _listed(cluster.childClusters()):
            yield from below(each)

    return any(state in name for name in below(graph.rootCluster()) for state in _STATE)


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]
