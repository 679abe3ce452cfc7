"""Kill -9 in the midst of a run, then start again: every element once (semantics P2)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from brokers import REPO, KafkaBroker, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ELEMENTS = 300
# Every tenth line is no statement.
GOOD = [f'{time} <urn:s{time}> <urn:p> "{time}" .' for time in range(ELEMENTS) if time % 10]
BAD = [f"{time} <urn:s{time}> ." for time in range(ELEMENTS) if not time % 10]
LINES = sorted(GOOD + BAD, key=lambda line: int(line.split()[0]))
BATCH = 50
# What comes after the kill, so that there is something left to do however late the kill comes.
FIRST, REST = LINES[:-BATCH], LINES[-BATCH:]


def run(out: Path, *source: str) -> subprocess.Popen[bytes]:
    """Start the driver as the leader of a process group, so that its JVM can be killed with it."""
    with (out / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, REPO / "tests" / "crashing.py", out, *source],
            stdout=log,
            stderr=log,
            start_new_session=True,
            # A run of seconds does not earn back what the second compiler costs.
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"},
        )


def kill_amid_a_batch(out: Path, *source: str) -> None:
    """Kill once some batches are done and another one is just being written.

    On a machine that stalls all may be written by the time that one looks; then that has to do.
    """
    driver = run(out, "live", *source)

    def amid() -> bool:
        assert driver.poll() is None, f"ended by itself:\n{(out / 'log').read_text()}"
        done = len(list((out / "good").glob("0*")))
        return done * BATCH >= len(FIRST) or (done >= 2 and any((out / "good").glob(".batch-*")))

    try:
        until(amid, "a batch being written")
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def lines(folder: Path) -> list[str]:
    return [line for file in folder.glob("[!.]*") for line in file.read_text().splitlines()]


def finish_and_compare(out: Path, *source: str) -> None:
    assert 0 < len(lines(out / "good")) < len(GOOD)
    driver = run(out, "rest", *source)
    assert driver.wait(400) == 0, (out / "log").read_text()
    assert Counter(lines(out / "good")) == Counter(GOOD)
    letters = [json.loads(line) for line in lines(out / "dead")]
    assert Counter(letter["record"] for letter in letters) == Counter(BAD)


def test_files_to_files(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    out.mkdir()

    def add(first: int) -> None:
        text = "".join(f"{line}\n" for line in LINES[first : first + BATCH])
        (folder / f"{first:04d}.stream").write_text(text)

    for first in range(0, len(FIRST), BATCH):
        add(first)
    kill_amid_a_batch(out, "files", str(folder))
    add(len(FIRST))
    finish_and_compare(out, "files", str(folder))


@pytest.mark.kafka
@pytest.mark.spark
def test_kafka_to_files(spark: SparkSession, kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = kafka.topic()
    kafka.produce(spark, topic, list(FIRST))
    kill_amid_a_batch(tmp_path, "kafka", kafka.address, topic)
    kafka.produce(spark, topic, list(REST))
    finish_and_compare(tmp_path, "kafka", kafka.address, topic)
