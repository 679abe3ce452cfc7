"""When a run on a cluster should have more executors, or fewer; off unless the session asks for it.

The policy is a function of what batches report and of a clock. Spark's own dynamic allocation looks at
waiting tasks, and knows nothing of streams that fall behind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, final

from quadweir.errors import UsageError
from quadweir.runtime.metrics import QueryMeter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quadweir.runtime.host.base import Run

LEAST: Final = "spark.quadweir.executors.least"
MOST: Final = "spark.quadweir.executors.most"
PATIENCE: Final = "spark.quadweir.executors.patience"
COOL_DOWN: Final = "spark.quadweir.executors.coolDownSeconds"
_LOOK_SECONDS: Final = 1.0
_BUSY: Final = 0.9
_IDLE: Final = 0.4


@final
@dataclass(frozen=True, slots=True)
class Load:
    """What one batch says about the load.

    Attributes:
        batch: its number.
        lag_ms: how far the watermark is behind the clock; None if it is not known.
        backlog: what waits in the sources; None if they do not say.
        busy: the share of time that batches take; 1 means that the next one begins at once.
    """

    batch: int
    lag_ms: int | None
    backlog: int | None
    busy: float


@final
@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """How many executors a run may have, and how soon that changes.

    Attributes:
        least: the fewest.
        most: the most.
        patience: after how many batches in a row that say the same something changes.
        cool_down_ms: how long after a change nothing changes again: shards have to move first.
    """

    least: int
    most: int
    patience: int = 5
    cool_down_ms: int = 60_000

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most:
            raise UsageError(
                f"{self.least} to {self.most} executors are none",
                hint=f"Set {LEAST} to 1 or more, and {MOST} to as many or more.",
            )
        if self.patience < 1 or self.cool_down_ms < 0:
            raise UsageError(
                "the patience of scaling is a number of batches, and its cool-down a time",
                hint=f"Set {PATIENCE} to 1 or more, and {COOL_DOWN} to 0 or more.",
            )

    @staticmethod
    def of(settings: Callable[[str], str | None]) -> ScalingPolicy | None:
        """Return the policy that the settings of a session ask for; None if they ask for none.

        Raises:
            UsageError: they are not numbers, or do not go together.
        """
        found = {name: settings(name) for name in (LEAST, MOST, PATIENCE, COOL_DOWN)}
        if found[MOST] is None:
            return None
        try:
            numbers = {name: int(text) for name, text in found.items() if text is not None}
        except ValueError as error:
            raise UsageError(
                f"a setting of scaling is not a number: {error}",
                hint=f"Look at {MOST} and the like.",
            ) from None
        return ScalingPolicy(
            numbers.get(LEAST, 1),
            numbers[MOST],
            numbers.get(PATIENCE, 5),
            1000 * numbers.get(COOL_DOWN, 60),
        )


@final
@dataclass
class Scaler:
    """Decides after each batch how many executors there should be.

    More, by one, if batches follow each other without a pause and the lag or the backlog has grown with
    each of the last batches. Fewer, by one, if batches take little of the time, and neither grows.

    Attributes:
        policy: the limits.
    """

    policy: ScalingPolicy
    _loads: list[Load] = field(default_factory=list)
    _changed_ms: int | None = None

    def decide(self, load: Load, executors: int, now_ms: int) -> int | None:
        """Return how many executors there should be from now on; None if nothing changes.

        Args:
            load: what the last batch said; the same batch twice counts once.
            executors: how many there are.
            now_ms: the time.
        """
        if self._loads and load.batch <= self._loads[-1].batch:
            return None
        self._loads = [*self._loads, load][-self.policy.patience - 1 :]
        if self._changed_ms is not None and now_ms - self._changed_ms < self.policy.cool_down_ms:
            return None
        wanted = executors + self._direction()
        wanted = min(max(wanted, self.policy.least), self.policy.most)
        if wanted == executors:
            return None
        self._changed_ms = now_ms
        # What was seen with other executors says nothing about these.
        self._loads = self._loads[-1:]
        return wanted

    def _direction(self) -> int:
        if len(self._loads) <= self.policy.patience:
            return 0
        seen = self._loads[1:]
        is_growing = self._grows("lag_ms") or self._grows("backlog")
        if is_growing and all(each.busy >= _BUSY for each in seen):
            return 1
        if not is_growing and all(each.busy <= _IDLE for each in seen):
            return -1
        return 0

    def _grows(self, name: str) -> bool:
        numbers = [getattr(each, name) for each in self._loads]
        return all(
            before is not None and after is not None and after > before
            for before, after in pairwise(numbers)
        )


class ExecutorCount(Protocol):
    """What changes the number of executors of an application."""

    def count(self) -> int:
        """Return how many there are."""

    def set(self, count: int) -> bool:
        """Ask for so many; return whether the cluster manager takes such requests."""


@final
class SparkExecutors:
    """The executors of a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def count(self) -> int:
        context: Any = self._spark.sparkContext
        # Spark counts the driver, too.
        return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1

    def set(self, count: int) -> bool:
        context: Any = self._spark.sparkContext
        jvm, scala = context._jvm, context._jsc.sc()
        nowhere = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        if not scala.requestTotalExecutors(count, 0, nowhere):
            return False
        ids = scala.getExecutorIds()
        surplus = [ids.apply(place) for place in range(ids.size())][count:]
        if surplus:
            # The newest ones: they have held shards for the shortest time.
            scala.killExecutors(jvm.PythonUtils.toSeq(surplus))
        return True


def scale(
    run: Run,
    policy: ScalingPolicy,
    executors: ExecutorCount,
    *,
    now_ms: Callable[[], int],
    pause: Callable[[float], object],
) -> None:
    """Change the number of executors while a run goes on; returns when it ends."""
    scaler, meter = Scaler(policy), QueryMeter()
    while run.isActive:
        meter.add(run.recentProgress)
        found = meter.metrics()
        load = Load(found["batches"], found["lag_ms"], found["backlog"], found["busy"] or 0.0)
        if load.batch:
            wanted = scaler.decide(load, executors.count(), now_ms())
            if wanted is not None and not executors.set(wanted):
                return
        pause(_LOOK_SECONDS)


def begin_scaling(run: Run, spark: SparkSession, now_ms: Callable[[], int]) -> None:
    """Scale a run in a thread of its own, if the session asks for it."""
    policy = ScalingPolicy.of(lambda name: spark.conf.get(name, None))
    if policy is None:
        return
    ended = threading.Event()
    threading.Thread(
        target=scale,
        args=(run, policy, SparkExecutors(spark)),
        kwargs={"now_ms": now_ms, "pause": ended.wait},
        name="quadweir-scaling",
        daemon=True,
    ).start()
