"""A query that is killed again and again, also while it starts, gives every answer once (P2).

Two kills for each host by default, and workers stopped for two seconds; `QUADWEIR_FAULTS=long` makes it
five rounds of ten kills, and thirty seconds.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pytest

from brokers import REPO, until
from killed_query import QUERY, make_feed
from quadweir.testing import diff_answers
from query_hosts import run_bounded
from spark_queries import LAST, write_batches, written

LONG = os.environ.get("QUADWEIR_FAULTS") == "long"
ROUNDS, KILLS = (5, 10) if LONG else (1, 2)
# Seconds.
STOPPED = 30 if LONG else 2
# A long run may have to share the machine.
TO_THE_END = 3600 if LONG else 600
# So many files, and elements in each. A run reads no more than `AT_ONCE` before it is killed.
BATCHES, IN_BATCH, AT_ONCE = 8 * KILLS + 8, 3, 8

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TO_THE_END + 240 * KILLS)]


def processes_of(session: int) -> dict[int, bytes]:
    """The command lines of all processes of a session and of their children, by their numbers.

    Processes that hold shards have sessions of their own.
    """
    known: dict[int, tuple[int, int, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, own, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            if state != "Z":
                words = (folder / "cmdline").read_bytes()
                known[int(folder.name)] = int(parent), int(own), words
        except OSError:
            continue
    mine = {each for each, (_, own, _) in known.items() if own == session}
    mine |= {each for each, (parent, _, _) in known.items() if parent in {*mine, session}}
    return {each: known[each][2] for each in mine}


def are_gone(processes: Iterable[int]) -> bool:
    return not any(is_alive(each) for each in processes)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def numbers_in(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.glob("[0-9]*")] if folder.is_dir() else []


# What is waited for before a kill, by the folder of the run and its session. Each is a function of how
# many batches to let pass.
Moment = Callable[[Path, int, int], bool]
MOMENTS: dict[str, Moment] = {
    "the start": lambda _folder, _session, _batch: True,
    "Java's start": lambda _folder, session, _batch: any(
        b"java" in words.split(b"\0")[0] for words in processes_of(session).values()
    ),
    "the query's start": lambda folder, session, _batch: (
        (folder / "checkpoint" / "quadweir.json").exists() and len(processes_of(session)) > 2
    ),
    "the begin of a batch": lambda folder, _session, batch: (
        max(numbers_in(folder / "checkpoint" / "offsets"), default=-1) >= batch
    ),
    "the end of a batch": lambda folder, _session, batch: (
        max(numbers_in(folder / "checkpoint" / "commits"), default=-1) >= batch
    ),
}


def chosen(victims: str, session: int) -> list[int]:
    """The processes to kill: all, the driver, its Java, or those that hold shards or run tasks."""
    known = processes_of(session)
    words = {
        "Java": (b"java",),
        "workers": (b"pyspark.daemon", b"quadweir.runtime.host.worker"),
    }.get(victims)
    if victims == "driver":
        return [session]
    if words is None:
        return list(known)
    return [each for each, line in known.items() if any(word in line for word in words)]


def started(folder: Path, shards_in: str) -> subprocess.Popen[bytes]:
    """Start a run as the leader of a session, so that all of its processes are known."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPO / "tests" / "killed_query.py", folder, shards_in],
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )


def kill(victims: Iterable[int]) -> None:
    for each in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@pytest.mark.parametrize("number", range(1, ROUNDS + 1), ids=lambda each: f"round{each}")
@pytest.mark.parametrize("shards_in", ["driver", "executors"])
def test_a_query_that_is_killed_at_random_points_gives_every_answer_once(
    tmp_path: Path, shards_in: str, number: int
) -> None:
    feed = make_feed(BATCHES * IN_BATCH)
    expected = run_bounded(QUERY, feed, tasks=1, shards=2)
    dice = random.Random(f"kills {shards_in} {number}")
    reported: list[str] = []
    given = 0

    def give(until_file: int) -> None:
        """Write input files up to one; what a run finds at its start is all that it reads."""
        nonlocal given
        part = feed[given * IN_BATCH : until_file * IN_BATCH]
        given = write_batches(tmp_path / "in", part, IN_BATCH, first=given + 1) - 1

    def log() -> str:
        return (tmp_path / "log").read_text()[-5000:]

    while len(reported) < KILLS:
        done = max(numbers_in(tmp_path / "checkpoint" / "commits"), default=-1)
        give(min(BATCHES, done + AT_ONCE))
        # In the suite, the first of the two kills is in the midst of batches.
        names = list(MOMENTS) if KILLS > 2 or reported else list(MOMENTS)[3:]
        moment, batch = dice.choice(names), done + dice.randrange(1, 4)
        victims = dice.choice(["all", "driver", "Java", "workers"])
        known: dict[int, bytes] = {}
        run = started(tmp_path, shards_in)
        try:
            reached = partial(MOMENTS[moment], tmp_path, run.pid, batch)
            until(lambda: run.poll() is not None or reached(), moment)  # noqa: B023
            time.sleep(dice.random() / 2)
            if run.poll() is not None:
                # It was quicker than the kill, and that is the only way for it to end.
                assert run.returncode == 0, log()
                continue
            known = processes_of(run.pid)
            kill(chosen(victims, run.pid))
            reported.append(f"{victims} at {moment} {batch}")
            if victims == "workers":
                # Others take their place, or the run ends; either way all of it is killed then.
                ended = partial(MOMENTS["the end of a batch"], tmp_path, run.pid, batch)
                until(lambda: run.poll() is not None or ended(), "what follows")  # noqa: B023
            elif victims != "all":
                # What it leaves ends by itself.
                until(lambda: are_gone(known), "the end of what is left")  # noqa: B023
        finally:
            kill(processes_of(run.pid))
            run.wait()
        until(lambda: are_gone(known), "the end of all")  # noqa: B023
    give(BATCHES)
    write_batches(tmp_path / "in", [LAST], 1, first=given + 1)
    run = started(tmp_path, shards_in)
    try:
        assert run.wait(TO_THE_END) == 0, log()
    finally:
        kill(processes_of(run.pid))
        run.wait()
    print(f"{shards_in}: {len(expected)} answers; {len(reported)} kills: {'; '.join(reported)}")
    assert diff_answers(expected, written(tmp_path / "out")) == ""


@pytest.mark.parametrize("shards_in", ["driver", "executors"])
def test_workers_that_stand_still_for_a_while_only_delay_answers(
    tmp_path: Path, shards_in: str
) -> None:
    feed = make_feed(6 * IN_BATCH)
    number = write_batches(tmp_path / "in", feed, IN_BATCH)
    write_batches(tmp_path / "in", [LAST], 1, first=number)
    run = started(tmp_path, shards_in)
    try:
        begun = partial(MOMENTS["the begin of a batch"], tmp_path, run.pid, 2)
        until(lambda: run.poll() is not None or begun(), "a batch")
        workers = chosen("workers", run.pid)
        assert workers
        for each in workers:
            os.kill(each, signal.SIGSTOP)
        time.sleep(STOPPED)
        assert run.poll() is None
        for each in workers:
            os.kill(each, signal.SIGCONT)
        assert run.wait(TO_THE_END) == 0, (tmp_path / "log").read_text()[-5000:]
    finally:
        kill(processes_of(run.pid))
        run.wait()
    expected = run_bounded(QUERY, feed, tasks=1, shards=2)
    assert diff_answers(expected, written(tmp_path / "out")) == ""
