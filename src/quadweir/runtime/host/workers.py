"""All shards of a query in processes beside the driver: where each is, and how they take a batch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from quadweir.errors import EnvironmentProblem
from quadweir.runtime.host import pool as shardpool
from quadweir.runtime.host.answerfiles import answer_file
from quadweir.runtime.host.pool import ProcessEndedError, ShardProcess
from quadweir.runtime.host.worker import Arrived, Place, Told, Work
from quadweir.runtime.wire.pack import Packer

if TYPE_CHECKING:
    from quadweir.runtime.host.bounded import ShardSpec
    from quadweir.runtime.shard.hosted import Timing

_TRIES: Final = 3
T = TypeVar("T")


@final
class SteppedShards:
    """The shards of one run, in as many processes as there are cores at most.

    Args:
        spec: the query with its plan and static data.
        timing: delays and idle times of the streams.
        shards: how many shards to use, if the plan can be sharded.
        folder: where their state is kept.
        scratch: where they leave answers.
    """

    def __init__(
        self, spec: ShardSpec, timing: Timing, *, shards: int, folder: Path, scratch: Path
    ) -> None:
        counts = spec.plan.shards(shards)
        self.count = counts[0]
        self._stages = spec.stages([tuple(range(count)) for count in counts])
        self.packer = Packer.of(spec.plan, self._stages[0].shards)
        self._timing = timing
        self._folder, self._scratch = folder, scratch
        self._most = min(max(counts), _cores())
        self._processes: list[ShardProcess] = []
        self._is_open = False

    @property
    def schema(self) -> Any:
        """The columns of what they give."""
        return self._stages[-1].writer.schema

    @property
    def files(self) -> list[Path]:
        """Where answers are after a step."""
        count = min(self._most, len(self._stages[-1].shards))
        return [answer_file(self._scratch, number) for number in range(count)]

    def start(self) -> None:
        """Have processes load what they need, without waiting for it."""
        if not self._processes:
            self._processes = shardpool.take(self._most)

    def open(self, batch: int) -> bool:
        """Have them hold the shards as they were before a batch; tells whether they did not before.

        Raises:
            StateError: state is held by another run, or is not whole.
            EnvironmentProblem: processes end time and again.
        """
        return self._tried(lambda: self._open(batch))

    def _open(self, batch: int) -> bool:
        if self._is_open:
            return False
        self.start()
        self._ask_all([("open", self._work(number), batch) for number in range(self._most)])
        self._is_open = True
        return True

    def step(
        self, batch: int, now: int, arrived: Arrived, *, go_on: Callable[[], None]
    ) -> list[list[Told]]:
        """Have all shards of all stages take a batch; gives what each told.

        A process that ends is replaced, and all begin the batch anew with what is on disk.

        Args:
            batch: its number.
            now: when it was read.
            arrived: what matched.
            go_on: raises if nobody waits for it any longer.

        Raises:
            EnvironmentProblem: processes end time and again.
        """
        return self._tried(lambda: self._step(batch, now, arrived), go_on)

    def _step(self, batch: int, now: int, arrived: Arrived) -> list[list[Told]]:
        self._open(batch)
        told = [_flat(self._ask_all([("first", batch, now, arrived)] * self._most))]
        for stage in self._stages[1:]:
            sent: list[list[bytes]] = [[] for _ in stage.shards]
            for key, blob in (pair for each in told[-1] for pair in each.sent):
                sent[key].append(blob)
            parts = [sent[number :: self._most] for number in range(self._most)]
            requests = [("then", stage.stage, batch, each) for each in parts]
            told.append(_flat(self._ask_all(requests)))
        return told

    def keep_while(
        self, do: Callable[[], None], again: Callable[[], object], batch: int
    ) -> list[list[dict[str, int]]]:
        """Have shards write down what a batch brought while something else is done.

        Args:
            do: what is done meanwhile.
            again: steps the batch once more, if a process ends before it has written it down.
            batch: its number.

        Returns:
            What each process told of its state.
        """
        is_asked = False
        with contextlib.suppress(ProcessEndedError):
            self._ask([("keep", batch)] * self._most)
            is_asked = True
        try:
            do()
        except BaseException:
            # What they say was not heard: none of them is asked again.
            self.end()
            raise
        if is_asked:
            with contextlib.suppress(ProcessEndedError):
                return self._hear()
        self.end()
        return self._tried(lambda: self._kept(again, batch))

    def _kept(self, again: Callable[[], object], batch: int) -> list[list[dict[str, int]]]:
        again()
        return self._ask_all([("keep", batch)] * self._most)

    def _tried(self, do: Callable[[], T], go_on: Callable[[], None] = lambda: None) -> T:
        """Do something, with other processes if those that there are have ended."""
        reason = ""
        for _ in range(_TRIES):
            try:
                return do()
            except ProcessEndedError as error:
                reason = str(error)
                # None of them is asked again: some have not been heard yet.
                self.end()
                go_on()
        raise EnvironmentProblem(
            f"a process that holds shards was ended {_TRIES} times in one batch",
            detail=reason,
            hint="With -9, most likely there is not enough memory: use shorter windows, or fewer "
            "shards. Otherwise the process has said why on standard error.",
        )

    def pack(self, arrived: Arrived) -> int:
        """Only have them pack what is for each shard; gives how many bytes that makes."""
        return sum(self._ask_all([("pack", 0, arrived)] * self._most))

    def end(self) -> None:
        """End the processes, whatever they do."""
        for process in self._processes:
            process.end()
        self._processes, self._is_open = [], False

    def let_go(self) -> None:
        """Have them let go of the shards; others may use the processes."""
        processes, self._processes, self._is_open = self._processes, [], False
        shardpool.give_back(processes)

    def kill(self) -> None:
        """End the processes while another thread waits for them, which then finds them gone."""
        for process in self._processes:
            process.kill()

    def _work(self, number: int) -> Work:
        """Say what one of the processes is to hold."""
        places = [
            tuple(
                Place(key, spec, str(self._folder / f"{spec.stage}-{key}"))
                for key in spec.shards[number :: self._most]
            )
            for spec in self._stages
        ]
        answers = str(answer_file(self._scratch, number))
        return Work(tuple(places), self.packer, self._timing, answers)

    def _ask_all(self, requests: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Ask all processes at once, and wait for all of them."""
        self._ask(requests)
        return self._hear()

    def _ask(self, requests: Sequence[tuple[Any, ...]]) -> None:
        for process, request in zip(self._processes, requests, strict=True):
            process.ask(*request)

    def _hear(self) -> list[Any]:
        found, failed = [], None
        for process in self._processes:
            # Every one is heard: what is not would be taken for the answer to the next request.
            try:
                found.append(process.answer())
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return found


def _flat(told: Sequence[Sequence[Told]]) -> list[Told]:
    return [each for process in told for each in process]


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
