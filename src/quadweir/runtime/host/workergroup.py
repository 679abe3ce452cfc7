"""All shards of a run in worker processes: which worker has which, and how they take a batch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from quadweir.errors import EnvironmentProblem
from quadweir.runtime.host import pool
from quadweir.runtime.host.answerfiles import answer_file
from quadweir.runtime.host.messages import (
    Arrived,
    Forward,
    JobChange,
    Keep,
    Open,
    Pack,
    Request,
    ShardPlace,
    ShardReport,
    Take,
    WorkerTask,
)
from quadweir.runtime.host.pool import ProcessEndedError, WorkerProcess
from quadweir.runtime.shard.folderjournal import journal_name

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from quadweir.runtime.shard.base import Job

_TRIES: Final = 3
T = TypeVar("T")


@final
class WorkerGroup:
    """The workers of one run: at most as many as there are cores.

    Args:
        jobs: what to run.
        folder: where the journals of the shards are.
        scratch: where workers write answers.
    """

    def __init__(self, jobs: Sequence[Job], *, folder: Path, scratch: Path) -> None:
        self.stages = [job.stages([tuple(range(count)) for count in job.counts]) for job in jobs]
        self._packers = [
            job.packer(stages[0].shards, "") for job, stages in zip(jobs, self.stages, strict=True)
        ]
        self._folder, self._scratch = folder, scratch
        self._most = worker_count(jobs)
        self._processes: list[WorkerProcess] = []
        self._is_open = False

    def output(self, job: int) -> StructType:
        """Return the columns of the answer files of a job."""
        return self.stages[job][-1].output

    def files(self, job: int) -> list[Path]:
        """Return where the answers of a job are after a step."""
        return answer_paths(self._scratch, job, self._most, len(self.stages[job][-1].shards))

    def start(self) -> None:
        """Start loading the kernel in all workers, without waiting for it."""
        if not self._processes:
            self._processes = pool.take(self._most)

    def open(self, batch: int) -> bool:
        """Let workers hold the shards as they were before a batch; return whether they did not.

        Raises:
            StateError: another run holds a journal, or a journal is not complete.
            EnvironmentProblem: workers end again and again.
        """
        return self._retried(lambda: self._open(batch))

    def _open(self, batch: int) -> bool:
        if self._is_open:
            return False
        self.start()
        self._ask_all([Open(self._work(number), batch) for number in range(self._most)])
        self._is_open = True
        return True

    def step(
        self,
        batch: int,
        now: int,
        arrived: Arrived,
        changes: Sequence[JobChange],
        *,
        go_on: Callable[[], None],
    ) -> list[list[list[ShardReport]]]:
        """Let all shards take a batch; return their reports, by job and stage.

        A worker that ends is replaced, and all shards begin the batch again from their journals.

        Args:
            batch: its number.
            now: when it began.
            arrived: its rows.
            changes: for each job, what is different from this batch on.
            go_on: returns only if the run still goes on.

        Raises:
            EnvironmentProblem: workers end again and again.
        """
        return self._retried(lambda: self._step(batch, now, arrived, changes), go_on)

    def _step(
        self, batch: int, now: int, arrived: Arrived, changes: Sequence[JobChange]
    ) -> list[list[list[ShardReport]]]:
        self._open(batch)
        taken = self._ask_all([Take(batch, now, arrived, tuple(changes))] * self._most)
        for job, different in enumerate(changes):
            # Workers that are replaced later begin with this.
            self._packers[job] = different.packer or self._packers[job]
        return [
            self._forward(job, batch, _flat(each[job] for each in taken))
            for job in range(len(self.stages))
        ]

    def _forward(self, job: int, batch: int, first: list[ShardReport]) -> list[list[ShardReport]]:
        """Let the later stages of a job take what the first one sent; return all reports."""
        reports = [first]
        for stage in self.stages[job][1:]:
            blobs: list[list[bytes]] = [[] for _ in stage.shards]
            for key, blob in (pair for each in reports[-1] for pair in each.sent):
                blobs[key].append(blob)
            requests = [
                Forward(job, stage.stage, batch, blobs[number :: self._most])
                for number in range(self._most)
            ]
            reports.append(_flat(self._ask_all(requests)))
        return reports

    def keep_while(
        self, do: Callable[[], None], again: Callable[[], object], batch: int
    ) -> list[list[list[dict[str, int]]]]:
        """Let workers write their journals while something else is done.

        Args:
            do: what is done meanwhile.
            again: steps the batch again, if a worker ends before its journals are written.
            batch: the number of the batch.

        Returns:
            The facts of the journals, from each worker, by job and stage.
        """
        is_asked = False
        with contextlib.suppress(ProcessEndedError):
            self._ask([Keep(batch)] * self._most)
            is_asked = True
        try:
            do()
        except BaseException:
            # Replies are still waiting: no worker can be asked again.
            self.end()
            raise
        if is_asked:
            with contextlib.suppress(ProcessEndedError):
                return self._answers()
        self.end()
        return self._retried(lambda: self._kept(again, batch))

    def _kept(self, again: Callable[[], object], batch: int) -> list[list[list[dict[str, int]]]]:
        again()
        return self._ask_all([Keep(batch)] * self._most)

    def _retried(self, do: Callable[[], T], go_on: Callable[[], None] = lambda: None) -> T:
        """Do something, with new workers if the present ones have ended."""
        reason = ""
        for _ in range(_TRIES):
            try:
                return do()
            except ProcessEndedError as error:
                reason = str(error)
                # Replies of the others may still be waiting: no worker can be asked again.
                self.end()
                go_on()
        raise EnvironmentProblem(
            f"a worker process was ended {_TRIES} times in one batch",
            detail=reason,
            hint="With -9, there is most likely not enough memory: use shorter windows, or fewer "
            "shards. Otherwise the process has printed the reason on standard error.",
        )

    def pack(self, arrived: Arrived) -> int:
        """Only pack rows for the shards; return the number of bytes."""
        return sum(self._ask_all([Pack(arrived)] * self._most))

    def end(self) -> None:
        """End the workers, whatever they do."""
        for process in self._processes:
            process.end()
        self._processes, self._is_open = [], False

    def release(self) -> None:
        """Let workers forget the shards; other runs may use them."""
        processes, self._processes, self._is_open = self._processes, [], False
        pool.give_back(processes)

    def kill(self) -> None:
        """End the workers while another thread waits for them, which gets `ProcessEndedError`."""
        for process in self._processes:
            process.kill()

    def _work(self, number: int) -> tuple[WorkerTask, ...]:
        """Return what one of the workers is to hold."""
        return tuple(
            WorkerTask(
                job,
                tuple(
                    tuple(
                        ShardPlace(key, spec, str(self._journal(job, spec.stage, key)))
                        for key in spec.shards[number :: self._most]
                    )
                    for spec in stages
                ),
                packer,
                str(answer_file(self._scratch, job, number)),
            )
            for job, (stages, packer) in enumerate(zip(self.stages, self._packers, strict=True))
        )

    def _journal(self, job: int, stage: int, key: int) -> Path:
        """Return the folder of a journal."""
        return self._folder / journal_name(job, stage, key)

    def _ask_all(self, requests: Sequence[Request]) -> list[Any]:
        """Ask all workers at once, and wait for all of them."""
        self._ask(requests)
        return self._answers()

    def _ask(self, requests: Sequence[Request]) -> None:
        for process, request in zip(self._processes, requests, strict=True):
            process.ask(request)

    def _answers(self) -> list[Any]:
        found, failed = [], None
        for process in self._processes:
            # Read every reply: one that is left would be taken for the reply to the next request.
            try:
                found.append(process.answer())
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return found


def _flat(reports: Iterable[Sequence[ShardReport]]) -> list[ShardReport]:
    return [each for worker in reports for each in worker]


def worker_count(jobs: Sequence[Job]) -> int:
    """Return how many workers run some jobs."""
    return min(max(count for job in jobs for count in job.counts), _cores())


def answer_paths(scratch: Path, job: int, workers: int, shards: int) -> list[Path]:
    """Return the answer files of a job whose last stage has so many shards."""
    return [answer_file(scratch, job, number) for number in range(min(workers, shards))]


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
