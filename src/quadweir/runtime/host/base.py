"""Where shards run: one interface, whatever the host.

A host gets jobs (`shard/base.py`) and outputs, and starts a run: `executors.py` for shards in Spark's
state store, `processes.py` for shards in worker processes on the driver's machine. A run over input
that has an end needs neither outputs nor a checkpoint: `bounded.py` returns a frame.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from quadweir.sinks.gate import Gate
from quadweir.sinks.start import start

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.shard.base import Job
    from quadweir.sinks.base import Sink


@final
@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches begin.

    Attributes:
        every: how often; default: as soon as the last one is done.
        available_now: take what is there now and end.
        name: the name of the Spark query.
    """

    every: timedelta | None = None
    available_now: bool = False
    name: str | None = None

    def start(
        self, frame: DataFrame, sink: Sink, checkpoint: Path, gate: Gate | None = None
    ) -> StreamingQuery:
        """Start a Spark query that writes a frame to a sink."""
        return start(
            frame,
            sink,
            checkpoint=checkpoint,
            every=self.every,
            available_now=self.available_now,
            name=self.name,
            gate=gate,
        )


@final
@dataclass(frozen=True, slots=True)
class AnswerOutput:
    """Where some of the output of the shards goes.

    Attributes:
        sink: the sink.
        choose: makes the rows for the sink from the output of the shards, one frame for each job.
        letters: whether these rows are dead letters rather than answers.
        variables: the variables of the answers, in the order of their columns; None if the answers
            are not solutions.
    """

    sink: Sink
    choose: Callable[[Sequence[DataFrame]], DataFrame]
    letters: bool = False
    variables: tuple[str, ...] | None = None


class Run:
    """Jobs that run, with the methods of Spark's StreamingQuery.

    Args:
        streaming: Spark's handle of the run.
        gate: lets the run be stopped between two batches.
    """

    def __init__(self, streaming: StreamingQuery, gate: Gate) -> None:
        self.streaming = streaming
        self._gate = gate

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's StreamingQuery has it
        """Whether it runs."""
        return bool(self.streaming.isActive)

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's report of the last batch, with the facts of the shards."""
        return self._with_facts(self.streaming.lastProgress)

    @property
    def recentProgress(self) -> list[Any]:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's reports of the last batches, with the facts of the shards."""
        return [self._with_facts(each) for each in self.streaming.recentProgress]

    def _with_facts(self, report: Any) -> Any:
        return report

    def finish_batch(self) -> None:
        """Wait until the present batch is committed, and let no other begin."""
        self._gate.close(self.streaming)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until the run ends, as Spark's StreamingQuery does."""
        return self.streaming.awaitTermination(timeout)

    def processAllAvailable(self) -> None:  # noqa: N802 - as Spark's StreamingQuery has it
        """Wait until everything that is there now is processed; for tests."""
        self.streaming.processAllAvailable()

    def exception(self) -> Any:
        """The error that ended it, or None."""
        return self.streaming.exception()

    def stop(self) -> None:
        """Stop the run; its checkpoint lets another run continue."""
        self.streaming.stop()


class Host(ABC):
    """Runs shards over streams that go on."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What checkpoints call the host."""

    @abstractmethod
    def partitions(self, spark: SparkSession) -> int:
        """Return over how many partitions of Spark state is spread; 0 if Spark has no part in it."""

    @abstractmethod
    def start(
        self,
        jobs: Sequence[Job],
        outputs: Sequence[AnswerOutput],
        *,
        checkpoint: Path,
        trigger: Trigger,
    ) -> Run:
        """Start a run.

        Args:
            jobs: what to run, in one pass over the streams.
            outputs: where answers and dead letters go.
            checkpoint: the folder of offsets and state.
            trigger: when batches begin.
        """
