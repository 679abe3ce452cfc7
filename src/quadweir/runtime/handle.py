"""The handle of something that runs: it has the methods of Spark's StreamingQuery."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from quadweir.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from quadweir.runtime.host.base import Run


class RunHandle(ABC):
    """What can be started, and then stopped and asked as Spark's StreamingQuery can.

    It can be started again after each end. What it has is kept until the next start, so that a run
    that has ended can still be asked.
    """

    _kind: ClassVar[str] = "query"
    _how_to_start: ClassVar[str] = "Call start(sink, checkpoint=...)."

    @property
    @abstractmethod
    def _last_run(self) -> Run | None:
        """The present run, or else the last one; None before the first start."""

    @abstractmethod
    def _release(self) -> None:
        """Let others have the checkpoint of a run that has ended; a second call changes nothing."""

    def _run_of(self) -> Run:
        """Return the present or last run.

        Raises:
            UsageError: there is none.
        """
        run = self._last_run
        if run is None:
            raise self._not_started()
        return run

    def _not_started(self) -> UsageError:
        return UsageError(f"the {self._kind} was not started", hint=self._how_to_start)

    def _refuse_second_run(self) -> None:
        """Get ready for a start.

        Raises:
            UsageError: it runs.
        """
        if self.isActive:
            raise UsageError(f"the {self._kind} runs already", hint="Stop it first.")

    @property
    def streaming(self) -> StreamingQuery:
        """Spark's own handle of the run.

        Raises:
            UsageError: it was not started.
        """
        return self._run_of().streaming

    @property
    def id(self) -> str:
        """The id that Spark gives it; it stays the same after a restart."""
        return str(self.streaming.id)

    @property
    def runId(self) -> str:  # noqa: N802 - as Spark's StreamingQuery has it
        """The id that Spark gives this run; it is another one after a restart."""
        return str(self.streaming.runId)

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's StreamingQuery has it
        """Whether it runs."""
        run = self._last_run
        if run is not None and run.isActive:
            return True
        self._release()
        return False

    @property
    def lastProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's report of the last batch."""
        return self._run_of().lastProgress

    @property
    def recentProgress(self) -> Any:  # noqa: N802 - as Spark's StreamingQuery has it
        """Spark's reports of the last batches."""
        return self._run_of().recentProgress

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Wait until it ends, as Spark's StreamingQuery does."""
        ended = self._run_of().awaitTermination(timeout)
        if ended is not False:
            self._release()
        return ended

    def processAllAvailable(self) -> None:  # noqa: N802 - as Spark's StreamingQuery has it
        """Wait until everything that is there now is answered; for tests."""
        self._run_of().processAllAvailable()

    def exception(self) -> Any:
        """The error that ended it, or None."""
        return self._run_of().exception()

    def stop(self) -> None:
        """Stop it; with its checkpoint, it can continue later."""
        run = self._last_run
        if run is None:
            return
        try:
            run.stop()
        finally:
            self._release()
